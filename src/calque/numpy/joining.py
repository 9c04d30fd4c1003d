"""Joining arrays and splitting them."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from calque.core import errors
from calque.core.arrays import Array, is_concrete
from calque.core.dims import as_size, is_found
from calque.core.dtypes import is_integer
from calque.core.extents import larger, slice_bounds
from calque.core.primitives import do
from calque.core.trace import origin, typeof
from calque.core.trace_state import Tracer
from calque.core.types import ArrayLike, DTypeLike
from calque.numpy.promotion import (
    as_operand,
    canonical_axis,
    check_arraylike,
    convert,
    ensure,
    promote_dtypes,
    refuse_out,
    result_dtype,
)
from calque.numpy.shaping import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    expand_dims,
    ravel,
    section,
    transpose,
)

# ---------------------------------------------------------------- joining and splitting


def parts_of(name: str, arrays: Any) -> list[Any]:
    if isinstance(arrays, (list, tuple)):
        out = list(arrays)
    else:
        check_arraylike(name, arrays)
        if typeof(arrays).ndim == 0:
            raise TypeError(
                f"{name}: zero-dimensional arrays cannot be joined; pass a sequence of arrays"
            )
        out = [arrays[i] for i in range(typeof(arrays).shape[0])]
    if not out:
        raise ValueError(f"Need at least one array to {name}.")
    check_arraylike(name, *out)
    return [as_operand(a) for a in out]


def concatenate(
    arrays: ArrayLike | Sequence[ArrayLike], axis: int | None = 0, dtype: DTypeLike | None = None
) -> Array:
    """Arrays joined along an axis that they have; along the only axis of their flat forms for None.

    >>> import calque.numpy as jnp
    >>> jnp.concatenate([jnp.arange(2), jnp.arange(3)])
    Array([0, 1, 0, 1, 2], dtype=int32)"""
    parts = parts_of("concatenate", arrays)
    if axis is None:
        parts, axis = [ravel(a) for a in parts], 0
    n = typeof(parts[0]).ndim
    if n == 0:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    k = canonical_axis(axis, n)
    target = result_dtype(dtype)
    parts = [convert(a, target) for a in parts] if target is not None else promote_dtypes(*parts)
    for a in parts:
        s, first = typeof(a).shape, typeof(parts[0]).shape
        if len(s) != n or any(p != q for i, (p, q) in enumerate(zip(s, first)) if i != k):
            raise TypeError(
                "Cannot concatenate arrays with shapes that differ in dimensions other than the"
                f" one being concatenated: concatenating along dimension {k} for shapes"
                f" {', '.join(str(typeof(p).shape) for p in parts)}."
            )
    return do.concatenate(*parts, dimension=k) if len(parts) > 1 else ensure(parts[0])


def concat(arrays: ArrayLike | Sequence[ArrayLike], /, *, axis: int | None = 0) -> Array:
    """Arrays joined along an axis that they have."""
    return concatenate(arrays, axis)


def stack(
    arrays: ArrayLike | Sequence[ArrayLike],
    axis: int = 0,
    out: None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Arrays of one shape along a new axis."""
    refuse_out("stack", out)
    parts = parts_of("stack", arrays)
    shapes = {typeof(a).shape for a in parts}
    if len(shapes) > 1:
        raise ValueError(
            f"All input arrays must have the same shape, got {', '.join(map(str, shapes))}"
        )
    k = canonical_axis(axis, typeof(parts[0]).ndim + 1)
    return concatenate([expand_dims(a, k) for a in parts], axis=k, dtype=dtype)


def vstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Arrays stacked as rows."""
    return concatenate([atleast_2d(a) for a in parts_of("vstack", tup)], axis=0, dtype=dtype)


def hstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Arrays joined side by side."""
    parts = [atleast_1d(a) for a in parts_of("hstack", tup)]
    return concatenate(parts, axis=0 if typeof(parts[0]).ndim == 1 else 1, dtype=dtype)


def dstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Arrays joined along the third axis."""
    return concatenate([atleast_3d(a) for a in parts_of("dstack", tup)], axis=2, dtype=dtype)


def column_stack(tup: ArrayLike | Sequence[ArrayLike]) -> Array:
    """1-D arrays as the columns of a matrix."""
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
    """Equal parts along an axis, or parts that end at the given positions."""
    return _split("split", ary, indices_or_sections, axis)


def array_split(
    ary: ArrayLike,
    indices_or_sections: SupportsIndex | Sequence[SupportsIndex] | ArrayLike,
    axis: int = 0,
) -> list[Array]:
    """As `split`, with parts that may differ by one in size."""
    return _split("array_split", ary, indices_or_sections, axis)


def _whole(name: str, place: Any) -> Any:
    """A place to cut at, which may be traced, but is an integer."""
    if isinstance(place, Tracer) and not is_integer(typeof(place).dtype):
        raise errors.ConcretizationTypeError(
            "Abstract tracer value encountered where concrete value is expected."
            f" {name} cuts at integers, got {typeof(place).str_short()}.{origin(place)}"
        )
    return place


def _split(name: str, ary: Any, where: Any, axis: int) -> list[Any]:
    check_arraylike(name, ary)
    ary = as_operand(ary)
    shape = typeof(ary).shape
    k = canonical_axis(axis, len(shape))
    size = shape[k]
    if isinstance(where, (tuple, list)) or np.ndim(where) > 0:
        if not is_concrete(where) or is_found(size) or any(isinstance(i, Tracer) for i in where):
            n = len(where) if isinstance(where, (tuple, list)) else typeof(where).shape[0]
            cuts = [*(_whole(name, where[i]) for i in range(n)), None]
            return [ary[(slice(None),) * k + (slice(a, b),)] for a, b in zip([0, *cuts], cuts)]
        cuts = [0, *[sum(slice_bounds(slice(0, as_size(i)), size)[:2]) for i in where], size]
    else:
        n = operator.index(_whole(name, where))
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
    """`split` along the first axis."""
    return split(ary, indices_or_sections, 0)


def hsplit(
    ary: ArrayLike, indices_or_sections: SupportsIndex | Sequence[SupportsIndex] | ArrayLike
) -> list[Array]:
    """`split` along the second axis, the first of 1-D arrays."""
    return split(ary, indices_or_sections, 0 if typeof(ary).ndim == 1 else 1)


def dsplit(
    ary: ArrayLike, indices_or_sections: SupportsIndex | Sequence[SupportsIndex] | ArrayLike
) -> list[Array]:
    """`split` along the third axis."""
    return split(ary, indices_or_sections, 2)
