"""The help of Fourier transforms."""

import pytest

import calque
from calque.numpy.descriptions import transforms


@pytest.mark.parametrize("name", sorted(transforms._ENTRIES))
def test_every_entry_is_the_help_of_a_function(name: str) -> None:
    does, _, _, example = transforms._ENTRIES[name]
    doc = getattr(calque.numpy.fft, name).__doc__
    assert doc.startswith(does + "\n") and doc.endswith(example)
    assert all(len(line) <= 100 for line in doc.splitlines())
