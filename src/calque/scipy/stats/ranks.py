"""Statistics that need the data in order, and the standard error: mode, rankdata, sem."""

from typing import Any, NamedTuple

from calque import numpy as jnp
from calque.core.arrays import Array
from calque.core.dtypes import canonicalize, is_inexact
from calque.core.primitives import do
from calque.core.types import ArrayLike
from calque.numpy.promotion import array_of, canonical_axis, promote_inexact

_POLICIES = ("propagate", "omit", "raise")
_METHODS = ("average", "min", "max", "dense", "ordinal")


def _only_propagate(name: str, nan_policy: str) -> None:
    if nan_policy not in _POLICIES:
        raise ValueError(f"{name}: nan_policy must be one of {_POLICIES}, got {nan_policy!r}")
    if nan_policy != "propagate":
        raise NotImplementedError(
            f"{name} has only nan_policy='propagate', got {nan_policy!r}: treat nan before the call"
        )


def _starts_of_runs(ordered: Any) -> Any:
    """Where a new value begins along the last axis of sorted data; nans count as one value."""
    a, b = ordered[..., 1:], ordered[..., :-1]
    new = a != b
    if is_inexact(ordered.dtype):
        new = new & ~(jnp.isnan(a) & jnp.isnan(b))
    return jnp.concatenate([jnp.ones_like(ordered[..., :1], bool), new], axis=-1)


def _first_of_run(new: Any) -> Any:
    """For each place of the last axis the place where its run began."""
    place = jnp.arange(new.shape[-1])
    return do.cummax(jnp.where(new, place, 0), axis=new.ndim - 1, reverse=False)


class ModeResult(NamedTuple):
    """The most common values and how often each occurs."""

    mode: Array
    count: Any  # as a tuple, it has a method of that name


def mode(
    a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False
) -> ModeResult:
    """The value that occurs most often along an axis, the smallest of several.

    Args:
        a: an array.
        axis: the axis; None is the flattened array.
        nan_policy: "propagate"; the others are refused.
        keepdims: whether the axis stays, with size 1.
    Returns:
        A named tuple: `mode` and `count`.

    >>> stats.mode(jnp.array([1, 2, 2, 3])).mode
    Array(2, dtype=int32)"""
    x = jnp.atleast_1d(array_of("mode", a))
    _only_propagate("mode", nan_policy)
    kept = (1,) * x.ndim if keepdims else ()
    if axis is not None:
        k = canonical_axis(axis, x.ndim)
        kept = (*x.shape[:k], *((1,) if keepdims else ()), *x.shape[k + 1 :])
    rows = jnp.ravel(x) if axis is None else jnp.moveaxis(x, k, -1)
    if rows.shape[-1] == 0:
        dtype = canonicalize(float)
        return ModeResult(jnp.full(kept, jnp.nan, dtype), jnp.zeros(kept, dtype))
    ordered = jnp.sort(rows, axis=-1)
    length = jnp.arange(rows.shape[-1]) - _first_of_run(_starts_of_runs(ordered)) + 1
    at = jnp.argmax(length, axis=-1, keepdims=True)

    def take(values: Any) -> Any:
        return jnp.reshape(jnp.take_along_axis(values, at, axis=-1), kept)

    return ModeResult(take(ordered), take(length))


def rankdata(
    a: ArrayLike, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate"
) -> Array:
    """The rank of each element, from 1 for the smallest.

    Args:
        a: an array.
        method: what equal elements get: "average", "min", "max", "dense" (ranks without gaps) or
            "ordinal" (one after the other).
        axis: the axis to rank along; None ranks all elements.
        nan_policy: "propagate"; the others are refused.
    Returns:
        Ranks in the shape of `a`.

    >>> stats.rankdata(jnp.array([10, 30, 30, 20]))
    Array([1. , 3.5, 3.5, 2. ], dtype=float32)"""
    x = array_of("rankdata", a)
    _only_propagate("rankdata", nan_policy)
    if method not in _METHODS:
        raise ValueError(
            f"rankdata: unknown method {method!r}; the methods are {', '.join(_METHODS)}"
        )
    if axis is None:
        return _ranks(jnp.ravel(x), method)
    k = canonical_axis(axis, x.ndim)
    return jnp.moveaxis(_ranks(jnp.moveaxis(x, k, -1), method), -1, k)


def _ranks(x: Any, method: str) -> Any:
    """Ranks along the last axis: computed in sorted order and brought back."""
    dtype = canonicalize(float)
    if x.shape[-1] == 0:
        return jnp.zeros(x.shape, dtype)
    order = jnp.argsort(x, axis=-1)
    back = jnp.argsort(order, axis=-1)
    if method == "ordinal":
        ranks = (back + 1).astype(dtype)
    else:
        ranks = jnp.take_along_axis(
            _tied(jnp.take_along_axis(x, order, axis=-1), method, dtype), back, axis=-1
        )
    if not is_inexact(x.dtype):
        return ranks
    return jnp.where(
        jnp.any(jnp.isnan(x), axis=-1, keepdims=True), jnp.asarray(jnp.nan, dtype), ranks
    )


def _tied(ordered: Any, method: str, dtype: Any) -> Any:
    new = _starts_of_runs(ordered)
    if method == "dense":
        return jnp.cumsum(new, axis=-1).astype(dtype)
    low = (_first_of_run(new) + 1).astype(dtype)
    if method == "min":
        return low
    ends = jnp.concatenate([new[..., 1:], jnp.ones_like(new[..., :1])], axis=-1)
    n = ordered.shape[-1]
    place = jnp.where(ends, jnp.arange(1, n + 1), n)
    high = do.cummin(place, axis=ordered.ndim - 1, reverse=True).astype(dtype)
    return high if method == "max" else 0.5 * (low + high)


def sem(
    a: ArrayLike,
    axis: int | None = 0,
    ddof: int = 1,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Array:
    """The standard error of the mean: the standard deviation over the root of the number of
    elements.

    Args:
        a: an array.
        axis: the axis; None is the flattened array.
        ddof: what is taken off the number of elements in the standard deviation.
        nan_policy: "propagate", or "omit", which leaves nan out.
        keepdims: whether the axis stays, with size 1.
    Returns:
        Floats.

    >>> stats.sem(jnp.array([1.0, 3.0]))
    Array(1., dtype=float32)"""
    (x,) = promote_inexact(array_of("sem", a))
    x = jnp.asarray(x)
    if nan_policy == "propagate":
        size = x.size if axis is None else x.shape[canonical_axis(axis, x.ndim)]
        return jnp.std(x, axis, ddof=ddof, keepdims=keepdims) / jnp.sqrt(
            jnp.asarray(size, x.real.dtype)
        )
    if nan_policy == "omit":
        count = jnp.sum(~jnp.isnan(x), axis, keepdims=keepdims)
        return jnp.nanstd(x, axis, ddof=ddof, keepdims=keepdims) / jnp.sqrt(
            count.astype(x.real.dtype)
        )
    raise ValueError(f"sem: nan_policy must be 'propagate' or 'omit', got {nan_policy!r}")
