"""Elements moved and repeated: flip, roll, repeat, tile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, SupportsIndex

import numpy as np

from calque.core.arrays import Array, is_concrete, to_array, to_numpy
from calque.core.avals import ShapedArray, nbytes
from calque.core.dims import as_size, is_found
from calque.core.dtypes import canonicalize, is_integer, is_unsigned
from calque.core.extents import larger
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike, Axes
from calque.numpy.creation import placed
from calque.numpy.indexing.found_sizes import extent
from calque.numpy.promotion import (
    as_operand,
    canonical_axes,
    canonical_axis,
    check_arraylike,
    convert,
    ensure,
    shape_of,
)
from calque.numpy.promotion import (
    broadcast_to as _broadcast_to,
)
from calque.numpy.shaping import broadcast_to, expand_dims, ravel, reshape, where
from calque.numpy.signatures import OutSharding
from calque.ops.found_sizes import found_size
from calque.ops.sizes import as_number, index_dtype
from calque.transforms.functions.checks import raise_if


def section(x: Any, axis: int, start: int, stop: int) -> Any:
    """x[..., start:stop, ...] along one axis."""
    shape = typeof(x).shape
    if is_found(shape[axis]):
        return x[(slice(None),) * axis + (slice(larger(start, 0), larger(stop, 0)),)]
    starts = tuple(start if i == axis else 0 for i in range(len(shape)))
    limits = tuple(stop if i == axis else d for i, d in enumerate(shape))
    return do.slice(x, start_indices=starts, limit_indices=limits)


def flip(m: ArrayLike, axis: Axes | None = None) -> Array:
    """An array with the order of its elements reversed.

    Args:
        m: an array.
        axis: the axes to reverse, an int or several; None reverses all.
    Returns:
        An array of the same shape.

    >>> jnp.flip(jnp.arange(3))
    Array([2, 1, 0], dtype=int32)"""
    check_arraylike("flip", m)
    m = as_operand(m)
    n = typeof(m).ndim
    axes = (
        canonical_axes(axis, n)
        if not isinstance(axis, (tuple, list, range))
        else tuple([canonical_axis(i, n) for i in axis])
    )
    if len(set(axes)) != len(axes):
        raise TypeError(f"duplicate value in 'axis': {axis}")
    return do.rev(m, dimensions=axes)


def fliplr(m: ArrayLike) -> Array:
    """A matrix with its columns in reverse order.

    Args:
        m: an array with at least two axes.
    Returns:
        An array of the same shape.

    >>> jnp.fliplr(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 1],
           [4, 3]], dtype=int32)"""
    return flip(m, 1)


def flipud(m: ArrayLike) -> Array:
    """A matrix with its rows in reverse order.

    Args:
        m: an array with at least one axis.
    Returns:
        An array of the same shape.

    >>> jnp.flipud(jnp.array([[1, 2], [3, 4]]))
    Array([[3, 4],
           [1, 2]], dtype=int32)"""
    return flip(m, 0)


def roll(a: ArrayLike, shift: ArrayLike | Sequence[int], axis: Axes | None = None) -> Array:
    """Elements moved along axes; those that leave at one end come back at the other.

    Args:
        a: an array.
        shift: how many places to move, towards higher positions; one number or one for each axis.
            It may be traced.
        axis: the axes to move along, an int or several; None moves through the flattened array.
    Returns:
        An array of the same shape.

    >>> jnp.roll(jnp.arange(5), 2)
    Array([3, 4, 0, 1, 2], dtype=int32)"""
    check_arraylike("roll", a)
    a = as_operand(a)
    shape = typeof(a).shape
    if axis is None:
        return reshape(roll(ravel(a), shift, 0), shape)
    axes = [
        canonical_axis(i, len(shape))
        for i in (axis if isinstance(axis, (tuple, list, range)) else (axis,))
    ]
    rank = len(shape_of(shift))
    if rank > 1:
        raise ValueError(
            f"roll: shift must be a number or of one dimension, got shape {shape_of(shift)}"
        )
    listed = isinstance(shift, (tuple, list))
    count = len(shift) if listed else shape_of(shift)[0] if rank else len(axes)  # type: ignore[arg-type]
    if len(axes) == 1 or count == 1:
        axes = axes * (count if len(axes) == 1 else 1)
    elif count != len(axes):
        raise ValueError(
            f"Mismatched lengths between shift ({count}) and axis ({len(axes)}) for jnp.roll."
        )
    if rank and not listed and len(set(axes)) == 1 and shape[axes[0]] != 0:
        # one by one they would be as many steps
        times = len(axes) if count == 1 else 1
        return ensure(
            _roll_one(a, _one_shift(shift, shape[axes[0]]) * times, axes[0], shape[axes[0]])
        )
    several: Any = shift if rank or listed else [shift]
    shifts = list(several) * (len(axes) if len(several) == 1 else 1)
    for s, k in zip(shifts, axes):
        a = _roll_one(a, s, k, shape[k])
    return ensure(a)


def _one_shift(shifts: Any, size: Any) -> Any:
    """One shift along an axis of this size in the place of several."""
    if is_concrete(shifts):
        return sum(map(int, to_numpy(shifts).tolist()))  # each of them, as in JAX
    dtype = index_dtype(size)
    rest = do.reduce_sum(_remainder(shifts, size, dtype), axes=(0,))
    return do.rem(rest, as_number(size, dtype))


def _remainder(shift: Any, size: Any, dtype: Any) -> Any:
    own = typeof(shift).dtype
    wide = own if own.itemsize > dtype.itemsize - is_unsigned(own) else dtype
    many = _broadcast_to(as_number(size, wide), typeof(shift).shape)
    return convert(do.rem(convert(shift, wide), many), dtype)


def _roll_one(a: Any, shift: Any, axis: int, size: int) -> Any:
    if size == 0:
        return a
    try:
        s = as_size(shift, "roll: shift") % size if not is_found(size) else None
    except TypeError:
        s = None
    if s is None:
        dtype = index_dtype(*typeof(a).shape)
        n, zero = as_number(size, dtype), as_number(0, dtype)
        r = _remainder(shift, size, dtype)
        start = do.rem(do.sub(n, do.select_n(do.lt(r, zero), r, do.add(r, n))), n)
        starts = [start if i == axis else zero for i in range(typeof(a).ndim)]
        return do.dynamic_slice(
            do.concatenate(a, a, dimension=axis), *starts, slice_sizes=typeof(a).shape
        )
    if s == 0:
        return a
    return do.concatenate(
        section(a, axis, size - s, size), section(a, axis, 0, size - s), dimension=axis
    )


@placed
def repeat(
    a: ArrayLike,
    repeats: ArrayLike | Sequence[int],
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Each element several times in a row.

    Args:
        a: an array.
        repeats: how often: one number, or one for each place along the axis.
        axis: the axis to repeat along; None flattens first.
        total_repeat_length: the size of the result along the axis: it is cut there, or the last
            element repeated further. None is the sum of `repeats`, which is found while the program
            runs if they are traced.
        out_sharding: how the result lies on a mesh with explicit axes; None leaves it open.
    Returns:
        An array that is longer along the axis.

    >>> jnp.repeat(jnp.array([1, 2]), jnp.array([2, 3]))
    Array([1, 1, 2, 2, 2], dtype=int32)"""
    check_arraylike("repeat", a)
    a = to_array(a)
    if axis is None or (typeof(a).ndim == 0 and axis in (0, -1)):
        a, axis = ravel(a), 0
    k = canonical_axis(axis, typeof(a).ndim)
    if isinstance(repeats, (float, complex, np.inexact)) or repeats is None:
        raise TypeError(f"repeat: repeats must be integers, got {repeats!r}")
    if isinstance(repeats, int) and repeats < 0:
        raise TypeError(f"repeat: repeats must not be negative, got {repeats}")
    if total_repeat_length is not None:
        total_repeat_length = as_size(total_repeat_length, "repeat: total_repeat_length")
    if total_repeat_length is None and isinstance(repeats, int):
        shape = typeof(a).shape
        wide = expand_dims(a, k + 1)
        full = (*shape[: k + 1], repeats, *shape[k + 1 :])
        return reshape(_broadcast_to(wide, full), (*shape[:k], shape[k] * repeats, *shape[k + 1 :]))
    return _repeat_by_counts(a, repeats, k, total_repeat_length)


def _total(repeats: Any, n: Any) -> Any:
    """The size that traced counts make."""
    dtype = typeof(repeats).dtype
    if not is_integer(dtype) or typeof(repeats).ndim > 1:
        raise TypeError(
            "repeat: repeats must be integers, a scalar or a vector, got"
            f" {typeof(repeats).str_short()}"
        )
    c = broadcast_to(convert(repeats, canonicalize(int)), (n,))
    negative = do.reduce_or(do.lt(c, np.zeros((), canonicalize(int))), axes=(0,))
    raise_if(negative, lambda: ValueError("repeat: repeats may not contain negative values"))
    rough = do.reduce_sum(convert(c, np.dtype("float32")), axes=(0,))
    raise_if(do.ge(rough, np.float32(2**31)), _too_many)
    return found_size(do.reduce_sum(c, axes=(0,)), "jnp.repeat")


def _too_many() -> MemoryError:
    return MemoryError(_TOO_MANY.format("2**31 or more"))


_TOO_MANY: Final = "repeat: the repeats make an axis of {} elements: make them smaller"


def _known_counts(a: Any, repeats: Any, axis: int) -> np.ndarray:
    """How often each element comes; a result that no memory holds is refused."""
    counts = np.asarray(repeats)
    if counts.dtype.kind not in "iub" and counts.size:
        raise TypeError(f"repeat: repeats must be integers, got an array of {counts.dtype}")
    shape = typeof(a).shape
    counts = np.broadcast_to(counts.astype(counts.dtype if counts.size else int), (shape[axis],))
    total = sum(map(int, counts)) if counts.size and int(counts.max()) >= 1 << 31 else None
    if total is not None and total >= 1 << 31:
        nbytes(ShapedArray((*shape[:axis], total, *shape[axis + 1 :]), typeof(a).dtype))
        raise MemoryError(_TOO_MANY.format(total))
    return counts if counts.dtype != np.uint64 else counts.astype(np.int64)


def _places_of(a: Any, axis: int, counts: np.ndarray) -> np.ndarray:
    """Which element stands at each place of the result."""
    try:
        return np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    except MemoryError:
        raise MemoryError(
            f"repeat: no memory for the {int(counts.sum())} places of the result of"
            f" {typeof(a).str_short()} along axis {axis}: make the repeats smaller"
        ) from None


def _repeat_by_counts(a: Any, repeats: Any, axis: int, total: int | None) -> Any:
    n = typeof(a).shape[axis]
    if type(n) is int and n == 0:
        return a  # nothing is there to repeat, whatever the total
    if total is None and not is_concrete(repeats):
        total = _total(repeats, n)
    if total is None:
        places = _places_of(a, axis, _known_counts(a, repeats, axis))
        return a[(slice(None),) * axis + (places,)]
    c = broadcast_to(convert(repeats, canonicalize(int)), (n,))
    end = as_number(total, canonicalize(int))
    ends = do.cumsum(do.min(c, end), axis=0, reverse=False)
    come_round = do.lt(ends, np.zeros((), canonicalize(int)))
    beyond = do.cummax(convert(come_round, np.dtype("int32")), axis=0, reverse=False)
    ends = where(do.gt(beyond, np.zeros((), np.int32)), end, ends)
    nothing = do.broadcast_in_dim(
        np.zeros((), canonicalize(int)), shape=(total,), broadcast_dimensions=()
    )
    passed = nothing.at[ends].add(1, mode="drop")  # how many elements end at each place
    where_ = do.cumsum(passed, axis=0, reverse=False)
    return a[(slice(None),) * axis + (do.min(where_, as_number(n - 1, canonicalize(int))),)]


def tile(A: ArrayLike, reps: SupportsIndex | Sequence[SupportsIndex]) -> Array:
    """An array repeated as a whole.

    Args:
        A: an array.
        reps: how often along each axis; axes that one of the two lacks are new first axes.
    Returns:
        An array whose sizes are multiplied.

    >>> jnp.tile(jnp.array([1, 2]), 3)
    Array([1, 2, 1, 2, 1, 2], dtype=int32)"""
    check_arraylike("tile", A)
    A = as_operand(A)
    several = isinstance(reps, (tuple, list)) or bool(getattr(reps, "ndim", 0))
    given = tuple(reps) if several else (reps,)  # type: ignore[arg-type]
    counts = tuple(extent(r, "jnp.tile") for r in given)
    shape = typeof(A).shape
    rank = max(len(shape), len(counts))
    shape, counts = (1,) * (rank - len(shape)) + shape, (1,) * (rank - len(counts)) + counts
    A = reshape(A, shape)
    pairs = tuple(x for pair in zip(counts, shape) for x in pair)
    wide = do.broadcast_in_dim(A, shape=pairs, broadcast_dimensions=tuple(range(1, 2 * rank, 2)))
    return reshape(wide, tuple(c * d for c, d in zip(counts, shape)))
