"""Reductions that leave nan out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calque.core.arrays import Array, as_it_is
from calque.core.dtypes import is_complex, is_inexact, real_part
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike, DTypeLike
from calque.numpy import reductions, ufuncs
from calque.numpy.promotion import (
    array_of,
    canonical_axes,
    convert,
    is_number,
    promote_inexact,
    promote_shapes,
    refuse_out,
    result_dtype,
)
from calque.numpy.shaping import where as where_
from calque.numpy.signatures import Extreme, FoldAxes, NanSumLike, Position, Running
from calque.ops.common import const, scalar_of
from calque.ops.complexes import squared_magnitude
from calque.ops.reductions import largest, smallest

__all__ = [
    "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod",
    "nanstd", "nansum", "nanvar",
]  # fmt: skip

_isnan = ufuncs.isnan


def without_nan(x: Any, value: Any) -> Any:
    """`x` with nan replaced."""
    return where_(_isnan(x), const(x, value), x) if is_inexact(typeof(x).dtype) else x


def _extreme(name: str, fold: Callable[..., Any], neutral: Callable[[Any], Any]) -> Extreme:
    def reduction(
        a: ArrayLike,
        axis: FoldAxes | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        refuse_out(name, out)
        a = array_of(name, a)
        where = None if where is None else reductions.where_mask(name, where)
        if not is_inexact(a.dtype):
            return fold(a, axis, keepdims=keepdims, initial=initial, where=where)
        result = fold(
            without_nan(a, neutral(a.dtype)), axis, keepdims=keepdims, initial=initial, where=where
        )
        if initial is not None:
            return result
        every = reductions.all(
            _isnan(a), axis, keepdims=keepdims
        )  # a slice of nothing but nan has no extreme
        return where_(every, const(a, np.nan), result)

    return ufuncs.named(reduction, name)


nanmax = _extreme("nanmax", reductions.max, smallest)
nanmin = _extreme("nanmin", reductions.min, largest)


def _position(name: str, find: Callable[..., Any], neutral: Callable[[Any], Any]) -> Position:
    def reduction(
        a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
    ) -> Array:
        refuse_out(name, out)
        a = array_of(name, a)
        if not is_inexact(a.dtype):
            return find(a, axis, keepdims=keepdims)
        result = find(without_nan(a, neutral(a.dtype)), axis, keepdims=keepdims)
        every = reductions.all(_isnan(a), axis, keepdims=bool(keepdims))
        return where_(every, const(result, -1), result)

    return ufuncs.named(reduction, name)


nanargmax = _position("nanargmax", reductions.argmax, smallest)
nanargmin = _position("nanargmin", reductions.argmin, largest)


def _sum_like(name: str, fold: Callable[..., Any], neutral: int) -> NanSumLike:
    def reduction(
        a: ArrayLike,
        axis: FoldAxes | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        refuse_out(name, out)
        a = array_of(name, a)
        where = None if where is None else reductions.where_mask(name, where)
        return fold(
            without_nan(a, neutral), axis, dtype, keepdims=keepdims, initial=initial, where=where
        )

    return ufuncs.named(reduction, name)


nansum = _sum_like("nansum", reductions.sum, 0)
nanprod = _sum_like("nanprod", reductions.prod, 1)


def _cumulative(name: str, scan: Callable[..., Any], neutral: int) -> Running:
    def running(
        a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
    ) -> Array:
        refuse_out(name, out)
        x = array_of(name, a)
        if is_number(a):  # a number is a line of one
            x = do.reshape(x, new_sizes=(1,))
        return scan(without_nan(x, neutral), axis, dtype)

    return ufuncs.named(running, name)


nancumsum = _cumulative("nancumsum", reductions.cumsum, 0)
nancumprod = _cumulative("nancumprod", reductions.cumprod, 1)


def _numbers(a: Any, where: Any) -> Any:
    """Which elements count."""
    there = ~_isnan(a)
    return there if where is None else ufuncs.logical_and(there, where)


def nanmean(
    a: ArrayLike,
    axis: FoldAxes | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """The mean of the elements that are not nan, over all axes or some.

    Args:
        a: an array or a number.
        axis: the axis to fold, or a tuple of axes; None folds all.
        dtype: of the elements and of the result; None is that of `a`, or float32 for integers and
            bools.
        out: must be None: arrays are immutable.
        keepdims: whether folded axes stay, with size 1.
        where: bools that broadcast to `a`, true for the elements to take; None takes all.
    Returns:
        The means; nan where there is nothing else.

    >>> jnp.nanmean(jnp.array([1.0, jnp.nan, 3.0]))
    Array(2., dtype=float32)"""
    refuse_out("nanmean", out)
    a = array_of("nanmean", a)
    where = None if where is None else reductions.where_mask("nanmean", where)
    if not is_inexact(a.dtype):
        return reductions.mean(a, axis, dtype, keepdims=keepdims, where=where)
    target = result_dtype(dtype, a.dtype)
    count = reductions.sum(
        convert(_numbers(a, where), np.dtype("int32")), axis=axis, keepdims=keepdims
    )
    # a dtype that is named loses its 64 bits, and what is summed in its own needs no name
    named = target if dtype is not None or target.itemsize < 4 else None
    total = nansum(a, axis, named, keepdims=keepdims, where=where)
    return do.div(*promote_shapes("nanmean", total, convert(count, target)))


def nanvar(
    a: ArrayLike,
    axis: FoldAxes | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The variance of the elements that are not nan, over all axes or some.

    Args:
        a: an array or a number.
        axis: the axis to fold, or a tuple of axes; None folds all.
        dtype: of the elements and of the result; None is the real float dtype of `a`.
        out: must be None: arrays are immutable.
        ddof: the sum of squares is divided by the number of elements less this.
        keepdims: whether folded axes stay, with size 1.
        where: bools that broadcast to `a`, true for the elements to take; None takes all.
        mean: the mean, if it is known, with folded axes kept.
    Returns:
        The variances; nan where no more than `ddof` elements are left.

    >>> jnp.nanvar(jnp.array([1.0, jnp.nan, 3.0]))
    Array(1., dtype=float32)"""
    refuse_out("nanvar", out)
    a = array_of("nanvar", a)
    where = None if where is None else reductions.where_mask("nanvar", where)
    (x,) = promote_inexact(a)
    target = result_dtype(dtype, real_part(typeof(x).dtype))
    if dtype is not None and is_complex(typeof(x).dtype) and not is_complex(target):
        raise ValueError(f"nanvar: a complex array has no variance of dtype {target.name}")
    if target == np.dtype(bool):
        raise TypeError("nanvar: a variance cannot have dtype bool")
    if is_inexact(target) and not is_complex(typeof(x).dtype):
        work = np.dtype("float32") if target.itemsize < 4 else target
        x = convert(x, work)
    there = _numbers(x, where)
    center = (
        nanmean(x, axis, keepdims=True, where=where)
        if mean is None
        else convert(mean, typeof(x).dtype)
    )
    centered = where_(there, ufuncs.subtract(x, center), const(x, 0))
    squares = squared_magnitude(centered)
    count = reductions.sum(
        convert(there, np.dtype("int32")), axis=axis, keepdims=keepdims, promote_integers=False
    )
    total = reductions.sum(squares, axis=canonical_axes(axis, typeof(x).ndim), keepdims=keepdims)
    kind = typeof(total).dtype
    left = convert(count, kind) - as_it_is(np.asarray(ddof).astype(kind))
    enough = left > scalar_of(kind, 0)
    safe = where_(enough, left, scalar_of(kind, 1))
    result = where_(enough, total / safe, const(total, np.nan))
    return convert(result, target)


def nanstd(
    a: ArrayLike,
    axis: FoldAxes | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """The standard deviation of the elements that are not nan, over all axes or some.

    Args:
        a: an array or a number.
        axis: the axis to fold, or a tuple of axes; None folds all.
        dtype: of the elements and of the result; None is the real float dtype of `a`.
        out: must be None: arrays are immutable.
        ddof: the sum of squares is divided by the number of elements less this.
        keepdims: whether folded axes stay, with size 1.
        where: bools that broadcast to `a`, true for the elements to take; None takes all.
        mean: the mean, if it is known, with folded axes kept.
    Returns:
        The standard deviations; nan where no more than `ddof` elements are left.

    >>> jnp.nanstd(jnp.array([1.0, jnp.nan, 3.0]))
    Array(1., dtype=float32)"""
    refuse_out("nanstd", out)
    where = None if where is None else reductions.where_mask("nanstd", where)
    return do.sqrt(nanvar(a, axis, dtype, None, ddof, keepdims, where, mean))
