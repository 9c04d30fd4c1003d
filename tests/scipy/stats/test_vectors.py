"""Distributions of vectors."""

import numpy as np
import pytest
import scipy.stats

import calque
from calque.scipy import stats
from tests.scipy.stats.shared import F, close


def test_probabilities_add_up_to_one_as_far_as_their_dtype_can_say() -> None:
    x = np.random.default_rng(0).random((7, 50)).astype(np.float32)
    x /= x.sum(0)
    alpha = np.linspace(0.5, 2, 7)
    with calque.enable_x64(True):
        got = stats.dirichlet.logpdf(x, alpha)
        assert got.dtype == np.float64 and np.isfinite(got).all()
        assert not np.isfinite(stats.dirichlet.logpdf(x[:, 0].astype(float) + 1e-8, alpha))
    want = [scipy.stats.dirichlet.logpdf(c / c.sum(), alpha) for c in x.T.astype(float)]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_vectors() -> None:
    x, mean, cov = F([0.3, -1.0], [2.0, 0.1]), F(1, 2), F([2, 0.5], [0.5, 1])
    close(
        stats.multivariate_normal.logpdf(x, mean, cov),
        scipy.stats.multivariate_normal.logpdf(x, mean, cov),
        1e-5,
    )
    close(
        stats.multivariate_normal.pdf(x, mean, 2.0),
        scipy.stats.multivariate_normal.pdf(x, mean, 2 * np.eye(2)),
        1e-5,
    )
    p, alpha = F(0.2, 0.3, 0.5), F(1, 2, 3)
    close(
        stats.dirichlet.logpdf(p, alpha),
        scipy.stats.dirichlet.logpdf(p.astype(float) / p.astype(float).sum(), alpha),
        1e-5,
    )
    close(
        stats.dirichlet.pdf(p[:2], alpha),
        scipy.stats.dirichlet.pdf(p[:2].astype(float), alpha),
        1e-5,
    )
    assert float(stats.dirichlet.logpdf(F(0.5, 0.3, 0.5), alpha)) == -np.inf
    close(
        stats.multinomial.logpmf(F(1, 2, 3), 6, p),
        scipy.stats.multinomial.logpmf([1, 2, 3], 6, p),
        1e-5,
    )
    with pytest.raises(ValueError, match="incompatible shapes"):
        stats.multivariate_normal.logpdf(x, mean, F([1, 2, 3]))
