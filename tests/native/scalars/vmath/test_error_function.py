"""erf, erfc and the inverse of erf against SciPy, and against each other."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

from calque.native.scalars.vmath import error_function
from tests.native.scalars.vmath.shared import (
    INF,
    NAN,
    NUMPY,
    SPECIAL,
    check_special,
    errors,
    outputs,
    run,
)

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def test_erf() -> None:
    check_special("erf", scipy.special.erf, (-5, 5), SPECIAL, (2.0, 4.0))


def test_erfc() -> None:
    check_special("erfc", scipy.special.erfc, (-3, 10), SPECIAL, (1.7, 16.0))


def test_erf_inv() -> None:
    tails = 1 - 10.0 ** np.random.default_rng(6).uniform(-16, -1, 2000)
    check_special("erf_inv", scipy.special.erfinv, (-1, 1), [*SPECIAL, *tails], (2.0, 16.0))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_the_ends(dtype: str) -> None:
    t = NUMPY[dtype]
    x = np.array([INF, -INF, NAN, 30.0, -30.0], t)
    np.testing.assert_array_equal(run("erf", dtype, x), np.array([1, -1, NAN, 1, -1], t))
    np.testing.assert_array_equal(run("erfc", dtype, x), np.array([0, 2, NAN, 0, 2], t))
    x = np.array([1, -1, np.nextafter(t(1), t(2)), -2, INF, NAN], t)
    np.testing.assert_array_equal(run("erf_inv", dtype, x), np.array([INF, -INF] + [NAN] * 4, t))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_they_are_inverse(dtype: str) -> None:
    """erf(erf_inv(x)) is x up to what the slope of erf leaves of an error."""
    t = NUMPY[dtype]
    x = np.linspace(-0.999, 0.999, 4001).astype(t)
    back = run("erf", dtype, run("erf_inv", dtype, x))
    assert (np.abs(back - x) <= 8 * np.spacing(np.abs(x)) + np.finfo(t).tiny).all()


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_a_whole_in_two_parts(dtype: str) -> None:
    t = NUMPY[dtype]
    x = np.linspace(-6, 6, 5001).astype(t)
    whole = run("erf", dtype, x) + run("erfc", dtype, x)
    assert np.abs(whole - 1).max() <= 4 * np.finfo(t).eps
    assert (np.diff(run("erfc", dtype, x)[x > 0]) <= 0).all()


def test_small_complements_keep_their_digits() -> None:
    """Down to the smallest numbers, where 1 - erf(x) would long be zero."""
    x = np.linspace(4, 9.1, 3000).astype(np.float32)
    got = run("erfc", "f32", x)
    assert (got > 0).all()
    assert errors(got, scipy.special.erfc(x.astype(np.float64))).max() <= 1.7


def test_the_last_two_steps_round_nothing() -> None:
    rng = np.random.default_rng(0)
    t = rng.uniform(-0.1, 0.1, 1000).astype(np.float32)
    few = (1.25, 0.5, -0.25, 0.125)
    (got,) = outputs(lambda v: [error_function.closing_poly(v, few)], t, out=["f64"])
    wide = t.astype(np.float64)
    inner = (wide * 0.125 - 0.25).astype(np.float32)  # as float32 has it
    assert np.allclose(got, wide * (wide * inner + 0.5) + 1.25, rtol=1e-15, atol=0)
