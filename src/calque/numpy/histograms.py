"""Counting: bincount, digitize, histograms."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.arrays import Array, is_concrete
from calque.core.dims import as_size, whole
from calque.core.dtypes import canonicalize, is_integer
from calque.core.trace import typeof
from calque.core.types import ArrayLike
from calque.numpy import reductions, ufuncs
from calque.numpy.calculus import diff
from calque.numpy.conversions import asarray
from calque.numpy.creation import placed, zeros
from calque.numpy.promotion import array_of, arrays, check_arraylike, convert, promote_inexact
from calque.numpy.ranges import linspace
from calque.numpy.shaping import clip, ravel, reshape, where
from calque.numpy.signatures import OutSharding
from calque.numpy.sorting import searchsorted
from calque.ops.found_sizes import found_size
from calque.transforms.devices.several_processes import values_of

__all__ = ["bincount", "digitize", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]


@placed
def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """How often each of the integers 0, 1, 2, ... occurs.

    Args:
        x: an integer array of one axis. Negative ones count as 0.
        weights: what each occurrence counts; None is 1.
        minlength: how long the result is at least.
        length: how long it is; larger integers are left out. None is as long as it takes, which a
            program finds while it runs.
        out_sharding: how the result lies on a mesh with explicit axes; None leaves it open.
    Returns:
        The counts, or the sums of weights.
    Differs from NumPy:
        Negative integers are no error.

    >>> jnp.bincount(jnp.array([0, 1, 1, 3]))
    Array([1, 2, 0, 1], dtype=int32)"""
    x = array_of("bincount", x)
    if not is_integer(x.dtype) and x.dtype != np.dtype(bool):
        raise TypeError(f"x argument to bincount must have an integer type; got {x.dtype.name}")
    if x.ndim != 1:
        raise ValueError(f"only 1-dimensional input supported by bincount, got shape {x.shape}")
    minlength = whole(minlength, "bincount: minlength")
    if length is None:
        if is_concrete(x):
            length = max(minlength, int(values_of(x).max()) + 1 if x.size else 0)
        else:
            most = reductions.max(convert(x, canonicalize(int)), initial=minlength - 1)
            length = found_size(most + 1, "jnp.bincount")
    else:
        length = as_size(length, "bincount: length")
    if weights is None:
        w: Any = np.asarray(1, canonicalize(int))
    else:
        w = array_of("bincount", weights)
        if w.shape != x.shape:
            raise ValueError(
                f"shape of weights must match shape of x, got {w.shape} and {x.shape}."
            )
    dtype = typeof(w).dtype
    places = clip(convert(x, canonicalize(int)) if x.dtype == np.dtype(bool) else x, 0)
    return zeros((length,), dtype).at[places].add(w, mode="drop")


def digitize(
    x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None
) -> Array:
    """The number of the bin in which each value lies.

    Args:
        x: the values.
        bins: the edges, rising or falling.
        right: whether a bin includes its right edge rather than its left one.
        method: how to search, as in `searchsorted`. The result is the same.
    Returns:
        Integers in the shape of `x`: `i` where `bins[i - 1] <= x < bins[i]`, 0 and `len(bins)`
        outside.

    >>> jnp.digitize(jnp.array([0.5, 2.5]), jnp.array([0, 1, 2]))
    Array([1, 3], dtype=int32)"""
    x, bins = arrays("digitize", x, bins)
    if bins.ndim != 1:
        raise ValueError(f"digitize: bins must be a 1-dimensional array; got {bins.shape}")
    if bins.shape[0] == 0:
        return zeros(x.shape, canonicalize(int))
    side, method = "left" if right else "right", "scan" if method is None else method
    rising = searchsorted(bins, x, side, method=method)
    falling = bins.shape[0] - searchsorted(bins[::-1], x, side, method=method)
    return where(bins[-1] >= bins[0], rising, falling)


def histogram_bin_edges(
    a: ArrayLike,
    bins: ArrayLike | Sequence[Any] | str = 10,
    range: ArrayLike | Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
) -> Array:
    """The edges of the bins of a histogram.

    Args:
        a: the values.
        bins: how many bins of one size, or their edges, which are returned.
        range: the first and the last edge; None is the extremes of the values.
        weights: of the shape of `a`; they change nothing.
    Returns:
        An array of one axis, longer by one than there are bins.
    Differs from NumPy:
        Rules by name, such as "auto", are refused.

    >>> jnp.histogram_bin_edges(jnp.array([0.0, 4.0]), 4)
    Array([0., 1., 2., 3., 4.], dtype=float32)"""
    if isinstance(bins, str):
        raise NotImplementedError(
            f"string values for `bins` not implemented: got {bins!r}; pass a number or edges"
        )
    if (
        weights is not None
        and array_of("histogram_bin_edges", weights).shape
        != array_of("histogram_bin_edges", a).shape
    ):
        raise ValueError("histogram_bin_edges: weights should have the same shape as a.")
    a = array_of("histogram_bin_edges", a)
    edges = array_of("histogram_bin_edges", bins)
    if edges.ndim == 1:
        return convert(edges, typeof(promote_inexact(a)[0]).dtype)
    if edges.ndim:
        raise ValueError(f"`bins` must be 1d, when an array, got shape {edges.shape}")
    (a,) = promote_inexact(ravel(a))
    dtype = typeof(a).dtype
    low, high = _limits(a, range)
    flat = reductions.ptp(asarray([low, high])) == 0 if range is None else low == high
    half = np.asarray(0.5, dtype)
    return linspace(
        where(flat, low - half, low),
        where(flat, high + half, high),
        _bins(bins) + 1,
        dtype=dtype,
    )


def _bins(bins: Any) -> int:
    n = whole(bins, "`bins`")
    if n < 1:
        raise ValueError(f"`bins` must be positive, when a number, got {n}")
    return n


def _limits(a: Any, range: Any) -> tuple[Any, Any]:
    if range is None:
        if a.size == 0:
            return asarray(np.asarray(0, a.dtype)), asarray(np.asarray(1, a.dtype))
        return reductions.min(a), reductions.max(a)
    if not isinstance(range, (tuple, list, np.ndarray)) and getattr(range, "ndim", 0) != 1:
        raise ValueError(f"`range` must be either None or a sequence of two scalars, got {range!r}")
    low, high = range
    check_arraylike("histogram", low, high)
    return asarray(low, a.dtype), asarray(high, a.dtype)


def histogram(
    a: ArrayLike,
    bins: ArrayLike | Sequence[Any] | str = 10,
    range: ArrayLike | Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array]:
    """How many values lie in each bin. The last bin includes its right edge.

    Args:
        a: the values.
        bins: how many bins of one size, or their edges.
        range: the first and the last edge; None is the extremes of the values.
        weights: what each value counts; None is 1.
        density: whether counts are divided by their sum and the sizes of bins, so that the area is
            1.
    Returns:
        A pair: the counts, as floats unless weights are others, and the edges.
    Differs from NumPy:
        Rules by name, such as "auto", are refused.

    >>> jnp.histogram(jnp.array([1, 2, 1, 4]), bins=3)
    (Array([2., 1., 1.], dtype=float32), Array([1., 2., 3., 4.], dtype=float32))"""
    if weights is None:
        a = array_of("histogram", a)
        (a,) = promote_inexact(a)
        w: Any = np.ones((), typeof(a).dtype)
    else:
        a, w = arrays("histogram", a, weights)
        if a.shape != w.shape:
            raise ValueError(
                f"weights should have the same shape as a, got {w.shape} and {a.shape}."
            )
        a, w = (asarray(v) for v in promote_inexact(a, w))
        w = ravel(w)
    edges = histogram_bin_edges(a, bins, range, weights)
    counts = _counted(asarray(a).ravel(), edges, w)
    if density:
        counts = counts / diff(edges) / reductions.sum(counts)
    return counts, edges


def _place(x: Any, edges: Any) -> Any:
    """The bin of each value; -1 and beyond the end for values outside."""
    i = searchsorted(edges, x, side="right") - 1
    last = edges.shape[0] - 2
    return where(x == edges[-1], last, i)


def _counted(x: Any, edges: Any, w: Any) -> Any:
    n = edges.shape[0] - 1
    i = _place(x, edges)
    i = where(ufuncs.isnan(x) | (i < 0), n, i)
    return zeros((max(n, 0),), typeof(w).dtype).at[i].add(w, mode="drop")


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: ArrayLike | Sequence[Any] | str = 10,
    range: ArrayLike | Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """How many points of the plane lie in each field.

    Args:
        x, y: the coordinates of the points, arrays of one axis.
        bins: how many bins along both axes, or a pair: for each axis a number or the edges.
        range: the first and last edge of each axis; None is the extremes.
        weights: what each point counts; None is 1.
        density: whether counts are divided by their sum and the sizes of fields.
    Returns:
        The counts, the edges along x, and the edges along y.

    >>> jnp.histogram2d(jnp.array([0.0, 1.0]), jnp.array([0.0, 1.0]), bins=2)[0]
    Array([[1, 0],
           [0, 1]], dtype=int32)"""
    x, y = arrays("histogram2d", x, y)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(
            f"x and y must be 1-d and have equal length, got shapes {x.shape} and {y.shape}"
        )
    try:
        n = len(bins)  # type: ignore[arg-type]
    except TypeError:
        n = 1
    if n not in (1, 2):
        bins = [bins, bins]
    sample = reshape(asarray([x, y]), (2, -1)).T
    counts, edges = histogramdd(sample, bins, range, weights, density)
    return counts, edges[0], edges[1]


def histogramdd(
    sample: ArrayLike | Sequence[ArrayLike],
    bins: ArrayLike | Sequence[Any] | str = 10,
    range: ArrayLike | Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """How many points of a space lie in each cell.

    Args:
        sample: the points: an array of shape (points, axes), or a sequence of coordinate arrays.
        bins: how many bins along all axes, or for each axis a number or the edges.
        range: the first and last edge of each axis; None is the extremes.
        weights: what each point counts; None is 1.
        density: whether counts are divided by their sum and the sizes of cells.
    Returns:
        A pair: the counts, and a list of the edges along each axis.

    >>> jnp.histogramdd(jnp.array([[0.0, 0.0], [1.0, 1.0]]), bins=2)[0]
    Array([[1, 0],
           [0, 1]], dtype=int32)"""
    sample = (
        asarray(list(sample)).T
        if isinstance(sample, (list, tuple))
        else array_of("histogramdd", sample)
    )
    if weights is not None:
        weights = array_of("histogramdd", weights)
    sample, *w = promote_inexact(*([sample] if weights is None else [sample, weights]))
    sample = asarray(sample)
    if sample.ndim == 1:
        sample = sample[:, None]
    n, d = sample.shape
    per_axis = _bins_per_axis(bins, d)
    ranges = [None] * d if range is None else list(range)  # type: ignore[arg-type]
    if len(ranges) != d:
        raise ValueError(f"For sample.shape={(n, d)}, range={range} must have length {d}")
    edges = [histogram_bin_edges(sample[:, i], per_axis[i], ranges[i]) for i in builtins.range(d)]
    if weights is not None and weights.shape != (n,):
        raise ValueError("should have one weight for each sample.")
    weight: Any = w[0] if w else np.ones((), canonicalize(int))
    sizes = tuple(e.shape[0] - 1 for e in edges)
    places = []
    for i, e in enumerate(edges):
        k = _place(sample[:, i], e)
        places.append(where(k < 0, sizes[i], k))
    counts = zeros(sizes, typeof(weight).dtype).at[tuple(places)].add(weight, mode="drop")
    if density:
        counts = counts / reductions.sum(counts)
        for i, e in enumerate(edges):
            counts = counts / reshape(
                diff(e), tuple(-1 if j == i else 1 for j in builtins.range(d))
            )
        counts = convert(counts, sample.dtype)
    return counts, edges


def _bins_per_axis(bins: Any, d: int) -> Sequence[Any]:
    try:
        n = len(bins)  # type: ignore[arg-type]
    except TypeError:
        return [bins] * d
    if n != d:
        raise ValueError("should be a bin for each dimension.")
    return list(bins)
