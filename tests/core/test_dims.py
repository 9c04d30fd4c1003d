"""Free sizes: arithmetic, questions and their guards."""

import math

import numpy as np
import pytest

from calque.core import dims
from calque.core.dims import (
    Dim,
    hint_of,
    product,
    surely_divides,
    surely_equal,
    surely_less,
)
from calque.core.errors import ConcretizationTypeError
from calque.core.extents import larger, slice_bounds, smaller
from calque.core.symbols import Symbols


def sizes(*hints):
    s = Symbols(hints)
    return s, *s.sizes()


def test_arithmetic_is_that_of_the_hints():
    s, n, m = sizes(12, 5)
    cases = [
        n + 3,
        3 - n,
        n * m + 2 * n,
        n // 4,
        n % 4,
        (n * m) // n,
        -n,
        n // m,
        n**2,
        (4 * n) // 4,
        (n + 1) // 2 * 2,
    ]
    values = [15, -9, 84, 3, 0, 5, -12, 2, 144, 12, 12]
    assert [hint_of(c) for c in cases] == values
    assert s.program([("value", c.poly) for c in cases if isinstance(c, Dim)])(12, 5) == tuple(
        values
    )
    assert (n * m) // n is m and n - n == 0 and (2 * n) % 2 == 0 and type(n - n) is int


def test_what_is_certain_is_not_asked():
    s, n, m = sizes(12, 5)
    assert n > 0 and n >= 1 and not n < 1 and n * m > 0 and n == n and n + m == m + n and n != n + 1
    assert not n - n // 2 < 0 and n // 2 <= n and n % 7 < 7 and bool(n)
    assert s.guards == {}


def test_questions_become_guards():
    s, n, m = sizes(12, 5)
    assert n != 1 and n > m and n != 7
    assert list(s.guards.values()) == [False, True, False]
    holds = s.program(list(s.guards))
    assert holds(12, 5) == tuple(s.guards.values())
    assert holds(1, 5) != tuple(s.guards.values()) and holds(30, 2) == tuple(s.guards.values())


def test_the_number_itself_pins():
    for use in (int, range, float, lambda n: [0] * n):
        s, n = sizes(12)
        use(n)
        assert list(s.guards.values()) == [True] and s.program(list(s.guards))(12) == (True,)
        assert s.program(list(s.guards))(13) == (False,)


def test_nothing_is_asked_after_the_end():
    s, n = sizes(12)
    s.open = False
    assert n == 12 and s.guards == {}


def test_helpers():
    s, n = sizes(12)
    assert product((n, 2, 3)) == 6 * n and product(()) == 1
    assert surely_equal(n, n) and not surely_equal(n, 12) and surely_equal(3, 3)
    assert surely_divides(4, 8 * n) and not surely_divides(4, n)
    assert s.guards == {}


@pytest.mark.parametrize(
    "index",
    [
        slice(None),
        slice(1, None),
        slice(None, -1),
        slice(2, 7),
        slice(None, None, 2),
        slice(None, None, -1),
        slice(-3, None),
    ],
)
@pytest.mark.parametrize("size", [8, 9])
def test_slices(index, size):
    _, n = sizes(size)
    start, length, step = slice_bounds(index, n)
    first, end, by = index.indices(size)
    assert (hint_of(start), hint_of(length), step) == (first, len(range(first, end, by)), by)


def test_it_prints_as_it_is_written():
    _, n, m = sizes(12, 5)
    assert str(n) == "n" and str(2 * n * m - 3) == "2*n*m - 3" and str(n // 2) == "floordiv(n, 2)"
    assert f"{n:>3}" == "  n" and repr((n, 3)) == "(n, 3)"


def test_negative_numbers_are_divided_as_in_python():
    s, n = sizes(12)
    assert (-1) % n == n - 1 and (-1) // n == -1 and s.guards == {}
    assert hint_of((-5) % n) == 7 and hint_of((-30) % n) == 6 and hint_of((-30) // n) == -3


def test_division_by_zero():
    _, n = sizes(12)
    with pytest.raises(ZeroDivisionError):
        n // 0


# ---------------------------------------------------------------- found sizes


def test_found_sizes_answer_what_their_bounds_answer():
    s = Symbols((7,))
    (n,) = s.sizes()
    k = s.found("mask", n)
    assert k >= 0 and k <= n and not k > n and not s.guards
    assert not surely_less(k, 3) and surely_less(k, n + 1) and not surely_less(n, k)
    assert larger(k, -1) is k and smaller(k, n) is k and larger(n - k, 0) == n - k
    with pytest.raises(ConcretizationTypeError, match=r"mask at .*test_dims"):
        bool(k > 3)
    with pytest.raises(ConcretizationTypeError, match="its value"):
        int(k)
    assert str(k) == "m" and not s.guards


def test_smaller_and_larger_of_found_sizes():
    s = Symbols(())
    k = s.found("mask", 10)
    a, b, c = larger(k - 1, 0), smaller(k, 3), larger(larger(k - 1, 0) - 1, 0)
    assert c == larger(k - 2, 0)  # max(max(k - 1, 0) - 1, 0)
    values = s.program([("value", d.poly) for d in (a, b, c, -(-k // 4), 2 * k + 1)])
    for n in range(6):
        assert values(a0=n) == (max(n - 1, 0), min(n, 3), max(n - 2, 0), -(-n // 4), 2 * n + 1)
    for index in (
        slice(1, None),
        slice(None, -1),
        slice(2, 5),
        slice(-3, None),
        slice(-4, -1),
        slice(None, 3),
    ):
        _, length, _ = slice_bounds(index, k)
        size = s.program([("value", length.poly)])
        assert [size(a0=n)[0] for n in range(8)] == [len(range(n)[index]) for n in range(8)]


def test_an_integer_that_is_none_is_told_with_the_name_of_its_argument():
    for value in (math.nan, math.inf, 3.5, np.float32(3)):
        with pytest.raises(TypeError, match=r"n must be an integer, got .*Divide sizes by //"):
            dims.whole(value, "n")
    with pytest.raises(TypeError, match="n must be an integer, got '3': 'str' object cannot be"):
        dims.as_size("3", "n")
    with pytest.raises(TypeError, match=r"interpreted as an integer$"):  # an axis is no quotient
        dims.whole(1.5, "axis")
    assert dims.whole(np.uint8(3), "n") == 3
