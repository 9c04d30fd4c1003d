"""Docstrings made of parts."""

from calque.numpy.descriptions.parts import described, entries

TABLE = """
double: Twice the number,
or the text twice.
= A number.
>>> 2 * 3
6

half: Half of it.
! It is a float.
>>> 1 / 2
0.5
"""


def test_entries_are_read_with_the_parts_they_have() -> None:
    found = entries(TABLE)
    assert list(found) == ["double", "half"]
    assert found["double"] == (
        "Twice the number,\nor the text twice.",
        "A number.",
        "",
        ">>> 2 * 3\n6",
    )
    assert found["half"] == ("Half of it.", "", "It is a float.", ">>> 1 / 2\n0.5")


def test_parts_stand_under_their_headings() -> None:
    text = described("Does it.", "x: a number,\n    not a text.", "A number.", ">>> 1\n1")
    assert text == (
        "Does it.\n\nArgs:\n    x: a number,\n        not a text.\n"
        "Returns:\n    A number.\n\n>>> 1\n1"
    )
    assert "Differs from NumPy:\n    All.\n\n>>>" in described("D.", "x: y.", "R.", ">>> 1", "All.")
