"""Operations on the bits of integers and booleans: logic, shifts, counting."""

from __future__ import annotations

from typing import Any

import numpy as np

from calque.core.arrays import Array
from calque.core.dtypes import iinfo, is_signed
from calque.core.types import ArrayLike
from calque.ops.common import INT, INT_OR_BOOL
from calque.ops.conversions import from_unsigned
from calque.ops.kinds import apply_nary, apply_unary, nary, same_dtype, unary


def bit_width(dtype: Any) -> int:
    return 1 if dtype.kind == "b" else int(iinfo(dtype).bits)


def as_unsigned(x: np.ndarray) -> np.ndarray:
    """The bits of an integer array as uint64, the bits above its width 0."""
    bits = bit_width(x.dtype)
    wide = x.astype(np.int64) if x.dtype.kind != "u" else x
    return np.asarray(wide).astype(np.uint64) & np.uint64((1 << bits) - 1)


def _shift_meaning(left: bool) -> Any:
    """Shifts by the width or more, or by a negative amount, give 0."""

    def meaning(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        bits, by = as_unsigned(x), as_unsigned(y)
        ok = by < bit_width(x.dtype)
        by = np.where(ok, by, np.uint64(0))
        shifted = bits << by if left else bits >> by
        return from_unsigned(np.where(ok, shifted, np.uint64(0)), x.dtype)

    return meaning


def _shift_right_arithmetic(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The sign bit moves in; shifts by the width or more leave only it."""
    by = np.minimum(as_unsigned(y), np.uint64(bit_width(x.dtype) - 1))
    if x.dtype.kind == "u" or not is_signed(x.dtype):
        signed = as_unsigned(x).astype(np.int64)
        top = bit_width(x.dtype)
        signed = np.where(
            (signed >> (top - 1)) & 1 == 1, signed | np.int64(-1 << (top - 1)), signed
        )
        return from_unsigned((signed >> by.astype(np.int64)).astype(np.uint64), x.dtype)
    return np.asarray(x.astype(np.int64) >> by.astype(np.int64)).astype(x.dtype)


def _ones(bits: np.ndarray) -> np.ndarray:
    """How many bits are set; NumPy has a function for it only from 2.0 on."""
    each = np.unpackbits(np.ascontiguousarray(bits).reshape(-1, 1).view(np.uint8), axis=1)
    return each.sum(axis=1, dtype=np.int64).reshape(bits.shape)


def _population_count(x: np.ndarray) -> np.ndarray:
    return _ones(as_unsigned(x)).astype(x.dtype)


def _clz(x: np.ndarray) -> np.ndarray:
    """Leading zeros: smear the top bit downwards and count what is above it."""
    bits = as_unsigned(x)
    for s in (1, 2, 4, 8, 16, 32):
        bits = bits | (bits >> np.uint64(s))
    return (bit_width(x.dtype) - _ones(bits)).astype(x.dtype)


def _logical(fn: Any) -> Any:
    """Bitwise logic, also on 4-bit integers, which NumPy has no such loops for."""
    plain = same_dtype(fn)

    def meaning(*xs: np.ndarray) -> np.ndarray:
        if xs[0].dtype.kind in "biu":
            return plain(*xs)
        return from_unsigned(fn(*map(as_unsigned, xs)), xs[0].dtype)

    return meaning


and_p = nary("and", INT_OR_BOOL, _logical(np.bitwise_and), None, None)
or_p = nary("or", INT_OR_BOOL, _logical(np.bitwise_or), None, None)
xor_p = nary("xor", INT_OR_BOOL, _logical(np.bitwise_xor), None, None)
not_p = unary("not", INT_OR_BOOL, _logical(np.bitwise_not), None)
shift_left_p = nary("shift_left", INT, _shift_meaning(left=True), None, None)
shift_right_logical_p = nary("shift_right_logical", INT, _shift_meaning(left=False), None, None)
shift_right_arithmetic_p = nary("shift_right_arithmetic", INT, _shift_right_arithmetic, None, None)
population_count_p = unary("population_count", INT, _population_count, None)
clz_p = unary("clz", INT, _clz, None)

# ---------------------------------------------------------------- public functions


def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits that are set in both operands.

    Args:
        x: Integers, or booleans.
        y: Of the dtype and shape of `x`; numbers of Python are adapted.

    Returns:
        An array of the dtype and the shape of the operands.

    >>> lax.bitwise_and(6, 3)
    Array(2, dtype=int32, weak_type=True)"""
    return apply_nary(and_p, x, y)


def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits that are set in either operand.

    Args:
        x: Integers, or booleans.
        y: Of the dtype and shape of `x`; numbers of Python are adapted.

    Returns:
        An array of the dtype and the shape of the operands.

    >>> lax.bitwise_or(6, 3)
    Array(7, dtype=int32, weak_type=True)"""
    return apply_nary(or_p, x, y)


def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits that are set in exactly one of the operands.

    Args:
        x: Integers, or booleans.
        y: Of the dtype and shape of `x`; numbers of Python are adapted.

    Returns:
        An array of the dtype and the shape of the operands.

    >>> lax.bitwise_xor(6, 3)
    Array(5, dtype=int32, weak_type=True)"""
    return apply_nary(xor_p, x, y)


def bitwise_not(x: ArrayLike) -> Array:
    """Every bit turned over; of booleans the opposite.

    Args:
        x: Integers, or booleans.

    Returns:
        An array of the dtype and the shape of the operands.

    >>> lax.bitwise_not(jnp.array([0, 5]))
    Array([-1, -6], dtype=int32)"""
    return apply_unary(not_p, x)


def shift_left(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits of `x` moved up: x * 2**y, and 0 when `y` is not below the width of the type.

    Args:
        x: Integers.
        y: How far, of the dtype and shape of `x`.

    Returns:
        An array of the dtype and the shape of the operands.

    >>> lax.shift_left(1, 3)
    Array(8, dtype=int32, weak_type=True)"""
    return apply_nary(shift_left_p, x, y)


def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits of `x` moved down, with zeros moving in.

    Args:
        x: Integers.
        y: How far, of the dtype and shape of `x`.

    Returns:
        An array of the dtype and the shape of the operands.

    >>> lax.shift_right_logical(-1, 28)
    Array(15, dtype=int32, weak_type=True)"""
    return apply_nary(shift_right_logical_p, x, y)


def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits of `x` moved down, with copies of the sign moving in.

    Args:
        x: Integers.
        y: How far, of the dtype and shape of `x`.

    Returns:
        An array of the dtype and the shape of the operands.

    >>> lax.shift_right_arithmetic(-8, 1)
    Array(-4, dtype=int32, weak_type=True)"""
    return apply_nary(shift_right_arithmetic_p, x, y)


def population_count(x: ArrayLike) -> Array:
    """How many bits of each element are set.

    Args:
        x: Integers.

    Returns:
        An array of the dtype and the shape of the operands.

    >>> lax.population_count(7)
    Array(3, dtype=int32, weak_type=True)"""
    return apply_unary(population_count_p, x)


def clz(x: ArrayLike) -> Array:
    """How many zeros each element has above its highest set bit.

    Args:
        x: Integers.

    Returns:
        An array of the dtype and the shape of the operands.

    >>> lax.clz(jnp.int32(1))
    Array(31, dtype=int32)"""
    return apply_unary(clz_p, x)
