"""What slices select of an axis: as Python says, for plain, free and found sizes."""

import itertools

import pytest

from calque.core.dims import is_found
from calque.core.extents import larger, slice_bounds, smaller
from calque.core.symbols import Symbols

ENDS = (None, -7, -2, -1, 0, 1, 3, 9)
STEPS = (None, 1, 2, -1, -3)


@pytest.mark.parametrize("size", [0, 1, 5])
def test_of_plain_sizes(size: int) -> None:
    for start, stop, step in itertools.product(ENDS, ENDS, STEPS):
        s = slice(start, stop, step)
        first, length, by = slice_bounds(s, size)
        assert [first + k * by for k in range(length)] == list(range(size))[s]


@pytest.mark.parametrize("hint", [2, 5])
def test_of_free_sizes(hint: int) -> None:
    """The guards hold for the hint: so do the answers."""
    for start, stop, step in itertools.product(ENDS, ENDS, STEPS):
        (n,) = Symbols((hint,)).sizes()
        s = slice(start, stop, step)
        first, length, by = (int(v) if isinstance(v, int) else v.hint for v in slice_bounds(s, n))
        assert [first + k * by for k in range(length)] == list(range(hint))[s], s


def test_no_step_of_zero() -> None:
    with pytest.raises(ValueError, match="step cannot be zero"):
        slice_bounds(slice(None, None, 0), Symbols((3,)).sizes()[0])
    with pytest.raises(ValueError, match="step cannot be zero"):
        slice_bounds(slice(None, None, 0), 3)


@pytest.mark.parametrize("value", [0, 1, 4, 8])
def test_of_found_sizes(value: int) -> None:
    for start, stop in itertools.product(ENDS, ENDS):
        symbols = Symbols(())
        n = symbols.found("nonzero", 8)
        s = slice(start, stop)
        first, length, _ = slice_bounds(s, n)
        symbols.settle(n, value)
        first, length = (
            v if isinstance(v, int) else symbols.value(v.poly) for v in (first, length)
        )
        assert list(range(first, first + length)) == list(range(value))[s] or (
            length == 0 and not list(range(value))[s]
        ), s


def test_the_smaller_and_the_larger() -> None:
    assert (smaller(2, 3), larger(2, 3)) == (2, 3)
    symbols = Symbols((4,))
    (n,) = symbols.sizes()
    assert smaller(n, n + 1) is n and larger(n, n + 1) == n + 1 and not symbols.guards
    found = symbols.found("nonzero", 5)
    assert smaller(found, 5) is found and larger(found, 5) == 5  # its bounds say so
    between = smaller(found, 3)
    assert is_found(between) and between is smaller(3, found)
    symbols.settle(found, 2)
    assert symbols.value(between.poly) == 2 and symbols.value(larger(found, 3).poly) == 3


def test_steps_of_slices_are_integers():
    with pytest.raises(TypeError, match="the step of a slice must be an integer, got nan"):
        slice_bounds(slice(None, None, float("nan")), 3)
