"""Integrals as weighted sums."""

import math

import numpy as np
import pytest

import calque.numpy as jnp
from calque.scipy.special.quadrature import half_line, integral, real_operands, unit_interval
from tests.ops.helpers import x64


@pytest.mark.parametrize("n", [1, 2, 5, 16])
def test_polynomials_up_to_the_degree_of_the_rule_are_exact(n):
    nodes, weights = unit_interval(n)
    for k in range(2 * n):
        assert (weights * nodes**k).sum() == pytest.approx(1 / (k + 1), rel=1e-13)
    assert ((nodes > 0) & (nodes < 1)).all()
    assert unit_interval(n) is unit_interval(n)


@pytest.mark.parametrize("n", [2, 5, 30, 60])
def test_moments_of_the_exponential(n):
    nodes, weights = half_line(n)
    assert (weights > 0).all() and weights.sum() == pytest.approx(1, rel=1e-12)
    for k in range(min(2 * n, 12)):
        assert (weights * nodes**k).sum() == pytest.approx(math.factorial(k), rel=1e-9)


def test_integrals_of_several_functions_at_once():
    with x64():
        a = jnp.array([[0.5], [1.0], [2.0]])
        got = integral(lambda t: jnp.exp(a * t), unit_interval(12), a)
        np.testing.assert_allclose(got, (np.exp(a[:, 0]) - 1) / a[:, 0], rtol=1e-13)
    assert integral(lambda t: t, unit_interval(4), jnp.ones((), "float32")).dtype == np.float32


def test_operands_are_floats_of_one_shape():
    (x, y), dtype = real_operands("f", np.float16([1, 2]), 3)
    assert x.dtype == y.dtype == np.float32 and dtype == np.float16
    assert x.shape == y.shape == (2,)
    (x,), dtype = real_operands("f", np.array([1, 2]))
    assert x.dtype == dtype == np.float32
    with pytest.raises((TypeError, ValueError), match="f"):
        real_operands("f", [1.0])
