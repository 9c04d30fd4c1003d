"""Rounding: to integers, and to fewer bits."""

from __future__ import annotations

import enum
from typing import Any, Final

import numpy as np

from calque.core.arrays import Array
from calque.core.avals import ShapedArray
from calque.core.primitives import do
from calque.core.types import ArrayLike
from calque.ops.common import FLOAT, refuse_dtype
from calque.ops.conversions import wide
from calque.ops.kinds import apply_unary, linear_unary, to_bool, unary, widened


class RoundingMethod(enum.IntEnum):
    """Where `round` takes halves: away from zero, or to the nearest even number.

    Returns:
        An array of the shape and dtype of `x`."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def _round_meaning(x: np.ndarray, *, rounding_method: int) -> np.ndarray:
    w = wide(x)
    if rounding_method == RoundingMethod.TO_NEAREST_EVEN:
        return np.asarray(np.rint(w)).astype(x.dtype)
    whole = np.trunc(w)
    up = np.abs(w - whole) >= 0.5
    return np.where(np.isfinite(w), np.copysign(np.abs(whole) + up, w), w).astype(x.dtype)


_EXPONENT_BITS: Final = {"float16": 5, "bfloat16": 8, "float32": 8, "float64": 11}


def _reduce_precision_meaning(
    x: np.ndarray, *, exponent_bits: int, mantissa_bits: int
) -> np.ndarray:
    """Round the bits to nearest even; beyond the largest exponent is inf, below the smallest normal
    is 0."""
    own = _EXPONENT_BITS.get(x.dtype.name)
    if own is None:
        y = _reduce_precision_meaning(
            x.astype(np.float32), exponent_bits=exponent_bits, mantissa_bits=mantissa_bits
        )
        return y.astype(x.dtype)
    width = 8 * x.dtype.itemsize
    own_mantissa = width - 1 - own
    bits = (
        np.ascontiguousarray(x)
        .view(np.dtype(f"u{x.dtype.itemsize}"))
        .reshape(x.shape)
        .astype(np.uint64)
    )
    sign = bits & np.uint64(1 << (width - 1))
    size = bits ^ sign
    if mantissa_bits < own_mantissa:
        drop = own_mantissa - mantissa_bits
        odd = (size >> np.uint64(drop)) & np.uint64(1)
        size = (size + np.uint64((1 << (drop - 1)) - 1) + odd) >> np.uint64(drop) << np.uint64(drop)
    if exponent_bits < own:
        bias, new = (1 << (own - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        exponent = size >> np.uint64(own_mantissa)
        size = np.where(exponent > bias + new, np.uint64(((1 << own) - 1) << own_mantissa), size)
        size = np.where(exponent <= bias - new, np.uint64(0), size)
    out = (sign | size).astype(np.dtype(f"u{x.dtype.itemsize}")).view(x.dtype)
    return np.where(np.isnan(x), x, out)


def _reduce_precision_shape(
    x: ShapedArray, *, exponent_bits: int, mantissa_bits: int
) -> ShapedArray:
    if x.dtype not in FLOAT:
        raise refuse_dtype("reduce_precision", x.dtype, FLOAT)
    if exponent_bits < 1:
        raise ValueError(f"reduce_precision: exponent_bits must be positive, got {exponent_bits}")
    if mantissa_bits < 0:
        raise ValueError(
            f"reduce_precision: mantissa_bits must not be negative, got {mantissa_bits}"
        )
    return x


def _reduced(t: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    return do.reduce_precision(t, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits)


floor_p = unary("floor", FLOAT, widened(np.floor), None)
ceil_p = unary("ceil", FLOAT, widened(np.ceil), None)
round_p = unary("round", FLOAT, _round_meaning, None)
is_finite_p = unary("is_finite", FLOAT, lambda x: np.isfinite(wide(x)), None, result=to_bool)
reduce_precision_p = unary(
    "reduce_precision",
    FLOAT,
    _reduce_precision_meaning,
    lambda t, x, out, **params: _reduced(t, **params),
    shape=_reduce_precision_shape,
    transpose=linear_unary(lambda ct, aval, **params: _reduced(ct, **params)),
)

# ---------------------------------------------------------------- public functions


def floor(x: ArrayLike) -> Array:
    """The largest whole number that is not above each element.

    Args:
        x: Real numbers, of a floating-point dtype.

    Returns:
        An array of the shape and dtype of `x`.

    >>> lax.floor(jnp.array([1.5, -0.5]))
    Array([ 1., -1.], dtype=float32)"""
    return apply_unary(floor_p, x)


def ceil(x: ArrayLike) -> Array:
    """The smallest whole number that is not below each element.

    Args:
        x: Real numbers, of a floating-point dtype.

    Returns:
        An array of the shape and dtype of `x`.

    >>> lax.ceil(jnp.array([1.5, -0.5]))
    Array([ 2., -0.], dtype=float32)"""
    return apply_unary(ceil_p, x)


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """The whole number next to each element.

    Args:
        x: Real numbers, of a floating-point dtype.
        rounding_method: Where halves go: `RoundingMethod.AWAY_FROM_ZERO` or
            `RoundingMethod.TO_NEAREST_EVEN`.

    Returns:
        An array of the shape and dtype of `x`.

    >>> lax.round(jnp.array([-2.5, 1.4]))
    Array([-3.,  1.], dtype=float32)"""
    return apply_unary(round_p, x, rounding_method=RoundingMethod(rounding_method))


def is_finite(x: ArrayLike) -> Array:
    """Whether each element is neither infinite nor NaN.

    Args:
        x: Real numbers, of a floating-point dtype.

    Returns:
        An array of booleans, of the shape of `x`.

    >>> lax.is_finite(jnp.array([1.0, np.inf]))
    Array([ True, False], dtype=bool)"""
    return apply_unary(is_finite_p, x)


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Rounds each element to a floating-point format with fewer bits, and keeps the dtype.

    Args:
        operand: Real numbers, of a floating-point dtype.
        exponent_bits: The bits of the exponent, at least 1.
        mantissa_bits: The bits of the fraction.

    Returns:
        An array of the shape and dtype of `operand`.

    >>> lax.reduce_precision(1.1, exponent_bits=5, mantissa_bits=3)
    Array(1.125, dtype=float32, weak_type=True)"""
    return apply_unary(
        reduce_precision_p,
        operand,
        exponent_bits=int(exponent_bits),
        mantissa_bits=int(mantissa_bits),
    )
