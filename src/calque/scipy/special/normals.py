"""Error functions and the normal distribution."""

import math
from typing import Any, Final

import numpy as np

from calque import numpy as jnp
from calque.core.arrays import Array
from calque.core.dtypes import is_float
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike
from calque.numpy.promotion import check_arraylike, convert
from calque.ops.common import polynomial
from calque.scipy.special.gammas import inexact
from calque.transforms.functions.custom_jvp import custom_jvp

__all__ = ["erf", "erfc", "erfinv", "log_ndtr", "ndtr", "ndtri"]

_HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


def erf(x: ArrayLike) -> Array:
    """The error function: the integral of `2 / sqrt(pi) * exp(-t**2)` from 0 to `x`.

    Args:
        x: real numbers.
    Returns:
        Floats between -1 and 1.
    Differs from SciPy:
        Complex numbers are refused.

    >>> round(float(special.erf(0.5)), 4)
    0.5205"""
    return do.erf(*inexact("erf", x))


def erfc(x: ArrayLike) -> Array:
    """`1 - erf(x)`, precise where that is tiny.

    Args:
        x: real numbers.
    Returns:
        Floats between 0 and 2.
    Differs from SciPy:
        Complex numbers are refused.

    >>> round(float(special.erfc(0.5)), 4)
    0.4795"""
    return do.erfc(*inexact("erfc", x))


def erfinv(x: ArrayLike) -> Array:
    """The inverse of `erf`.

    Args:
        x: real numbers between -1 and 1.
    Returns:
        Floats; infinite at -1 and 1, nan beyond.

    >>> round(float(special.erfinv(0.5)), 4)
    0.4769"""
    return do.erf_inv(*inexact("erfinv", x))


def _floating(name: str, x: Any) -> Any:
    check_arraylike(name, x)
    x = jnp.asarray(x)
    if not is_float(typeof(x).dtype):
        raise TypeError(
            f"{name}: x.dtype={typeof(x).dtype.name} is not supported, see docstring for supported"
            " types: floats"
        )
    return convert(x, x.dtype)


def ndtr(x: ArrayLike) -> Array:
    """The normal distribution function: the probability that a normal number is at most `x`.

    Args:
        x: floats.
    Returns:
        Floats between 0 and 1.
    Differs from SciPy:
        Integers and complex numbers are refused.

    >>> special.ndtr(jnp.array([0.0]))
    Array([0.5], dtype=float32)"""
    return _ndtr(_floating("ndtr", x))


def _ndtr(x: Any) -> Any:
    half_root = math.sqrt(0.5)
    w = x * half_root
    z = jnp.abs(w)
    tail = do.erfc(jnp.where(z < half_root, half_root, z))
    y = jnp.where(
        z < half_root,
        1 + do.erf(jnp.where(z < half_root, w, 0.0)),
        jnp.where(w > 0, 2 - tail, tail),
    )
    return 0.5 * y


@custom_jvp
def _log_ndtr(x: Any) -> Any:
    """Of three pieces: log(1 - P(-x)) right of 0, which keeps digits there, log P(x) left of it,
    an asymptotic series far left."""
    low = -20.0 if typeof(x).dtype == np.dtype("float64") else -10.0
    right = jnp.log1p(-_ndtr(-jnp.maximum(x, 0.0)))
    middle = jnp.log(_ndtr(jnp.maximum(x, low)))
    far = jnp.minimum(x, low)
    s = 1 / (far * far)
    series = jnp.log1p(-s * (1 - s * (3 - s * (15 - s * (105 - 945 * s)))))
    left = -0.5 * far * far - jnp.log(-far) - _HALF_LOG_TAU + series
    return jnp.where(x > 0, right, jnp.where(x > low, middle, left))


@_log_ndtr.defjvp
def _log_ndtr_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    out = _log_ndtr(x)
    return out, t * jnp.exp(-0.5 * x * x - out - _HALF_LOG_TAU)


def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """The logarithm of `ndtr`, precise also where that underflows.

    Args:
        x: floats.
        series_order: has no effect: the series for very negative numbers is long enough for every
            order up to 30.
    Returns:
        Floats up to 0.
    Differs from SciPy:
        Integers and complex numbers are refused.

    >>> round(float(special.log_ndtr(-20.0)), 2)
    -203.92"""
    if not isinstance(series_order, int):
        raise TypeError("series_order must be a Python integer.")
    if series_order < 0:
        raise ValueError("series_order must be non-negative.")
    if series_order > 30:
        raise ValueError("series_order must be <= 30.")
    return _log_ndtr(_floating("log_ndtr", x))


# r (r - x) for r = sqrt(-2 log q) and q = ndtr(-x), as a quotient of polynomials of r: fitted at 80
# places from 2.3 to 14.6 (float32, right to 8e-9 of x) and 38.8 (float64, 4e-17).
_TAILS: Final = {
    "float32": (
        (0.1489576911, 2.118031021, 0.8518717446, 0.04855155395, 8.872258216e-5),
        (1.0, 1.2259167, 0.257494792, 0.008951783304),
    ),
    "float64": (
        (
            0.039994376707539377556, 2.9195050789360430715, 9.1642428157396039062,
            8.3220815633414369693, 3.9351006744056714967, 1.0124247305401574887,
            0.12245088362648109308, 0.0063550922865232237503, 1.2974774529556645825e-4,
            8.724193049813313515e-7, 1.194601587922995848e-9,
        ),
        (
            1.0, 5.1100213106768705626, 7.1920261509512444085, 4.6679137923669681696,
            1.7384627473431669721, 0.34851801547638085795, 0.033359553488866204895,
            0.0014034954888804738775, 2.3495753533963717972e-5, 1.2795928930803554561e-7,
            1.3148138213125423706e-10,
        ),
    ),
}  # fmt: skip


@custom_jvp
def _ndtri(p: Any) -> Any:
    """By erf_inv in the middle, in the tails by what is left of the first term of the asymptotic
    series."""
    dtype = typeof(p).dtype
    if dtype.itemsize < 4:
        return convert(_ndtri(convert(p, np.dtype("float32"))), dtype)
    upper = p > 0.5
    q = jnp.where(upper, 1 - p, p)
    middle = math.sqrt(2) * do.erf_inv(2 * p - 1)
    in_tail = (q < 0.05) & (q > 0)
    root = jnp.sqrt(-2 * jnp.log(jnp.where(in_tail, q, 0.01)))
    above, below = (polynomial(root, c) for c in _TAILS[dtype.name])
    x = above / (below * root) - root
    out = jnp.where(in_tail, jnp.where(upper, -x, x), middle)
    out = jnp.where(p == 0, -np.inf, jnp.where(p == 1, np.inf, out))
    return jnp.where((p < 0) | (p > 1), np.nan, out)


@_ndtri.defjvp
def _ndtri_jvp(primals: Any, tangents: Any) -> Any:
    (p,), (t,) = primals, tangents
    out = _ndtri(p)
    return out, t * jnp.exp(0.5 * out * out + _HALF_LOG_TAU)


def ndtri(p: ArrayLike) -> Array:
    """The inverse of `ndtr`: the quantiles of the normal distribution.

    Args:
        p: floats between 0 and 1.
    Returns:
        Floats; infinite at 0 and 1, nan beyond.
    Differs from SciPy:
        Integers are refused.

    >>> round(float(special.ndtri(0.975)), 2)
    1.96"""
    return _ndtri(_floating("ndtri", p))
