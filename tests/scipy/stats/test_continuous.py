"""Distributions on the real line: densities and probabilities belong together, far tails, invalid
shapes."""

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import calque.numpy as jnp
from calque.scipy import stats
from tests.ops.helpers import x64

SHAPES = {
    "norm": (), "cauchy": (), "expon": (), "laplace": (), "logistic": (), "uniform": (),
    "gumbel_l": (), "gumbel_r": (), "gamma": (2.5,), "chi2": (3.0,), "beta": (2.0, 1.5),
    "pareto": (2.5,), "gennorm": (1.7,), "truncnorm": (-1.0, 2.0),
}  # fmt: skip
INVERTED = [n for n in SHAPES if hasattr(getattr(stats, n), "ppf")]


@pytest.mark.parametrize("name", SHAPES)
def test_probabilities_are_integrals_of_densities(name):
    d, shapes = getattr(stats, name), SHAPES[name]
    with x64():
        for low, high in ((-0.7, 0.4), (0.2, 0.9), (0.5, 3.0)):
            want, _ = scipy.integrate.quad(
                lambda x: float(d.pdf(x, *shapes)), low, high, points=[0, 1], limit=200
            )
            got = float(d.cdf(high, *shapes) - d.cdf(low, *shapes))
            assert got == pytest.approx(want, rel=1e-6, abs=1e-9)
        x = np.linspace(-2, 4, 13)
        density = np.asarray(d.pdf(x, *shapes))
        np.testing.assert_allclose(np.exp(np.asarray(d.logpdf(x, *shapes))), density, rtol=1e-12)
        if hasattr(d, "sf"):
            np.testing.assert_allclose(d.sf(x, *shapes), 1 - d.cdf(x, *shapes), atol=1e-12)
        for f in ("sf", "cdf"):
            if hasattr(d, f"log{f}"):
                log, p = getattr(d, f"log{f}"), getattr(d, f)
                np.testing.assert_allclose(np.exp(log(x, *shapes)), p(x, *shapes), atol=1e-12)


@pytest.mark.parametrize("name", INVERTED)
def test_quantiles_undo_probabilities(name):
    d, shapes = getattr(stats, name), SHAPES[name]
    p = np.array([1e-6, 0.01, 0.3, 0.5, 0.9, 0.999])
    with x64():
        shapes = (*shapes, 2.0, 3.0)
        np.testing.assert_allclose(d.cdf(d.ppf(p, *shapes), *shapes), p, rtol=1e-9)
        if hasattr(d, "isf"):
            np.testing.assert_allclose(d.sf(d.isf(p, *shapes), *shapes), p, rtol=1e-9)
        with np.errstate(all="ignore"):
            assert np.isnan(d.ppf(np.array([-0.1, 1.1]), *shapes)).all()


@pytest.mark.parametrize("name", SHAPES)
def test_far_tails_keep_their_digits(name):
    """Logarithms of probabilities that are far below the smallest number."""
    ours, theirs, shapes = getattr(stats, name), getattr(scipy.stats, name), SHAPES[name]
    x = np.array([-60.0, -12.0, 9.0, 50.0])
    with x64(), np.errstate(all="ignore"):
        for f in ("logpdf", "logsf", "logcdf"):
            if hasattr(ours, f):
                got, want = (getattr(d, f)(x, *shapes) for d in (ours, theirs))
                np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-15)


@pytest.mark.parametrize(
    "a, b", [(-3, -2), (5, 7), (-1, 4), (-np.inf, 0.5), (20, np.inf), (-40, -35)]
)
def test_truncated_to_one_tail(a, b):
    a, b = float(a), float(b)
    x = np.array([max(a, -60) + 0.1, (max(a, -60) + min(b, 60)) / 2, min(b, 60) - 0.1])
    x = x[(x > a) & (x < b)]
    with x64():
        for f in ("logpdf", "logcdf", "logsf", "cdf", "sf"):
            want = getattr(scipy.stats.truncnorm, f)(x, a, b)
            got = getattr(stats.truncnorm, f)(x, a, b)
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-12)
        assert float(stats.truncnorm.cdf(min(b, 99) + 1, a, b)) == 1
        assert a == -np.inf or float(stats.truncnorm.logcdf(a - 1, a, b)) == -np.inf


@pytest.mark.parametrize(
    "name, shapes",
    [
        ("gamma", (-1.0,)), ("chi2", (0.0,)), ("beta", (1.0, -2.0)), ("pareto", (-1.0,)),
        ("t", (0.0,)), ("gennorm", (-1.0,)), ("vonmises", (-1.0,)), ("wrapcauchy", (1.5,)),
        ("truncnorm", (2.0, 1.0)),
    ],
)  # fmt: skip
def test_shapes_that_no_distribution_has(name, shapes):
    with np.errstate(all="ignore"):
        assert np.isnan(getattr(stats, name).logpdf(jnp.float32(0.5), *shapes))


@pytest.mark.parametrize("name", ["vonmises", "wrapcauchy"])
def test_densities_on_the_circle_integrate_to_one(name):
    start = -np.pi if name == "vonmises" else 0.0
    shape = 2.0 if name == "vonmises" else 0.4
    with x64():
        density = getattr(stats, name).pdf
        end = start + 2 * np.pi
        total, _ = scipy.integrate.quad(lambda x: float(density(x, shape)), start, end)
    assert total == pytest.approx(1, rel=1e-9)


def test_tails_and_first_digits_are_kept():
    """What is 0 as a difference of two numbers near 1 has digits of its own."""
    y = np.float32([-30, -9, -3, 0, 2, 9])
    want = scipy.stats.gennorm.cdf(y.astype("f8"), 0.9)
    np.testing.assert_allclose(stats.gennorm.cdf(y, 0.9), want, rtol=2e-5)
    y, q = np.float32([1.00001, 1.01, 3]), np.float32([1e-9, 1e-4, 0.5])
    want = scipy.stats.pareto.cdf(y.astype("f8"), 2.5)
    np.testing.assert_allclose(stats.pareto.cdf(y, 2.5), want, rtol=1e-5)
    want = scipy.stats.pareto.ppf(q.astype("f8"), 2.5) - 1
    with x64():
        found = stats.pareto.ppf(q.astype("f8"), 2.5) - 1
    np.testing.assert_allclose(found, want, rtol=1e-6)
