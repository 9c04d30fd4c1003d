"""Gamma values and what is made of them: moments, and gradients in the parameters."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import random

KEY, N = random.key(0), 20_000


@pytest.mark.parametrize(
    "draw, mean, variance",
    [
        (lambda: random.gamma(KEY, 0.3, (N,)), 0.3, 0.3),
        (lambda: random.gamma(KEY, 5.0, (N,)), 5, 5),
        (lambda: random.beta(KEY, 2.0, 3.0, (N,)), 0.4, 0.04),
        (lambda: random.chisquare(KEY, 4.0, (N,)), 4, 8),
        (lambda: random.t(KEY, 9.0, (N,)), 0, 9 / 7),
        (lambda: random.f(KEY, 5.0, 14.0, (N,)), 14 / 12, 0.926),
        (lambda: jnp.exp(random.loggamma(KEY, 2.0, (N,))), 2, 2),
    ],
)
def test_moments(draw, mean, variance):
    x = np.asarray(draw()).astype(np.float64)
    assert abs(x.mean() - mean) < 6 * np.sqrt(variance / N)
    assert abs(x.var() - variance) < 0.2 * variance


def test_probabilities_sum_to_one():
    x = random.dirichlet(KEY, jnp.array([1.0, 2.0, 5.0]), (1000,))
    np.testing.assert_allclose(x.sum(-1), 1, rtol=1e-5)
    np.testing.assert_allclose(x.mean(0), [1 / 8, 2 / 8, 5 / 8], atol=0.03)


def test_small_shapes_are_precise_in_logarithms():
    x = random.loggamma(KEY, 1e-4, (100,))
    assert bool(jnp.isfinite(x).all()) and float(x.min()) < -1000


def test_gradients_are_those_of_the_mean():
    """The mean of gamma(a) is a: its derivative is 1."""
    g = calque.grad(lambda a: random.gamma(KEY, a, (N,)).mean())(3.0)
    assert abs(float(g) - 1) < 0.03


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_small_floats_and_every_kind_of_key(dtype, impl):
    key = random.key(20, impl=impl)
    for draw in (random.gamma(key, 2.0, (64,), dtype), random.beta(key, 1.0, 2.0, (64,), dtype)):
        assert draw.dtype == dtype and (draw >= 0).all()
