"""Derivatives of the gamma distribution by its shape, over the whole range of shapes."""

import numpy as np
from scipy import special

from calque.ops import gamma_gradients as G


def test_against_differences():
    rng = np.random.default_rng(0)
    a = np.exp(rng.uniform(-3, 6, 200))
    x = a * np.exp(rng.normal(0, 1, 200) / np.sqrt(1 + a))
    h = 1e-4 * a
    steps = [special.gammainc(a + k * h, x) for k in (-2, -1, 1, 2)]
    want = (steps[0] - 8 * steps[1] + 8 * steps[2] - steps[3]) / (12 * h)
    np.testing.assert_allclose(G.distribution_gradient(a, x), want, rtol=1e-7, atol=1e-9 / a.min())


def test_small_shapes():
    # the derivative of P(a, x) by a tends to log x - digamma(1) as a and x become small
    a, x = np.array([1e-8]), np.array([1e-8])
    np.testing.assert_allclose(G.distribution_gradient(a, x), np.log(x) + np.euler_gamma, rtol=1e-6)


def test_edges():
    nan = np.nan
    a, x = np.array([1, 1, 0, -1, nan, 1, 1]), np.array([0, np.inf, 1, 1, 1, nan, -1])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(
            G.distribution_gradient(a, x), [0, 0, nan, nan, nan, nan, nan]
        )
    assert G.sample_gradient(np.ones((0, 2)), np.ones((0, 2))).shape == (0, 2)
    assert G.sample_gradient(np.float64(2.0), np.ones((3, 1))).shape == (3, 1)


def test_numbers_drawn_move_with_the_shape():
    a, u = np.array([0.3, 2.0, 50.0]), np.array([0.1, 0.5, 0.9])
    x = special.gammaincinv(a, u)
    h = 1e-5
    want = (special.gammaincinv(a + h, u) - special.gammaincinv(a - h, u)) / (2 * h)
    np.testing.assert_allclose(G.sample_gradient(a, x), want, rtol=1e-6)
