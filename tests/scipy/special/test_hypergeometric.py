"""1F1 and 2F1: values beside SciPy, identities, and the equations that they solve."""

import numpy as np
import pytest
import scipy.special

import calque
import calque.numpy as jnp
from calque.scipy import special
from calque.scipy.special.hypergeometric import _gamma_ratio
from tests.ops.helpers import x64

X = np.array([-40.0, -3.0, -0.5, 0.0, 0.2, 1.0, 10.0, 60.0])


@pytest.mark.parametrize("a, b", [(0.3, 1.7), (2.5, 0.4), (-2.0, 1.5), (-0.5, 2.0), (3.0, 3.0)])
def test_1f1(a, b):
    with x64():
        np.testing.assert_allclose(
            special.hyp1f1(a, b, X), scipy.special.hyp1f1(a, b, X), rtol=1e-10, atol=1e-13
        )


@pytest.mark.parametrize("a, b, c", [(0.3, 1.2, 1.7), (2.5, 0.4, 3.3), (-3.0, 1.5, 0.7), (1, 1, 2)])
def test_2f1(a, b, c):
    x = np.array([-30.0, -2.0, -0.5, 0.0, 0.3, 0.5, 0.77, 0.99, 0.9999])
    with x64():
        np.testing.assert_allclose(
            special.hyp2f1(a, b, c, x), scipy.special.hyp2f1(a, b, c, x), rtol=1e-9, atol=1e-13
        )


def test_elementary_functions():
    x = np.array([-5.0, -0.5, 0.25, 0.9])
    with x64():
        np.testing.assert_allclose(special.hyp1f1(1.0, 2.0, x), np.expm1(x) / x, rtol=1e-12)
        np.testing.assert_allclose(special.hyp2f1(1.0, 1.0, 2.0, x), -np.log1p(-x) / x, rtol=1e-11)
        np.testing.assert_allclose(special.hyp2f1(0.7, 2.0, 2.0, x), (1 - x) ** -0.7, rtol=1e-11)
        np.testing.assert_allclose(
            special.hyp2f1(0.5, 1.0, 1.5, -(x**2)), np.arctan(x) / x, rtol=1e-11
        )


@pytest.mark.parametrize("x", [-2.0, 0.3, 0.8])
def test_they_solve_their_equations(x):
    a, b, c = 0.7, 1.3, 2.1
    with x64():

        def f(x):
            return special.hyp2f1(a, b, c, x)

        y, d1, d2 = f(x), calque.grad(f)(x), calque.grad(calque.grad(f))(x)
        left = x * (1 - x) * d2 + (c - (a + b + 1) * x) * d1 - a * b * y
        assert abs(float(left)) < 1e-10 * (1 + abs(float(d2)))

        def g(x):
            return special.hyp1f1(a, c, x)

        y, d1, d2 = g(x), calque.grad(g)(x), calque.grad(calque.grad(g))(x)
        assert abs(float(x * d2 + (c - x) * d1 - a * y)) < 1e-11


def test_derivatives_by_the_parameters():
    with x64():
        for f, at in ((special.hyp1f1, (0.7, 1.9, 1.5)), (special.hyp2f1, (0.7, 1.2, 1.9, 0.6))):
            for i in range(len(at) - 1):
                low, high = ([v + s * 1e-6 * (k == i) for k, v in enumerate(at)] for s in (-1, 1))
                want = (float(f(*high)) - float(f(*low))) / 2e-6
                assert float(calque.grad(f, i)(*map(float, at))) == pytest.approx(want, rel=1e-6)


def test_ratios_of_gamma():
    with x64():

        def ratio(tops, bottoms):
            return float(_gamma_ratio([*map(jnp.float64, tops)], [*map(jnp.float64, bottoms)]))

        g = scipy.special.gamma
        assert ratio([2.5, 3.0], [-0.5]) == pytest.approx(g(2.5) * g(3) / g(-0.5))
        assert ratio([2.5], [-1.0, 3.0]) == 0 and ratio([], []) == 1


def test_where_there_is_no_value():
    with np.errstate(all="ignore"):
        for args in ((1.0, -2.0, 0.5), (-3.0, -2.0, 0.5)):
            assert float(special.hyp1f1(*args)) == np.inf
        assert float(special.hyp1f1(-2.0, -3.0, 1.0)) == pytest.approx(
            scipy.special.hyp1f1(-2, -3, 1)
        )
        assert float(special.hyp2f1(1.0, 2.0, 3.0, 1.5)) == np.inf
        assert float(special.hyp2f1(1.0, 2.0, 3.0, 1.0)) == np.inf
        assert float(special.hyp2f1(-2.0, 2.0, 3.0, 5.0)) == pytest.approx(
            scipy.special.hyp2f1(-2, 2, 3, 5), rel=1e-5
        )
        assert np.isnan(special.hyp2f1(1.0, np.nan, 3.0, 0.5))
        assert np.isnan(special.hyp1f1(1.0, 2.0, np.nan))


@pytest.mark.parametrize("most, parameters", [(30, 20), (98, 20), (150, 20), (-30, 5)])
@pytest.mark.parametrize("wide", [False, True])
def test_1f1_of_large_parameters(most, parameters, wide):
    """Where the terms at infinity grow at first, and where a factor by itself would overflow."""
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(0.1, parameters, 300).astype(np.float32).astype(float) for _ in "ab")
    x = rng.uniform(min(most, 0), max(most, 0), 300).astype(np.float32).astype(float)
    want = scipy.special.hyp1f1(a, b, x)
    fits = np.abs(want) < 1e36
    dtype = np.float64 if wide else np.float32
    with calque.enable_x64(wide):
        got = np.asarray(special.hyp1f1(*(v.astype(dtype) for v in (a, b, x))))
    np.testing.assert_allclose(got[fits], want[fits], rtol=1e-9 if wide else 1e-4)


def test_1f1_has_slopes_in_its_parameters():
    at = tuple(np.float32([v]) for v in (1.5, 2.5, 3.0))
    got = calque.grad(lambda *v: special.hyp1f1(*v).sum(), (0, 1, 2))(*at)
    np.testing.assert_allclose(np.concatenate(got), [8.17898, -5.44116, 6.07694], rtol=1e-5)
