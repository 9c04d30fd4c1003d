"""Special functions: error functions, the gamma family, incomplete gamma and beta, Bessel
functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from calque.core.arrays import Array
from calque.core.lazy import LazyModule
from calque.core.primitives import do
from calque.core.types import ArrayLike
from calque.ops import gamma_gradients
from calque.ops.arithmetic import pow_tangent_x, pow_tangent_y
from calque.ops.common import FLOAT, const, filled_like
from calque.ops.kinds import apply_nary, apply_unary, nary, refusing, unary, widened

sp = LazyModule("scipy.special")

_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)

# ---------------------------------------------------------------- meanings


def _lgamma(x: np.ndarray) -> np.ndarray:
    return np.where(np.isinf(x), np.inf, sp.gammaln(x))


def _digamma(x: np.ndarray) -> np.ndarray:
    """NaN at the poles 0, -1, -2, ..."""
    return np.where((x <= 0) & (x == np.floor(x)), np.nan, sp.digamma(x))


def _polygamma(m: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(-1)^(m+1) m! zeta(m+1, x); digamma for m = 0, NaN for other than whole m >= 0."""
    whole = (m >= 0) & (m == np.floor(m))
    n = np.where(whole, m, 1)
    sign = np.where(n % 2 == 1, 1.0, -1.0)
    return np.where(
        whole, np.where(n == 0, _digamma(x), sign * sp.gamma(n + 1) * sp.zeta(n + 1, x)), np.nan
    )


def _igamma(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.where((a >= 0) & (x >= 0), sp.gammainc(a, x), np.nan)


def _igammac(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.where((a >= 0) & (x >= 0), sp.gammaincc(a, x), np.nan)


# ---------------------------------------------------------------- derivatives


def _erf_tangent(t: Any, x: Any, out: Any) -> Any:
    return do.mul(t, do.mul(const(x, _TWO_OVER_ROOT_PI), do.exp(do.neg(do.square(x)))))


def _gamma_density(a: Any, x: Any) -> Any:
    """x^(a-1) e^-x / Gamma(a)"""
    return do.exp(do.sub(do.sub(do.mul(do.sub(a, const(a, 1)), do.log(x)), x), do.lgamma(a)))


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    """x^(a-1) (1-x)^(b-1) / B(a, b)"""
    log_beta = do.sub(do.add(do.lgamma(a), do.lgamma(b)), do.lgamma(do.add(a, b)))
    left = do.mul(do.sub(a, const(a, 1)), do.log(x))
    right = do.mul(do.sub(b, const(b, 1)), do.log1p(do.neg(x)))
    return do.exp(do.sub(do.add(left, right), log_beta))


def _random_gamma_tangent_x(t: Any, out: Any, a: Any, x: Any) -> Any:
    """-(log x - digamma(a)) - out ((a-1)/x - 1), from out = -(dP/da) / p"""
    along_a = do.sub(do.log(x), do.digamma(a))
    along_x = do.sub(do.div(do.sub(a, const(a, 1)), x), const(x, 1))
    return do.neg(do.mul(t, do.add(along_a, do.mul(out, along_x))))


def _bessel_i1e_tangent(t: Any, x: Any, out: Any) -> Any:
    at_zero = do.eq(x, const(x, 0))
    safe = do.select_n(at_zero, x, filled_like(x, 1))
    slope = do.sub(do.bessel_i0e(x), do.mul(out, do.add(do.sign(safe), do.div(const(x, 1), safe))))
    return do.mul(t, do.select_n(at_zero, slope, filled_like(x, 0.5)))


def _bessel_i0e_tangent(t: Any, x: Any, out: Any) -> Any:
    return do.mul(t, do.sub(do.bessel_i1e(x), do.mul(do.sign(x), out)))


_NO_ZETA = refusing("zeta(x, q) has no derivative by its exponent x here: stop_gradient it")
_NO_POLYGAMMA = refusing(
    "polygamma gradient with respect to m is not supported: m is a whole number"
)
_NO_BETAINC = refusing(
    "The gradient of betainc with respect to a and b is not supported: stop_gradient them"
)
_NO_SECOND = refusing(
    "The second derivative of igamma with respect to a is not supported: stop_gradient a"
)

erf_p = unary("erf", FLOAT, widened(lambda *x: sp.erf(*x)), _erf_tangent)
erfc_p = unary(
    "erfc",
    FLOAT,
    widened(lambda *x: sp.erfc(*x)),
    lambda t, x, out: do.neg(_erf_tangent(t, x, out)),
)
erf_inv_p = unary(
    "erf_inv",
    FLOAT,
    widened(lambda *x: sp.erfinv(*x)),
    lambda t, x, out: do.mul(t, do.mul(const(x, 1 / _TWO_OVER_ROOT_PI), do.exp(do.square(out)))),
)
normal_erf_inv_p = unary(
    "normal_erf_inv",
    FLOAT,
    widened(lambda *x: sp.erfinv(*x)),
    lambda t, x, out: do.mul(t, do.mul(const(x, 1 / _TWO_OVER_ROOT_PI), do.exp(do.square(out)))),
)
drawn_erf_p = unary("drawn_erf", FLOAT, widened(lambda *x: sp.erf(*x)), _erf_tangent)
drawn_exp_p = unary("drawn_exp", FLOAT, widened(np.exp), lambda t, x, out: do.mul(t, out))
drawn_log_p = unary("drawn_log", FLOAT, widened(np.log), lambda t, x, out: do.div(t, x))
drawn_log1p_p = unary(
    "drawn_log1p",
    FLOAT,
    widened(np.log1p),
    lambda t, x, out: do.div(t, do.add(x, const(x, 1))),
)
drawn_pow_p = nary(
    "drawn_pow",
    FLOAT,
    widened(np.power),
    pow_tangent_x,
    pow_tangent_y,
)
drawn_tan_p = unary(
    "drawn_tan",
    FLOAT,
    widened(np.tan),
    lambda t, x, out: do.mul(t, do.add(do.square(out), const(out, 1))),
)
multiply_add_p = nary(
    "multiply_add",
    FLOAT,
    widened(lambda x, y, z: (x.astype(np.longdouble) * y + z).astype(x.dtype)),
    lambda t, out, x, y, z: do.mul(t, y),
    lambda t, out, x, y, z: do.mul(x, t),
    lambda t, out, x, y, z: t,
)
lgamma_p = unary("lgamma", FLOAT, widened(_lgamma), lambda t, x, out: do.mul(t, do.digamma(x)))
digamma_p = unary(
    "digamma", FLOAT, widened(_digamma), lambda t, x, out: do.mul(t, do.polygamma(const(x, 1), x))
)
polygamma_p = nary(
    "polygamma",
    FLOAT,
    widened(_polygamma),
    _NO_POLYGAMMA,
    lambda t, out, m, x: do.mul(t, do.polygamma(do.add(m, const(m, 1)), x)),
)
zeta_p = nary(
    "zeta",
    FLOAT,
    widened(lambda *x: sp.zeta(*x)),
    _NO_ZETA,
    lambda t, out, x, q: do.mul(t, do.mul(do.neg(x), do.zeta(do.add(x, const(x, 1)), q))),
)
igamma_p = nary(
    "igamma",
    FLOAT,
    widened(_igamma),
    lambda t, out, a, x: do.mul(t, do.igamma_grad_a(a, x)),
    lambda t, out, a, x: do.mul(t, _gamma_density(a, x)),
)
igammac_p = nary(
    "igammac",
    FLOAT,
    widened(_igammac),
    lambda t, out, a, x: do.neg(do.mul(t, do.igamma_grad_a(a, x))),
    lambda t, out, a, x: do.neg(do.mul(t, _gamma_density(a, x))),
)
igamma_grad_a_p = nary(
    "igamma_grad_a",
    FLOAT,
    widened(gamma_gradients.distribution_gradient),
    _NO_SECOND,
    lambda t, out, a, x: do.mul(t, do.mul(_gamma_density(a, x), do.sub(do.log(x), do.digamma(a)))),
)
random_gamma_grad_p = nary(
    "random_gamma_grad",
    FLOAT,
    widened(gamma_gradients.sample_gradient),
    _NO_SECOND,
    _random_gamma_tangent_x,
)
regularized_incomplete_beta_p = nary(
    "regularized_incomplete_beta",
    FLOAT,
    widened(lambda *x: sp.betainc(*x)),
    _NO_BETAINC,
    _NO_BETAINC,
    lambda t, out, a, b, x: do.mul(t, _beta_density(a, b, x)),
)
bessel_i0e_p = unary("bessel_i0e", FLOAT, widened(lambda *x: sp.i0e(*x)), _bessel_i0e_tangent)
bessel_i1e_p = unary(
    "bessel_i1e",
    FLOAT,
    widened(lambda x: np.copysign(sp.i1e(x), x)),  # of -0.0, too
    _bessel_i1e_tangent,
)

# ---------------------------------------------------------------- public functions


def erf(x: ArrayLike) -> Array:
    """The error function of each element, from -1 to 1.

    Args:
        x: Real numbers, of a floating-point dtype.

    Returns:
        An array of the shape and dtype of the operands.

    >>> lax.erf(0.5)
    Array(0.52049..., dtype=float32, weak_type=True)"""
    return apply_unary(erf_p, x)


def erfc(x: ArrayLike) -> Array:
    """1 less the error function of each element, exact also where that is tiny.

    Args:
        x: Real numbers, of a floating-point dtype.

    Returns:
        An array of the shape and dtype of the operands.

    >>> lax.erfc(5.0)
    Array(1.53745...e-12, dtype=float32, weak_type=True)"""
    return apply_unary(erfc_p, x)


def erf_inv(x: ArrayLike) -> Array:
    """The number whose error function is each element; NaN outside of [-1, 1].

    Args:
        x: Real numbers, of a floating-point dtype.

    Returns:
        An array of the shape and dtype of the operands.

    >>> lax.erf_inv(0.5)
    Array(0.476936..., dtype=float32, weak_type=True)"""
    return apply_unary(erf_inv_p, x)


def normal_erf_inv(x: Any) -> Any:
    """The inverse of `erf` as normal numbers are drawn with: in float32 the operations of XLA, so
    that the numbers are JAX's: `normal_erf_inv(0.) == 0.`"""
    return apply_unary(normal_erf_inv_p, x)


def drawn_erf(x: Any) -> Any:
    """`erf` as random numbers are drawn with, likewise: `drawn_erf(0.) == 0.`"""
    return apply_unary(drawn_erf_p, x)


def drawn_exp(x: Any) -> Any:
    """`exp`, likewise: `drawn_exp(0.) == 1.`"""
    return apply_unary(drawn_exp_p, x)


def drawn_log(x: Any) -> Any:
    """`log`, likewise: `drawn_log(1.) == 0.`"""
    return apply_unary(drawn_log_p, x)


def drawn_log1p(x: Any) -> Any:
    """`log1p`, likewise: `drawn_log1p(0.) == 0.`"""
    return apply_unary(drawn_log1p_p, x)


def drawn_pow(x: Any, y: Any) -> Any:
    """`pow` of floats, likewise: `drawn_pow(2., 0.) == 1.`"""
    return apply_nary(drawn_pow_p, x, y)


def drawn_tan(x: Any) -> Any:
    """`tan`, likewise: `drawn_tan(0.) == 0.`"""
    return apply_unary(drawn_tan_p, x)


def multiply_add(x: Any, y: Any, z: Any) -> Any:
    """x y + z, rounded once wherever it is compiled: `multiply_add(2., 3., 1.) == 7.`"""
    return apply_nary(multiply_add_p, x, y, z)


def lgamma(x: ArrayLike) -> Array:
    """The logarithm of the absolute value of the gamma function of each element.

    Args:
        x: Real numbers, of a floating-point dtype.

    Returns:
        An array of the shape and dtype of the operands.

    >>> lax.lgamma(5.0)
    Array(3.17805..., dtype=float32, weak_type=True)"""
    return apply_unary(lgamma_p, x)


def digamma(x: ArrayLike) -> Array:
    """The derivative of `lgamma` at each element; NaN at its poles.

    Args:
        x: Real numbers, of a floating-point dtype.

    Returns:
        An array of the shape and dtype of the operands.

    >>> lax.digamma(1.0)
    Array(-0.57721..., dtype=float32, weak_type=True)"""
    return apply_unary(digamma_p, x)


def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of some order of `digamma`.

    Args:
        m: The order, as a floating-point number that is a whole number.
        x: Real numbers, of a floating-point dtype.

    Returns:
        An array of the shape and dtype of the operands.

    >>> lax.polygamma(1.0, 1.0)
    Array(1.6449..., dtype=float32, weak_type=True)"""
    return apply_nary(polygamma_p, m, x)


def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """The Hurwitz zeta function: the sum of (q + n)**-x over n = 0, 1, ...

    Args:
        x: The exponent, above 1.
        q: The offset, above 0.

    Returns:
        An array of the shape and dtype of the operands.

    >>> lax.zeta(2.0, 1.0)
    Array(1.6449..., dtype=float32, weak_type=True)"""
    return apply_nary(zeta_p, x, q)


def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularised lower incomplete gamma function, from 0 at x = 0 to 1.

    Args:
        a: The shape of the gamma distribution, positive.
        x: Where its distribution function is asked for, not negative.

    Returns:
        An array of the shape and dtype of the operands.

    >>> lax.igamma(1.0, 1.0)
    Array(0.632120..., dtype=float32, weak_type=True)"""
    return apply_nary(igamma_p, a, x)


def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularised upper incomplete gamma function: 1 less `igamma`, exact where that is tiny.

    Args:
        a: The shape of the gamma distribution, positive.
        x: Where it is asked for, not negative.

    Returns:
        An array of the shape and dtype of the operands.

    >>> lax.igammac(1.0, 1.0)
    Array(0.367879..., dtype=float32, weak_type=True)"""
    return apply_nary(igammac_p, a, x)


def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of `igamma` by its first argument.

    Args:
        a: The shape of the gamma distribution, positive.
        x: Where it is asked for, not negative.

    Returns:
        An array of the shape and dtype of the operands.

    >>> lax.igamma_grad_a(1.0, 1.0)
    Array(-0.43172..., dtype=float32, weak_type=True)"""
    return apply_nary(igamma_grad_a_p, a, x)


def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative by `a` of a random number drawn from the gamma distribution of shape `a`.

    Args:
        a: The shape of the gamma distribution, positive.
        x: The number that was drawn.

    Returns:
        An array of the shape and dtype of the operands.

    >>> lax.random_gamma_grad(1.0, 1.0)
    Array(1.1735..., dtype=float32, weak_type=True)"""
    return apply_nary(random_gamma_grad_p, a, x)


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularised incomplete beta function: the distribution function of the beta distribution.

    Args:
        a: The first shape of the distribution, positive.
        b: The second shape, positive.
        x: Where it is asked for, from 0 to 1.

    Returns:
        An array of the shape and dtype of the operands.

    >>> lax.betainc(1.0, 1.0, 0.25)
    Array(0.25, dtype=float32, weak_type=True)"""
    return apply_nary(regularized_incomplete_beta_p, a, b, x)


def bessel_i0e(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind and order 0, times exp(-abs(x)).

    Args:
        x: Real numbers, of a floating-point dtype.

    Returns:
        An array of the shape and dtype of the operands.

    >>> lax.bessel_i0e(0.0)
    Array(1., dtype=float32, weak_type=True)"""
    return apply_unary(bessel_i0e_p, x)


def bessel_i1e(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind and order 1, times exp(-abs(x)).

    Args:
        x: Real numbers, of a floating-point dtype.

    Returns:
        An array of the shape and dtype of the operands.

    >>> lax.bessel_i1e(1.0)
    Array(0.207910..., dtype=float32, weak_type=True)"""
    return apply_unary(bessel_i1e_p, x)
