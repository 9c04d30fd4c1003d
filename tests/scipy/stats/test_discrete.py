"""Distributions of whole numbers."""

import scipy.stats

from calque.scipy import stats
from tests.scipy.stats.shared import F, close


def test_entropy_of_poisson() -> None:
    close(stats.poisson.entropy(F(0.5, 3, 50)), scipy.stats.poisson(F(0.5, 3, 50)).entropy(), 1e-4)
