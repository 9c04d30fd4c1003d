"""Docstrings made of parts."""

from calque.numpy.descriptions.parts import described


def test_parts_stand_under_their_headings() -> None:
    text = described("Does it.", "x: a number,\n    not a text.", "A number.", ">>> 1\n1")
    assert text == (
        "Does it.\n\nArgs:\n    x: a number,\n        not a text.\n"
        "Returns:\n    A number.\n\n>>> 1\n1"
    )
