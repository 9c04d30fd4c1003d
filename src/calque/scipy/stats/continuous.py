"""Distributions on the real line."""

import math
from typing import Any

import numpy as np

from calque import numpy as jnp
from calque.core.dtypes import canonicalize
from calque.core.primitives import do
from calque.nn.functions import log1mexp
from calque.numpy.promotion import convert
from calque.scipy import special as sp
from calque.scipy.special.normals import _log_ndtr as log_ndtr
from calque.scipy.special.normals import _ndtr as ndtr
from calque.scipy.special.normals import _ndtri as ndtri
from calque.scipy.stats.signatures import (
    OnLine,
    WithA,
    WithAB,
    WithB,
    WithBeta,
    WithC,
    WithDf,
    WithKappa,
)
from calque.scipy.stats.tables import continuous, strong

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


def _nonnegative(y: Any, *_: Any) -> Any:
    return y >= 0


def _unit(y: Any, *_: Any) -> Any:
    return (y >= 0) & (y <= 1)


def _positive(y: Any) -> Any:
    return (y > 0) & (y < np.inf)


def _open_unit(y: Any) -> Any:
    return (y > 0) & (y < 1)


def _inside(support: Any, f: Any, below: float = 0.0, above: float = 1.0) -> Any:
    """`f` on the support, constants on both sides of it, where `f` and its derivative are not
    evaluated."""

    def body(y: Any, *shapes: Any) -> Any:
        inside = support(y)
        value = f(jnp.where(inside, y, 0.5), *shapes)
        out = jnp.where(inside, value, jnp.where(y <= 0, below, above))
        return jnp.where(jnp.isnan(y), np.nan, out)

    return body


def _clipped(y: Any) -> Any:
    return jnp.clip(y, 0, 1)


def _within(p: Any, y: Any) -> Any:
    """y where p is a probability, NaN elsewhere."""
    return jnp.where((p >= 0) & (p <= 1), y, np.nan)


def _both_sides(y: Any, tail: Any) -> Any:
    """The distribution function of a symmetric distribution, whose tails beyond -|y| and |y| these
    are."""
    return jnp.where(y < 0, tail, 1 - tail)


norm = continuous(
    "norm",
    "the normal distribution",
    OnLine,
    lambda y: -0.5 * y * y - _HALF_LOG_TAU,
    cdf=strong(ndtr),
    sf=strong(lambda y: ndtr(-y)),
    logcdf=strong(log_ndtr),
    logsf=strong(lambda y: log_ndtr(-y)),
    # JAX hands them out in the default float, whatever the operands are
    ppf=strong(lambda q: convert(ndtri(q), canonicalize(float))),
    isf=strong(lambda q: convert(-ndtri(q), canonicalize(float))),
)
cauchy = continuous(
    "cauchy",
    "the Cauchy distribution",
    OnLine,
    lambda y: -math.log(math.pi) - jnp.log1p(y * y),
    cdf=lambda y: jnp.arctan(y) / math.pi + 0.5,
    sf=lambda y: 0.5 - jnp.arctan(y) / math.pi,
    ppf=lambda q: _within(q, jnp.tan(math.pi * q - math.pi / 2)),
    isf=lambda q: _within(q, jnp.tan(math.pi / 2 - math.pi * q)),
)
expon = continuous(
    "expon",
    "the exponential distribution",
    OnLine,
    lambda y: -y,
    _nonnegative,
    cdf=lambda y: jnp.where(y < 0, 0.0, -jnp.expm1(-jnp.maximum(y, 0))),
    sf=lambda y: jnp.exp(-jnp.maximum(y, 0)),
    logcdf=lambda y: jnp.where(y < 0, -np.inf, jnp.log1p(-jnp.exp(-jnp.where(y < 0, 1.0, y)))),
    logsf=lambda y: -jnp.maximum(y, 0),
    ppf=lambda q: _within(q, -jnp.log1p(-q)),
)
laplace = continuous(
    "laplace",
    "the Laplace distribution",
    OnLine,
    lambda y: -math.log(2) - jnp.abs(y),
    logs=False,
    cdf=lambda y: jnp.where(
        y <= 0, 0.5 * jnp.exp(jnp.minimum(y, 0)), 1 - 0.5 * jnp.exp(-jnp.maximum(y, 0))
    ),
)
logistic = continuous(
    "logistic",
    "the logistic distribution",
    OnLine,
    lambda y: -jnp.abs(y) - 2 * jnp.log1p(jnp.exp(-jnp.abs(y))),
    logs=False,
    cdf=lambda y: do.logistic(y),
    sf=lambda y: do.logistic(-y),
    ppf=sp.logit,
    isf=lambda q: -sp.logit(q),
    probability="x",
)
uniform = continuous(
    "uniform",
    "the uniform distribution",
    OnLine,
    lambda y: jnp.zeros_like(y),
    _unit,
    logs=False,
    cdf=strong(_clipped),
    ppf=lambda q: _within(q, q),
)
gumbel_r = continuous(
    "gumbel_r",
    "the Gumbel distribution of maxima",
    OnLine,
    lambda y: -(y + jnp.exp(-y)),
    cdf=lambda y: jnp.exp(-jnp.exp(-y)),
    logcdf=lambda y: -jnp.exp(-y),
    sf=lambda y: -jnp.expm1(-jnp.exp(-y)),
    logsf=lambda y: log1mexp(jnp.exp(-y)),
    ppf=lambda q: -jnp.log(-jnp.log(q)),
    probability="p",
)
gumbel_l = continuous(
    "gumbel_l",
    "the Gumbel distribution of minima",
    OnLine,
    lambda y: y - jnp.exp(y),
    cdf=lambda y: -jnp.expm1(-jnp.exp(y)),
    logcdf=lambda y: log1mexp(jnp.exp(y)),
    sf=lambda y: jnp.exp(-jnp.exp(y)),
    logsf=lambda y: -jnp.exp(y),
    ppf=lambda q: jnp.log(-jnp.log1p(-q)),
    probability="p",
)
gamma = continuous(
    "gamma",
    "the gamma distribution",
    WithA,
    lambda y, a: sp.xlogy(a - 1, y) - y - do.lgamma(a),
    _nonnegative,
    cdf=_inside(_positive, lambda y, a: do.igamma(a, y)),
    sf=_inside(_positive, lambda y, a: do.igammac(a, y), 1.0, 0.0),
    valid=lambda a: a > 0,
)
chi2 = continuous(
    "chi2",
    "the chi-square distribution",
    WithDf,
    lambda y, df: sp.xlogy(df / 2 - 1, y / 2) - y / 2 - do.lgamma(df / 2) - math.log(2),
    _nonnegative,
    cdf=_inside(_positive, lambda y, df: do.igamma(df / 2, y / 2)),
    sf=_inside(_positive, lambda y, df: do.igammac(df / 2, y / 2), 1.0, 0.0),
    valid=lambda df: df > 0,
)
beta = continuous(
    "beta",
    "the beta distribution",
    WithAB,
    lambda y, a, b: sp.xlogy(a - 1, y) + sp.xlog1py(b - 1, -y) - sp.betaln(a, b),
    _unit,
    cdf=_inside(_open_unit, lambda y, a, b: do.regularized_incomplete_beta(a, b, y)),
    sf=_inside(_open_unit, lambda y, a, b: do.regularized_incomplete_beta(b, a, 1 - y), 1.0, 0.0),
    valid=lambda a, b: (a > 0) & (b > 0),
)
pareto = continuous(
    "pareto",
    "the Pareto distribution",
    WithB,
    lambda y, b: jnp.log(b) - (b + 1) * jnp.log(y),
    lambda y, b: y >= 1,
    cdf=lambda y, b: -jnp.expm1(-b * jnp.log(jnp.maximum(y, 1))),
    sf=lambda y, b: jnp.maximum(y, 1) ** -b,
    logcdf=lambda y, b: jnp.where(y <= 1, -np.inf, jnp.log1p(-(jnp.where(y <= 1, 2.0, y) ** -b))),
    logsf=lambda y, b: -b * jnp.log(jnp.maximum(y, 1)),
    ppf=lambda q, b: _within(q, jnp.exp(-jnp.log1p(-q) / b)),
    valid=lambda b: b > 0,
)
t = continuous(
    "t",
    "Student's t distribution",
    WithDf,
    lambda y, df: (
        do.lgamma((df + 1) / 2)
        - do.lgamma(df / 2)
        - 0.5 * jnp.log(df * math.pi)
        - (df + 1) / 2 * jnp.log1p(y * y / df)
    ),
    valid=lambda df: df > 0,
)
gennorm = continuous(
    "gennorm",
    "the generalised normal distribution",
    WithBeta,
    lambda y, b: jnp.log(0.5 * b) - do.lgamma(1 / b) - jnp.abs(y) ** b,
    logs=False,
    cdf=lambda y, b: _both_sides(y, 0.5 * do.igammac(1 / b, jnp.abs(y) ** b)),
    valid=lambda b: b > 0,
)


vonmises = continuous(
    "vonmises",
    "the von Mises distribution",
    WithKappa,
    lambda y, k: k * (jnp.cos(y) - 1) - (math.log(2 * math.pi) + jnp.log(do.bessel_i0e(k))),
    valid=lambda k: k >= 0,
)


def _wrapped(y: Any, c: Any) -> Any:
    return jnp.log1p(-c * c) - math.log(2 * math.pi) - jnp.log(1 + c * c - 2 * c * jnp.cos(y))


wrapcauchy = continuous(
    "wrapcauchy",
    "the wrapped Cauchy distribution",
    WithC,
    _wrapped,
    lambda y, c: (y >= 0) & (y <= 2 * math.pi),
    valid=lambda c: (c > 0) & (c < 1),
)


def _log_difference(p: Any, q: Any) -> Any:
    """log(exp(p) - exp(q)) for p >= q."""
    return p + jnp.log1p(-jnp.exp(jnp.minimum(q - p, 0)))


def _log_mass(a: Any, b: Any) -> Any:
    """log(P(a < Z <= b)) of a normal Z, from the tail in which both lie, else from both."""
    left, right = b <= 0, a > 0
    zero = jnp.zeros_like(a)
    in_left = _log_difference(
        log_ndtr(jnp.where(left, b, zero)), log_ndtr(jnp.where(left, a, zero - 1))
    )
    in_right = _log_difference(
        log_ndtr(-jnp.where(right, a, zero)), log_ndtr(-jnp.where(right, b, zero + 1))
    )
    middle = jnp.log1p(
        -ndtr(jnp.where(left | right, zero, a)) - ndtr(-jnp.where(left | right, zero + 1, b))
    )
    return jnp.where(left, in_left, jnp.where(right, in_right, middle))


def _truncated(f: Any) -> Any:
    """Functions of the truncated normal distribution: 0 below a and 1 above b, in logarithms."""

    def body(y: Any, a: Any, b: Any) -> Any:
        inside = (y > a) & (y < b)
        value = f(jnp.where(inside, y, 0.5 * (jnp.clip(a, -1e3) + jnp.clip(b, None, 1e3))), a, b)
        return inside, value

    return body


def _truncnorm_logcdf(y: Any, a: Any, b: Any) -> Any:
    inside, value = _truncated(lambda y, a, b: _log_mass(a, y) - _log_mass(a, b))(y, a, b)
    out = jnp.where(inside, value, jnp.where(y >= b, 0.0, -np.inf))
    return jnp.where(jnp.isnan(y), np.nan, out)


def _truncnorm_logsf(y: Any, a: Any, b: Any) -> Any:
    return _truncnorm_logcdf(-y, -b, -a)


truncnorm = continuous(
    "truncnorm",
    "the truncated normal distribution",
    WithAB,
    strong(lambda y, a, b: -0.5 * y * y - _HALF_LOG_TAU - _log_mass(a, b)),
    lambda y, a, b: (y >= a) & (y <= b),
    logcdf=strong(_truncnorm_logcdf),
    logsf=strong(_truncnorm_logsf),
    cdf=strong(lambda *args: jnp.exp(_truncnorm_logcdf(*args))),
    sf=strong(lambda *args: jnp.exp(_truncnorm_logsf(*args))),
    valid=lambda a, b: a < b,
)
