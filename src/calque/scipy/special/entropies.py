"""Logarithmic and exponential functions that are continued where their formula has none: entropies,
logits, transforms."""

import math
from typing import Any, Final

import numpy as np

from calque import numpy as jnp
from calque.core.arrays import Array
from calque.core.primitives import do
from calque.core.types import ArrayLike
from calque.ops.common import const
from calque.scipy.special.gammas import full, inexact
from calque.transforms.functions.custom_jvp import custom_jvp

__all__ = [
    "boxcox", "boxcox1p", "entr", "expit", "i0", "i0e", "i1", "i1e", "kl_div", "logit",
    "rel_entr", "xlog1py", "xlogy",
]  # fmt: skip


def expit(x: ArrayLike) -> Array:
    """The logistic function, `1 / (1 + exp(-x))`.

    Args:
        x: numbers.
    Returns:
        Floats between 0 and 1, or complex numbers.

    >>> special.expit(jnp.array([0.0]))
    Array([0.5], dtype=float32)"""
    return do.logistic(*inexact("expit", x, complex_too=True))


@custom_jvp
def _logit(x: Any) -> Any:
    return jnp.log(x / (const(x, 1) - x))


_logit.defjvp(
    lambda primals, tangents: (_logit(*primals), tangents[0] / (primals[0] * (1 - primals[0])))
)


def logit(x: ArrayLike) -> Array:
    """`log(x / (1 - x))`, the inverse of `expit`.

    Args:
        x: numbers between 0 and 1, or complex numbers.
    Returns:
        Floats, infinite at 0 and 1 and nan beyond; or complex numbers.

    >>> special.logit(jnp.array([0.5]))
    Array([0.], dtype=float32)"""
    return _logit(*inexact("logit", x, complex_too=True))


def _is_zero(x: Any, y: Any) -> Any:
    """Whether a product x f(y) is 0 whatever f(y) is, unless y is no number."""
    return (x == 0) & ~jnp.isnan(y)


@custom_jvp
def _xlogy(x: Any, y: Any) -> Any:
    zero = _is_zero(x, y)
    return jnp.where(zero, 0.0, x * jnp.log(jnp.where(zero, 1.0, y)))


@_xlogy.defjvp
def _xlogy_jvp(primals: Any, tangents: Any) -> Any:
    (x, y), (tx, ty) = primals, tangents
    return _xlogy(x, y), tx * jnp.log(y) + ty * (x / y)


def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """`x * log(y)`, and 0 where `x` is 0.

    Args:
        x, y: numbers that broadcast.
    Returns:
        Floats or complex numbers.

    >>> special.xlogy(jnp.array([0.0]), 0.0)
    Array([0.], dtype=float32)"""
    return _xlogy(*full("xlogy", x, y, complex_too=True))


@custom_jvp
def _xlog1py(x: Any, y: Any) -> Any:
    zero = _is_zero(x, y)
    return jnp.where(zero, 0.0, x * jnp.log1p(jnp.where(zero, 0.0, y)))


@_xlog1py.defjvp
def _xlog1py_jvp(primals: Any, tangents: Any) -> Any:
    (x, y), (tx, ty) = primals, tangents
    return _xlog1py(x, y), tx * jnp.log1p(y) + ty * (x / (1 + y))


def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """`x * log(1 + y)`, and 0 where `x` is 0.

    Args:
        x, y: numbers that broadcast.
    Returns:
        Floats or complex numbers.

    >>> special.xlog1py(jnp.array([0.0]), -1.0)
    Array([0.], dtype=float32)"""
    return _xlog1py(*full("xlog1py", x, y, complex_too=True))


@custom_jvp
def _entr(x: Any) -> Any:
    return jnp.where(x < 0, -np.inf, -_xlogy(x, x))


_entr.defjvp(lambda primals, tangents: (_entr(*primals), tangents[0] * (-1 - jnp.log(primals[0]))))


def entr(x: ArrayLike) -> Array:
    """`-x * log(x)`, the share of one outcome in the entropy.

    Args:
        x: probabilities.
    Returns:
        Floats; 0 at 0, -inf below.

    >>> special.entr(jnp.array([0.5]))
    Array([0.3465736], dtype=float32)"""
    return _entr(*inexact("entr", x))


def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """`p * log(p / q)`, the share of one outcome in the relative entropy.

    Args:
        p, q: probabilities that broadcast.
    Returns:
        Floats; 0 where `p` is 0 and `q` not negative, infinite where either is negative or only `q`
        is 0.

    >>> special.rel_entr(jnp.array([0.0]), 1.0)
    Array([0.], dtype=float32)"""
    p, q = inexact("rel_entr", p, q)
    both = (p > 0) & (q > 0)
    one, zero, infinity, nan = (const(p, x) for x in (1, 0, np.inf, np.nan))
    safe_p, safe_q = jnp.where(both, p, one), jnp.where(both, q, one)
    value = safe_p * (jnp.log(safe_p) - jnp.log(safe_q))
    out = jnp.where(both, value, jnp.where((p == 0) & (q >= 0), zero, infinity))
    return jnp.where(jnp.isnan(p) | jnp.isnan(q), nan, out)


def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """`p * log(p / q) - p + q`, which is never negative.

    Args:
        p, q: numbers that broadcast.
    Returns:
        Floats; infinite where either is negative or only `q` is 0.

    >>> special.kl_div(jnp.array([0.5]), 0.5)
    Array([0.], dtype=float32)"""
    p, q = inexact("kl_div", p, q)
    return rel_entr(p, q) - p + q


def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """The power transform of Box and Cox, `(x**lmbda - 1) / lmbda`.

    Args:
        x: numbers from 0 up.
        lmbda: the power; for 0 it is `log(x)`.
    Returns:
        Floats or complex numbers.

    >>> special.boxcox(jnp.array([4.0]), 0.5)
    Array([2.], dtype=float32)"""
    x, power = full("boxcox", x, lmbda, complex_too=True)
    return _boxed(jnp.log(x), power)


def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """The power transform of `1 + x`, precise where `x` is near 0.

    Args:
        x: numbers from -1 up.
        lmbda: the power; for 0 it is `log(1 + x)`.
    Returns:
        Floats or complex numbers.

    >>> special.boxcox1p(jnp.array([3.0]), 0.5)
    Array([2.], dtype=float32)"""
    x, power = full("boxcox1p", x, lmbda, complex_too=True)
    return _boxed(jnp.log1p(x), power)


@custom_jvp
def _boxed(log: Any, power: Any) -> Any:
    """(exp(t) - 1) / power with t = power log."""
    safe = jnp.where(power == 0, 1.0, power)
    return jnp.where(power == 0, log, jnp.expm1(safe * log) / safe)


@_boxed.defjvp
def _boxed_jvp(primals: Any, tangents: Any) -> Any:
    (log, power), (tangent, by_power) = primals, tangents
    none = (power == 0) & jnp.isinf(log)
    t = jnp.where(none, 0.0, power * jnp.where(none, 0.0, log))
    slope = jnp.exp(t)
    return _boxed(log, power), tangent * slope + by_power * _slope_of_power(log, power, t, slope)


def _slope_of_power(log: Any, power: Any, t: Any, grown: Any) -> Any:
    """log^2 g'(t) of g(t) = (exp(t) - 1) / t; near 0, where the difference below would lose all
    digits, by its series 1/2 + t/3 + t^2/8 + ..."""
    near = jnp.abs(t) < 1
    small = jnp.where(near, t, 0.0)
    series = jnp.full_like(small, _SLOPES[-1])
    for c in _SLOPES[-2::-1]:
        series = series * small + c
    safe, log = jnp.where(near, 1.0, power), jnp.where(near & (log == -np.inf), 0.0, log)
    far = (jnp.where(grown == 0, 0.0, t * grown) - jnp.expm1(t)) / (safe * safe)
    return jnp.where(near, log * log * series, far)


_SLOPES: Final = tuple([(k + 1) / math.factorial(k + 2) for k in range(20)])


def i0e(x: ArrayLike) -> Array:
    """The modified Bessel function of order 0, times `exp(-abs(x))`, which does not overflow.

    Args:
        x: real numbers.
    Returns:
        Floats.

    >>> special.i0e(jnp.array([0.0]))
    Array([1.], dtype=float32)"""
    return do.bessel_i0e(*inexact("i0e", x))


def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind and order 0.

    Args:
        x: real numbers.
    Returns:
        Floats.

    >>> special.i0(jnp.array([0.0]))
    Array([1.], dtype=float32)"""
    (x,) = inexact("i0", x)
    return jnp.exp(jnp.abs(x)) * do.bessel_i0e(x)


def i1e(x: ArrayLike) -> Array:
    """The modified Bessel function of order 1, times `exp(-abs(x))`, which does not overflow.

    Args:
        x: real numbers.
    Returns:
        Floats.

    >>> special.i1e(jnp.array([0.0]))
    Array([0.], dtype=float32)"""
    return do.bessel_i1e(*inexact("i1e", x))


def i1(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind and order 1.

    Args:
        x: real numbers.
    Returns:
        Floats.

    >>> special.i1(jnp.array([0.0]))
    Array([0.], dtype=float32)"""
    (x,) = inexact("i1", x)
    return jnp.exp(jnp.abs(x)) * do.bessel_i1e(x)
