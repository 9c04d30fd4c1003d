"""Numbers in order: arange, linspace."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np

from calque.core import trace_state
from calque.core.arrays import (
    Array,
    adopted,
    is_concrete,
    to_numpy,
)
from calque.core.avals import ShapedArray, nbytes
from calque.core.dims import Dim, is_found
from calque.core.dtypes import (
    PYTHON_SCALARS,
    asked,
    canonicalize,
    is_complex,
    is_inexact,
    is_integer,
    promote,
)
from calque.core.extents import larger
from calque.core.primitives import do
from calque.core.trace import typeof, value_if_known
from calque.core.trace_state import Tracer
from calque.core.types import ArrayLike, DTypeLike
from calque.numpy.calls.marks import seldom_taught
from calque.numpy.creation import broadcast_value, placed
from calque.numpy.indexing.found_sizes import extent
from calque.numpy.promotion import (
    broadcast_shapes,
    canonical_axis,
    check_arraylike,
    convert,
    promote_inexact,
    result_dtype,
)
from calque.numpy.signatures import OutSharding, Placement
from calque.ops.common import scalar_of
from calque.ops.found_sizes import found_size
from calque.ops.sizes import as_number
from calque.transforms.functions.checks import raise_if

# ---------------------------------------------------------------- ranges


@seldom_taught
@placed
def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Evenly spaced values from `start` up to `stop`, which is left out.

    Args:
        start: the first value; the end, if it is the only argument, and the first value is 0.
        stop: the end.
        step: the distance between values, also negative; None is 1.
        dtype: of the values; None is the dtype that the arguments have together.
        device: where the array lies: a device or a sharding. None is the default device.
        out_sharding: how the array lies on a mesh with explicit axes; None leaves it open.
    Returns:
        An array of one axis. Under jit the arguments may be traced integers: the size is found
        while the program runs.

    >>> jnp.arange(2, 10, 3)
    Array([2, 5, 8], dtype=int32)"""
    start, stop, step = map(value_if_known, (start, stop, step))
    if any(isinstance(v, Tracer) for v in (start, stop, step)):
        return _range_found(start, stop, step, dtype)
    values = [v for v in (start, stop, step) if v is not None]
    if any(isinstance(v, Dim) for v in values) and all(isinstance(v, (int, Dim)) for v in values):
        return _range_of_sizes(start, stop, step, result_dtype(dtype, canonicalize(int)))
    check_arraylike("arange", *values)
    if any(is_complex(typeof(v).dtype) for v in values):
        raise ValueError(
            "Passing complex start/stop/step to jnp.arange is no longer supported: they must be"
            f" real numbers, got {', '.join(map(repr, values))}"
        )
    target = _dtype_of(dtype, values)
    concrete: list[Any] = [
        v if type(v) in PYTHON_SCALARS else v.item() if isinstance(v, np.generic) else _number(v)
        for v in (start, stop, step)
        if v is not None
    ]
    if stop is None and step is None and target.kind in "iu" and isinstance(concrete[0], int):
        return do.iota(dtype=target, shape=(max(0, concrete[0]),), dimension=0)
    if (
        step is None
        and target.kind in "iu"
        and not trace_state.is_evaluating()
        and all(isinstance(v, int) for v in concrete)
    ):  # a program counts; it holds no table
        line = do.iota(dtype=target, shape=(max(0, concrete[1] - concrete[0]),), dimension=0)
        return do.add(line, scalar_of(target, concrete[0])) if concrete[0] else line
    if step is not None and concrete[-1] == 0:
        raise ZeroDivisionError("arange: the step is 0, division by zero: no such range ends")
    if stop is None:
        concrete = [0, concrete[0], 1 if step is None else concrete[-1]]
    return _table(concrete, target)


def _number(v: Any) -> Any:
    return to_numpy(v).item() if is_concrete(v) and np.ndim(v) == 0 else v


def _table(ends: list[Any], target: Any) -> Array:
    """The numbers of a range; one that never ends, or that no memory holds, is refused."""
    start, stop, step = ends if len(ends) == 3 else [*ends, 1]
    n = 0
    if all(isinstance(v, (int, float)) for v in (start, stop, step)):
        length = (stop - start) / step
        if length != length:
            raise ValueError(
                f"arange: cannot compute length of the range from {start} to {stop} by {step}: give"
                " numbers that are not nan"
            )
        if math.isinf(length):
            raise ValueError(
                f"arange: the range from {start} to {stop} by {step} never ends: give finite ends"
            )
        n = max(0, math.ceil(length))
        if n >= 1 << 63:
            raise MemoryError(
                f"arange: the range from {start} to {stop} by {step} has about {float(n):.3g}"
                " elements, more than a process can address: make it shorter"
            )
        nbytes(ShapedArray((n,), target))
    try:
        with np.errstate(all="ignore"):
            return adopted(np.arange(*ends).astype(target))
    except MemoryError:
        raise MemoryError(
            f"arange: no memory for a range of {n} elements of {target.name}: make it shorter"
        ) from None


def _dtype_of(dtype: Any, values: Sequence[Any]) -> Any:
    """The dtype that was asked for, or else the one that holds these numbers."""
    if dtype is not None:
        return asked(dtype)
    return canonicalize(promote(tuple([(a.dtype, a.weak_type) for a in map(typeof, values)]))[0])


def _range_found(start: Any, stop: Any, step: Any, dtype: Any) -> Any:
    """`arange` of traced numbers: the program finds its size."""
    first, end, by = (
        (0, start, 1 if step is None else step)
        if stop is None
        else (start, stop, 1 if step is None else step)
    )
    check_arraylike("arange", first, end, by)
    for v in (first, end, by):
        if typeof(v).ndim or typeof(v).dtype.kind not in "iuf":
            raise TypeError(
                f"arange: start, stop and step are real scalars, got {typeof(v).str_short()}"
            )
    whole = all(is_integer(typeof(v).dtype) for v in (first, end, by))
    given = [v for v in (start, stop, step) if v is not None]
    dtype = _dtype_of(dtype, given)
    work = canonicalize(int if whole else float)
    first, end, by = (convert(v, work) for v in (first, end, by))
    raise_if(do.eq(by, scalar_of(work, 0)), lambda: ZeroDivisionError("arange: the step is zero"))
    span = do.sub(end, first)
    if whole:  # towards the end: (span + step - 1) // step, and the same downwards
        sign = do.sign(by)
        count = do.div(
            do.add(span, do.sub(by, sign)),
            do.select_n(do.eq(by, scalar_of(work, 0)), by, scalar_of(work, 1)),
        )
    else:
        count = do.convert_element_type(do.ceil(do.div(span, by)), new_dtype=canonicalize(int))
    size = found_size(do.max(count, scalar_of(canonicalize(int), 0)), "jnp.arange")
    line = do.iota(dtype=work, shape=(size,), dimension=0)
    return convert(do.add(do.mul(line, by), first), dtype)


def _range_of_sizes(start: Any, stop: Any, step: Any, dtype: Any) -> Any:
    """`arange` of free sizes."""
    first, end, step = (
        (0, start, 1 if step is None else step)
        if stop is None
        else (start, stop, 1 if step is None else step)
    )
    if step == 0:
        raise ZeroDivisionError("arange: the step is zero")
    n = larger(-(-(end - first) // step), 0)
    line = do.iota(dtype=dtype, shape=(n,), dimension=0)
    return do.add(do.mul(line, as_number(step, dtype)), as_number(first, dtype))


@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: Literal[False] = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Placement = None,
) -> Array: ...


@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Placement = None,
) -> Any: ...


@seldom_taught
@placed
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Placement = None,
) -> Any:
    """Evenly spaced values from `start` to `stop`.

    Args:
        start: the first value, or an array of first values.
        stop: the last value, or an array that broadcasts with `start`.
        num: how many values.
        endpoint: whether `stop` is the last value, rather than the one after the last.
        retstep: whether the distance between values is returned as well.
        dtype: of the values; None is the float dtype of the arguments. For integers values are
            rounded down.
        axis: where the new axis stands in the result.
        device: where the array lies: a device or a sharding. None is the default device.
    Returns:
        The values; with `retstep` a pair of the values and their distance.

    >>> jnp.linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)"""
    check_arraylike("linspace", start, stop)
    num = extent(num, "jnp.linspace")
    if num < 0:
        raise ValueError(f"linspace: num must be non-negative, got {num}")
    a, b = promote_inexact(start, stop)
    compute = typeof(a).dtype
    out_dtype = result_dtype(dtype, compute)
    shape = broadcast_shapes("linspace", typeof(a).shape, typeof(b).shape)
    a, b = (broadcast_value(v, shape) for v in (a, b))
    divisions = num - 1 if endpoint else num
    step = (
        do.div(do.sub(b, a), as_number(divisions, compute))
        if is_found(divisions) or divisions > 0  # 0 / 0 is what it has to be
        else adopted(np.asarray(np.nan).astype(compute))  # one for all
    )
    line = (num,) + (1,) * len(shape)
    t = do.reshape(
        do.iota(
            dtype=compute if compute.kind != "c" else np.dtype("float32"),
            shape=(num,),
            dimension=0,
        ),
        new_sizes=line,
    )
    t = do.div(convert(t, compute), as_number(larger(divisions, 1), compute))
    whole = (num, *shape)

    def spread(v: Any) -> Any:
        return do.broadcast_in_dim(v, shape=whole, broadcast_dimensions=tuple(range(1, len(whole))))

    t = broadcast_value(t, whole)
    out = do.add(do.mul(spread(a), do.sub(scalar_of(compute, 1), t)), do.mul(spread(b), t))
    if endpoint and (is_found(num) or num > 1):  # the last value is exactly `stop`
        last = do.eq(
            do.iota(dtype=np.dtype("int32"), shape=whole, dimension=0),
            as_number(larger(num - 1, 1), np.int32),
        )
        out = do.select_n(last, out, spread(b))
    if axis != 0:
        k = canonical_axis(axis, len(whole))
        order = [*range(1, len(whole))]
        order.insert(k, 0)
        out = do.transpose(out, permutation=tuple(order))
    if is_inexact(compute) and not is_inexact(out_dtype) and out_dtype != np.dtype(bool):
        out = do.floor(do.real(out) if is_complex(compute) else out)
    out = convert(out, out_dtype)
    return (out, step) if retstep else out
