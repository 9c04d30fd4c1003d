"""Joining arrays and splitting them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence, Sized
from typing import Any, SupportsIndex

import numpy as np

from calque.core import errors
from calque.core.arrays import Array, all_concrete, is_concrete
from calque.core.dims import as_size, is_found, whole
from calque.core.dtypes import is_integer
from calque.core.extents import larger, slice_bounds
from calque.core.origins import origin
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.trace_state import Tracer
from calque.core.types import ArrayLike, DTypeLike
from calque.numpy.moving import section
from calque.numpy.promotion import (
    as_operand,
    canonical_axis,
    check_arraylike,
    convert,
    ensure,
    is_arraylike,
    promote_dtypes,
    refuse_out,
    result_dtype,
)
from calque.numpy.shaping import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    expand_dims,
    moveaxis,
    ravel,
    transpose,
)

# ---------------------------------------------------------------- joining and splitting


def parts_of(name: str, arrays: Any) -> list[Any]:
    """The operands: of a sequence, or of whatever has a length and items (a range, the values of a
    dictionary)."""
    listed = isinstance(arrays, Iterable) and isinstance(arrays, Sized)
    if not listed or isinstance(arrays, (str, np.ndarray)):
        check_arraylike(name, arrays)
    out: list[Any] = list(arrays)
    if not out:
        raise ValueError(f"Need at least one array to {name}.")
    check_arraylike(name, *out)
    return [as_operand(a) for a in out]


def rows_of(name: str, arrays: Any) -> Any:
    """The array whose slices along its first axis are the operands; None where they are apart."""
    if not is_arraylike(arrays):
        return None
    rows = as_operand(arrays)
    if typeof(rows).ndim == 0:
        raise TypeError(
            f"{name}: zero-dimensional arrays cannot be joined; pass a sequence of arrays"
        )
    if typeof(rows).shape[0] == 0:
        raise ValueError(f"Need at least one array to {name}.")
    return rows


def lifted(rows: Any, before: int, behind: int) -> Any:
    """The slices with so many new axes of one element before and behind their own."""
    n, *own = typeof(rows).shape
    shape = (n, *[1] * before, *own, *[1] * behind)
    return do.reshape(rows, new_sizes=shape) if before or behind else rows


def joined(rows: Any, axis: Any, dtype: Any) -> Array:
    """The slices joined along an axis of theirs, which takes no more than other sizes.

    before: n slices [a, b, c], joined along the second axis    after: [a, n, b, c] as [a, n b, c]
    """
    shape = typeof(rows).shape
    if len(shape) == 1 and axis is not None:
        raise ValueError(
            "Zero-dimensional arrays cannot be concatenated. Pass the arrays as one list:"
            " jnp.concatenate([x, y])."
        )
    target = result_dtype(dtype)
    rows = ensure(rows) if target is None else convert(rows, target)
    if axis is None:
        return ravel(rows)
    k = along(axis, len(shape) - 1)
    merged = (*shape[1 : k + 1], shape[0] * shape[k + 1], *shape[k + 2 :])
    return do.reshape(moveaxis(rows, 0, k), new_sizes=merged)


def along(axis: Any, rank: int) -> int:
    """The axis to join along; an array there is a second one to be joined."""
    try:
        return canonical_axis(axis, rank)
    except TypeError as error:
        if getattr(axis, "ndim", 0):
            error.add_note("Pass the arrays as one list: jnp.concatenate([x, y])")
        raise


def concatenate(
    arrays: ArrayLike | Sequence[ArrayLike], axis: int | None = 0, dtype: DTypeLike | None = None
) -> Array:
    """Arrays joined along an axis that they have.

    Args:
        arrays: a sequence of arrays with equal sizes but for the axis; an array stands for its
            slices.
        axis: the axis; None joins the flattened arrays.
        dtype: of the result; None is the dtype that the arrays have together.
    Returns:
        One array.
    Differs from NumPy:
        There is no `out`, and `dtype` casts without a rule.

    >>> jnp.concatenate([jnp.arange(2), jnp.arange(3)])
    Array([0, 1, 0, 1, 2], dtype=int32)"""
    rows = rows_of("concatenate", arrays)
    if rows is not None:
        return joined(rows, axis, dtype)
    parts = parts_of("concatenate", arrays)
    if axis is None:
        parts, axis = [ravel(a) for a in parts], 0
    n = typeof(parts[0]).ndim
    if n == 0:
        raise ValueError(
            "Zero-dimensional arrays cannot be concatenated. Pass the arrays as one list:"
            " jnp.concatenate([x, y])."
        )
    k = along(axis, n)
    target = result_dtype(dtype)
    parts = [convert(a, target) for a in parts] if target is not None else promote_dtypes(*parts)
    for a in parts:
        s, first = typeof(a).shape, typeof(parts[0]).shape
        if len(s) != n:
            raise TypeError(
                "Cannot concatenate arrays with different numbers of dimensions: got"
                f" {', '.join(str(typeof(p).shape) for p in parts)}. Add an axis of size 1"
                " with x[None], or use stack or vstack."
            )
        if any(p != q for i, (p, q) in enumerate(zip(s, first)) if i != k):
            raise TypeError(
                "Cannot concatenate arrays with shapes that differ in dimensions other than the"
                f" one being concatenated: concatenating along dimension {k} for shapes"
                f" {', '.join(str(typeof(p).shape) for p in parts)}."
            )
    return do.concatenate(*parts, dimension=k) if len(parts) > 1 else ensure(parts[0])


def concat(arrays: ArrayLike | Sequence[ArrayLike], /, *, axis: int | None = 0) -> Array:
    """Arrays joined along an axis that they have, as `concatenate`; this is the name in the array
    API.

    Args:
        arrays: a sequence of arrays with equal sizes but for the axis.
        axis: the axis; None joins the flattened arrays.
    Returns:
        One array.

    >>> jnp.concat([jnp.ones((1, 2)), jnp.zeros((1, 2))])
    Array([[1., 1.],
           [0., 0.]], dtype=float32)"""
    return concatenate(arrays, axis)


def stack(
    arrays: ArrayLike | Sequence[ArrayLike],
    axis: int = 0,
    out: None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Arrays of one shape joined along a new axis.

    Args:
        arrays: a sequence of arrays, or an array, which stands for its slices.
        axis: where the new axis stands in the result.
        out: must be None: arrays are immutable.
        dtype: of the result; None is the dtype that the arrays have together.
    Returns:
        An array with one axis more.

    >>> jnp.stack([jnp.arange(2), jnp.arange(2)], axis=1)
    Array([[0, 0],
           [1, 1]], dtype=int32)"""
    refuse_out("stack", out)
    rows = rows_of("stack", arrays)
    if rows is not None:
        k, target = canonical_axis(axis, typeof(rows).ndim), result_dtype(dtype)
        return moveaxis(ensure(rows) if target is None else convert(rows, target), 0, k)
    parts = parts_of("stack", arrays)
    shapes = {typeof(a).shape for a in parts}
    if len(shapes) > 1:
        raise ValueError(
            f"All input arrays must have the same shape, got {', '.join(map(str, shapes))}. stack"
            " makes a new axis; concatenate joins along one that is there."
        )
    k = canonical_axis(axis, typeof(parts[0]).ndim + 1)
    return concatenate([expand_dims(a, k) for a in parts], axis=k, dtype=dtype)


def vstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Arrays joined along the first axis; vectors are rows.

    Args:
        tup: a sequence of arrays, or an array, which stands for its slices.
        dtype: of the result; None is the dtype that the arrays have together.
    Returns:
        An array with at least two axes.

    >>> jnp.vstack([jnp.arange(2), jnp.arange(2)])
    Array([[0, 1],
           [0, 1]], dtype=int32)"""
    rows = rows_of("vstack", tup)
    if rows is not None:
        return joined(lifted(rows, max(0, 3 - typeof(rows).ndim), 0), 0, dtype)
    return concatenate([atleast_2d(a) for a in parts_of("vstack", tup)], axis=0, dtype=dtype)


def hstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Arrays joined side by side: along the second axis, vectors along their only one.

    Args:
        tup: a sequence of arrays, or an array, which stands for its slices.
        dtype: of the result; None is the dtype that the arrays have together.
    Returns:
        One array.

    >>> jnp.hstack([jnp.ones((2, 1)), jnp.zeros((2, 1))])
    Array([[1., 0.],
           [1., 0.]], dtype=float32)"""
    rows = rows_of("hstack", tup)
    if rows is not None:
        rank = typeof(rows).ndim
        return joined(lifted(rows, max(0, 2 - rank), 0), 0 if rank <= 2 else 1, dtype)
    parts = [atleast_1d(a) for a in parts_of("hstack", tup)]
    return concatenate(parts, axis=0 if typeof(parts[0]).ndim == 1 else 1, dtype=dtype)


def dstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Arrays joined along the third axis, which arrays of fewer axes get first.

    Args:
        tup: a sequence of arrays, or an array, which stands for its slices.
        dtype: of the result; None is the dtype that the arrays have together.
    Returns:
        An array with at least three axes.

    >>> jnp.dstack([jnp.arange(2), jnp.arange(2)]).shape
    (1, 2, 2)"""
    rows = rows_of("dstack", tup)
    if rows is not None:  # a slice [m] becomes [1, m, 1]
        rank = typeof(rows).ndim
        return joined(lifted(rows, max(0, 3 - rank), int(rank < 4)), 2, dtype)
    return concatenate([atleast_3d(a) for a in parts_of("dstack", tup)], axis=2, dtype=dtype)


def column_stack(tup: ArrayLike | Sequence[ArrayLike]) -> Array:
    """Vectors as the columns of a matrix.

    Args:
        tup: a sequence of vectors, or of matrices, which are joined side by side.
    Returns:
        A matrix.

    >>> jnp.column_stack([jnp.arange(2), jnp.array([5, 6])])
    Array([[0, 5],
           [1, 6]], dtype=int32)"""
    rows = rows_of("column_stack", tup)
    if rows is not None:
        return joined(lifted(rows, 0, max(0, 3 - typeof(rows).ndim)), 1, None)
    parts = [
        a if typeof(a).ndim >= 2 else transpose(atleast_2d(a))
        for a in parts_of("column_stack", tup)
    ]
    return concatenate(parts, axis=1)


def split(
    ary: ArrayLike,
    indices_or_sections: SupportsIndex | Sequence[SupportsIndex] | ArrayLike,
    axis: int = 0,
) -> list[Array]:
    """An array cut into parts along an axis.

    Args:
        ary: an array.
        indices_or_sections: the number of equal parts, which must divide the size; or the positions
            at which to cut.
        axis: the axis to cut along.
    Returns:
        A list of arrays.

    >>> jnp.split(jnp.arange(6), 3)
    [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32), Array([4, 5], dtype=int32)]
    >>> jnp.split(jnp.arange(4), [1])
    [Array([0], dtype=int32), Array([1, 2, 3], dtype=int32)]"""
    return _split("split", ary, indices_or_sections, axis)


def array_split(
    ary: ArrayLike,
    indices_or_sections: SupportsIndex | Sequence[SupportsIndex] | ArrayLike,
    axis: int = 0,
) -> list[Array]:
    """An array cut into parts along an axis, of sizes that may differ by one.

    Args:
        ary: an array.
        indices_or_sections: the number of parts, or the positions at which to cut.
        axis: the axis to cut along.
    Returns:
        A list of arrays, the larger ones first.

    >>> jnp.array_split(jnp.arange(5), 2)
    [Array([0, 1, 2], dtype=int32), Array([3, 4], dtype=int32)]"""
    return _split("array_split", ary, indices_or_sections, axis)


def _whole(name: str, place: Any) -> Any:
    """A place to cut at: a number, or a traced integer."""
    given = place
    if isinstance(place, Tracer) and not is_integer(typeof(place).dtype):
        try:
            return int(given)  # of a derivative, which knows it
        except errors.ConcretizationTypeError:
            raise errors.ConcretizationTypeError(
                "Abstract tracer value encountered where concrete value is expected."
                f" {name} cuts at integers, got {typeof(place).str_short()}.{origin(place)}"
            ) from None
    return place


def _sections(name: str, given: Any) -> int:
    """How many parts: NumPy takes floats, too, and drops what is behind the point."""
    if isinstance(given, (float, np.floating)) and np.isfinite(given):
        given = int(given)
    n = whole(given, f"{name}: the number of sections")
    if n >= 1 << 31:
        raise MemoryError(f"{name}: there is no memory for a list of {n} arrays: cut into fewer")
    return n


def _split(name: str, ary: Any, where: Any, axis: int) -> list[Any]:
    check_arraylike(name, ary)
    ary = as_operand(ary)
    shape = typeof(ary).shape
    k = canonical_axis(axis, len(shape))
    size = shape[k]
    if isinstance(where, (tuple, list)) or np.ndim(where) > 0:
        if not is_concrete(where) or is_found(size) or not all_concrete(where):
            n = len(where) if isinstance(where, (tuple, list)) else typeof(where).shape[0]
            cuts = [*(_whole(name, where[i]) for i in range(n)), None]
            return [ary[(slice(None),) * k + (slice(a, b),)] for a, b in zip([0, *cuts], cuts)]
        ends = [slice(0, as_size(i, f"{name}: a place to cut at")) for i in where]
        cuts = [0, *[sum(slice_bounds(s, size)[:2]) for s in ends], size]
    else:
        n = _sections(name, _whole(name, where))
        if n < 1:
            raise ValueError(f"{name}: the number of sections must be larger than 0, got {n}")
        small, extra = divmod(size, n)
        if extra and name == "split":
            raise ValueError(
                f"array split does not result in an equal division: size {size} in {n} parts"
            )
        cuts = [0]
        for i in range(n):
            cuts.append(cuts[-1] + small + (i < extra))
    return [section(ary, k, a, larger(a, b)) for a, b in itertools.pairwise(cuts)]


def vsplit(
    ary: ArrayLike, indices_or_sections: SupportsIndex | Sequence[SupportsIndex] | ArrayLike
) -> list[Array]:
    """An array cut into parts along the first axis.

    Args:
        ary: an array with at least two axes.
        indices_or_sections: the number of equal parts, or the positions at which to cut.
    Returns:
        A list of arrays.

    >>> jnp.vsplit(jnp.eye(2), 2)
    [Array([[1., 0.]], dtype=float32), Array([[0., 1.]], dtype=float32)]"""
    return split(ary, indices_or_sections, 0)


def hsplit(
    ary: ArrayLike, indices_or_sections: SupportsIndex | Sequence[SupportsIndex] | ArrayLike
) -> list[Array]:
    """An array cut into parts along the second axis, a vector along its only one.

    Args:
        ary: an array with at least one axis.
        indices_or_sections: the number of equal parts, or the positions at which to cut.
    Returns:
        A list of arrays.

    >>> jnp.hsplit(jnp.arange(4), 2)
    [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]"""
    return split(ary, indices_or_sections, 0 if typeof(ary).ndim == 1 else 1)


def dsplit(
    ary: ArrayLike, indices_or_sections: SupportsIndex | Sequence[SupportsIndex] | ArrayLike
) -> list[Array]:
    """An array cut into parts along the third axis.

    Args:
        ary: an array with at least three axes.
        indices_or_sections: the number of equal parts, or the positions at which to cut.
    Returns:
        A list of arrays.

    >>> [x.shape for x in jnp.dsplit(jnp.ones((1, 2, 4)), 2)]
    [(1, 2, 2), (1, 2, 2)]"""
    return split(ary, indices_or_sections, 2)
