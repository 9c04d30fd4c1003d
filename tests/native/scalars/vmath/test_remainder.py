"""Remainders are exact, whatever the quotient."""

from __future__ import annotations

import numpy as np
import pytest

from calque.native.scalars.vmath import remainder
from tests.native.scalars.vmath.shared import INF, NAN, NUMPY, errors, outputs, pairs, run

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_they_are_exact(dtype: str) -> None:
    x, y = pairs(dtype)
    thin = y / NUMPY[dtype](1000)
    for divisor in (y, thin):
        want = np.fmod(x.astype(np.longdouble), divisor.astype(np.longdouble))
        assert errors(run("rem", dtype, x, divisor), want).max() == 0


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_the_largest_by_the_smallest(dtype: str) -> None:
    """All steps are needed; multiples leave a zero with the sign of x."""
    t = NUMPY[dtype]
    info = np.finfo(t)
    tiny = info.smallest_subnormal * np.array([1, 3, 7, 1000003], t)
    for x in (info.max, -info.max, t(2.0) ** (info.maxexp - 1)):
        got = run("rem", dtype, np.full(4, x, t), tiny)
        assert got.tolist() == np.fmod(np.full(4, x, t), tiny).tolist()
        assert (np.signbit(got) == (x < 0)).all()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_what_has_no_remainder(dtype: str) -> None:
    t = NUMPY[dtype]
    x = np.array([1, INF, -INF, NAN, 1, 0, 5, -0.0, -3], t)
    y = np.array([0, 1, 2, 1, NAN, -0.0, INF, 7, -INF], t)
    got = run("rem", dtype, x, y)
    np.testing.assert_array_equal(got, np.fmod(x, y))
    assert np.signbit(got[-2:]).all()


def test_one_step_mends_its_quotient() -> None:
    """A quotient that rounding made too large shows as a rest below zero."""
    rng = np.random.default_rng(0)
    s = rng.uniform(1, 2, 5000)
    r = np.nextafter(np.floor(2.0 ** rng.uniform(0, 50, 5000)) * s, 0)
    rounded_up = np.trunc(r / s) > np.floor(r.astype(np.longdouble) / s)
    (got,) = outputs(lambda a, b: [remainder.one_step(a, b)], r, s, out=["f64"])
    assert rounded_up.any() and (got == np.fmod(r, s)).all()


def test_many_steps_reach_as_far_as_their_number() -> None:
    rng = np.random.default_rng(1)
    b = rng.uniform(1, 2, 500)
    for steps in (1, 2, 5):
        a = rng.uniform(1, 2, 500) * 2.0 ** rng.integers(0, remainder.STEP * steps - 1, 500)
        (got,) = outputs(lambda x, y: [remainder.many_steps(x, y, steps)], a, b, out=["f64"])
        assert (got == np.fmod(a, b)).all(), steps
