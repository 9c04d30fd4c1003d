"""Grids and ranges: geometric sequences, coordinate arrays, and the index tricks `mgrid`, `ogrid`,
`r_`, `c_`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, overload

import numpy as np
from numpy import index_exp, s_

from calque.core import errors
from calque.core.arrays import Array, is_concrete
from calque.core.dtypes import canonicalize, is_complex, is_integer
from calque.core.origins import origin
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike, DTypeLike, ShapeLike
from calque.numpy import ufuncs
from calque.numpy.calls.marks import python_only
from calque.numpy.conversions import array, asarray
from calque.numpy.creation import canonical_shape
from calque.numpy.joining import concatenate, stack
from calque.numpy.promotion import arrays, check_arraylike, convert, promote_inexact, result_dtype
from calque.numpy.ranges import arange, linspace
from calque.numpy.shaping import (
    broadcast_arrays,
    broadcast_to,
    expand_dims,
    moveaxis,
    reshape,
    where,
)
from calque.numpy.sorting import nonzero
from calque.numpy.ufuncs import log10
from calque.ops.common import const
from calque.transforms.functions.vmap import vmap

if TYPE_CHECKING:
    from calque.core.generics import Asked

__all__ = [
    "broadcast_shapes", "c_", "fromfunction", "geomspace", "index_exp", "indices", "ix_",
    "logspace", "meshgrid", "mgrid", "ogrid", "r_", "s_",
]  # fmt: skip


@python_only
def broadcast_shapes(*shapes: SupportsIndex | Sequence[SupportsIndex]) -> tuple[int, ...]:
    """The shape that shapes broadcast to.

    Args:
        *shapes: tuples of ints, or ints.
    Returns:
        A tuple of ints.

    >>> jnp.broadcast_shapes((2, 1), (3,))
    (2, 3)"""
    canonical = [canonical_shape(s) for s in shapes]
    rank = max(map(len, canonical), default=0)
    padded = [(1,) * (rank - len(s)) + s for s in canonical]
    out = []
    for sizes in zip(*padded):
        wide = {d for d in sizes if d != 1}
        if len(wide) > 1:
            raise ValueError(f"Incompatible shapes for broadcasting: shapes={canonical}")
        out.append(wide.pop() if wide else 1)
    return tuple(out)


# ---------------------------------------------------------------- sequences


def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Values whose logarithms are evenly spaced, from `base**start` to `base**stop`.

    Args:
        start: the first exponent, or an array of them.
        stop: the last exponent, or an array of them.
        num: how many values.
        endpoint: whether `base**stop` is the last value, rather than the one after the last.
        base: the base of the powers.
        dtype: of the values; None is the float dtype of the arguments.
        axis: where the new axis stands in the result.
    Returns:
        The values.

    >>> jnp.logspace(0, 2, 3)
    Array([  1.,  10., 100.], dtype=float32)"""
    check_arraylike("logspace", start, stop, base)
    target = result_dtype(dtype)
    exponents = linspace(
        start,
        stop,
        num,
        endpoint=endpoint,
        dtype=target if target is not None and not is_integer(target) else None,
        axis=axis,
    )
    out = ufuncs.power(convert(base, typeof(exponents).dtype), exponents)
    return out if target is None else convert(out, target)


def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Values with a constant ratio, from `start` to `stop`.

    Args:
        start: the first value, not 0, or an array of them.
        stop: the last value, of the same sign if they are real, or an array of them.
        num: how many values.
        endpoint: whether `stop` is the last value, rather than the one after the last.
        dtype: of the values; None is the float dtype of the arguments.
        axis: where the new axis stands in the result.
    Returns:
        The values.
    Differs from NumPy:
        Where `start` or `stop` is 0, or they are real and of two signs, the values are nan.

    >>> jnp.geomspace(1, 8, 4).round(3)
    Array([1., 2., 4., 8.], dtype=float32)"""
    check_arraylike("geomspace", start, stop)
    target = result_dtype(dtype)
    a, b = broadcast_arrays(*promote_inexact(*arrays("geomspace", start, stop)))
    work = typeof(a).dtype if target is None or not (is_complex(target)) else target
    a, b = convert(a, work), convert(b, work)
    sign = do.sign(a) if is_complex(work) else _common_sign(a, b)
    low, high = (log10(x / sign) for x in (a, b))
    out = logspace(low, high, num=num, endpoint=endpoint, base=10.0, axis=0)
    out = out * sign
    if num > 0:
        out = concatenate([a[None], out[1:]])
        if endpoint and num > 1:
            out = concatenate([out[:-1], b[None]])
    out = moveaxis(where(_has_ratio(a, b), out, const(out, np.nan)), 0, axis)
    return out if target is None else convert(out, target)


def _has_ratio(a: Any, b: Any) -> Any:
    """Whether numbers lie between these with a constant ratio."""
    there = (a != 0) & (b != 0)
    return there if is_complex(typeof(a).dtype) else there & ((a < 0) == (b < 0))


def _common_sign(a: Any, b: Any) -> Any:
    both = (a < 0) & (b < 0)
    return do.select_n(
        both, broadcast_to(const(a, 1), a.shape), broadcast_to(const(a, -1), a.shape)
    )


# ---------------------------------------------------------------- coordinates


def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> list[Array]:
    """The coordinates of all points of a grid.

    Args:
        *xi: the coordinates along each axis, arrays of one axis.
        copy: must be true: arrays are immutable.
        sparse: whether the arrays keep size 1 along the other axes, and broadcast to the grid.
        indexing: "xy" gives the first coordinate the second axis, as in a picture, "ij" the first.
    Returns:
        A list of arrays, one for each coordinate.

    >>> x, y = jnp.meshgrid(jnp.arange(2), jnp.arange(3))
    >>> x
    Array([[0, 1],
           [0, 1],
           [0, 1]], dtype=int32)"""
    xs = arrays("meshgrid", *xi)
    if not copy:
        raise ValueError("jnp.meshgrid only supports copy=True: arrays are immutable")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Valid values for indexing are 'xy' and 'ij', got {indexing!r}")
    if any(x.ndim != 1 for x in xs):
        raise ValueError(
            f"Arguments to jnp.meshgrid must be 1D, got shapes {[x.shape for x in xs]}"
        )
    n = len(xs)
    place = list(range(n))
    if indexing == "xy" and n >= 2:
        place[0], place[1] = 1, 0
    lifted = [
        reshape(x, tuple(x.shape[0] if j == k else 1 for j in range(n))) for x, k in zip(xs, place)
    ]
    if sparse:
        return lifted
    shape = broadcast_shapes(*[x.shape for x in lifted]) if lifted else ()
    return [broadcast_to(x, shape) for x in lifted]


@overload
def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: Literal[False] = False
) -> Array: ...


@overload
def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False
) -> Any: ...


def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False) -> Any:
    """The position along each axis of every element of a grid.

    Args:
        dimensions: the shape of the grid.
        dtype: of the positions; None is the default integer dtype.
        sparse: whether each axis gets an array of its own that broadcasts to the grid.
    Returns:
        One array with a new first axis, or with `sparse` a tuple of arrays.

    >>> jnp.indices((2, 2))[1]
    Array([[0, 1],
           [0, 1]], dtype=int32)"""
    dims = canonical_shape(dimensions)
    dtype = result_dtype(dtype, canonicalize(int))
    lines = [
        reshape(arange(d, dtype=dtype), tuple(d if i == j else 1 for j in range(len(dims))))
        for i, d in enumerate(dims)
    ]
    if sparse:
        return tuple(lines)
    return stack([broadcast_to(x, dims) for x in lines]) if lines else array([], dtype=dtype)


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """Positions that select the product of sequences, `x[jnp.ix_(rows, columns)]`.

    Args:
        *args: arrays of one axis, of integers or bools, whose true places count.
    Returns:
        A tuple of integer arrays that broadcast with each other.
    Differs from NumPy:
        Lists are refused: `jnp.array` converts them.

    >>> x = jnp.arange(9).reshape(3, 3)
    >>> x[jnp.ix_(jnp.array([0, 2]), jnp.array([1]))]
    Array([[1],
           [7]], dtype=int32)"""
    n = len(args)
    out = []
    for i, a in enumerate(arrays("ix_", *args)):
        if a.ndim != 1:
            raise ValueError(f"Arguments to jnp.ix_ must be 1-dimensional, got shape {a.shape}")
        if a.dtype == np.dtype(bool):
            if not is_concrete(a):
                raise NotImplementedError(
                    "Boolean arguments to jnp.ix_ must be concrete, as their size is that of the"
                    f" result.{origin(a)}"
                )
            (a,) = nonzero(a)
        a = a if a.size else convert(a, canonicalize(int))
        out.append(reshape(a, tuple(a.shape[0] if i == j else 1 for j in range(n))))
    return tuple(out)


@python_only
def fromfunction(
    function: Callable[..., Any],
    shape: ShapeLike,
    *,
    dtype: DTypeLike | None = float,
    **kwargs: Any,
) -> Asked:  # type: ignore[type-var]
    """An array whose elements are a function of their positions.

    Args:
        function: takes as many positions as there are axes. It is mapped over them by `vmap`.
        shape: the shape of the array.
        dtype: of the positions.
        **kwargs: handed to the function.
    Returns:
        What the function returns, with the axes of the grid first.
    Differs from NumPy:
        The function sees one position at a time, traced.

    >>> jnp.fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=int)
    Array([[ 0,  1,  2],
           [10, 11, 12]], dtype=int32)"""
    dims = canonical_shape(shape)

    def f(*places: Any) -> Any:
        return function(*places, **kwargs)

    for i in reversed(range(len(dims))):
        in_axes = tuple(0 if j == i else None for j in range(len(dims)))
        f = vmap(f, in_axes=in_axes)
    return f(*[arange(d, dtype=dtype) for d in dims])


# ---------------------------------------------------------------- index tricks


def _range_of(s: slice, name: str) -> Any:
    """The values a slice stands for: a count of points where the step is imaginary."""
    start, step = 0 if s.start is None else s.start, 1 if s.step is None else s.step
    for what, v in (("start", start), ("stop", s.stop), ("step", step)):
        if not is_concrete(v):
            raise errors.ConcretizationTypeError(
                f"slice {what} of jnp.{name} must be a concrete value, got {v}: use jnp.arange or"
                f" jnp.linspace.{origin(v)}"
            )
    if s.stop is None:  # as NumPy reads it: the start alone is the end
        return arange(0, start, step)
    if np.iscomplexobj(step):
        points = abs(step)
        return linspace(start, s.stop, int(points) if math.isfinite(points) else points)
    return arange(start, s.stop, step)


class _Grid:
    """The points of a grid, described by slices: `mgrid[0:3, 0:2]`, `ogrid[0:1:5j]`.

    A slice is the range of an axis; an imaginary step is the number of points, the last one
    included. `mgrid` stacks the coordinates of all points, an array for each axis; `ogrid` gives a
    list of arrays that broadcast to them.

    >>> jnp.mgrid[0:2, 0:2][1]
    Array([[0, 1],
           [0, 1]], dtype=int32)
    >>> jnp.ogrid[0:1:3j]
    Array([0. , 0.5, 1. ], dtype=float32)"""

    def __init__(self, name: str, sparse: bool):
        self.name, self.sparse = name, sparse

    def __repr__(self) -> str:
        return f"<calque.numpy.{self.name}>"

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _range_of(key, self.name)
        lines = [_range_of(k, self.name) for k in key]
        dtype = np.result_type(*[x.dtype for x in lines]) if lines else canonicalize(float)
        grids = meshgrid(
            *[convert(x, canonicalize(dtype)) for x in lines], indexing="ij", sparse=self.sparse
        )
        if self.sparse:
            return grids
        return stack(grids) if grids else array([], dtype=canonicalize(int))


mgrid = _Grid("mgrid", False)
ogrid = _Grid("ogrid", True)


class _Concatenator:
    """Arrays written as pieces: `r_[1:4, 0, x]` in a row, `c_[x, y]` as columns.

    Pieces are slices (ranges, where an imaginary step is the number of points), numbers and arrays.
    A text in front, such as "0,2,0", says along which axis they are joined, how many axes they have
    at least, and where new ones go.

    >>> jnp.r_[1:4, 0, jnp.array([7, 8])]
    Array([1, 2, 3, 0, 7, 8], dtype=int32)
    >>> jnp.c_[jnp.array([1, 2]), jnp.array([3, 4])]
    Array([[1, 3],
           [2, 4]], dtype=int32)"""

    def __init__(self, name: str, axis: int, ndmin: int, first: int):
        self.name, self.axis, self.ndmin, self.first = name, axis, ndmin, first

    def __repr__(self) -> str:
        return f"<calque.numpy.{self.name}>"

    def __getitem__(self, key: Any) -> Any:
        parts = list(key) if isinstance(key, tuple) else [key]
        axis, ndmin, first = self.axis, self.ndmin, self.first
        matrix = ""
        if isinstance(parts[0], str):
            text = parts.pop(0)
            if text in ("r", "c"):
                matrix = text
            else:
                axis, ndmin, first = _directive(text, axis, ndmin, first)
        out = concatenate([self._piece(p, ndmin, first) for p in parts], axis=axis)
        if matrix and out.ndim == 1:  # a row or a column, as NumPy's matrices were
            return reshape(out, (1, -1) if matrix == "r" else (-1, 1))
        return out

    def _piece(self, p: Any, ndmin: int, first: int) -> Any:
        x = _range_of(p, self.name) if isinstance(p, slice) else asarray(p)
        x = reshape(x, (1,)) if x.ndim == 0 else x
        if x.ndim >= ndmin:
            return x
        missing = ndmin - x.ndim
        # the axes of the piece begin at `first` in the result, counted from the end where negative
        at = first if first >= 0 else missing + first + 1
        at = min(max(at, 0), missing)
        return expand_dims(x, tuple(i for i in range(ndmin) if not at <= i < at + x.ndim))


def _directive(text: str, axis: int, ndmin: int, first: int) -> tuple[int, int, int]:
    try:
        numbers = [int(v) for v in text.split(",")]
    except ValueError:
        raise ValueError(
            f"could not understand directive {text!r}: write 'axis', 'axis,ndmin' or"
            " 'axis,ndmin,first axis'"
        ) from None
    if len(numbers) > 3:
        raise ValueError(f"could not understand directive {text!r}: at most three numbers")
    return tuple(numbers + [axis, ndmin, first][len(numbers) :])  # type: ignore[return-value]


r_ = _Concatenator("r_", 0, 1, -1)
c_ = _Concatenator("c_", -1, 2, 0)
