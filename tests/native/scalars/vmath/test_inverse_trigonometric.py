"""asin, acos, atan and atan2 against wider arithmetic, and what binds them together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from calque.native.scalars.vmath import inverse_trigonometric
from calque.native.scalars.vmath.base import equal
from tests.native.scalars.vmath.shared import (
    INF,
    NAN,
    NUMPY,
    check,
    errors,
    outputs,
    pairs,
    run,
)

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

FUNCTIONS: dict[str, tuple[Callable[[Any], Any], tuple[float, float]]] = {
    "asin": (np.arcsin, (-1, 1)),
    "acos": (np.arccos, (-1, 1)),
    "atan": (np.arctan, (-4, 4)),
}


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_against_wider_arithmetic(name: str, dtype: str) -> None:
    f, limits = FUNCTIONS[name]
    check(name, dtype, f, limits, 1.5)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_atan2(dtype: str) -> None:
    x, y = pairs(dtype)
    wide = [a.astype(np.longdouble) for a in (x, y)]
    got = run("atan2", dtype, x, y)
    assert errors(got, np.arctan2(*wide)).max() <= 2.0
    zeros = ((x == 0) | (y == 0)) & ~np.isnan(x + y)
    assert zeros.any() and (np.signbit(got) == np.signbit(np.arctan2(x, y)))[zeros].all()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_every_octant_of_atan2(dtype: str) -> None:
    """Zeros, equal sizes and infinities: the sixteen directions in which nothing is rounded but
    the angle."""
    t = NUMPY[dtype]
    for size in (1.0, INF, 1e-40, 3e38):
        axis = np.array([size, size, 0.0, -size, -size, -size, -0.0, size], t)
        y = np.array([0.0, size, size, size, -0.0, -size, -size, -size], t)
        got = run("atan2", dtype, y, axis)
        want = np.arctan2(y.astype(np.longdouble), axis.astype(np.longdouble))
        assert errors(got, want).max() <= 1.0
        assert (np.signbit(got) == np.signbit(want)).all()
    nans = run("atan2", dtype, np.array([NAN, 1, NAN], t), np.array([1, NAN, INF], t))
    assert np.isnan(nans).all()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_outside_of_the_unit_interval(dtype: str) -> None:
    t = NUMPY[dtype]
    beyond = np.nextafter(t(1), t(2))
    for name in ("asin", "acos"):
        x = np.array([beyond, -beyond, 7, INF, -INF, NAN], t)
        assert np.isnan(run(name, dtype, x)).all()
    ends = np.array([1, -1], t)
    assert run("asin", dtype, ends).tolist() == [t(np.pi / 2), t(-np.pi / 2)]
    assert run("acos", dtype, ends).tolist() == [0, t(np.pi)]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_the_parts_of_an_arcsine(dtype: str) -> None:
    """asin(s) = s + tail for an s of at most one half, from which asin(|x|) is made."""
    t = NUMPY[dtype]
    x = np.concatenate([np.linspace(-1, 1, 4001), [0.5, -0.5]]).astype(t)
    big, s, tail = outputs(inverse_trigonometric.arcsine_parts, x, out=["i1", dtype, dtype])
    a = np.abs(x)
    assert (big.view(bool) == (a > 0.5)).all() and (s[a <= 0.5] == a[a <= 0.5]).all()
    assert s.max() <= 0.5
    half = np.sqrt((1 - a.astype(np.longdouble)) / 2)
    assert errors(s[a > 0.5], half[a > 0.5]).max() <= 1.0
    assert errors(s + tail, np.arcsin(s.astype(np.longdouble))).max() <= 1.0


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_unfolding(dtype: str) -> None:
    """atan(r), and the angle that is missing to a right one."""
    t = NUMPY[dtype]
    r = np.linspace(0, 1, 3001).astype(t)
    unfold = inverse_trigonometric.unfold
    near, far = outputs(
        lambda v: [unfold(equal(v, -1.0), v, dtype), unfold(equal(v, v), v, dtype)],
        r,
        out=[dtype] * 2,
    )
    wide = np.arctan(r.astype(np.longdouble))
    pi = np.longdouble("3.141592653589793238462643383279502884")
    assert errors(near, wide).max() <= 1.5 and errors(far, pi / 2 - wide).max() <= 1.0
