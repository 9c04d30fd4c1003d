"""Sets of values: unique, unions, intersections, membership."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

import numpy as np

from calque.core.arrays import Array, is_concrete, to_array
from calque.core.dims import is_found, value_of, whole
from calque.core.dtypes import canonicalize, is_complex, is_inexact
from calque.core.primitives import do
from calque.core.types import ArrayLike
from calque.numpy import reductions, ufuncs
from calque.numpy.calls.marks import python_only
from calque.numpy.conversions import asarray
from calque.numpy.creation import ones, zeros
from calque.numpy.indexing.found_sizes import places_found
from calque.numpy.joining import concatenate
from calque.numpy.promotion import (
    array_of,
    arrays,
    broadcast_to,
    canonical_axis,
    convert,
    promote_dtypes,
)
from calque.numpy.shaping import moveaxis, ravel, reshape, where
from calque.numpy.sorting import argsort, nonzero, searchsorted, sort
from calque.ops.common import scalar_of

__all__ = [
    "intersect1d", "isin", "setdiff1d", "setxor1d", "union1d", "unique", "unique_all",
    "unique_counts", "unique_inverse", "unique_values",
]  # fmt: skip


# ---------------------------------------------------------------- unique


@overload
def unique(
    ar: ArrayLike,
    return_index: Literal[False] = False,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Array: ...


@overload
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Any: ...


@python_only
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Any:
    """The different elements in order, or the different slices along an axis.

    Args:
        ar: an array.
        return_index: whether the place where each first occurs is returned.
        return_inverse: whether the place of every element among the different ones is returned.
        return_counts: whether it is returned how often each occurs.
        axis: the axis whose slices are compared; None compares the elements.
        equal_nan: whether all nan are one.
        size: how many to return: more are left out, fewer filled up. None returns all, which a
            program finds while it runs; `vmap` needs a number.
        fill_value: what fills them up; None is the smallest.
        sorted: whether they come in order. They do in any case.
    Returns:
        The different elements, or a tuple of them and of what was asked for, in the order above.

    >>> jnp.unique(jnp.array([3, 1, 3]), return_counts=True)
    (Array([1, 3], dtype=int32), Array([1, 2], dtype=int32))"""
    ar = array_of("unique", ar)
    size = None if size is None else whole(size, "size")
    flat = axis is None
    k = 0 if flat else canonical_axis(axis, ar.ndim)  # type: ignore[arg-type]
    x = ravel(ar) if flat else moveaxis(ar, k, 0)
    out = _unique(x, equal_nan, size, fill_value)
    values = out.values if flat else moveaxis(out.values, 0, k)
    inverse = reshape(out.inverse, ar.shape) if flat else out.inverse
    parts = [values]
    parts += [out.first] if return_index else []
    parts += [inverse] if return_inverse else []
    parts += [out.counts] if return_counts else []
    return tuple(parts) if len(parts) > 1 else values


class _Unique(NamedTuple):
    values: Any
    first: Any
    inverse: Any
    counts: Any


def _unique(x: Any, equal_nan: bool, size: int | None, fill_value: Any) -> _Unique:
    """The different rows of `x`, their first places, the row of each, and how often each occurs."""
    n = x.shape[0]
    index = canonicalize(int)
    if n == 0 or 0 in x.shape:
        return _unique_of_nothing(x, size, fill_value)
    x = _with_one_nan(x)
    order = _lexicographic_order(x)
    ordered = x[order]
    new = _first_of_run(ordered, equal_nan)
    group = reductions.cumsum(new, axis=0, dtype=index) - 1
    if size is not None:
        (starts,) = nonzero(new, size=size, fill_value=n)
    else:
        (starts,) = nonzero(new) if is_concrete(new) else places_found(new, "jnp.unique")
    total = starts.shape[0]
    first = order[where(starts < n, starts, 0)]
    counts = zeros((total,), index).at[group].add(1, mode="drop")
    inverse = zeros((n,), index).at[order].set(group)
    values = x[first]
    if size is not None and size > 0:
        there = starts < n
        fill = (
            reductions.min(x, axis=0)
            if fill_value is None
            else convert(array_of("unique", fill_value), x.dtype)
        )
        fill = values[0] if fill_value is None else broadcast_to(fill, x.shape[1:])
        values = where(reshape(there, (-1,) + (1,) * (x.ndim - 1)), values, fill)
        first = where(there, first, first[0])
    return _Unique(values, first, inverse, counts)


def _with_one_nan(x: Any) -> Any:
    """The values; a complex number with a nan is nan, whichever of its parts is one."""
    if not is_complex(x.dtype):
        return x
    return where(ufuncs.isnan(x), scalar_of(x.dtype, np.nan), x)


def _unique_of_nothing(x: Any, size: int | None, fill_value: Any) -> _Unique:
    index = canonicalize(int)
    n = x.shape[0]
    m = (1 if n else 0) if size is None else size
    if m and not n and fill_value is None:
        raise ValueError(
            "jnp.unique: for zero-sized input with nonzero size argument, fill_value must be"
            " specified"
        )
    fill = (
        scalar_of(x.dtype, 0)
        if fill_value is None
        else convert(array_of("unique", fill_value), x.dtype)
    )
    values = broadcast_to(fill, (m, *x.shape[1:]))
    counts = zeros((m,), index).at[0].add(n) if m else zeros((0,), index)
    return _Unique(asarray(values), zeros((m,), index), zeros((n,), index), counts)


def _lexicographic_order(x: Any) -> Any:
    """The stable order of rows, the first column deciding first."""
    if x.ndim == 1:
        return argsort(x)
    columns = reshape(x, (x.shape[0], -1))
    keys = [columns[:, j] for j in range(columns.shape[1])]
    places = do.iota(dtype=canonicalize(int), shape=(x.shape[0],), dimension=0)
    return do.sort(*keys, places, dimension=0, is_stable=True, num_keys=len(keys))[-1]


def _differ(a: Any, b: Any, equal_nan: bool) -> Any:
    """The rows that differ."""
    differs = a != b
    if equal_nan and is_inexact(a.dtype):
        differs = differs & ~(ufuncs.isnan(a) & ufuncs.isnan(b))
    return reductions.any(differs, axis=tuple(range(1, a.ndim))) if a.ndim > 1 else differs


class _UniqueAllResult(NamedTuple):
    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class _UniqueCountsResult(NamedTuple):
    values: Array
    counts: Array


class _UniqueInverseResult(NamedTuple):
    values: Array
    inverse_indices: Array


@python_only
def unique_all(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> _UniqueAllResult:
    """The different elements in order, and all about them; `unique` in the array API.

    Args:
        x: an array.
        size: how many to return: more are left out, fewer filled up. None returns all.
        fill_value: what fills them up; None is the smallest.
    Returns:
        A named tuple: `values`, `indices` (where each first occurs), `inverse_indices` (the place
        of every element among them), `counts`. Every nan counts as another.

    >>> jnp.unique_all(jnp.array([3, 1, 3])).inverse_indices
    Array([1, 0, 1], dtype=int32)"""
    return _UniqueAllResult(
        *unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value)
    )


@python_only
def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> _UniqueCountsResult:
    """The different elements in order, and how often each occurs.

    Args:
        x: an array.
        size: how many to return: more are left out, fewer filled up. None returns all.
        fill_value: what fills them up; None is the smallest.
    Returns:
        A named tuple: `values`, `counts`. Every nan counts as another.

    >>> jnp.unique_counts(jnp.array([3, 1, 3])).counts
    Array([1, 2], dtype=int32)"""
    return _UniqueCountsResult(
        *unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value)
    )


@python_only
def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> _UniqueInverseResult:
    """The different elements in order, and the place of every element among them.

    Args:
        x: an array.
        size: how many to return: more are left out, fewer filled up. None returns all.
        fill_value: what fills them up; None is the smallest.
    Returns:
        A named tuple: `values`, `inverse_indices`. Every nan counts as another.

    >>> jnp.unique_inverse(jnp.array([3, 1, 3])).inverse_indices
    Array([1, 0, 1], dtype=int32)"""
    return _UniqueInverseResult(
        *unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value)
    )


@python_only
def unique_values(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """The different elements in order.

    Args:
        x: an array.
        size: how many to return: more are left out, fewer filled up. None returns all.
        fill_value: what fills them up; None is the smallest.
    Returns:
        An array of one axis. Every nan counts as another.

    >>> jnp.unique_values(jnp.array([3, 1, 3]))
    Array([1, 3], dtype=int32)"""
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


# ---------------------------------------------------------------- membership


def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Tells which elements of one array occur in another.

    Args:
        element: an array.
        test_elements: the array that is searched.
        assume_unique: a promise that neither array repeats itself; nothing depends on it.
        invert: whether it is told which do not occur.
        method: "auto", "compare_all", "binary_search" or "sort": how to search. The result is the
            same.
    Returns:
        Bools in the shape of `element`.

    >>> jnp.isin(jnp.array([1, 2, 3]), jnp.array([2, 5]))
    Array([False,  True, False], dtype=bool)"""
    element, tests = arrays("isin", element, test_elements)
    if method not in ("auto", "compare_all", "binary_search", "sort"):
        raise ValueError(
            "isin: method must be one of 'auto', 'compare_all', 'binary_search', 'sort'; got"
            f" {method!r}"
        )
    element, tests = (convert(asarray(v), v.dtype) for v in promote_dtypes(element, tests))
    found = _among(element, ravel(tests))
    return ~found if invert else found


def _among(x: Any, values: Any) -> Any:
    n = values.shape[0]
    if n == 0 or x.size == 0:
        return to_array(broadcast_to(np.asarray(False), x.shape))
    ordered = sort(values)
    place = ufuncs.minimum(searchsorted(ordered, x), n - 1)
    if is_found(n):  # there may be none
        return (ordered.at[place].get(mode="fill") == x) & (value_of(n) > 0)
    return ordered[place] == x


# ---------------------------------------------------------------- operations


def _pair(name: str, ar1: Any, ar2: Any) -> tuple[Any, Any]:
    a, b = arrays(name, ar1, ar2)
    a, b = promote_dtypes(ravel(a), ravel(b))
    return asarray(a), asarray(b)


@python_only
def union1d(
    ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """The elements that either of two arrays has, in order and once.

    Args:
        ar1, ar2: arrays, which are flattened.
        size: how many to return: more are left out, fewer filled up. None returns all.
        fill_value: what fills them up; None is the smallest.
    Returns:
        An array of one axis.

    >>> jnp.union1d(jnp.array([3, 1]), jnp.array([1, 2]))
    Array([1, 2, 3], dtype=int32)"""
    a, b = _pair("union1d", ar1, ar2)
    return unique(concatenate([a, b]), size=size, fill_value=fill_value)


@python_only
def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The elements of one array that another does not have, in order and once.

    Args:
        ar1, ar2: arrays, which are flattened.
        assume_unique: a promise that neither array repeats itself; the elements then come in the
            order of `ar1`.
        size: how many to return: more are left out, fewer filled up. None returns all.
        fill_value: what fills them up; None is 0.
    Returns:
        An array of one axis.

    >>> jnp.setdiff1d(jnp.array([3, 1, 2]), jnp.array([1]))
    Array([2, 3], dtype=int32)"""
    x = _with_one_nan(ravel(array_of("setdiff1d", ar1)))
    a, b = _pair("setdiff1d", x, ar2)
    if not assume_unique:
        order = argsort(a)
        x, a = x[order], a[order]
    keep = ~_among(a, b)
    if not assume_unique:
        keep = keep & _first_of_run(a)
    return x[keep] if size is None else _selected(x, keep, whole(size, "size"), fill_value)


def _first_of_run(x: Any, equal_nan: bool = True) -> Any:
    """Where a run of equal values begins."""
    if is_found(x.shape[0]):
        here = do.iota(dtype=canonicalize(int), shape=x.shape[:1], dimension=0)
        before = x[ufuncs.maximum(here - 1, 0)]
        return (here == 0) | _differ(x, before, equal_nan)
    if x.shape[0] == 0:
        return zeros((0,), bool)
    return concatenate([np.ones((1,), bool), _differ(x[1:], x[:-1], equal_nan)])


def _first(x: Any, keep: Any) -> Any:
    """The first value that is kept, 0 if none is."""
    return where(reductions.any(keep), x[reductions.argmax(keep)], scalar_of(x.dtype, 0))


def _selected(x: Any, keep: Any, size: int, fill_value: Any) -> Any:
    (places,) = nonzero(keep, size=size, fill_value=x.shape[0])
    fill = (
        scalar_of(x.dtype, 0)
        if fill_value is None
        else convert(array_of("setdiff1d", fill_value), x.dtype)
    )
    if x.shape[0] == 0:
        return asarray(broadcast_to(fill, (size,)))
    return where(places < x.shape[0], x[ufuncs.minimum(places, x.shape[0] - 1)], fill)


@python_only
def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The elements that just one of two arrays has, in order and once.

    Args:
        ar1, ar2: arrays, which are flattened.
        assume_unique: a promise that neither array repeats itself.
        size: how many to return: more are left out, fewer filled up. None returns all.
        fill_value: what fills them up; None is the smallest.
    Returns:
        An array of one axis.

    >>> jnp.setxor1d(jnp.array([3, 1]), jnp.array([1, 2]))
    Array([2, 3], dtype=int32)"""
    a, b = _pair("setxor1d", ar1, ar2)
    side = concatenate([zeros(a.shape[:1], np.int32), ones(b.shape[:1], np.int32)])
    x, side = do.sort(concatenate([a, b]), side, dimension=0, is_stable=True, num_keys=2)
    keep = ~where(side == 0, _among(x, b), _among(x, a))
    if not assume_unique and x.shape[0]:
        keep = keep & (_first_of_run(x) | concatenate([np.ones((1,), bool), side[1:] != side[:-1]]))
    if size is None:
        return x[keep]
    fill = _first(x, keep) if fill_value is None and x.shape[0] else fill_value
    return _selected(x, keep, whole(size, "size"), fill)


@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: Literal[False] = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array: ...


@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Any: ...


@python_only
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Any:
    """The elements that both of two arrays have, in order and once.

    Args:
        ar1, ar2: arrays, which are flattened.
        assume_unique: a promise that neither array repeats itself.
        return_indices: whether the places in both arrays are returned as well.
        size: how many to return: more are left out, fewer filled up. None returns all.
        fill_value: what fills them up; None is the smallest.
    Returns:
        An array of one axis; with `return_indices` a tuple of it and the places of its elements in
        `ar1` and in `ar2`.

    >>> jnp.intersect1d(jnp.array([3, 1, 2]), jnp.array([2, 3]))
    Array([2, 3], dtype=int32)"""
    a, b = _pair("intersect1d", ar1, ar2)
    n, m = a.shape[0], b.shape[0]
    order = argsort(a)
    ordered = a[order]
    keep = _first_of_run(ordered) & _among(ordered, b)
    if size is None:
        (places,) = nonzero(keep)
        values = ordered[places]
    else:
        (places,) = nonzero(keep, size=whole(size, "size"), fill_value=n)
        if fill_value is None and n:
            fill_value = _first(ordered, keep)
        values = _selected(ordered, keep, whole(size, "size"), fill_value)
    if not return_indices:
        return values
    first = order[ufuncs.minimum(places, n - 1)] if n else places
    other = argsort(b)
    second = other[ufuncs.minimum(searchsorted(b[other], values), m - 1)] if m else places
    if size is not None:
        first, second = where(places < n, first, n), where(places < n, second, m)
    return values, first, second
