"""Distributions on whole numbers."""

from typing import Any

import numpy as np

from calque import numpy as jnp
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.numpy.promotion import as_operand, check_arraylike, convert, promote_inexact
from calque.scipy import special as sp
from calque.scipy.stats.signatures import (
    OfMultinomial,
    OfRate,
    WholeWithMu,
    WholeWithNAB,
    WholeWithNP,
    WholeWithP,
)
from calque.scipy.stats.tables import Discrete, discrete, function_of, signature_of


def _whole(k: Any, *_: Any) -> Any:
    return (k >= 0) & (jnp.floor(k) == k)


def _log_choose(n: Any, k: Any) -> Any:
    return do.lgamma(n + 1) - do.lgamma(k + 1) - do.lgamma(n - k + 1)


def _bernoulli_ppf(q: Any, p: Any) -> Any:
    valid = (q >= 0) & (q <= 1)
    return jnp.where(valid, jnp.where(q <= 1 - p, 0.0, 1.0), np.nan)


bernoulli = discrete(
    "bernoulli",
    "the Bernoulli distribution",
    WholeWithP,
    lambda k, p: sp.xlogy(k, p) + sp.xlog1py(1 - k, -p),
    lambda k, p: (k >= 0) & (k <= 1),  # as in JAX, what is between them mixes both: soft labels
    cdf=lambda k, p: jnp.where(
        jnp.isnan(k),
        np.nan,
        jnp.where(k < 0, 0.0, jnp.where(k < 1, 1 - p, 1.0)),
    ),
    ppf=_bernoulli_ppf,
    valid=lambda p: (p >= 0) & (p <= 1),
)
geom = discrete(
    "geom",
    "the geometric distribution",
    WholeWithP,
    lambda k, p: sp.xlog1py(k - 1, -p) + jnp.log(p),
    lambda k, p: k > 0,
    valid=lambda p: (p > 0) & (p <= 1),
)
poisson = discrete(
    "poisson",
    "the Poisson distribution",
    WholeWithMu,
    lambda k, mu: sp.xlogy(k, mu) - do.lgamma(k + 1) - mu,
    _whole,
    cdf=lambda k, mu: jnp.where(k < 0, 0.0, sp.gammaincc(jnp.floor(jnp.maximum(k, 0)) + 1, mu)),
    valid=lambda mu: mu >= 0,
)
binom = discrete(
    "binom",
    "the binomial distribution",
    WholeWithNP,
    lambda k, n, p: _log_choose(n, k) + sp.xlogy(k, p) + sp.xlog1py(n - k, -p),
    lambda k, n, p: (k >= 0) & (k <= n),
    valid=lambda n, p: (n >= 0) & (p >= 0) & (p <= 1),
)
nbinom = discrete(
    "nbinom",
    "the negative binomial distribution",
    WholeWithNP,
    lambda k, n, p: (
        do.lgamma(k + n) - do.lgamma(k + 1) - do.lgamma(n) + jnp.log(p) * n + sp.xlog1py(k, -p)
    ),
    lambda k, n, p: k >= 0,
    valid=lambda n, p: (n > 0) & (p > 0) & (p <= 1),
)


def _betabinom_logpmf(k: Any, n: Any, a: Any, b: Any) -> Any:
    k = jnp.floor(k)
    return (
        -jnp.log1p(n) - sp.betaln(n - k + 1, k + 1) + sp.betaln(k + a, n - k + b) - sp.betaln(a, b)
    )


betabinom = discrete(
    "betabinom",
    "the beta-binomial distribution",
    WholeWithNAB,
    _betabinom_logpmf,
    lambda k, n, a, b: (k >= 0) & (k <= n),
    valid=lambda n, a, b: (n >= 0) & (a > 0) & (b > 0),
)


def _poisson_entropy(mu: Any) -> Any:
    """The sum over its mass for small rates, an asymptotic series for large ones."""
    small = jnp.where(mu < 20, mu, 1.0)
    k = (
        np.arange(100, dtype=np.float32)
        .reshape(-1, *(1,) * typeof(mu).ndim)
        .astype(typeof(mu).dtype)
    )
    log_mass = sp.xlogy(k, small) - do.lgamma(k + small * 0 + 1) - small
    summed = -jnp.sum(jnp.exp(log_mass) * log_mass, axis=0)
    large = jnp.where(mu < 20, 20.0, mu)
    series = (
        0.5 * jnp.log(2 * np.pi * np.e * large)
        - 1 / (12 * large)
        - 1 / (24 * large**2)
        - 19 / (360 * large**3)
    )
    return jnp.where(mu == 0, 0.0, jnp.where(mu < 20, summed, series))


poisson.entropy = function_of(
    "poisson",
    "entropy",
    signature_of(OfRate),
    lambda mu, loc: _poisson_entropy(mu),
    "the Poisson distribution",
)


def _multinomial_logpmf(x: Any, n: Any, p: Any) -> Any:
    """The logarithm of the probability of counts, in trials with several outcomes.

    Args:
        x: how often each outcome occurs, along the last axis.
        n: the number of trials.
        p: the probability of each outcome, along the last axis.
    Returns:
        Logarithms; -inf where the counts do not add up to `n`.

    >>> round(float(stats.multinomial.logpmf(jnp.array([1, 2]), 3, jnp.array([0.4, 0.6]))), 3)
    -0.839"""
    check_arraylike("multinomial.logpmf", x, n, p)
    (p,) = promote_inexact(p)
    x = convert(as_operand(x), typeof(p).dtype)  # whole numbers, in any dtype
    n = convert(as_operand(n), typeof(p).dtype)
    total = do.lgamma(jnp.asarray(n) + 1)
    value = total + jnp.sum(sp.xlogy(x, p) - do.lgamma(jnp.asarray(x) + 1), axis=-1)
    return jnp.where(jnp.equal(jnp.sum(x, axis=-1), n), value, -np.inf)


def _multinomial_pmf(x: Any, n: Any, p: Any) -> Any:
    """The probability of counts, in trials with several outcomes.

    Args:
        x: how often each outcome occurs, along the last axis.
        n: the number of trials.
        p: the probability of each outcome, along the last axis.
    Returns:
        Probabilities; 0 where the counts do not add up to `n`.

    >>> round(float(stats.multinomial.pmf(jnp.array([1, 2]), 3, jnp.array([0.4, 0.6]))), 3)
    0.432"""
    return jnp.exp(_multinomial_logpmf(x, n, p))


multinomial: Discrete[OfMultinomial] = Discrete(
    "multinomial", logpmf=_multinomial_logpmf, pmf=_multinomial_pmf
)
