"""Distributions of vectors."""

import numpy as np
import pytest
import scipy.stats

from calque.scipy import stats
from tests.scipy.stats.shared import F, close


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
