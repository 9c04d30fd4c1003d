"""Averages, order statistics and covariance."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np

from calque.core.arrays import Array, to_array
from calque.core.dims import is_found
from calque.core.dtypes import canonicalize, is_complex, is_inexact
from calque.core.extents import larger
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike, Axes, DTypeLike
from calque.numpy import reductions, ufuncs
from calque.numpy.contractions import dot
from calque.numpy.conversions import asarray
from calque.numpy.creation import placed
from calque.numpy.joining import concatenate
from calque.numpy.promotion import (
    array_of,
    arrays,
    broadcast_to,
    canonical_axes,
    convert,
    promote_inexact,
    refuse_out,
    result_dtype,
)
from calque.numpy.shaping import atleast_2d, expand_dims, moveaxis, ravel, reshape, where
from calque.numpy.signatures import Median, OutSharding, Quantile
from calque.numpy.sorting import sort, take_along_axis
from calque.ops.sizes import as_number

__all__ = [
    "average",
    "corrcoef",
    "count_nonzero",
    "cov",
    "median",
    "nanmedian",
    "nanpercentile",
    "nanquantile",
    "percentile",
    "quantile",
]

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def count_nonzero(a: ArrayLike, axis: Axes | None = None, keepdims: bool = False) -> Array:
    """How many elements are not 0, over all axes or some.

    Args:
        a: an array or a number.
        axis: the axis to fold, or a tuple of axes; None folds all.
        keepdims: whether folded axes stay, with size 1.
    Returns:
        Counts, in the default integer dtype.

    >>> jnp.count_nonzero(jnp.array([[0, 1], [2, 3]]), axis=1)
    Array([1, 2], dtype=int32)"""
    a = array_of("count_nonzero", a)
    return reductions.sum(a != np.zeros((), a.dtype), axis=axis, dtype=int, keepdims=keepdims)


@overload
def average(
    a: ArrayLike,
    axis: Axes | None = None,
    weights: ArrayLike | None = None,
    returned: Literal[False] = False,
    keepdims: bool = False,
) -> Array: ...


@overload
def average(
    a: ArrayLike,
    axis: Axes | None = None,
    weights: ArrayLike | None = None,
    *,
    returned: Literal[True],
    keepdims: bool = False,
) -> tuple[Array, Array]: ...


@overload
def average(
    a: ArrayLike,
    axis: Axes | None = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Any: ...


def average(
    a: ArrayLike,
    axis: Axes | None = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Any:
    """The weighted mean, over all axes or some.

    Args:
        a: an array or a number.
        axis: the axis to fold, or a tuple of axes; None folds all.
        weights: how much each element counts: an array of the shape of `a`, or of the sizes of the
            folded axes. None counts all as one.
        returned: whether the sum of the weights is returned as well.
        keepdims: whether folded axes stay, with size 1.
    Returns:
        The means; with `returned` a pair of the means and the sums of weights, of one shape.
    Differs from NumPy:
        Weights that add up to 0 give nan or infinity and no error.

    >>> jnp.average(jnp.array([1.0, 3.0]), weights=jnp.array([3.0, 1.0]))
    Array(1.5, dtype=float32)"""
    if weights is None:
        (a,) = promote_inexact(array_of("average", a))
        mean = reductions.mean(a, axis, keepdims=keepdims)
        if not returned:
            return mean
        n = reductions.count(a.shape, canonical_axes(axis, a.ndim))
        return mean, to_array(broadcast_to(np.asarray(n).astype(mean.dtype), mean.shape))
    a, weights = promote_inexact(*arrays("average", a, weights))
    a, weights = asarray(a), asarray(weights)
    if a.shape != weights.shape:
        weights = _aligned_weights(a, weights, axis)
    total = reductions.sum(weights, axis=axis, keepdims=keepdims)
    mean = reductions.sum(a * weights, axis=axis, keepdims=keepdims) / total
    return (mean, broadcast_to(total, mean.shape)) if returned else mean


def _aligned_weights(a: Any, weights: Any, axis: Any) -> Any:
    """1-D weights along one axis, or weights with the sizes of several axes."""
    if axis is None:
        raise ValueError("Axis must be specified when shapes of a and weights differ.")
    axes = canonical_axes(axis, a.ndim)
    if weights.shape != tuple(a.shape[i] for i in axes):
        if weights.ndim != 1 and len(axes) == 1:
            raise ValueError("1D weights expected when shapes of a and weights differ.")
        raise ValueError(
            f"Length of weights not compatible with specified axis: shape {weights.shape} for axis"
            f" {axis} of {a.shape}."
        )
    order = sorted(range(len(axes)), key=lambda k: axes[k])
    weights = do.transpose(weights, permutation=tuple(order))
    return broadcast_to(
        expand_dims(weights, tuple(i for i in range(a.ndim) if i not in axes)), a.shape
    )


# ---------------------------------------------------------------- order statistics


def _quantiles(name: str, scale: float, skip: bool) -> Quantile:
    """`scale` stands for the whole in `q`; `skip` leaves nan out."""

    def quantiles(
        a: ArrayLike,
        q: ArrayLike,
        axis: int | tuple[int, ...] | None = None,
        out: None = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: bool = False,
        *,
        weights: ArrayLike | None = None,
    ) -> Array:
        return _quantile(
            name, a, q, axis, out, overwrite_input, method, keepdims, weights, scale, skip
        )

    return ufuncs.named(quantiles, name)


quantile = _quantiles("quantile", 1.0, False)
nanquantile = _quantiles("nanquantile", 1.0, True)
nanpercentile = _quantiles("nanpercentile", 100.0, True)


@placed
def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: int | tuple[int, ...] | None = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The value below which `q` percent of the elements lie; nan where an element is nan.

    Args:
        a: an array or a number.
        q: the percentages, between 0 and 100, a number or an array of one axis.
        axis: the axis to fold, or a tuple of axes; None folds all.
        out: must be None: arrays are immutable.
        overwrite_input: must be false: arrays are immutable.
        method: between two elements "linear" takes their mean by distance, "lower", "higher",
            "midpoint" and "nearest" what they say; "inverted_cdf" is the only one with weights.
        keepdims: whether folded axes stay, with size 1.
        weights: how much each element counts, of the shape of `a` or of the folded axes; None is 1
            for all.
        out_sharding: how the result lies on a mesh with explicit axes; None leaves it open.
    Returns:
        An array of floats: the axis of `q`, if it has one, and then the axes of `a` that are left.
    Differs from NumPy:
        The other methods of NumPy are refused.

    >>> jnp.percentile(jnp.arange(5), jnp.array([25, 50]))
    Array([1., 2.], dtype=float32)"""
    return _quantile(
        "percentile", a, q, axis, out, overwrite_input, method, keepdims, weights, 100.0, False
    )


def _median(name: str, skip: bool) -> Median:
    def middle(
        a: ArrayLike,
        axis: int | tuple[int, ...] | None = None,
        out: None = None,
        overwrite_input: bool = False,
        keepdims: bool = False,
    ) -> Array:
        return _quantile(
            name, a, 0.5, axis, out, overwrite_input, "midpoint", keepdims, None, 1.0, skip
        )

    return ufuncs.named(middle, name)


median = _median("median", False)
nanmedian = _median("nanmedian", True)


def _quantile(
    name: str,
    a: Any,
    q: Any,
    axis: Any,
    out: Any,
    overwrite: bool,
    method: str,
    keepdims: bool,
    weights: Any,
    scale: float,
    skip: bool,
) -> Any:
    refuse_out(name, out)
    if overwrite:
        raise ValueError(f"jnp.{name} does not support overwrite_input=True: arrays are immutable")
    if weights is not None and method != "inverted_cdf":
        raise NotImplementedError(
            f"jnp.{name}: method {method!r} does not support weights; only 'inverted_cdf' does"
        )
    if method not in (*_METHODS, "inverted_cdf"):
        raise ValueError(
            f"jnp.{name}: method can only be {', '.join(map(repr, (*_METHODS, 'inverted_cdf')))};"
            f" got {method!r}"
        )
    (target,) = map(typeof, promote_inexact(array_of(name, a)))
    a, q = arrays(name, a, q)
    own = typeof(a).dtype
    if own.kind in "fV" and own.itemsize == 1:  # of few bits, which nothing joins
        a = convert(a, np.dtype(np.float32))
    a, q = promote_inexact(a, q)
    a, q = asarray(a), asarray(q)
    if is_complex(a.dtype):
        raise ValueError(f"jnp.{name} does not support complex input, got {a.dtype.name}")
    if q.ndim > 1:
        raise ValueError(f"jnp.{name}: q must be have rank <= 1, got shape {q.shape}")
    axes = canonical_axes(axis, a.ndim)
    rows = _rows(a, axes)
    q = q / np.asarray(scale, q.dtype) if scale != 1.0 else q
    if weights is not None:
        result = _weighted(name, rows, q, _rows(_weights_like(name, a, weights, axes), axes), skip)
    else:
        result = _at_ranks(rows, q, method, skip)
    result = convert(result, target.dtype, typeof(result).weak_type and target.weak_type)
    return _with_kept_axes(result, q, a.shape, axes, keepdims)


def _rows(a: Any, axes: tuple[int, ...]) -> Any:
    """The folded axes as the last one."""
    kept = [i for i in range(a.ndim) if i not in axes]
    moved = do.transpose(a, permutation=(*kept, *axes))
    return reshape(moved, (*[a.shape[i] for i in kept], reductions.count(a.shape, axes)))


def _weights_like(name: str, a: Any, weights: Any, axes: tuple[int, ...]) -> Any:
    (w,) = promote_inexact(array_of(name, weights))
    w = convert(w, a.dtype)
    return w if w.shape == a.shape else _aligned_weights(a, w, axes)


def _with_kept_axes(
    result: Any, q: Any, shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool
) -> Any:
    """`result` has the axis of q first, if q has one."""
    if not keepdims:
        return result
    lead = q.ndim
    return expand_dims(result, tuple(i + lead for i in axes)) if axes else result


def _at_ranks(rows: Any, q: Any, method: str, skip: bool) -> Any:
    """Values at fractional places of sorted rows. nan sorts last: `skip` counts only what comes
    before."""
    n = rows.shape[-1]
    dtype = rows.dtype
    nan = ufuncs.isnan(rows)
    if not skip:
        any_nan = reductions.any(nan, axis=-1, keepdims=True)
        rows = where(any_nan, np.asarray(np.nan).astype(dtype), rows)
        last = as_number(n - 1, dtype)
    else:
        there = reductions.sum(~nan, axis=-1, keepdims=True, dtype=dtype)
        last = there - 1
    if is_found(n):  # of nothing: NaN
        lack = larger(1 - n, 0)
        none = broadcast_to(np.asarray(np.nan).astype(dtype), (*rows.shape[:-1], lack))
        rows, n = concatenate([rows, none], axis=-1), n + lack
        last = last if skip else as_number(n - 1, dtype)
    ordered = sort(rows, -1)
    flat_q = ufuncs.minimum(ufuncs.maximum(ravel(q), 0), 1)
    place = flat_q * last if not skip else last * flat_q  # (..., k) for skip, (k,) else
    if method == "inverted_cdf":  # the first whose share of all reaches q
        place, method = ufuncs.maximum(do.ceil(flat_q * (last + 1)) - 1, 0), "lower"
    place = broadcast_to(place, (*rows.shape[:-1], flat_q.shape[0]))
    if n == 0:
        out = place * np.asarray(np.nan).astype(dtype)
        return moveaxis(out, -1, 0) if q.ndim else out[..., 0]
    out = where(ufuncs.isnan(place), place, _between(ordered, place, method, n))
    return moveaxis(out, -1, 0) if q.ndim else out[..., 0]


def _between(ordered: Any, place: Any, method: str, n: int) -> Any:
    low, high = do.floor(place), do.ceil(place)

    def index(p: Any) -> Array:
        return convert(
            ufuncs.minimum(
                ufuncs.maximum(where(ufuncs.isnan(p), np.zeros((), p.dtype), p), 0), n - 1
            ),
            np.dtype("int32"),
        )

    def pick(p: Any) -> Array:
        return take_along_axis(ordered, index(p), -1, mode="clip")

    if method == "lower":
        return pick(low)
    if method == "higher":
        return pick(high)
    if method == "nearest":
        return pick(do.round(place, rounding_method=1))
    a, b = pick(low), pick(high)
    if method == "midpoint":
        return where(low == high, a, (a + b) * np.asarray(0.5, a.dtype))
    t = place - low
    return where(low == high, a, a * (1 - t) + b * t)  # which may be infinite


def _weighted(name: str, rows: Any, q: Any, weights: Any, skip: bool) -> Any:
    """The smallest value whose share of the weights reaches q."""
    nan = ufuncs.isnan(rows)
    dtype = rows.dtype
    if skip:
        weights = where(nan, np.zeros((), weights.dtype), weights)
    else:
        rows = where(
            reductions.any(nan, axis=-1, keepdims=True), np.asarray(np.nan).astype(dtype), rows
        )
    ordered, carried = do.sort(rows, weights, dimension=rows.ndim - 1, is_stable=True, num_keys=1)
    total = reductions.cumsum(carried, axis=-1)
    share = total / total[..., -1:]
    flat_q = ravel(q)
    reached = expand_dims(share, -2) >= reshape(flat_q, (-1, 1))
    # positions without weight are not values of the sample
    real = expand_dims(carried > 0, -2)
    first = reductions.argmax(reached & real, axis=-1)
    out = take_along_axis(ordered, first, -1, mode="clip")
    out = where((flat_q >= 0) & (flat_q <= 1), out, np.asarray(np.nan).astype(dtype))
    return moveaxis(out, -1, 0) if q.ndim else out[..., 0]


# ---------------------------------------------------------------- covariance


def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """The covariance matrix of variables.

    Args:
        m: observations of several variables, or of one: an array of at most two axes.
        y: more variables, in the form of `m`.
        rowvar: whether each row is a variable; else each column is.
        bias: whether sums are divided by n rather than n - 1.
        ddof: sums are divided by n less this; None follows `bias`.
        fweights: how many times each observation counts, integers.
        aweights: how much each observation counts.
        dtype: of the result, a float or complex dtype; None is that of the variables.
    Returns:
        A square matrix with a row for each variable; a number for a single one.

    >>> jnp.cov(jnp.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)"""
    _check_inexact("cov", dtype)
    x = _variables(m, y, rowvar, dtype)
    if x.shape[1] == 0 or x.shape[0] == 0:
        return (
            asarray(np.empty((0, 0), x.dtype))
            if x.shape[0] == 0
            else asarray(np.full((x.shape[0],) * 2, np.nan, x.dtype)).squeeze()
        )
    if ddof is None:
        ddof = 0 if bias else 1
    w = _weights(x, fweights, aweights)
    n = x.shape[1]
    if w is None:
        mean = reductions.mean(x, axis=1, keepdims=True)
        # a NumPy number less a Python one is a float64 before NumPy 2
        less = as_number(ddof, x.real.dtype) if isinstance(ddof, int | float) else ddof
        norm: Any = as_number(n, x.real.dtype) - less
    else:
        total = reductions.sum(w)
        mean = reductions.sum(x * w, axis=1, keepdims=True) / total
        if ddof == 0:
            norm = total
        elif aweights is None:
            norm = total - ddof
        else:
            norm = total - ddof * reductions.sum(w * array_of("cov", aweights)) / total
    x = x - mean
    weighted = x if w is None else x * w
    out = dot(x, ufuncs.conjugate(weighted).T) / convert(norm, x.dtype)
    return out.squeeze()


def _check_inexact(name: str, dtype: Any) -> None:
    if dtype is not None and not is_inexact(canonicalize(dtype)):
        raise ValueError(f"{name}: dtype must be a subclass of float or complex, got {dtype}")


def _variables(m: Any, y: Any, rowvar: bool, dtype: Any) -> Any:
    given = arrays("cov", m) if y is None else arrays("cov", m, y)
    if any(x.ndim > 2 for x in given):
        raise ValueError(
            f"cov: m and y have more than 2 dimensions: shapes {[x.shape for x in given]}"
        )
    given = promote_inexact(*given)
    target = result_dtype(dtype, typeof(given[0]).dtype)
    parts = []
    for k, x in enumerate(given):
        x = atleast_2d(convert(x, target))
        if not rowvar and given[k].ndim != 1 and (k == 0 or x.shape[0] != 1):
            x = x.T
        parts.append(x)
    return parts[0] if len(parts) == 1 else concatenate(parts, axis=0)


def _weights(x: Any, fweights: Any, aweights: Any) -> Any:
    """The product of frequencies and importances, or None."""
    w = None
    for name, v in (("fweights", fweights), ("aweights", aweights)):
        if v is None:
            continue
        v = array_of("cov", v)
        if v.ndim > 1:
            raise RuntimeError(f"cannot handle multidimensional {name}")
        if v.shape[0] != x.shape[1]:
            raise RuntimeError(f"incompatible numbers of samples and {name}")
        if name == "fweights" and is_inexact(v.dtype):
            raise TypeError("fweights must be integer.")
        v = convert(ufuncs.absolute(v), x.real.dtype)
        w = v if w is None else w * v
    return w


def corrcoef(
    x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, dtype: DTypeLike | None = None
) -> Array:
    """The matrix of correlation coefficients of variables.

    Args:
        x: observations of several variables, or of one: an array of at most two axes.
        y: more variables, in the form of `x`.
        rowvar: whether each row is a variable; else each column is.
        dtype: of the result, a float or complex dtype; None is that of the variables.
    Returns:
        A square matrix of numbers between -1 and 1; 1 for a single variable.
    Differs from NumPy:
        There are no deprecated arguments `bias` and `ddof`.

    >>> jnp.corrcoef(jnp.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)"""
    _check_inexact("corrcoef", dtype)
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    d = do.sqrt(do.real(c.diagonal()) if is_complex(c.dtype) else c.diagonal())
    d = convert(d, c.dtype)
    c = c / d[:, None] / d[None, :]

    def limit(v: Any) -> Array:
        return ufuncs.minimum(ufuncs.maximum(v, -1), 1)

    return do.complex(limit(do.real(c)), limit(do.imag(c))) if is_complex(c.dtype) else limit(c)
