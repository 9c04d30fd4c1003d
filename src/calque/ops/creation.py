"""Arrays made from nothing: counting numbers, empty, filled with a scalar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from calque.core.arrays import Array, as_it_is
from calque.core.avals import ShapedArray
from calque.core.dtypes import asked, canonicalize
from calque.core.primitives import Primitive, do
from calque.core.trace import typeof
from calque.core.types import ArrayLike, DTypeLike
from calque.ops.conversions import real_constant_of
from calque.ops.layout import (
    NO_OPERANDS,
    Shape,
    _is_array,
    canonical_axis,
    canonical_shape,
    constant_jvp,
)

# ---------------------------------------------------------------- iota and empty


def _iota_shape(*, dtype: Any, shape: Shape, dimension: int, sharding: Any) -> ShapedArray:
    if not 0 <= dimension < len(shape):
        raise ValueError(
            f"iota dimension must be between 0 and the rank of the shape, got dimension={dimension}"
            f" for shape {shape}"
        )
    if dtype == np.bool_:
        raise TypeError(f"iota does not accept dtype {dtype}: it needs a number type")
    return ShapedArray(shape, dtype)


def _iota_meaning(*, dtype: Any, shape: Shape, dimension: int, sharding: Any) -> np.ndarray:
    sizes = [1] * len(shape)
    sizes[dimension] = shape[dimension]
    return np.broadcast_to(np.arange(shape[dimension]).astype(dtype).reshape(sizes), shape)


iota_p = Primitive(
    "iota",
    meaning=_iota_meaning,
    shape=_iota_shape,
    jvp=constant_jvp("iota"),
    transpose=NO_OPERANDS,
    batch=NO_OPERANDS,
    defaults={"sharding": None},
)

empty_p = Primitive(
    "empty",
    meaning=lambda *, dtype, out_sharding, shape: np.zeros(shape, dtype),
    shape=lambda *, dtype, out_sharding, shape: ShapedArray(shape, dtype),
    jvp=constant_jvp("empty"),
    transpose=NO_OPERANDS,
    batch=NO_OPERANDS,
    defaults={"out_sharding": None},
)


def iota(dtype: DTypeLike, size: int) -> Array:
    """The numbers 0, 1, ..., size - 1.

    Args:
        dtype: The dtype of the result.
        size: How many.

    Returns:
        An array with one axis.

    >>> lax.iota(jnp.float32, 3)
    Array([0., 1., 2.], dtype=float32)"""
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(
    dtype: DTypeLike, shape: Sequence[int], dimension: int, *, out_sharding: Any = None
) -> Array:
    """An array whose elements count along one dimension.

    Args:
        dtype: The dtype of the result.
        shape: The size of each dimension, or the size of the only one.
        dimension: The dimension along which they count; along all others they repeat.
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array of this shape.

    >>> lax.broadcasted_iota(jnp.int32, (2, 3), 1)
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)"""
    shape = _shape_or_size(shape)
    axis = canonical_axis(dimension, len(shape), "dimension")
    return do.iota(dtype=asked(dtype), shape=shape, dimension=axis, sharding=out_sharding)


def empty(shape: Sequence[int], dtype: DTypeLike, *, out_sharding: Any = None) -> Array:
    """An array whose elements mean nothing. They are zeros.

    Args:
        shape: The size of each dimension.
        dtype: The dtype of the result.
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array of this shape.

    >>> lax.empty((2,), jnp.float32).shape
    (2,)"""
    return do.empty(dtype=asked(dtype), out_sharding=out_sharding, shape=canonical_shape(shape))


_PYTHON_KIND: Final[dict[str, Callable[[Any], Any]]] = {"i": int, "f": float, "c": complex}


def scalar_of(value: Any, dtype: Any, weak_type: bool = False) -> Any:
    """A scalar with this dtype: a constant for numbers, a conversion for arrays."""
    aval = typeof(value)
    if _is_array(value):
        if aval.dtype == dtype and aval.weak_type == weak_type:
            return value
        return do.convert_element_type(value, new_dtype=dtype, weak_type=weak_type)
    if weak_type:
        kind = getattr(dtype, "kind", "")
        if kind in _PYTHON_KIND and canonicalize(_PYTHON_KIND[kind]) == dtype:
            return _PYTHON_KIND[kind](value)
    if not isinstance(dtype, np.dtype):
        return value
    return as_it_is(real_constant_of("fill_value", value, dtype)[()])


def full(
    shape: Sequence[int],
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    sharding: Any = None,
) -> Array:
    """An array filled with a scalar.

    Args:
        shape: The size of each dimension, or the size of the only one.
        fill_value: A number, or an array without axes. Floats beyond the range of an integer dtype
            take its nearest end.
        dtype: The dtype; None takes that of `fill_value`.
        sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array of this shape.

    >>> lax.full((2,), 7.0)
    Array([7., 7.], dtype=float32, weak_type=True)"""
    shape = _shape_or_size(shape)
    aval = typeof(fill_value)
    if aval.ndim:
        raise TypeError(
            f"lax.full must be called with scalar fill_value; got fill_value.shape {aval.shape}."
        )
    weak_type = dtype is None and aval.weak_type
    return _full(
        shape, fill_value, aval.dtype if dtype is None else asked(dtype), weak_type, sharding
    )


def _shape_or_size(shape: Any) -> Shape:
    """A shape, or one size as the shape of one axis."""
    return canonical_shape((shape,) if type(shape) is int else shape)


def _full(shape: Shape, fill_value: Any, dtype: Any, weak_type: bool, sharding: Any) -> Any:
    value = scalar_of(fill_value, dtype, weak_type)
    if shape == () and _is_array(value):
        return value
    return do.broadcast_in_dim(value, shape=shape, broadcast_dimensions=(), sharding=sharding)


def full_like(
    x: ArrayLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: Sequence[int] | None = None,
    sharding: Any = None,
) -> Array:
    """An array like another one, filled with a scalar.

    Args:
        x: An array, or anything with a shape and a dtype.
        fill_value: A number, or an array without axes.
        dtype: The dtype; None takes that of `x`.
        shape: The shape, or the size of the only axis; None takes that of `x`.
        sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> lax.full_like(jnp.arange(2.0), 3)
    Array([3., 3.], dtype=float32)"""
    aval = (
        typeof(x) if not (hasattr(x, "shape") and hasattr(x, "dtype")) or hasattr(x, "aval") else x
    )
    weak_type = dtype is None and bool(getattr(aval, "weak_type", False))
    if typeof(fill_value).ndim:
        raise TypeError(
            "lax.full_like must be called with scalar fill_value; got shape"
            f" {typeof(fill_value).shape}."
        )
    if dtype is None:  # what is there keeps its type; NumPy's arrays are taken as operands are
        dtype = typeof(x).dtype if hasattr(x, "aval") else canonicalize(aval.dtype)
    else:
        dtype = asked(dtype)
    return _full(
        _shape_or_size(aval.shape if shape is None else shape),
        fill_value,
        dtype,
        weak_type,
        sharding,
    )
