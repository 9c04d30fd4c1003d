"""Gamma functions and their kin, held against SciPy."""

import numpy as np
import pytest
import scipy.special as theirs

import calque
import calque.scipy.special as sp

X = np.array([0.1, 0.5, 1, 1.5, 3, 7.25, 20], np.float32)
NEGATIVE = np.array([-0.5, -1.5, -2.25], np.float32)


@pytest.mark.parametrize("name", ["gamma", "gammaln", "digamma", "factorial", "gammasgn"])
def test_of_one_number(name):
    x = X if name == "factorial" else np.concatenate([X, NEGATIVE])
    want = getattr(theirs, name)(x.astype(np.float64))
    np.testing.assert_allclose(getattr(sp, name)(x), want, rtol=3e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["betaln", "beta", "gammainc", "gammaincc", "poch"])
def test_of_two_numbers(name):
    a, b = np.meshgrid(X[:5], X[:5])
    want = getattr(theirs, name)(a.astype(np.float64), b.astype(np.float64))
    np.testing.assert_allclose(getattr(sp, name)(a, b), want, rtol=1e-4, atol=1e-6)


def test_rising_factorials_of_large_numbers():
    """Of numbers whose gamma functions have no number in float32."""
    z, m = np.float32([40, 300, -20.5, 90, 0.5]), np.float32([2, 1.5, 10, -3, 33])
    want = theirs.poch(z.astype("f8"), m.astype("f8"))
    np.testing.assert_allclose(sp.poch(z, m), want, rtol=1e-3)
    assert np.isfinite(calque.vmap(calque.grad(sp.poch, 1))(z[:2], m[:2])).all()


@pytest.mark.parametrize("n", [0, 1, 2, 4])
def test_polygamma(n):
    np.testing.assert_allclose(
        sp.polygamma(n, X), theirs.polygamma(n, X.astype(np.float64)), rtol=1e-4
    )


def test_zeta():
    np.testing.assert_allclose(sp.zeta(X[3:] + 1, 2.0), theirs.zeta(X[3:] + 1.0, 2.0), rtol=1e-4)
    with pytest.raises(NotImplementedError, match="Hurwitz"):
        sp.zeta(2.0)


def test_derivatives():
    np.testing.assert_allclose(
        calque.vmap(calque.grad(sp.gammaln))(X),
        theirs.digamma(X.astype(np.float64)),
        rtol=1e-4,
        atol=1e-5,
    )
    density = np.exp(-2.0) * 2.0**2 / 2  # of gammainc(3, x) at 2
    np.testing.assert_allclose(calque.grad(sp.gammainc, 1)(3.0, 2.0), density, rtol=1e-4)


def test_exact_factorials_name_the_remedy():
    with pytest.raises(NotImplementedError, match=r"math\.factorial"):
        sp.factorial(5, exact=True)
    assert float(sp.factorial(-1)) == 0
