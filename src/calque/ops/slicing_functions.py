"""The functions of lax that slice: with positions that are known, and with positions found while
running."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.arrays import Array, is_concrete
from calque.core.avals import ShapedArray
from calque.core.dtypes import iinfo, is_integer, is_unsigned
from calque.core.primitives import do
from calque.core.trace import VALUES, typeof
from calque.core.types import ArrayLike
from calque.ops import common
from calque.ops.common import operand as as_operand
from calque.ops.layout import (
    broadcast_in_dim,
    canonical_axis,
    canonical_shape,
)
from calque.ops.sizes import as_number, index_dtype

# ---------------------------------------------------------------- lax functions: static


def slice(
    operand: ArrayLike,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Array:
    """Gives the part of an array between positions that are known.

    Args:
        operand: An array.
        start_indices: The first position, for each dimension.
        limit_indices: The position after the last, for each dimension; it lies within the array.
        strides: The steps, for each dimension; None means 1.

    Returns:
        An array.

    >>> lax.slice(jnp.arange(6), (1,), (6,), (2,))
    Array([1, 3, 5], dtype=int32)"""
    steps = None if strides is None else canonical_shape(strides, "strides")
    starts, limits = (
        canonical_shape(start_indices, "start_indices"),
        canonical_shape(limit_indices, "limit_indices"),
    )
    return do.slice(as_operand(operand), start_indices=starts, limit_indices=limits, strides=steps)


def slice_in_dim(
    operand: ArrayLike,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Array:
    """Gives the part of an array between positions along one axis.

    Args:
        operand: An array.
        start_index: The first position; None means 0, negative ones count from the end.
        limit_index: The position after the last; None means the end, negative ones count from
            there.
        stride: The step.
        axis: The axis.

    Returns:
        An array.

    >>> lax.slice_in_dim(jnp.arange(5), 1, -1)
    Array([1, 2, 3], dtype=int32)"""
    operand = as_operand(operand)
    shape = typeof(operand).shape
    axis = canonical_axis(axis, len(shape))
    size = shape[axis]
    start = 0 if start_index is None else start_index
    limit = size if limit_index is None else limit_index
    start, limit = start + size if start < 0 else start, limit + size if limit < 0 else limit
    starts = [0] * len(shape)
    limits, steps = list(shape), [1] * len(shape)
    starts[axis], limits[axis], steps[axis] = start, limit, stride
    return slice(operand, starts, limits, steps)


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """Gives the slice at a position of an axis.

    Args:
        operand: An array.
        index: The position; negative ones count from the end. Outside it is an error.
        axis: The axis.
        keepdims: Whether the axis stays, with size 1.

    Returns:
        An array.

    >>> lax.index_in_dim(jnp.arange(5), 2, keepdims=False)
    Array(2, dtype=int32)"""
    operand = as_operand(operand)
    shape = typeof(operand).shape
    axis, index = canonical_axis(axis, len(shape)), int(index)
    if not -shape[axis] <= index < shape[axis]:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {shape[axis]}")
    index = index + shape[axis] if index < 0 else index
    out = slice_in_dim(operand, index, index + 1, 1, axis)
    return out if keepdims else do.squeeze(out, dimensions=(axis,))


# ---------------------------------------------------------------- lax functions: dynamic


def _start_index(i: Any, size: Any, dtype: Any, allow_negative: bool) -> Any:
    """A start index with the negative ones counted from the end, as JAX does; numbers known now
    become constants."""
    if is_concrete(i):
        value = int(i)
        value = value + size if value < 0 and allow_negative else value
        return as_number(_near(value, size) if type(value) is int else value, dtype)
    i = _as_type(i, dtype)
    aval = i.aval
    if is_unsigned(aval.dtype) or not allow_negative:
        return i
    strong = do.convert_element_type(i, new_dtype=aval.dtype) if aval.weak_type else i
    negative = do.lt(i, as_number(0, aval.dtype))
    return do.select_n(negative, i, do.add(strong, as_number(size, aval.dtype)))


def _near(value: int, size: Any) -> int:
    """A start index that means the same and is no further from an axis than its size: windows are
    moved inside."""
    return min(max(value, 0), size if type(size) is int else np.iinfo(np.int32).max)


def _as_type(i: Any, dtype: Any) -> Any:
    if i.aval.dtype == dtype:
        return i
    return do.convert_element_type(i, new_dtype=dtype)


def _start_indices(
    name: str, x: Any, start_indices: Any, allow_negative_indices: bool | Sequence[bool]
) -> list[Any]:
    shape = typeof(x).shape
    if isinstance(start_indices, (*VALUES, np.ndarray)):
        start_indices = _components(start_indices)
    if len(start_indices) != len(shape):
        raise ValueError(
            f"Length of start_indices must match the rank of the operand: got {len(start_indices)}"
            f" for shape {shape}"
        )
    indices = [i if _is_integer_number(i) else as_operand(i) for i in start_indices]
    types = [typeof(0 if type(i) is int else i) for i in indices]  # an int may be of any size
    strong = {a.dtype for i, a in zip(indices, types) if type(i) is not int and not a.weak_type}
    if len(strong) > 1 or not all(is_integer(a.dtype) for a in types):
        raise TypeError(
            f"index arguments to {name} must be integers of the same type, got:"
            f" {', '.join(a.dtype.name for a in types)}"
        )
    arrays = [a for i, a in zip(indices, types) if not _is_integer_number(i)]
    dtype = _start_dtype(arrays, shape)
    allow = (
        [allow_negative_indices] * len(shape)
        if isinstance(allow_negative_indices, bool)
        else allow_negative_indices
    )
    return [_start_index(i, n, dtype, a) for i, n, a in zip(indices, shape, allow, strict=True)]


def _is_integer_number(i: Any) -> bool:
    return type(i) is int or (
        isinstance(i, (np.ndarray, np.generic)) and i.shape == () and i.dtype.kind in "iu"
    )


def _start_dtype(avals: Sequence[ShapedArray], shape: Sequence[Any]) -> Any:
    """The one dtype of all start indices: that of the first array if it counts as far as the axes
    are long."""
    least = index_dtype(*shape)
    dtype = next((a.dtype for a in avals if not a.weak_type), None)
    dtype = dtype or next((a.dtype for a in avals), least)
    far = np.iinfo(np.int32).max if least.itemsize == 8 else 0
    # a size that is free may be any
    far = max([far, *(n if type(n) is int else np.iinfo(np.int32).max for n in shape)])
    wide = dtype if iinfo(dtype).max >= far else least
    widest = max((a.dtype.itemsize for a in avals), default=0)
    return np.dtype("int64") if widest == 8 and wide.itemsize < 8 else wide


def _components(vector: Any) -> list[Any]:
    """The elements of a rank-1 array of start indices."""
    aval = typeof(vector)
    if aval.ndim != 1:
        raise ValueError(
            "start_indices must be a sequence of scalars or an array of rank 1, got shape"
            f" {aval.shape}"
        )
    if is_concrete(vector):
        return list(np.asarray(vector))
    return [index_in_dim(vector, i, 0, keepdims=False) for i in range(aval.shape[0])]


def dynamic_slice(
    operand: ArrayLike,
    start_indices: Any,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Gives a window of an array, of fixed size, at a position found while running.

    Args:
        operand: An array.
        start_indices: The first position: an integer for each dimension, or an array of them. A
            window that does not fit is moved inside.
        slice_sizes: The size of the window, for each dimension.
        allow_negative_indices: Whether negative positions count from the end, for all dimensions or
            for each; otherwise they are moved to 0.

    Returns:
        An array of shape `slice_sizes`.

    >>> lax.dynamic_slice(jnp.arange(5), (4,), (2,))
    Array([3, 4], dtype=int32)"""
    operand = as_operand(operand)
    indices = _start_indices("dynamic_slice", operand, start_indices, allow_negative_indices)
    return do.dynamic_slice(
        operand, *indices, slice_sizes=canonical_shape(slice_sizes, "slice_sizes")
    )


def dynamic_slice_in_dim(
    operand: ArrayLike,
    start_index: ArrayLike,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Gives a window along one axis, of fixed size, at a position found while running.

    Args:
        operand: An array.
        start_index: The first position. A window that does not fit is moved inside.
        slice_size: The size of the window.
        axis: The axis.
        allow_negative_indices: Whether negative positions count from the end, for all dimensions or
            for each; otherwise they are moved to 0.

    Returns:
        An array.

    >>> lax.dynamic_slice_in_dim(jnp.arange(5), 1, 2)
    Array([1, 2], dtype=int32)"""
    operand = as_operand(operand)
    sizes = list(typeof(operand).shape)
    axis = canonical_axis(axis, len(sizes))
    starts: list[Any] = [0] * len(sizes)
    starts[axis], sizes[axis] = start_index, slice_size
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(
    operand: ArrayLike,
    index: ArrayLike,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Gives the slice at a position of an axis that is found while running.

    Args:
        operand: An array.
        index: The position; outside it is moved inside.
        axis: The axis.
        keepdims: Whether the axis stays, with size 1.
        allow_negative_indices: Whether negative positions count from the end, for all dimensions or
            for each; otherwise they are moved to 0.

    Returns:
        An array.

    >>> lax.dynamic_index_in_dim(jnp.arange(5), 2, keepdims=False)
    Array(2, dtype=int32)"""
    axis = canonical_axis(axis, typeof(operand).ndim)
    out = dynamic_slice_in_dim(
        operand, index, 1, axis, allow_negative_indices=allow_negative_indices
    )
    return out if keepdims else do.squeeze(out, dimensions=(axis,))


def dynamic_update_slice(
    operand: ArrayLike,
    update: ArrayLike,
    start_indices: Any,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Gives an array with a window replaced, at a position found while running.

    Args:
        operand: An array.
        update: What is written, of the dtype of `operand` and no larger in any dimension.
        start_indices: The first position: an integer for each dimension, or an array of them. A
            window that does not fit is moved inside.
        allow_negative_indices: Whether negative positions count from the end, for all dimensions or
            for each; otherwise they are moved to 0.

    Returns:
        An array of the shape of `operand`.

    >>> lax.dynamic_update_slice(jnp.zeros(4), jnp.ones(2), (1,))
    Array([0., 1., 1., 0.], dtype=float32)"""
    operand, update = common.same_dtypes(
        "dynamic_update_slice", [as_operand(operand), as_operand(update)]
    )
    return do.dynamic_update_slice(
        operand,
        update,
        *_start_indices("dynamic_update_slice", operand, start_indices, allow_negative_indices),
    )


def dynamic_update_slice_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    start_index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Gives an array with a window along one axis replaced, at a position found while running.

    Args:
        operand: An array.
        update: What is written, with as many dimensions as `operand`.
        start_index: The first position. A window that does not fit is moved inside.
        axis: The axis.
        allow_negative_indices: Whether negative positions count from the end, for all dimensions or
            for each; otherwise they are moved to 0.

    Returns:
        An array of the shape of `operand`.

    >>> lax.dynamic_update_slice_in_dim(jnp.zeros(4), jnp.ones(2), 1, 0)
    Array([0., 1., 1., 0.], dtype=float32)"""
    ndim = typeof(operand).ndim
    starts: list[Any] = [0] * ndim
    starts[canonical_axis(axis, ndim)] = start_index
    return dynamic_update_slice(
        operand, update, starts, allow_negative_indices=allow_negative_indices
    )


def dynamic_update_index_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Gives an array with the slice at a position of an axis replaced.

    Args:
        operand: An array.
        update: What is written; it may lack the axis.
        index: The position; outside it is moved inside.
        axis: The axis.
        allow_negative_indices: Whether negative positions count from the end, for all dimensions or
            for each; otherwise they are moved to 0.

    Returns:
        An array of the shape of `operand`.

    >>> lax.dynamic_update_index_in_dim(jnp.zeros(3), 1.0, 2, 0)
    Array([0., 0., 1.], dtype=float32)"""
    operand, update = common.same_dtypes(
        "dynamic_update_index_in_dim", [as_operand(operand), as_operand(update)]
    )
    ndim, aval = typeof(operand).ndim, typeof(update)
    axis = canonical_axis(axis, ndim)
    if aval.ndim != ndim:
        if aval.ndim + 1 != ndim:
            raise TypeError(
                f"update of rank {aval.ndim} does not fit operand of rank {ndim}: it must have that"
                " rank or one less"
            )
        kept = tuple([d for d in range(ndim) if d != axis])
        update = broadcast_in_dim(update, (*aval.shape[:axis], 1, *aval.shape[axis:]), kept)
    return dynamic_update_slice_in_dim(
        operand, update, index, axis, allow_negative_indices=allow_negative_indices
    )
