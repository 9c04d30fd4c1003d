"""Arrays with parts put in or taken out: insert, delete, resize, put, place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.arrays import Array, is_concrete
from calque.core.avals import ShapedArray, nbytes
from calque.core.dims import is_found, is_symbolic
from calque.core.dtypes import canonicalize, is_integer
from calque.core.types import ArrayLike, Axes, ShapeLike
from calque.numpy import reductions, ufuncs
from calque.numpy.conversions import asarray
from calque.numpy.creation import canonical_shape, zeros
from calque.numpy.joining import concatenate
from calque.numpy.moving import flip
from calque.numpy.promotion import (
    array_of,
    arrays,
    broadcast_shapes,
    broadcast_to,
    canonical_axes,
    canonical_axis,
    check_arraylike,
    convert,
)
from calque.numpy.ranges import arange
from calque.numpy.shaping import clip, moveaxis, ravel, reshape, where
from calque.numpy.sorting import argsort, nonzero, take
from calque.ops.common import index_operand
from calque.transforms.devices.several_processes import values_of

__all__ = [
    "append", "delete", "insert", "place", "put", "put_along_axis", "resize", "trim_zeros",
]  # fmt: skip


MOST_PAIRS = 64  # of places counted from the front and from the back, which may be the same


def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """Values put after an array.

    Args:
        arr: an array.
        values: an array; along an axis it has as many axes as `arr`.
        axis: the axis to join along; None joins the flattened arrays.
    Returns:
        A new array.

    >>> jnp.append(jnp.arange(2), jnp.array([7, 8]))
    Array([0, 1, 7, 8], dtype=int32)"""
    check_arraylike("append", arr, values)
    return (
        concatenate([ravel(arr), ravel(values)])
        if axis is None
        else concatenate([arr, values], axis=axis)
    )


def _along(name: str, arr: Any, axis: int | None) -> tuple[Any, int]:
    a = array_of(name, arr)
    return (ravel(a), 0) if axis is None else (a, canonical_axis(axis, a.ndim))


def _static_places(name: str, obj: Any, n: int) -> np.ndarray | None:
    """The places that `obj` names, if they are known now."""
    if isinstance(obj, slice):
        return np.arange(n)[obj]
    check_arraylike(name, obj)
    return np.asarray(values_of(obj)) if is_concrete(obj) else None


def delete(
    arr: ArrayLike,
    obj: ArrayLike | slice | Sequence[int],
    axis: int | None = None,
    *,
    assume_unique_indices: bool = False,
) -> Array:
    """An array without some of its slices along an axis.

    Args:
        arr: an array.
        obj: the positions of the slices: an int, a slice, an array of ints, or a mask.
        axis: the axis; None deletes from the flattened array.
        assume_unique_indices: a promise that no position occurs twice, which makes the size of the
            result known while tracing.
    Returns:
        A new array.
    Differs from NumPy:
        Traced positions that lie outside are left out of account.

    >>> jnp.delete(jnp.arange(4), jnp.array([1, 2]))
    Array([0, 3], dtype=int32)"""
    a, k = _along("delete", arr, axis)
    n = a.shape[k]
    free = is_symbolic((n,)) and not is_found(n)
    known = _places_of_any_size("delete", obj, n) if free else None
    if known is not None:
        return take(a, _complement(known[0], n, n - known[1]), axis=k, mode="clip")
    places = (
        None
        if is_found(n) or (free and _is_one_inside(obj, n))
        else _static_places("delete", obj, n)
    )
    if places is not None:
        if places.dtype == np.bool_:
            if places.shape != (n,):
                raise ValueError(
                    "np.delete(arr, obj): for boolean indices, obj must be one-dimensional with"
                    f" length matching specified axis, {n}; got shape {places.shape}"
                )
        elif places.dtype.kind not in "iu":
            raise ValueError(
                "np.delete(arr, obj): for array indices, obj must be one-dimensional and integer;"
                f" got dtype {places.dtype}"
            )
        elif not isinstance(obj, slice):
            _refuse_outside(places, k, n)
        keep = np.ones(n, bool)
        keep[places] = False
        return take(a, np.flatnonzero(keep).astype(np.int32), axis=k, mode="clip")
    index = array_of("delete", obj)
    if index.dtype == np.dtype(bool):
        if index.shape != (n,):
            raise ValueError(
                "np.delete(arr, obj): for boolean indices, obj must be one-dimensional with length"
                f" matching specified axis, {n}; got shape {index.shape}"
            )
        return a[(*[slice(None)] * k, ~index)]
    if not is_integer(index.dtype):
        raise ValueError(
            f"np.delete(arr, obj): for array indices, obj must be integer; got {index.dtype.name}"
        )
    if index.ndim == 0:
        index = convert(index, canonicalize(np.int64) if index.dtype.itemsize > 2 else np.int32)
        i = where(index < 0, index + n, index)
        line = (arange if is_symbolic((n,)) else np.arange)(max(n - 1, 0), dtype=index.dtype)
        return take(a, where(line < i, line, line + 1), axis=k, mode="clip")
    if not assume_unique_indices:
        gone = zeros((n,), bool).at[index].set(True, mode="drop")
        return a[(*[slice(None)] * k, ~gone)]
    kept = _complement(ravel(index), n, max(n - index.size, 0))
    return take(a, kept, axis=k, mode="clip")


def _refuse_outside(places: np.ndarray, axis: int, n: int) -> None:
    for place in places[(places < -n) | (places >= n)].ravel().tolist():
        message = f"delete: index {place} is out of bounds for axis {axis} with size {n}"
        raise (IndexError if places.ndim else ValueError)(message)


def _places_of_any_size(name: str, obj: Any, n: Any) -> tuple[Any, Any] | None:
    """The places that `obj` names on an axis of free size, and how many they are; None if that
    cannot be said of any size."""
    if isinstance(obj, slice):
        index = arange(n, dtype=np.int32)[obj]
        return index, index.shape[0]
    places = _static_places(name, obj, 0)
    if places is None or places.dtype.kind not in "iu" or not places.ndim:
        return None
    front, back = (np.unique(p) for p in (places[places >= 0], places[places < 0]))
    ends = [int(f(places)) for f in (np.min, np.max)] if places.size else []
    if front.size * back.size > MOST_PAIRS or not all(-n <= p < n for p in ends):
        return None
    twice = sum(bool(n == int(p) - int(q)) for p in front for q in back)
    return asarray(places.ravel().astype(np.int32)), front.size + back.size - twice


def _is_one_inside(obj: Any, n: Any) -> bool:
    """Whether it is a single known place on an axis of free size."""
    if isinstance(obj, slice) or not is_concrete(obj) or np.ndim(obj):
        return False
    place = np.asarray(values_of(obj))
    return bool(place.dtype.kind in "iu" and -n <= int(place) < n)


def _complement(index: Any, n: int, size: int) -> Any:
    """The `size` places not in `index`, in order."""
    i = where(index < 0, index + n, index)
    gone = zeros((n,), bool).at[i].set(True, mode="drop")
    return nonzero(~gone, size=size)[0]


def insert(
    arr: ArrayLike,
    obj: ArrayLike | slice | Sequence[int],
    values: ArrayLike | Sequence[Any],
    axis: int | None = None,
) -> Array:
    """An array with slices put in along an axis.

    Args:
        arr: an array.
        obj: before which positions of `arr` to insert: an int, a slice or an array of ints.
        values: what to insert; it broadcasts.
        axis: the axis; None inserts into the flattened array.
    Returns:
        A new array.
    Differs from NumPy:
        Positions outside are moved to the nearest end and no error.

    >>> jnp.insert(jnp.arange(3), 1, 9)
    Array([0, 9, 1, 2], dtype=int32)"""
    a, k = _along("insert", arr, axis)
    values = array_of("insert", values)
    if axis is None:
        values = ravel(values)
    n = a.shape[k]
    if isinstance(obj, slice):
        obj = np.arange(n, dtype=canonicalize(int))[obj]
    if isinstance(obj, (np.ndarray, np.generic)):
        obj = index_operand(obj)
    index = array_of("insert", obj)
    if index.ndim > 1:
        raise ValueError(
            "insert(): obj must be a slice, a one-dimensional array, or a scalar; got shape"
            f" {index.shape}"
        )
    if index.dtype == np.dtype(bool):
        (index,) = nonzero(index)
    if not is_integer(index.dtype):
        raise ValueError(
            f"insert(): obj must be a slice or of integer type; got {index.dtype.name}"
        )
    values = (
        reshape(values, (1,) * (a.ndim - values.ndim) + values.shape)
        if values.ndim < a.ndim
        else values
    )
    if index.ndim == 0:  # NumPy reads the first axis of the values as the new entries
        values = moveaxis(values, 0, k)
    single = index.ndim == 0 or index.shape[0] == 1
    count = values.shape[k] if single else index.shape[0]
    i = broadcast_to(reshape(index, (-1,)), (count,)) if single else index
    i = i if i.dtype.itemsize >= 4 else convert(i, np.dtype("int32"))  # which holds every size
    i = clip(where(i < 0, i + n, i), 0, n)
    shape = list(a.shape)
    shape[k] = count
    values = broadcast_to(convert(values, a.dtype), tuple(shape))
    order = argsort(i)
    at = (
        zeros(i.shape, canonicalize(int))
        .at[order]
        .set(convert(i[order], canonicalize(int)) + np.arange(count, dtype=canonicalize(int)))
    )
    new = zeros((n + count,), bool).at[at].set(True)
    old_places = reductions.cumsum(convert(~new, np.dtype("int32")), axis=0) - 1
    out = (
        take(a, old_places, axis=k, mode="clip")
        if n
        else zeros(tuple(n + count if j == k else d for j, d in enumerate(a.shape)), a.dtype)
    )
    return out.at[(slice(None),) * k + (at,)].set(values)


def resize(a: ArrayLike, new_shape: ShapeLike) -> Array:
    """An array in another shape, of any size: the elements are repeated from the start, or cut off
    at the end.

    Args:
        a: an array.
        new_shape: the shape, a sequence of ints or one int.
    Returns:
        A new array; zeros if `a` is empty.

    >>> jnp.resize(jnp.array([1, 2, 3]), (2, 4))
    Array([[1, 2, 3, 1],
           [2, 3, 1, 2]], dtype=int32)"""
    a = ravel(array_of("resize", a))
    shape = canonical_shape(new_shape)
    if any(d < 0 for d in shape):
        raise ValueError(f"all elements of `new_shape` must be non-negative, got {shape}")
    size = math.prod(shape)
    nbytes(ShapedArray(shape, a.dtype))  # copies are made one by one
    if a.shape[0] == 0 or size == 0:
        return zeros(shape, a.dtype)
    copies = -(-size // a.shape[0])
    return reshape(concatenate([a] * copies)[:size] if copies > 1 else a[:size], shape)


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: Axes | None = None) -> Array:
    """An array without the zeros at its ends.

    Args:
        filt: an array.
        trim: "f" trims the front, "b" the back, "fb" both.
        axis: the axis or axes to trim along; None is all.
    Returns:
        A new array. Its size depends on the values, and is found while a program runs.

    >>> jnp.trim_zeros(jnp.array([0, 0, 5, 0, 7, 0]))
    Array([5, 0, 7], dtype=int32)"""
    a = array_of("trim_zeros", asarray(filt) if isinstance(filt, (list, tuple)) else filt)
    if not isinstance(trim, str):
        raise TypeError(f"trim_zeros: trim must be a string of 'f' and 'b', got {trim!r}")
    if set(trim.lower()) - set("fb"):
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
    axes = canonical_axes(axis, a.ndim)
    if not axes:
        return a
    if not is_concrete(a):
        return _trimmed(a, trim.lower(), axes)
    x = values_of(a)
    index = [slice(None)] * a.ndim
    places = np.nonzero(x)
    for k in axes:
        p = places[k]
        low, high = (
            (int(p.min()), int(p.max()) + 1)
            if p.size
            else (
                (0, 0)
                if "f" not in trim.lower() or "b" in trim.lower()
                else (x.shape[k], x.shape[k])
            )
        )
        index[k] = slice(
            low if "f" in trim.lower() else 0, high if "b" in trim.lower() else x.shape[k]
        )
    return a[tuple(index)]


def _trimmed(a: Any, trim: str, axes: Sequence[int]) -> Any:
    """`trim_zeros` of a traced array: the program finds the ends."""
    index = [slice(None)] * a.ndim
    for k in axes:
        there = reductions.any(a != 0, axis=tuple(i for i in range(a.ndim) if i != k))
        n, some = a.shape[k], reductions.any(there)
        low = reductions.argmax(there) if "f" in trim else np.int32(0)
        high = n - reductions.argmax(flip(there)) if "b" in trim else np.int32(n)
        none = np.int32(n if trim == "f" else 0)
        index[k] = slice(where(some, low, none), where(some, high, none))
    return a[tuple(index)]


# ---------------------------------------------------------------- replacing


def _need_copy(name: str, inplace: bool) -> None:
    if inplace:
        raise ValueError(
            f"jnp.{name} cannot modify arrays in-place, because calque arrays are immutable. Pass"
            " inplace=False to instead return an updated array."
        )


def put(
    a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True
) -> Array:
    """An array with other values at places of its flat form.

    Args:
        a: an array.
        ind: the places, integers.
        v: the values, which are repeated if they are fewer.
        mode: for places outside: "clip" changes the nearest end, "wrap" goes round; None counts
            negative ones from the end, and changes the nearest end for what is beyond that.
        inplace: must be False: arrays are immutable.
    Returns:
        A new array.
    Differs from NumPy:
        `inplace=False` has to be given, and the result used. Mode "raise" is refused.

    >>> jnp.put(jnp.zeros(3), jnp.array([0, 2]), 5.0, inplace=False)
    Array([5., 0., 5.], dtype=float32)"""
    _need_copy("put", inplace)
    a, ind, v = arrays("put", a, ind, v)
    ind, v = ravel(ind), ravel(v)
    if ind.dtype == np.dtype(bool):  # as in NumPy these are the places 0 and 1, no mask
        ind = convert(ind, np.dtype("int32"))
    if not ind.size or not v.size:
        return a
    if mode == "clip":
        ind = clip(ind, 0)
    elif mode is None:
        mode = "clip"
    if mode == "raise":
        raise NotImplementedError(
            "The 'raise' mode to jnp.put is not supported: use 'clip' or 'wrap'."
        )
    if mode not in ("clip", "wrap"):
        raise ValueError(f"mode should be one of 'wrap', 'clip' or None; got {mode=}")
    values = v[np.arange(ind.shape[0], dtype=np.int32) % v.shape[0]]
    return reshape(ravel(a).at[ind].set(convert(values, a.dtype), mode=mode), a.shape)


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """An array with other values where a mask is true: the first value at the first such place, and
    so on.

    Args:
        arr: an array.
        mask: bools, as many as `arr` has elements.
        vals: the values, which are repeated if they are fewer.
        inplace: must be False: arrays are immutable.
    Returns:
        A new array.
    Differs from NumPy:
        `inplace=False` has to be given, and the result used.

    >>> x = jnp.arange(4)
    >>> jnp.place(x, x > 1, jnp.array([10, 20]), inplace=False)
    Array([ 0,  1, 10, 20], dtype=int32)"""
    _need_copy("place", inplace)
    a, mask, vals = arrays("place", arr, mask, vals)
    if a.size != mask.size:
        raise ValueError(
            f"place: arr and mask must be the same size, got {a.shape} and {mask.shape}"
        )
    vals = ravel(vals)
    if not vals.size:
        if not is_concrete(mask) or values_of(mask).any():
            raise ValueError("place: vals must be non-empty")
        return a
    flat = ravel(mask) != 0
    rank = reductions.cumsum(convert(flat, canonicalize(int)), axis=0) - 1
    values = vals[ufuncs.maximum(rank, 0) % vals.shape[0]]
    values = convert(values, a.dtype, a.aval.weak_type)
    return reshape(where(flat, values, ravel(a)), a.shape)


def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Array:
    """An array with other values at positions along an axis; `take_along_axis` reads them.

    Args:
        arr: an array.
        indices: integers, with as many axes as `arr`.
        values: an array that broadcasts to `indices`.
        axis: the axis; None puts into the flattened array.
        inplace: must be False: arrays are immutable.
        mode: for positions outside: "clip" changes the nearest end, "drop" and None leave them out.
    Returns:
        A new array.
    Differs from NumPy:
        `inplace=False` has to be given, and the result used.

    >>> x = jnp.zeros((2, 3))
    >>> jnp.put_along_axis(x, jnp.array([[0], [2]]), 9.0, axis=1, inplace=False)
    Array([[9., 0., 0.],
           [0., 0., 9.]], dtype=float32)"""
    _need_copy("put_along_axis", inplace)
    a, indices, values = arrays("put_along_axis", arr, indices, values)
    if not is_integer(indices.dtype):
        raise TypeError(f"put_along_axis: indices must be integers, got {indices.dtype.name}")
    if axis is None:
        flat = ravel(a)
        values = broadcast_to(values, indices.shape)
        return reshape(
            flat.at[ravel(indices)].set(convert(ravel(values), a.dtype), mode=mode), a.shape
        )
    k = canonical_axis(axis, a.ndim)
    if indices.ndim != a.ndim:
        raise ValueError(
            f"put_along_axis: indices must have the rank of arr, {a.ndim}; got {indices.ndim}"
        )
    shape = tuple(indices.shape[i] if i == k else a.shape[i] for i in range(a.ndim))
    parts: list[Any] = []
    for i in range(a.ndim):
        if i == k:
            parts.append(
                broadcast_to(indices, broadcast_shapes("put_along_axis", indices.shape, shape))
            )
        else:
            parts.append(
                np.arange(a.shape[i], dtype=np.int32).reshape(
                    tuple(-1 if j == i else 1 for j in range(a.ndim))
                )
            )
    return a.at[tuple(parts)].set(convert(values, a.dtype), mode=mode)
