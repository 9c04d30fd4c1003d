"""Division, remainder, minimum and maximum of indices: values kept, parts found, users unharmed."""

import numpy as np
import pytest

from calque.native.scalars import index, sums
from calque.native.scalars.node import Expr, const, make, param, var
from calque.native.scalars.sums import ONE, ZERO
from tests.native.scalars.test_sums import value

n, m = var("n"), var("m")
i, j = var("i", n), var("j", m)
k, t = var("k", 12), var("t", 5)


def by(e: Expr, factor: int) -> Expr:
    return sums.mul(e, const(factor))


def test_values_are_kept() -> None:
    """All small mixed radices, at all values of their variables."""
    rng = np.random.default_rng(0)
    for _ in range(150):
        a, b, c = (int(x) for x in rng.integers(0, 30, 3))
        at = sums.add(sums.add(by(k, a), by(t, b)), const(c))
        d = const(int(rng.integers(1, 14)))
        q, r = index.floordiv(at, d), index.mod(at, d)
        low, high = index.minimum(at, d), index.maximum(at, d)
        for x in range(12):
            for y in range(5):
                names = {"k": x, "t": y}
                v = a * x + b * y + c
                assert value(q, names) == v // d.attr and value(r, names) == v % d.attr
                want = {"min": min(v, d.attr), "max": max(v, d.attr)}
                for e, op in ((low, "min"), (high, "max")):
                    got = want[op] if e.op == op else value(e, names)
                    assert got == want[op]


def test_what_is_a_multiple_stands_before() -> None:
    at = sums.add(by(i, 12), by(t, 2))
    assert index.floordiv(at, const(12)) is i
    assert index.mod(at, const(12)) is by(t, 2)
    assert index.floordiv(at, const(4)) is sums.add(by(i, 3), index.floordiv(by(t, 2), const(4)))
    row = sums.add(make("mul", (i, m), "i64"), j)
    assert index.floordiv(row, m) is i and index.mod(row, m) is j
    assert index.floordiv(sums.add(row, m), m) is sums.add(i, ONE)


def test_units_and_numbers() -> None:
    assert index.floordiv(i, ONE) is i and index.mod(i, ONE) is ZERO
    assert (
        index.floordiv(const(17), const(5)) is const(3) and index.mod(const(17), const(5)).attr == 2
    )
    assert index.floordiv(k, const(12)) is ZERO and index.mod(k, const(12)) is k
    assert index.floordiv(index.floordiv(n, const(3)), const(4)) is index.floordiv(n, const(12))
    assert index.mod(index.mod(n, const(12)), const(4)) is index.mod(n, const(4))
    assert index.mod(index.mod(n, const(12)), const(5)).args[0].op == "mod"


@pytest.mark.parametrize("f", [index.floordiv, index.mod])
def test_division_by_zero_is_left(f) -> None:  # type: ignore[no-untyped-def]
    """It is never run; here it must neither raise nor be given a value."""
    for a in (const(3), i):
        e = f(a, ZERO)
        assert e.op in ("floordiv", "mod") and e.args == (a, ZERO)


def test_integers_of_users_are_not_taken_apart() -> None:
    """They may be negative, and their sums may wrap."""
    x = param("x", "i64")
    at = sums.add(by(x, 4), t)
    for f in (index.floordiv, index.mod):
        assert f(at, const(4)).args == (at, const(4))
    assert index.minimum(x, sums.add(x, ONE)).op == "min"


def test_minimum_and_maximum_of_what_is_known() -> None:
    last = sums.sub(n, ONE)
    assert index.minimum(i, last) is i and index.minimum(last, i) is i
    assert index.maximum(i, last) is last and index.maximum(ZERO, i) is i
    assert index.minimum(i, j).op == "min" and index.maximum(i, j).op == "max"
    assert index.minimum(k, k) is k
