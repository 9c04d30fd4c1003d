"""The error function and the normal distribution, held against SciPy."""

import math

import numpy as np
import pytest
import scipy.special as theirs

import calque
import calque.scipy.special as sp
from calque.core.config import config

X = np.concatenate([np.linspace(-6, 6, 41), [-30, 30, 0]]).astype(np.float32)
P = np.concatenate([np.linspace(0.001, 0.999, 41), [1e-10, 0.5]]).astype(np.float32)


@pytest.mark.parametrize("name", ["erf", "erfc", "ndtr", "log_ndtr"])
def test_as_in_scipy(name):
    want = getattr(theirs, name)(X.astype(np.float64))
    np.testing.assert_allclose(getattr(sp, name)(X), want, rtol=2e-5, atol=1e-30)


def test_inverses():
    np.testing.assert_allclose(
        sp.ndtri(P), theirs.ndtri(P.astype(np.float64)), rtol=2e-5, atol=1e-6
    )
    y = np.linspace(-0.99, 0.99, 21).astype(np.float32)
    np.testing.assert_allclose(sp.erf(sp.erfinv(y)), y, rtol=1e-5, atol=1e-6)
    assert sp.ndtri(np.float32([0, 1])).tolist() == [-np.inf, np.inf]
    assert np.isnan(np.asarray(sp.ndtri(np.float32([-1, 2])))).all()


def test_quantiles_of_the_tails_are_right_to_their_last_digits() -> None:
    """Down to the least number, and as near to 1 as floats are."""
    for dtype, least, ulps in ((np.float32, 1e-45, 3), (np.float64, 5e-324, 5)):
        low = np.logspace(math.log10(least), -1.3, 3001)
        p = np.concatenate([low, 1 - np.logspace(-16, -1.3, 301)]).astype(dtype)
        with config.override("calque_enable_x64", dtype == np.float64):
            got = np.asarray(calque.jit(sp.ndtri)(p))
        assert got.dtype == dtype
        want = theirs.ndtri(p.astype(np.float64))
        inside = np.isfinite(want)
        np.testing.assert_array_equal(got[~inside], want[~inside])
        error = np.abs(got[inside].astype(np.float64) - want[inside])
        assert (error <= ulps * np.spacing(np.abs(got[inside]))).all()


def test_quantiles_of_half_types() -> None:
    p = np.array([0.001, 0.01, 0.3, 0.5, 0.97], np.float16)
    got = sp.ndtri(p)
    assert got.dtype == np.float16
    np.testing.assert_array_equal(got, theirs.ndtri(p.astype(np.float64)).astype(np.float16))


def test_derivatives():
    density = np.exp(-(X[:41] ** 2) / 2) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(
        calque.vmap(calque.grad(sp.ndtr))(X[:41]), density, rtol=1e-4, atol=1e-9
    )
    slope = calque.grad(sp.log_ndtr)(-20.0)
    assert abs(float(slope) - 20.05) < 0.05  # the tail keeps its slope
    inverse = calque.grad(sp.ndtri)(0.5)
    np.testing.assert_allclose(inverse, np.sqrt(2 * np.pi), rtol=1e-5)


@pytest.mark.parametrize("f", [sp.ndtr, sp.log_ndtr, sp.ndtri])
def test_integers_are_refused(f):
    with pytest.raises(TypeError):
        f(3)
