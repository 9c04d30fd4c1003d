"""The error function and the normal distribution, held against SciPy."""

import numpy as np
import pytest
import scipy.special as theirs

import calque
import calque.scipy.special as sp

X = np.concatenate([np.linspace(-6, 6, 41), [-30, 30, 0]]).astype(np.float32)
P = np.concatenate([np.linspace(0.001, 0.999, 41), [1e-10, 0.5]]).astype(np.float32)


@pytest.mark.parametrize("name", ["erf", "erfc", "ndtr", "log_ndtr"])
def test_as_in_scipy(name):
    want = getattr(theirs, name)(X.astype(np.float64))
    atol = 1e-7 if name == "log_ndtr" else 1e-30
    np.testing.assert_allclose(getattr(sp, name)(X), want, rtol=2e-5, atol=atol)


def test_inverses():
    np.testing.assert_allclose(
        sp.ndtri(P), theirs.ndtri(P.astype(np.float64)), rtol=2e-5, atol=1e-6
    )
    y = np.linspace(-0.99, 0.99, 21).astype(np.float32)
    np.testing.assert_allclose(sp.erf(sp.erfinv(y)), y, rtol=1e-5, atol=1e-6)
    assert sp.ndtri(np.float32([0, 1])).tolist() == [-np.inf, np.inf]
    assert np.isnan(np.asarray(sp.ndtri(np.float32([-1, 2])))).all()


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
