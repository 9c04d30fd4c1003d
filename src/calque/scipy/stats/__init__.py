"""Statistics: distributions, ranks, density estimation."""

import sys

from calque.core import guards as _guards
from calque.scipy.stats.continuous import (
    beta,
    cauchy,
    chi2,
    expon,
    gamma,
    gennorm,
    gumbel_l,
    gumbel_r,
    laplace,
    logistic,
    norm,
    pareto,
    t,
    truncnorm,
    uniform,
    vonmises,
    wrapcauchy,
)
from calque.scipy.stats.densities import gaussian_kde
from calque.scipy.stats.discrete import (
    bernoulli,
    betabinom,
    binom,
    geom,
    multinomial,
    nbinom,
    poisson,
)
from calque.scipy.stats.ranks import mode, rankdata, sem
from calque.scipy.stats.tables import Distribution
from calque.scipy.stats.vectors import dirichlet, multivariate_normal

__all__ = [
    "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma",
    "gaussian_kde", "gennorm", "geom", "gumbel_l",
    "gumbel_r", "laplace", "logistic", "mode", "multinomial", "multivariate_normal", "nbinom",
    "norm", "pareto", "poisson", "rankdata", "sem",
    "t", "truncnorm", "uniform", "vonmises", "wrapcauchy",
]  # fmt: skip

for _name in __all__:
    if isinstance(globals()[_name], Distribution):  # `import calque.scipy.stats.norm` finds it
        sys.modules[f"{__name__}.{_name}"] = globals()[_name]

_guards.guard_public(globals())
