"""Windows side by side: how many there are, and the padding that strings stand for."""

from itertools import product

import pytest

from calque.ops import padding


def test_dilated():
    assert [padding.dilated(n, 3) for n in (0, 1, 2, 4)] == [0, 1, 4, 10]
    assert padding.dilated(5, 1) == 5


@pytest.mark.parametrize("size, window, stride", [*product((0, 1, 5, 8), (1, 2, 3), (1, 2, 4))])
def test_windows_that_fit(size, window, stride):
    there = [k for k in range(0, size, stride) if k + window <= size]
    assert padding.window_count(size, window, stride) == len(there)


@pytest.mark.parametrize("size, window, stride", [*product((1, 5, 8), (1, 2, 3), (1, 2, 3))])
def test_padding_by_name(size, window, stride):
    def pads(name):
        return padding.padtype_to_pads((size,), (window,), (stride,), name)[0]

    assert pads("VALID") == (0, 0) == pads("valid")
    (a, b), (c, d) = pads("SAME"), pads("SAME_LOWER")
    assert a + b == c + d and 0 <= b - a <= 1 and 0 <= c - d <= 1
    assert padding.window_count(size + a + b, window, stride) == -(-size // stride)


def test_bad_arguments():
    with pytest.raises((ValueError, RuntimeError, TypeError), match="WRONG"):
        padding.padtype_to_pads((4,), (2,), (1,), "WRONG")
    with pytest.raises((ValueError, TypeError), match="strides"):
        padding.per_dimension((1, 2), 3, "strides")
    with pytest.raises((ValueError, TypeError), match="strides"):
        padding.per_dimension((1, 0), 2, "strides")
    with pytest.raises((ValueError, TypeError), match="pads"):
        padding.canonical_pads(((1, 2),), 2, "pads")


def test_one_for_each_dimension():
    assert padding.per_dimension(None, 3, "strides") == (1, 1, 1)
    assert padding.per_dimension((2, 3), 2, "strides") == (2, 3)
    assert padding.canonical_pads([(1, 2), [0, 3]], 2, "pads") == ((1, 2), (0, 3))
