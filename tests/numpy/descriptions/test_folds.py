"""The help of folds."""

import pytest

import calque
from calque.numpy.descriptions import folds


@pytest.mark.parametrize("name", sorted(folds._ENTRIES))
def test_every_entry_is_the_help_of_a_function(name: str) -> None:
    does, _, _, example = folds._ENTRIES[name]
    doc = getattr(calque.numpy, name).__doc__
    assert doc.startswith(does + "\n") and doc.endswith(example)
    assert all(len(line) <= 100 for line in doc.splitlines())
