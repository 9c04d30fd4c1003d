"""Sums and their like: functions that fold axes away."""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from calque.core.arrays import Array, as_it_is, to_array
from calque.core.dims import is_found, surely_equal
from calque.core.dtypes import (
    canonicalize,
    is_complex,
    is_float,
    is_inexact,
    is_integer,
    is_unsigned,
    real_part,
)
from calque.core.lazy import LazyModule
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.trace_state import Tracer
from calque.core.types import ArrayLike, Axes, DTypeLike
from calque.numpy import ufuncs
from calque.numpy.indexing.found_sizes import refuse_empty
from calque.numpy.promotion import (
    as_operand,
    broadcast_to,
    canonical_axes,
    canonical_axis,
    check_arraylike,
    convert,
    is_number,
    promote_inexact,
    refuse_out,
    result_dtype,
)
from calque.numpy.signatures import Binary, Extreme, FoldAxes, Position, Running, SumLike, Truth
from calque.ops.common import filled, scalar_of
from calque.ops.complexes import squared_magnitude
from calque.ops.reductions import largest, smallest
from calque.ops.sizes import as_number

collectives = LazyModule("calque.transforms.devices.collective_functions")


def keep(out: Any, shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> Any:
    """The result with its folded axes as axes of size 1, if asked for."""
    if not keepdims or not axes:
        return out
    full = tuple([1 if i in axes else d for i, d in enumerate(shape)])
    dims = tuple([i for i in range(len(shape)) if i not in axes])
    return do.broadcast_in_dim(out, shape=full, broadcast_dimensions=dims)


def masked(name: str, x: Any, where: Any, neutral: Any) -> Any:
    """`x` where the mask is true, the neutral value elsewhere."""
    if where is None:
        return x
    aval = typeof(x)
    mask = where_mask(name, where)
    rank, shape = typeof(mask).ndim, typeof(mask).shape
    if rank > aval.ndim or builtins.any(
        not surely_equal(d, n) and d not in (1, n)
        for d, n in zip(shape, aval.shape[aval.ndim - rank :])
    ):
        raise ValueError(
            f"where of shape {shape} does not broadcast to the array's shape {aval.shape}"
        )
    mask = broadcast_to(mask, aval.shape)
    return do.select_n(mask, filled(aval.shape, scalar_of(aval.dtype, neutral)), x)


def where_mask(name: str, where: Any) -> Any:
    check_arraylike("where", where)
    if typeof(where).dtype != np.dtype(bool):
        raise ValueError(
            f"jnp.{name}: where must be None or a boolean array, got {typeof(where).dtype.name}"
        )
    return where


def accumulator_dtype(dtype: Any, promote_integers: bool = True) -> Any:
    """Sums of bools and small integers are made in the default integer type."""
    if dtype == np.dtype(bool):
        return canonicalize(int)
    if promote_integers and is_integer(dtype):
        wide = canonicalize(np.dtype("uint64") if is_unsigned(dtype) else np.dtype("int64"))
        return wide if wide.itemsize > dtype.itemsize else dtype
    return dtype


_ACROSS: Final = {
    "reduce_sum": "psum",
    "reduce_max": "pmax",
    "reduce_min": "pmin",
}  # of the members of a mapped axis


def axes_and_names(axis: Any, ndim: int) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The axes of the array to be folded, and the mapped axes, which have names."""
    given = axis if isinstance(axis, (tuple, list, range)) else (axis,)
    names = tuple([a for a in given if isinstance(a, str)])
    if not names:
        return canonical_axes(axis, ndim), ()
    return canonical_axes(tuple([a for a in given if not isinstance(a, str)]), ndim), names


def fold(
    name: str,
    primitive: str,
    a: Any,
    axis: Any,
    keepdims: bool,
    where: Any,
    initial: Any,
    neutral: Any,
    combine: Callable[[Any, Any], Any],
    params: dict[str, Any],
) -> Any:
    aval = typeof(a)
    axes, names = axes_and_names(axis, aval.ndim)
    x = masked(name, a, where, neutral)
    out = do[primitive](x, axes=axes, **params) if axes else x
    if names:
        if primitive not in _ACROSS:
            raise NotImplementedError(
                f"{name} over the mapped axes {names} is not offered: fold positional axes only"
            )
        out = getattr(collectives, _ACROSS[primitive])(out, names)
    if initial is not None:
        check_arraylike(name, initial)
        if typeof(initial).ndim:
            raise ValueError(
                f"{name}: initial value must be a scalar. Got array of shape"
                f" {typeof(initial).shape}"
            )
        out = combine(out, convert(initial, aval.dtype))
    return keep(to_array(out), aval.shape, axes, keepdims)


def _sum_like(
    name: str, primitive: str, neutral: int, combine: Binary, params: dict[str, Any]
) -> SumLike:
    def reduction(
        a: ArrayLike,
        axis: FoldAxes | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        promote_integers: bool = True,
    ) -> Array:
        check_arraylike(name, a)
        refuse_out(name, out)
        a = as_operand(a)
        target = result_dtype(dtype) or accumulator_dtype(typeof(a).dtype, promote_integers)
        # a narrow float is summed in float32 in any case; a program says so unless told its dtype
        narrow = dtype is None and is_float(target) and target.itemsize < 4
        work = np.dtype("float32") if narrow else target
        if target == np.dtype(bool):  # the sum is whether any is true, the product whether all are
            a, work = convert(a, target), canonicalize(int)
        x = convert(a, work)
        result = fold(
            name,
            primitive,
            x,
            axis,
            keepdims,
            where,
            initial,
            neutral,
            combine,
            params,
        )
        return convert(result, target) if work != target else result

    return ufuncs.named(reduction, name)


sum = _sum_like(
    "sum",
    "reduce_sum",
    0,
    ufuncs.add,
    {"out_sharding": None},
)
prod = _sum_like(
    "prod",
    "reduce_prod",
    1,
    ufuncs.multiply,
    {},
)


def _extreme(name: str, primitive: str, neutral: Callable[[Any], Any], combine: Binary) -> Extreme:
    def reduction(
        a: ArrayLike,
        axis: FoldAxes | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        check_arraylike(name, a)
        refuse_out(name, out)
        a = as_operand(a)
        aval = typeof(a)
        axes, _ = axes_and_names(axis, aval.ndim)
        if initial is None:
            empty = (
                f"zero-size array to reduction operation {name} which has no identity; give"
                " `initial`"
            )
            if 0 in [aval.shape[i] for i in axes]:
                raise ValueError(empty)
            refuse_empty([aval.shape[i] for i in axes], ValueError(empty))
            if where is not None:
                raise ValueError(
                    f"reduction operation {name} does not have an identity, so to use a where mask"
                    " one has to specify 'initial'"
                )
        a = convert(a, aval.dtype)
        return fold(
            name,
            primitive,
            a,
            axis,
            keepdims,
            where,
            initial,
            neutral(aval.dtype),
            combine,
            {},
        )

    return ufuncs.named(reduction, name)


max = amax = _extreme("max", "reduce_max", smallest, ufuncs.maximum)
min = amin = _extreme("min", "reduce_min", largest, ufuncs.minimum)


def _logical(name: str, primitive: str, neutral: bool) -> Truth:
    def reduction(
        a: ArrayLike,
        axis: FoldAxes | None = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
    ) -> Array:
        check_arraylike(name, a)
        refuse_out(name, out)
        a = as_operand(a)
        x = a if typeof(a).dtype == np.dtype(bool) else do.ne(a, scalar_of(typeof(a).dtype, 0))
        x = convert(x, np.dtype(bool))
        return fold(name, primitive, x, axis, keepdims, where, None, neutral, ufuncs.add, {})

    return ufuncs.named(reduction, name)


all = _logical("all", "reduce_and", True)
any = _logical("any", "reduce_or", False)


def count(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    n = 1
    for i in axes:
        n *= shape[i]
    return n


def counted(
    a: Any,
    axes: tuple[int, ...],
    where: Any,
    keepdims: bool,
    dtype: Any,
    names: tuple[str, ...] = (),
) -> Any:
    """How many values each fold takes, as a number or, with a mask, an array."""
    shape = typeof(a).shape
    if where is None:
        members = collectives.axis_size(names) if names else 1
        with np.errstate(all="ignore"):
            return as_number(count(shape, axes) * members, dtype)
    mask = broadcast_to(where, shape)
    return sum(
        convert(mask, dtype), axis=(*axes, *names), keepdims=keepdims, promote_integers=False
    )


def mean(
    a: ArrayLike,
    axis: FoldAxes | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """The arithmetic mean, over all axes or some.

    Args:
        a: an array or a number.
        axis: the axis to fold, or a tuple of axes; None folds all. Names stand for mapped axes.
        dtype: of the elements, of their sum and of the result; None is that of `a`, or float32
            for integers and bools.
        out: must be None: arrays are immutable.
        keepdims: whether folded axes stay, with size 1.
        where: bools that broadcast to `a`, true for the elements to take; None takes all.
    Returns:
        The means; nan for no elements. Without a dtype, means of float16 and bfloat16 are made in
        float32 and rounded once.

    >>> jnp.mean(jnp.array([[1, 2], [3, 6]]), axis=0)
    Array([2., 4.], dtype=float32)"""
    check_arraylike("mean", a)
    refuse_out("mean", out)
    where = None if where is None else where_mask("mean", where)
    given = as_operand(a)
    (x,) = promote_inexact(given)
    target = result_dtype(dtype, typeof(x).dtype)
    x = x if dtype is None else given  # integers that stay integers never were floats
    small = dtype is None and is_float(target) and target.itemsize < 4
    work = np.dtype("float32") if small else target
    x = convert(x, work, typeof(x).weak_type and dtype is None and work == typeof(x).dtype)
    axes, names = axes_and_names(axis, typeof(x).ndim)
    total = sum(
        x,
        (*axes, *names),
        None if dtype is None else work,
        keepdims=keepdims,
        where=where,
        promote_integers=False,
    )
    return convert(do.div(total, counted(x, axes, where, keepdims, work, names)), target)


def var(
    a: ArrayLike,
    axis: FoldAxes | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array:
    """The variance, over all axes or some: the mean of the squared distances from the mean.

    Args:
        a: an array or a number.
        axis: the axis to fold, or a tuple of axes; None folds all. Names stand for mapped axes.
        dtype: of the elements and of the result; None is the real float dtype of `a`. With that of
            integers all is computed in integers, and the result is a float of the default dtype.
        out: must be None: arrays are immutable.
        ddof: the sum of squares is divided by the number of elements less this.
        keepdims: whether folded axes stay, with size 1.
        where: bools that broadcast to `a`, true for the elements to take; None takes all.
        mean: the mean, if it is known, with folded axes kept.
        correction: another name for `ddof`; only one of the two is given.
    Returns:
        The variances, real also for complex numbers; nan where there are no more than `ddof`
        elements.

    >>> jnp.var(jnp.array([1.0, 2.0, 3.0, 4.0]), ddof=1)
    Array(1.6666666, dtype=float32)"""
    check_arraylike("var", a)
    refuse_out("var", out)
    where = None if where is None else where_mask("var", where)
    if correction is not None:
        if ddof:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction  # type: ignore[assignment]
    (x,) = promote_inexact(as_operand(a))
    target = result_dtype(dtype, real_part(typeof(x).dtype))
    if is_complex(typeof(x).dtype) and dtype is not None and not is_complex(target):
        raise ValueError(f"var: a complex array has no variance of dtype {target.name}")
    if target == np.dtype(bool):
        raise TypeError("var: a variance cannot have dtype bool")
    if not is_inexact(target):
        return _var_in_integers(convert(as_operand(a), target), axis, ddof, keepdims, where, mean)
    work = np.dtype("float32") if is_float(target) and target.itemsize < 4 else target
    if not is_complex(typeof(x).dtype):
        x = convert(x, work)
    axes, names = axes_and_names(axis, typeof(x).ndim)
    center = _mean(x, (*axes, *names), where) if mean is None else convert(mean, typeof(x).dtype)
    centered = ufuncs.subtract(x, center)
    squares = squared_magnitude(centered)
    total = sum(squares, axis=(*axes, *names), keepdims=keepdims, where=where)
    kind = typeof(squares).dtype
    n = counted(squares, axes, where, keepdims, kind, names)
    freedom = as_it_is(np.asarray(ddof).astype(kind))
    left = (
        ufuncs.subtract(n, freedom) if where is not None or isinstance(n, Tracer) else n - freedom
    )
    few = count(typeof(squares).shape, axes)
    if (is_found(few) or where is not None) and ddof > 0:  # too few: NaN, of 0 / -1 too
        nan = filled(typeof(left).shape, scalar_of(kind, np.nan))
        enough = do.gt(left, scalar_of(kind, 0))
        return convert(do.div(total, do.select_n(enough, nan, left)), target)
    if where is None and not names and not is_found(few) and few <= math.floor(ddof):
        nothing = do.div(do.mul(total, scalar_of(kind, np.nan)), scalar_of(kind, 1))
        return convert(nothing, target)
    return convert(do.div(total, left), target)


def _mean(x: Any, axes: tuple[Any, ...], where: Any, dtype: Any = None) -> Any:
    return mean(x, axis=axes, dtype=dtype, keepdims=True, where=where)


def _var_in_integers(
    x: Any, axis: FoldAxes | None, ddof: Any, keepdims: bool, where: Any, center: Any
) -> Array:
    """The variance of integers in their own arithmetic, as a float of the default type: the mean
    and the quotient lose their fractions."""
    dtype = typeof(x).dtype
    axes, names = axes_and_names(axis, typeof(x).ndim)
    folded: tuple[Any, ...] = (*axes, *names)
    middle = convert(center, dtype) if center is not None else _mean(x, folded, where, dtype)
    squares = do.square(ufuncs.subtract(x, middle))
    total = sum(squares, folded, dtype, keepdims=keepdims, where=where, promote_integers=False)
    n = counted(x, axes, where, keepdims, dtype, names)
    left = broadcast_to(
        ufuncs.subtract(n, as_it_is(np.asarray(ddof).astype(dtype))), typeof(total).shape
    )
    default = canonicalize(float)
    nan = broadcast_to(np.asarray(np.nan, default), typeof(total).shape)
    one = filled(typeof(left).shape, scalar_of(dtype, 1))
    enough = do.gt(left, scalar_of(dtype, 0))
    quotient = convert(do.div(total, do.select_n(enough, one, left)), default)
    return convert(do.select_n(enough, nan, quotient), default, True)


def std(
    a: ArrayLike,
    axis: FoldAxes | None = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: int | float | None = None,
) -> Array:
    """The standard deviation, over all axes or some: the square root of `var`.

    Args:
        a: an array or a number.
        axis: the axis to fold, or a tuple of axes; None folds all. Names stand for mapped axes.
        dtype: of the elements and of the result, a float or complex dtype; None is the real float
            dtype of `a`.
        out: must be None: arrays are immutable.
        ddof: the sum of squares is divided by the number of elements less this.
        keepdims: whether folded axes stay, with size 1.
        where: bools that broadcast to `a`, true for the elements to take; None takes all.
        mean: the mean, if it is known, with folded axes kept.
        correction: another name for `ddof`; only one of the two is given.
    Returns:
        The standard deviations, real also for complex numbers.

    >>> jnp.std(jnp.array([1.0, 3.0]))
    Array(1., dtype=float32)"""
    check_arraylike("std", a)
    refuse_out("std", out)
    where = None if where is None else where_mask("std", where)
    if dtype is not None and not is_inexact(canonicalize(dtype)):
        raise ValueError(f"dtype argument to jnp.std must be inexact; got {dtype}")
    return do.sqrt(
        var(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean, correction=correction)
    )


# ---------------------------------------------------------------- positions


def _position(name: str, primitive: str) -> Position:
    def reduction(
        a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
    ) -> Array:
        check_arraylike(name, a)
        refuse_out(name, out)
        a = as_operand(a)
        aval = typeof(a)
        flat = axis is None
        x = do.reshape(a, new_sizes=(aval.size,)) if flat and aval.ndim != 1 else a
        k = 0 if flat else canonical_axis(axis, aval.ndim)  # type: ignore[arg-type]
        if typeof(x).shape[k] == 0:
            raise ValueError(f"attempt to get {name} of an empty sequence")
        refuse_empty(
            [typeof(x).shape[k]], ValueError(f"attempt to get {name} of an empty sequence")
        )
        result = do[primitive](x, axes=(k,), index_dtype=canonicalize(int))
        if not keepdims:
            return result
        return keep(result, aval.shape, tuple(range(aval.ndim)) if flat else (k,), True)

    return ufuncs.named(reduction, name)


argmax = _position("argmax", "argmax")
argmin = _position("argmin", "argmin")


# ---------------------------------------------------------------- running


def _cumulative(name: str, primitive: str) -> Running:
    def scan(
        a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
    ) -> Array:
        check_arraylike(name, a)
        refuse_out(name, out)
        flat = axis is None or is_number(a)  # a number is a line of one, as in NumPy
        a = as_operand(a)
        if flat:
            a = do.reshape(a, new_sizes=(typeof(a).size,))
        aval = typeof(a)
        k = 0 if axis is None else canonical_axis(axis, aval.ndim)
        target = result_dtype(dtype)
        if target is None:
            target = canonicalize(int) if aval.dtype == np.dtype(bool) else aval.dtype
        if target == np.dtype(bool):
            x = convert(convert(a, target), canonicalize(int))
            return convert(do[primitive](x, axis=k, reverse=False), target)
        return do[primitive](convert(a, target), axis=k, reverse=False)

    return ufuncs.named(scan, name)


cumsum = _cumulative("cumsum", "cumsum")
cumprod = _cumulative("cumprod", "cumprod")


def ptp(a: ArrayLike, axis: Axes | None = None, out: None = None, keepdims: bool = False) -> Array:
    """The distance from the smallest to the largest element, over all axes or some.

    Args:
        a: an array or a number.
        axis: the axis to fold, or a tuple of axes; None folds all.
        out: must be None: arrays are immutable.
        keepdims: whether folded axes stay, with size 1.
    Returns:
        An array of the dtype of `a`.

    >>> jnp.ptp(jnp.array([3, 9, 5]))
    Array(6, dtype=int32)"""
    check_arraylike("ptp", a)
    refuse_out("ptp", out)
    return max(a, axis, keepdims=keepdims) - min(a, axis, keepdims=keepdims)
