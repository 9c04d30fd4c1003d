"""gaussian_kde against SciPy and JAX."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

import calque
import calque.numpy as jnp
from calque.scipy.stats import gaussian_kde
from tests.peers import compare, jax

RNG = np.random.default_rng(0)
DATA, POINTS = (
    RNG.normal(size=(2, 10)).astype(np.float32),
    RNG.normal(size=(2, 5)).astype(np.float32),
)
WEIGHTS = RNG.random(10).astype(np.float32)
MEAN, COVARIANCE = np.ones(2, np.float32), np.array([[2, 0.5], [0.5, 1]], np.float32)


@pytest.mark.parametrize("bandwidth", [None, "silverman", 0.5, lambda kde: 0.7])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["even", "weighted"])
def test_as_in_scipy(bandwidth: Any, weights: Any) -> None:
    got = gaussian_kde(DATA, bandwidth, weights)
    want = scipy.stats.gaussian_kde(DATA.astype(float), bandwidth, weights)
    pairs = [
        (got.pdf(POINTS), want.pdf(POINTS)),
        (got(POINTS), want(POINTS)),
        (got.logpdf(POINTS), want.logpdf(POINTS)),
        (got.integrate_gaussian(MEAN, COVARIANCE), want.integrate_gaussian(MEAN, COVARIANCE)),
        (got.integrate_kde(got), want.integrate_kde(want)),
        (got.covariance, want.covariance),
        (got.neff, want.neff),
    ]
    for g, w in pairs:
        np.testing.assert_allclose(g, w, rtol=2e-4, atol=1e-5)
    other = gaussian_kde(DATA[:, :4])
    assert float(other.integrate_kde(got)) == pytest.approx(
        float(got.integrate_kde(other)), rel=1e-4
    )


def test_one_dimension() -> None:
    got, want = gaussian_kde(DATA[0]), scipy.stats.gaussian_kde(DATA[0].astype(float))
    assert float(got.integrate_box_1d(-1, 0.5)) == pytest.approx(
        want.integrate_box_1d(-1, 0.5), rel=1e-4
    )
    np.testing.assert_allclose(got(0.3), want(0.3), rtol=1e-4)
    assert (got.d, got.n) == (1, 10)


@pytest.mark.peer
def test_samples_as_in_jax() -> None:
    ours, theirs = (
        gaussian_kde(DATA, weights=WEIGHTS),
        jax().scipy.stats.gaussian_kde(DATA, weights=WEIGHTS),
    )
    compare(
        ours.resample(calque.random.key(3), (6,)), theirs.resample(jax().random.key(3), (6,)), 1e-5
    )
    assert ours.resample(calque.random.key(1), (2, 3)).shape == (2, 2, 3)
    compare(ours.pdf(POINTS), theirs.pdf(POINTS), 1e-4)


def test_under_transformations() -> None:
    kde = gaussian_kde(DATA)
    want = kde.logpdf(POINTS)
    np.testing.assert_allclose(calque.jit(lambda k, x: k.logpdf(x))(kde, POINTS), want, rtol=1e-5)
    np.testing.assert_allclose(calque.vmap(kde.logpdf, 1)(POINTS)[:, 0], want, rtol=1e-5)
    leaves, tree = calque.tree.flatten(kde)
    assert len(leaves) == 5 and calque.tree.unflatten(tree, leaves).n == 10
    far = calque.grad(lambda x: kde.logpdf(x)[0])(jnp.array([40.0, 40.0]))
    assert np.isfinite(np.asarray(far)).all()


def test_bad_arguments() -> None:
    kde = gaussian_kde(DATA)
    calls: list[tuple[Any, type[Exception], str]] = [
        (lambda: gaussian_kde(DATA * 1j), NotImplementedError, "complex"),
        (lambda: gaussian_kde(np.float32([1])), ValueError, "multiple"),
        (lambda: gaussian_kde(DATA, "wide"), ValueError, "wide"),
        (lambda: gaussian_kde(DATA, None, WEIGHTS[:3]), ValueError, "length 10"),
        (lambda: gaussian_kde(DATA, None, DATA), ValueError, "one-dimensional"),
        (lambda: kde(DATA[:, :3].T), ValueError, "dimension 3"),
        (lambda: kde(POINTS * 1j), NotImplementedError, "complex"),
        (lambda: kde.integrate_box_1d(0, 1), ValueError, "1D"),
        (lambda: kde.integrate_box([0, 0], [1, 1]), NotImplementedError, "integrate_box_1d"),
        (lambda: kde.integrate_gaussian(np.ones(3), COVARIANCE), ValueError, "mean"),
        (lambda: kde.integrate_gaussian(MEAN, np.eye(3)), ValueError, "covariance"),
        (lambda: kde.integrate_kde(gaussian_kde(DATA[0])), ValueError, "dimension"),
        (lambda: kde.set_bandwidth(1.0), NotImplementedError, "bw_method"),
        (lambda: setattr(kde, "dataset", 1), AttributeError, "immutable"),
    ]
    for call, error, text in calls:
        with pytest.raises(error, match=text):
            call()
