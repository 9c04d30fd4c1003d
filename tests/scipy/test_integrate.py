"""The trapezoidal rule, held against SciPy."""

import numpy as np
import pytest
from scipy import integrate as theirs

import calque
from calque.scipy import integrate

Y = np.random.default_rng(0).normal(size=(3, 8)).astype(np.float32)
X = np.sort(np.random.default_rng(1).normal(size=8)).astype(np.float32)


@pytest.mark.parametrize(
    "options", [{}, {"dx": 0.5}, {"x": X}, {"axis": 0}, {"axis": 0, "dx": 2.0}]
)
def test_as_in_scipy(options):
    want = theirs.trapezoid(Y, **options)
    np.testing.assert_allclose(integrate.trapezoid(Y, **options), want, rtol=1e-5, atol=1e-6)


def test_the_derivative_is_the_weights():
    g = calque.grad(lambda y: integrate.trapezoid(y, dx=2.0))(Y[0])
    assert g.tolist() == [1] + [2] * 6 + [1]
    assert integrate.trapezoid(np.array([1, 2, 3])).dtype == np.float32
