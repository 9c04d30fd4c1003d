"""Comparisons of indices among the lanes of a vector, whatever they are compared with."""

import numpy as np
import pytest

from calque.native.loops.tree import For, Store
from calque.native.scalars.expr import const, ex, load, select, var
from tests.native.emit.shared import f32, i, n
from tests.native.run_kernel import array, run_plain

BOUNDS = (0, 1, -1, 3, 7, 8, 9, 20, 40, 41, 2**31 - 1, 2**31, 2**32 + 3, 2**40, -(2**40), 2**62)
HOLDS = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}


@pytest.mark.parametrize("avx512", [False, True])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("name", HOLDS)
def test_bounds_far_and_near(name, turned, avx512):
    """d against a bound, the bound against d, and d on the side that is taken away."""
    bound, y = var("bound"), array("y", "f32", n)
    asked = ex(name, bound, i) if turned else ex(name, i, bound)
    away = ex(name, ex("sub", bound, i), const(2))
    value = ex("add", select(asked, f32(1), f32(0)), select(away, f32(2), f32(0)))
    body = (For(i, (Store(y, (i,), value),), (), "vector", 16),)
    d = np.arange(41)
    for b in BOUNDS:
        got = np.full(41, 9, "f4")
        text = run_plain(body, {y: got, "n": 41, "bound": b}, avx512=avx512, register_bytes=32)
        first = HOLDS[name](b, d) if turned else HOLDS[name](d, b)
        want = first.astype("f4") + 2 * HOLDS[name](b - d, 2)
        np.testing.assert_array_equal(got, want)
    assert "x i64> <i64 0, i64 1" not in text  # no vector of indices is made


def test_steps_of_more_than_one_are_compared_as_they_are():
    x, y = array("x", "f32", var("m")), array("y", "f32", n)
    twice = ex("mul", i, const(2))
    value = load(x, (twice,), ex("lt", twice, var("m")))
    body = (For(i, (Store(y, (i,), value),), (), "vector", 8),)
    a, got = np.arange(1.0, 20.0).astype("f4"), np.zeros(16, "f4")
    run_plain(body, {x: a, y: got, "n": 16, "m": len(a)}, avx512=False, register_bytes=32)
    np.testing.assert_array_equal(got, np.pad(a[::2], (0, 6)))
