"""Distributions of whole numbers."""

import numpy as np
import scipy.stats

import calque.numpy as jnp
from calque.scipy import stats
from tests.scipy.stats.shared import F, close


def test_entropy_of_poisson() -> None:
    close(stats.poisson.entropy(F(0.5, 3, 50)), scipy.stats.poisson(F(0.5, 3, 50)).entropy(), 1e-4)


def test_soft_labels_of_bernoulli_mix_both_outcomes() -> None:
    k, p = jnp.array([0.0, 0.25, 1.0, 1.5]), 0.3
    want = [np.log(0.7), 0.25 * np.log(0.3) + 0.75 * np.log(0.7), np.log(0.3), -np.inf]
    np.testing.assert_allclose(stats.bernoulli.logpmf(k, p), want, rtol=1e-6)
    np.testing.assert_allclose(stats.bernoulli.logpmf(k + 2, p, loc=2), want, rtol=1e-6)
