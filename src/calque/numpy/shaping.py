"""Changing shapes: reshape, transpose, roll, repeat."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, SupportsIndex, overload

import numpy as np

from calque.core.arrays import Array, is_concrete
from calque.core.dims import as_size, is_found, surely_same
from calque.core.dtypes import canonicalize, is_complex, is_integer
from calque.core.extents import larger
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike, Axes, ShapeLike
from calque.numpy.creation import canonical_shape, placed
from calque.numpy.indexing.found_sizes import extent, is_traced_integer, known_extent
from calque.numpy.promotion import (
    as_operand,
    broadcast_shapes,
    canonical_axes,
    canonical_axis,
    check_arraylike,
    convert,
    ensure,
    promote_dtypes,
    promote_shapes,
    shape_of,
)
from calque.numpy.promotion import (
    broadcast_to as _broadcast_to,
)
from calque.numpy.signatures import OutSharding
from calque.ops.found_sizes import found_size
from calque.ops.sizes import as_number, index_dtype
from calque.transforms.functions.checks import raise_if


@placed
def reshape(
    a: ArrayLike,
    shape: ShapeLike,
    order: str = "C",
    *,
    copy: bool | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The same values in another shape; one size may be -1.

    >>> import calque.numpy as jnp
    >>> jnp.arange(6).reshape(2, -1).shape
    (2, 3)"""
    check_arraylike("reshape", a)
    a = as_operand(a)
    old, new = typeof(a).shape, _wanted(typeof(a).shape, shape)
    size = math.prod(old)
    unknown = sum(type(d) is int and d == -1 for d in new)
    if unknown:
        if unknown > 1:
            raise TypeError(f"can only specify one unknown axis size with a `-1` value, got {new}")
        rest = math.prod(d for d in new if not (type(d) is int and d == -1))
        if rest == 0 or size % rest:
            raise TypeError(
                f"cannot reshape array of shape {old} (size {size}) into shape {new}: {size} is not"
                f" a multiple of {rest}"
            )
        new = tuple(size // rest if type(d) is int and d == -1 else d for d in new)
    if math.prod(new) != size or any(d < 0 for d in new):
        raise TypeError(
            f"cannot reshape array of shape {old} (size {size}) into shape {new} (size"
            f" {math.prod(new)})"
        )
    if order == "F":
        out = transpose(do.reshape(transpose(a), new_sizes=new[::-1]))
    elif order == "A":
        raise NotImplementedError(
            "reshape with order='A' is not implemented: arrays have no order of their own"
        )
    elif order != "C":
        raise ValueError(f"order must be 'C' or 'F' for reshape, got {order!r}")
    elif surely_same(new, old):
        out = ensure(a)
    else:
        out = do.reshape(a, new_sizes=new)
    return do.copy(out) if copy else out


def _wanted(old: tuple[Any, ...], shape: Any) -> tuple[Any, ...]:
    """The new shape. One traced size is what the others leave, which the running program checks."""
    dims = shape if isinstance(shape, (tuple, list)) else (shape,)
    traced = [n for n in dims if is_traced_integer(n)]
    if len(traced) != 1:
        return canonical_shape(shape)
    rest = math.prod(as_size(n) for n in dims if n is not traced[0])
    size = math.prod(old)
    if (type(rest) is int and rest <= 0) or size % rest:
        return canonical_shape(shape)

    def error(n: Any) -> TypeError:
        return TypeError(
            f"cannot reshape array of shape {old} (size {size}): a size is {n},"
            f" {size // rest} is left for it"
        )

    return tuple(
        [known_extent(n, size // rest, error) if n is traced[0] else as_size(n) for n in dims]
    )


@placed
def ravel(a: ArrayLike, order: str = "C", *, out_sharding: OutSharding = None) -> Array:
    """All values in one axis."""
    if order == "K":
        raise NotImplementedError(
            "ravel with order='K' is not implemented: arrays have no order of their own, use"
            " order='C'"
        )
    return reshape(a, (-1,) if typeof(a).size else (0,), order)


def transpose(a: ArrayLike, axes: Axes | None = None) -> Array:
    """The axes in another order, reversed for None."""
    check_arraylike("transpose", a)
    a = as_operand(a)
    n = typeof(a).ndim
    given: Any = range(n)[::-1] if axes is None else axes
    order = tuple([canonical_axis(i, n, "axes") for i in given])
    if sorted(order) != list(range(n)):
        raise TypeError(
            "transpose permutation isn't a permutation of operand dimensions, got permutation"
            f" {axes} for operand shape {typeof(a).shape}"
        )
    return do.transpose(a, permutation=order) if order != tuple(range(n)) else ensure(a)


def permute_dims(a: ArrayLike, /, axes: Sequence[int]) -> Array:
    """The axes in another order."""
    return transpose(a, axes)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """The last two axes exchanged."""
    check_arraylike("matrix_transpose", x)
    if typeof(x).ndim < 2:
        raise ValueError(
            f"x must be at least two-dimensional for matrix_transpose; got ndim={typeof(x).ndim}"
        )
    return swapaxes(x, -1, -2)


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Two axes exchanged."""
    check_arraylike("swapaxes", a)
    n = typeof(a).ndim
    order = list(range(n))
    i, j = canonical_axis(axis1, n), canonical_axis(axis2, n)
    order[i], order[j] = order[j], order[i]
    return transpose(a, order)


def moveaxis(a: ArrayLike, source: Axes, destination: Axes) -> Array:
    """Axes moved to other positions, the others in order."""
    check_arraylike("moveaxis", a)
    n = typeof(a).ndim
    sources = source if isinstance(source, (tuple, list)) else (source,)
    src = [canonical_axis(i, n, "source") for i in sources]
    if len(set(src)) != len(src):
        raise TypeError(f"duplicate value in 'source': {source}")
    dst = canonical_axes(
        destination if isinstance(destination, (tuple, list)) else (destination,), n, "destination"
    )
    if len(src) != len(dst):
        raise ValueError(f"Inconsistent number of elements: {len(src)} vs {len(dst)}")
    order = [i for i in range(n) if i not in src]
    for d, s in sorted(zip(dst, src)):
        order.insert(d, s)
    return transpose(a, order)


def expand_dims(a: ArrayLike, axis: Axes = 0) -> Array:
    """New axes of size 1, at positions in the result."""
    check_arraylike("expand_dims", a)
    a = as_operand(a)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    shape = typeof(a).shape
    n = len(shape) + len(axes)
    new = canonical_axes(tuple(axes), n)
    dims = tuple(i for i in range(n) if i not in new)
    sizes = iter(shape)
    full = tuple(1 if i in new else next(sizes) for i in range(n))
    return do.broadcast_in_dim(a, shape=full, broadcast_dimensions=dims)


def squeeze(a: ArrayLike, axis: Axes | None = None) -> Array:
    """Axes of size 1 removed: all of them, or those given."""
    check_arraylike("squeeze", a)
    a = as_operand(a)
    shape = typeof(a).shape
    axes = (
        tuple(i for i, d in enumerate(shape) if d == 1)
        if axis is None
        else canonical_axes(axis, len(shape))
    )
    if any(shape[i] != 1 for i in axes):
        raise ValueError(
            "cannot select an axis to squeeze out which has size not equal to one, got"
            f" shape={shape} and dimensions={axes}"
        )
    return do.squeeze(a, dimensions=axes) if axes else ensure(a)


@placed
def broadcast_to(array: ArrayLike, shape: ShapeLike, *, out_sharding: OutSharding = None) -> Array:
    """The array repeated to a shape."""
    check_arraylike("broadcast_to", array)
    array, shape = as_operand(array), canonical_shape(shape)
    own = typeof(array).shape
    if len(own) > len(shape):
        raise ValueError(
            f"Cannot broadcast to shape with fewer dimensions: {own} and requested shape {shape}"
        )
    if any(a not in (1, b) for a, b in zip(own[::-1], shape[::-1])):
        raise ValueError(f"Incompatible shapes for broadcasting: {own} and requested shape {shape}")
    return ensure(_broadcast_to(array, shape))


def broadcast_arrays(*args: ArrayLike) -> list[Array]:
    """All arrays with their common shape."""
    check_arraylike("broadcast_arrays", *args)
    args = tuple(map(as_operand, args))
    shape = broadcast_shapes("broadcast_arrays", *[typeof(a).shape for a in args])
    return [ensure(_broadcast_to(a, shape)) for a in args]


@overload
def atleast_1d(a: ArrayLike, /) -> Array: ...
@overload
def atleast_1d(*arys: ArrayLike) -> list[Array]: ...
def atleast_1d(*arys: ArrayLike) -> Any:
    """Arrays with at least one axis."""
    return _atleast("atleast_1d", 1, arys)


@overload
def atleast_2d(a: ArrayLike, /) -> Array: ...
@overload
def atleast_2d(*arys: ArrayLike) -> list[Array]: ...
def atleast_2d(*arys: ArrayLike) -> Any:
    """Arrays with at least two axes; new ones come first."""
    return _atleast("atleast_2d", 2, arys)


@overload
def atleast_3d(a: ArrayLike, /) -> Array: ...
@overload
def atleast_3d(*arys: ArrayLike) -> list[Array]: ...
def atleast_3d(*arys: ArrayLike) -> Any:
    """Arrays with at least three axes."""
    return _atleast("atleast_3d", 3, arys)


def _atleast(name: str, n: int, arys: tuple[Any, ...]) -> Any:
    check_arraylike(name, *arys)

    def lift(a: Any) -> Any:
        s = typeof(a).shape
        if len(s) >= n:
            return ensure(a)
        if n == 3:
            return reshape(a, {0: (1, 1, 1), 1: (1, *s, 1), 2: (*s, 1)}[len(s)])
        return reshape(a, (1,) * (n - len(s)) + s)

    out = [lift(as_operand(a)) for a in arys]
    return out[0] if len(out) == 1 else out


def section(x: Any, axis: int, start: int, stop: int) -> Any:
    """x[..., start:stop, ...] along one axis."""
    shape = typeof(x).shape
    if is_found(shape[axis]):
        return x[(slice(None),) * axis + (slice(larger(start, 0), larger(stop, 0)),)]
    starts = tuple(start if i == axis else 0 for i in range(len(shape)))
    limits = tuple(stop if i == axis else d for i, d in enumerate(shape))
    return do.slice(x, start_indices=starts, limit_indices=limits)


def flip(m: ArrayLike, axis: Axes | None = None) -> Array:
    """The order of elements along axes reversed."""
    check_arraylike("flip", m)
    m = as_operand(m)
    n = typeof(m).ndim
    axes = (
        canonical_axes(axis, n)
        if not isinstance(axis, (tuple, list))
        else tuple([canonical_axis(i, n) for i in axis])
    )
    if len(set(axes)) != len(axes):
        raise TypeError(f"duplicate value in 'axis': {axis}")
    return do.rev(m, dimensions=axes)


def fliplr(m: ArrayLike) -> Array:
    """Columns in reverse order."""
    return flip(m, 1)


def flipud(m: ArrayLike) -> Array:
    """Rows in reverse order."""
    return flip(m, 0)


def roll(a: ArrayLike, shift: ArrayLike | Sequence[int], axis: Axes | None = None) -> Array:
    """Elements moved along axes, those that leave come back at the other end. Shifts may be
    traced."""
    check_arraylike("roll", a)
    a = as_operand(a)
    shape = typeof(a).shape
    if axis is None:
        return reshape(roll(ravel(a), shift, 0), shape)
    axes = [
        canonical_axis(i, len(shape))
        for i in (axis if isinstance(axis, (tuple, list)) else (axis,))
    ]
    rank = len(shape_of(shift))
    if rank > 1:
        raise ValueError(
            f"roll: shift must be a number or of one dimension, got shape {shape_of(shift)}"
        )
    several: Any = shift if rank or isinstance(shift, (tuple, list)) else [shift] * len(axes)
    shifts = list(several)
    if len(shifts) == 1 and len(axes) > 1:
        shifts = shifts * len(axes)
    if len(axes) == 1 and len(shifts) > 1:
        axes = axes * len(shifts)
    if len(shifts) != len(axes):
        raise ValueError(
            f"Mismatched lengths between shift ({len(shifts)}) and axis ({len(axes)}) for jnp.roll."
        )
    for s, k in zip(shifts, axes):
        a = _roll_one(a, s, k, shape[k])
    return ensure(a)


def _roll_one(a: Any, shift: Any, axis: int, size: int) -> Any:
    if size == 0:
        return a
    try:
        s = as_size(shift) % size if not is_found(size) else None
    except TypeError:
        s = None
    if s is None:
        dtype = index_dtype(*typeof(a).shape)
        own = typeof(shift).dtype
        n, zero = as_number(size, dtype), as_number(0, dtype)
        wide = own if own.itemsize > dtype.itemsize else dtype
        r = convert(do.rem(convert(shift, wide), as_number(size, wide)), dtype)
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
    """Each element several times in a row."""
    check_arraylike("repeat", a)
    a = as_operand(a)
    if axis is None:
        a, axis = ravel(a), 0
    k = canonical_axis(axis, typeof(a).ndim)
    if isinstance(repeats, int) and repeats < 0:
        raise TypeError(f"repeat: repeats must not be negative, got {repeats}")
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
    return found_size(do.reduce_sum(c, axes=(0,)), "jnp.repeat")


def _repeat_by_counts(a: Any, repeats: Any, axis: int, total: int | None) -> Any:
    n = typeof(a).shape[axis]
    if total is None and not is_concrete(repeats):
        total = _total(repeats, n)
    counts = np.broadcast_to(np.asarray(repeats), (n,)) if total is None else None
    if counts is not None:
        where = np.repeat(np.arange(n, dtype=np.int32), counts)
        return a[(slice(None),) * axis + (where,)]
    c = broadcast_to(convert(repeats, canonicalize(int)), (n,))
    ends = do.cumsum(c, axis=0, reverse=False)
    nothing = do.broadcast_in_dim(
        np.zeros((), canonicalize(int)), shape=(total,), broadcast_dimensions=()
    )
    passed = nothing.at[ends].add(1, mode="drop")  # how many elements end at each place
    where_ = do.cumsum(passed, axis=0, reverse=False)
    return a[(slice(None),) * axis + (do.min(where_, as_number(n - 1, canonicalize(int))),)]


def tile(A: ArrayLike, reps: SupportsIndex | Sequence[SupportsIndex]) -> Array:
    """The array repeated as a whole along its axes."""
    check_arraylike("tile", A)
    A = as_operand(A)
    given = tuple(reps) if isinstance(reps, (tuple, list)) else (reps,)
    counts = tuple(extent(r, "jnp.tile") for r in given)
    shape = typeof(A).shape
    rank = max(len(shape), len(counts))
    shape, counts = (1,) * (rank - len(shape)) + shape, (1,) * (rank - len(counts)) + counts
    A = reshape(A, shape)
    pairs = tuple(x for pair in zip(counts, shape) for x in pair)
    wide = do.broadcast_in_dim(A, shape=pairs, broadcast_dimensions=tuple(range(1, 2 * rank, 2)))
    return reshape(wide, tuple(c * d for c, d in zip(counts, shape)))


@overload
def where(
    condition: ArrayLike,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
) -> tuple[Array, ...]: ...
@overload
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /) -> Array: ...
def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
) -> Any:
    """x where the condition holds, y elsewhere; with one argument, the places where it holds.

    >>> import calque.numpy as jnp
    >>> jnp.where(jnp.array([True, False]), 1, 2)
    Array([1, 2], dtype=int32, weak_type=True)"""
    if x is None and y is None:
        check_arraylike("where", condition)
        return ensure(as_operand(condition)).nonzero(size=size, fill_value=fill_value)
    if x is None or y is None:
        raise TypeError(
            "Either both or neither of the x and y arguments should be provided to jnp.where, got"
            f" {x} and {y}."
        )
    if size is not None or fill_value is not None:
        raise ValueError(
            "size and fill_value arguments cannot be used in three-term where function."
        )
    check_arraylike("where", condition, x, y)
    c = as_operand(condition)
    if typeof(c).dtype != np.dtype(bool):
        c = do.ne(c, np.zeros((), typeof(c).dtype))
    x, y = promote_dtypes(as_operand(x), as_operand(y))
    shape = broadcast_shapes("where", typeof(c).shape, typeof(x).shape, typeof(y).shape)
    c = c if typeof(c).shape == () else _broadcast_to(c, shape)
    x, y = (_broadcast_to(v, shape) for v in (x, y))
    return do.select_n(c, y, x)


def clip(
    arr: ArrayLike | None = None, /, min: ArrayLike | None = None, max: ArrayLike | None = None
) -> Array:
    """Values limited to [min, max].

    >>> import calque.numpy as jnp
    >>> jnp.clip(jnp.arange(4), 1, 2)
    Array([1, 1, 2, 2], dtype=int32)"""
    if arr is None:
        raise ValueError("No input was provided to the clip function.")
    check_arraylike("clip", arr, *(v for v in (min, max) if v is not None))
    if any(is_complex(typeof(v).dtype) for v in (arr, min, max) if v is not None):
        raise ValueError(
            "clip: Complex values have no ordering and cannot be clipped; clip their real and"
            " imaginary parts."
        )
    out = as_operand(arr)
    for bound, primitive in ((min, "max"), (max, "min")):
        if bound is not None:
            a, b = promote_shapes("clip", *promote_dtypes(out, as_operand(bound)))
            out = do[primitive](a, b)
    return ensure(out)
