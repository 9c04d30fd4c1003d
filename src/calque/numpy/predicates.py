"""Comparing arrays as wholes, and with tolerance."""

from __future__ import annotations

from typing import Any

import numpy as np

from calque.core.arrays import Array
from calque.core.dtypes import FLOAT8, INT4, UINT4, is_extended, is_inexact, real_part
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike
from calque.numpy import reductions, ufuncs
from calque.numpy.conversions import asarray
from calque.numpy.promotion import arrays, broadcast_shapes, convert, promote_dtypes, promote_shapes

__all__ = ["allclose", "array_equal", "array_equiv", "isclose"]


def isclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Tells which elements are nearly equal: `abs(a - b) <= atol + rtol * abs(b)`.

    Args:
        a: an array or a number.
        b: the one it is compared with, whose size counts.
        rtol: the difference allowed for each unit of `b`.
        atol: the difference allowed in any case.
        equal_nan: whether nan is close to nan.
    Returns:
        Bools of the common shape. Infinities are close to themselves only.

    >>> jnp.isclose(jnp.array([1.0, 2.0]), jnp.array([1.000001, 2.1]))
    Array([ True, False], dtype=bool)"""
    a, b = arrays("isclose", a, b)
    a, b = promote_dtypes(a, b)
    a, b = promote_shapes("isclose", a, b)
    if is_extended(typeof(a).dtype):
        return ufuncs.equal(a, b)
    if not is_inexact(typeof(a).dtype):
        a, b = (asarray(x) for x in (a, b))
        work = np.dtype("float32") if typeof(a).dtype.itemsize < 8 else np.dtype("float64")
        close = _within(convert(a, work), convert(b, work), rtol, atol)
        return ufuncs.logical_or(ufuncs.equal(a, b), close)
    close = ufuncs.logical_and(_within(a, b, rtol, atol), ufuncs.isfinite(b))
    out = ufuncs.logical_or(ufuncs.equal(a, b), close)
    if equal_nan:
        both = ufuncs.logical_and(ufuncs.isnan(a), ufuncs.isnan(b))
        out = ufuncs.logical_or(out, both)
    return out


def _within(a: Any, b: Any, rtol: Any, atol: Any) -> Any:
    real = real_part(typeof(a).dtype)
    rtol, atol = (convert(t, real) for t in arrays("isclose", rtol, atol))
    size = do.abs(b)
    bound = ufuncs.add(atol, ufuncs.multiply(rtol, size))
    return ufuncs.less_equal(do.abs(ufuncs.subtract(a, b)), bound)


def allclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Whether all elements are nearly equal: `abs(a - b) <= atol + rtol * abs(b)`.

    Args:
        a: an array or a number.
        b: the one it is compared with, whose size counts.
        rtol: the difference allowed for each unit of `b`.
        atol: the difference allowed in any case.
        equal_nan: whether nan is close to nan.
    Returns:
        An array of one bool, without axes.
    Differs from NumPy:
        It is an array, traced under jit, rather than a bool.

    >>> jnp.allclose(jnp.array([1.0, 2.0]), jnp.array([1.0, 2.000001]))
    Array(True, dtype=bool)"""
    return reductions.all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Whether two arrays have the same shape and the same elements.

    Args:
        a1, a2: the arrays.
        equal_nan: whether nan equals nan.
    Returns:
        An array of one bool, without axes.

    >>> jnp.array_equal(jnp.arange(3), jnp.array([0, 1, 2]))
    Array(True, dtype=bool)"""
    a1, a2 = asarray(a1), asarray(a2)
    if a1.shape != a2.shape:
        return asarray(False)
    same = ufuncs.equal(a1, a2)
    if equal_nan:
        same = ufuncs.logical_or(same, ufuncs.logical_and(ufuncs.isnan(a1), ufuncs.isnan(a2)))
    return reductions.all(same)


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Whether two arrays are equal once they are broadcast to a common shape.

    Args:
        a1, a2: the arrays.
    Returns:
        An array of one bool, without axes; false if they do not broadcast.

    >>> jnp.array_equiv(jnp.array([1, 2]), jnp.array([[1, 2], [1, 2]]))
    Array(True, dtype=bool)"""
    a1, a2 = asarray(a1), asarray(a2)
    try:
        broadcast_shapes("array_equiv", a1.shape, a2.shape)
    except (TypeError, ValueError):
        return asarray(False)
    if a1.dtype != a2.dtype:  # the smallest dtypes have none in common with others
        a1, a2 = _of_bytes(a1), _of_bytes(a2)
    return reductions.all(ufuncs.equal(a1, a2))


def _of_bytes(x: Array) -> Array:
    """Numbers of less than a byte, and floats of one, in a dtype that others join."""
    if x.dtype in FLOAT8:
        return convert(x, np.dtype("float32"))
    return convert(x, np.dtype("int8")) if x.dtype in (*INT4, *UINT4) else x
