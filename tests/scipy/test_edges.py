"""Values of SciPy's functions where parameters are those of nothing, and at the ends of domains."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.scipy import special, stats

osp = pytest.importorskip("scipy.special")
ost = pytest.importorskip("scipy.stats")
Y = np.array([-0.5, 0.0, 0.25, 1.0, 2.5], np.float32)

INVALID = {
    "beta": (-1.1, 0.5),
    "beta b": (0.5, 0.0),
    "gamma": (-1.0,),
    "chi2": (0.0,),
    "pareto": (-2.0,),
    "t": (-1.0,),
    "gennorm": (-1.0,),
    "wrapcauchy": (1.5,),
    "truncnorm": (1.0, -1.0),
}


@pytest.mark.parametrize("name", INVALID)
def test_parameters_of_no_distribution_give_nan(name):
    ours, theirs = (getattr(m, name.split()[0]) for m in (stats, ost))
    for what in ("logpdf", "pdf", "cdf", "sf"):
        if hasattr(ours, what):
            assert np.isnan(getattr(ours, what)(Y, *INVALID[name])).all()
            assert np.isnan(getattr(theirs, what)(Y, *INVALID[name])).all()


@pytest.mark.parametrize("name", ["norm", "expon", "uniform", "laplace", "logistic"])
def test_a_scale_is_above_0(name):
    for what in ("logpdf", "pdf", "cdf"):
        assert np.isnan(getattr(getattr(stats, name), what)(Y, 0.0, -1.0)).all()


@pytest.mark.parametrize(
    ("name", "rest"),
    [("bernoulli", (1.5,)), ("geom", (0.0,)), ("poisson", (-1.0,)), ("binom", (3, -0.1)),
     ("nbinom", (3, 1.5)), ("betabinom", (3, -1.0, 1.0))],
)  # fmt: skip
def test_parameters_of_no_discrete_distribution_give_nan(name, rest):
    k = np.arange(4.0, dtype=np.float32)
    assert np.isnan(getattr(stats, name).pmf(k, *rest)).all()
    assert np.isnan(getattr(ost, name).pmf(k, *rest)).all()


def test_counts_of_a_multinomial_may_be_of_any_type():
    with calque.numpy_dtype_promotion("strict"):
        got = stats.multinomial.logpmf(jnp.array([1, 2]), 3, jnp.array([0.25, 0.75]))
    np.testing.assert_allclose(got, ost.multinomial.logpmf([1, 2], 3, [0.25, 0.75]), rtol=1e-5)


def test_products_with_logarithms_keep_nan():
    for f in (special.xlogy, special.xlog1py):
        assert np.isnan(f(0.0, np.nan))
        assert f(0.0, -1.0) == 0
        assert calque.grad(f)(0.0, 2.0) == pytest.approx(np.log(2 if f is special.xlogy else 3))


def test_what_a_sum_leaves_out_does_not_spoil_its_derivative():
    x = jnp.array([0.0, 0.0, 0.0, 0.0, 100.0])
    got = calque.grad(lambda v: special.logsumexp(v, where=jnp.arange(5) < 4))(x)
    np.testing.assert_allclose(got, [0.25, 0.25, 0.25, 0.25, 0])
    z = np.array([1 + 1j, 2 - 1j], np.complex64)
    with calque.numpy_dtype_promotion("strict"):
        np.testing.assert_allclose(special.logsumexp(z), np.log(np.exp(z).sum()), rtol=1e-5)


def test_zeta_is_differentiated_by_its_exponent():
    for x, q in ((1.5, 1.0), (3.0, 0.7), (8.0, 4.0)):
        h = 1e-5
        want = (osp.zeta(x + h, q) - osp.zeta(x - h, q)) / (2 * h)
        with calque.enable_x64(True):
            assert calque.grad(special.zeta)(x, q) == pytest.approx(want, rel=1e-6)
            second = calque.grad(calque.grad(special.zeta))(x, q)
            steps = [osp.zeta(x + d, q) for d in (1e-3, 0, -1e-3)]
            assert second == pytest.approx((steps[0] - 2 * steps[1] + steps[2]) / 1e-6, rel=1e-4)


def test_combinations_at_the_ends():
    n, k = np.array([0.0, 0], np.float32), np.array([0.0, 4], np.float32)
    for repetition in (False, True):
        want = osp.comb(n, k, repetition=repetition)
        np.testing.assert_allclose(special.comb(n, k, repetition=repetition), want)


def test_the_incomplete_beta_function_at_the_ends():
    a, b, x = np.meshgrid([0.0, 0.5, np.inf, -1], [0.0, 0.5, np.inf], [-0.5, 0, 0.5, 1, 1.5])
    np.testing.assert_allclose(special.betainc(a, b, x), osp.betainc(a, b, x), rtol=1e-5)


@pytest.mark.skipif(not hasattr(osp, "sph_harm_y"), reason="this SciPy has another function")
def test_harmonics_of_negative_colatitudes():
    n, m = np.array([3, 3, 2]), np.array([1, -1, 2])
    theta, phi = np.array([-0.5, -2.0, -1.0]), np.array([0.3, -2.0, 1.0])
    got = special.sph_harm_y(n, m, theta, phi, n_max=3)
    np.testing.assert_allclose(got, osp.sph_harm_y(n, m, theta, phi), rtol=1e-4)
