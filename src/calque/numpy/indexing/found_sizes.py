"""Sizes that depend on values under jit: how many a mask selects, lengths and slice bounds that are
traced numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.core.arrays import is_concrete
from calque.core.dims import Dim, as_size, is_found, surely_equal, value_of
from calque.core.dtypes import canonicalize, is_integer, is_signed
from calque.core.errors import ConcretizationTypeError
from calque.core.extents import slice_bounds
from calque.core.primitives import do
from calque.core.trace import JaxprTracer, typeof
from calque.core.trace_state import Tracer, dynamic_trace
from calque.ops.common import scalar_of
from calque.ops.found_sizes import found_size, places
from calque.ops.sizes import as_number
from calque.transforms.functions.checks import raise_if

PLACE = np.dtype("int32")


def is_traced_integer(n: Any) -> bool:
    """Whether it is an integer scalar that is not known yet."""
    return not is_concrete(n) and n.aval.ndim == 0 and is_integer(n.aval.dtype)


def extent(n: Any, maker: str) -> Any:
    """A size, which may be a traced integer: the program makes arrays of that size; a negative one
    is an error while it runs."""
    if not is_traced_integer(n):
        return as_size(n, f"{maker}: a size")
    return once(("size", made_as(n)), [n], lambda: _extent(n, maker))


def _extent(n: Any, maker: str) -> Any:
    if is_signed(typeof(n).dtype):

        def negative(found: int) -> ValueError:
            return ValueError(f"{maker}: a size cannot be negative, got {int(found)}")

        raise_if(do.lt(n, scalar_of(typeof(n).dtype, 0)), negative, [n])
    return found_size(n, maker)


def known_extent(n: Any, wanted: Any, error: Callable[[int], Exception]) -> Any:
    """`wanted`, of which the running program checks that it is the traced size `n`."""
    dtype = typeof(n).dtype
    raise_if(do.ne(n, as_number(wanted, dtype)), lambda found: error(int(found)), [n])
    return wanted


def refuse_empty(sizes: Sequence[Any], error: Exception, unless: Sequence[Any] = ()) -> None:
    """Raise, while the program runs, if one of these sizes that it finds is 0; not if one of
    `unless` then is 0 as well."""
    for n in sizes:
        if may_be_empty(n) and not any(type(u) is Dim and u.poly == n.poly for u in unless):
            nothing = do.eq(value_of(n), np.zeros((), canonicalize(int)))
            for u in unless:
                if may_be_empty(u):
                    nothing = do.and_(nothing, do.ne(value_of(u), np.zeros((), canonicalize(int))))
            raise_if(nothing, lambda: error)


def may_be_empty(n: Any) -> bool:
    """Whether this is a size that the program finds, and that may be 0."""
    return is_found(n) and n.symbols.bounds(n.poly)[0] <= 0


# ---------------------------------------------------------------- places


def places_found(a: Any, maker: str) -> tuple[Any, ...]:
    """The places of a traced array that are not zero, as many as there are."""
    return once(("places", made_as(a)), [a], lambda: _places(a, maker))


def made_as(x: Any) -> Any:
    """A key that equal computations of one program share: `x[x < 0]` twice has one size."""
    if not isinstance(x, JaxprTracer):
        return id(x)
    trace: Any = x._trace
    return trace.made_as(x._var)


def once(key: Any, reads: Sequence[Any], make: Callable[[], Any]) -> Any:
    """`make()`, once for these tracers in one program: what comes of one mask, or one bound, has
    one size."""
    made = getattr(dynamic_trace(), "found", None)
    if made is None:
        return make()
    if key not in made:
        made[key] = (make(), reads)  # the tracers live on, so that no other has their identity
    return made[key][0]


def _places(a: Any, maker: str) -> tuple[Any, ...]:
    shape = typeof(a).shape
    mask = a if typeof(a).dtype == np.dtype(bool) else do.ne(a, scalar_of(typeof(a).dtype, 0))
    if len(shape) != 1:
        mask = do.reshape(mask, new_sizes=(typeof(a).size,))
    flat = places(mask, maker)
    return (flat,) if len(shape) == 1 else tuple(unraveled(flat, shape))


def unraveled(flat: Any, shape: Sequence[Any]) -> list[Any]:
    """The index along each axis of places in an array of this shape."""
    out: list[Any] = []
    dtype = typeof(flat).dtype
    stride: Any = 1
    for k in range(len(shape) - 1, -1, -1):
        at = flat if surely_equal(stride, 1) else do.div(flat, as_number(stride, dtype))
        out.insert(0, do.rem(at, as_number(shape[k], dtype)) if k else at)
        stride = stride * shape[k]
    return out


# ---------------------------------------------------------------- slices


def is_window(part: Any, size: Any) -> bool:
    """Whether this part of an index is a slice whose length is not known while tracing."""
    if not isinstance(part, slice):
        return False
    if isinstance(part.step, Tracer):
        raise IndexError(
            "x[a:b:c]: the step of a slice must be a number that is known while tracing"
        )
    if any(isinstance(v, Tracer) for v in (part.start, part.stop)):
        return True
    if not is_found(size):
        return False
    try:
        slice_bounds(part, size)
    except ConcretizationTypeError:
        return True
    return False


def window(part: slice, size: Any) -> Any:
    """The places that a slice selects, as a vector of a size that the program finds."""
    start, length, step = window_bounds(part, size)
    line = do.iota(dtype=PLACE, shape=(length,), dimension=0)
    return do.add(do.mul(line, _number(step)) if step != 1 else line, start)


def cut(x: Any, axis: int, part: slice) -> Any:
    """The elements that a slice selects along an axis: in one piece where its step is 1."""
    shape = typeof(x).shape
    start, length, step = window_bounds(part, shape[axis])
    if step == 1:
        starts = [start if k == axis else _number(0) for k in range(len(shape))]
        return do.dynamic_slice(x, *starts, slice_sizes=(*shape[:axis], length, *shape[axis + 1 :]))
    return x[(*[slice(None)] * axis, window(part, shape[axis]))]


def window_bounds(part: slice, size: Any) -> tuple[Any, Any, int]:
    """(start, length, step) of a slice with traced bounds, of an axis of this size."""
    bounds = [part.start, part.stop]
    key = (
        "window",
        *[("traced", made_as(v)) if isinstance(v, Tracer) else v for v in bounds],
        part.step,
        size,
    )
    found: tuple[Any, Any, int] = once(key, bounds, lambda: _window_bounds(part, size))
    return found


def _window_bounds(part: slice, size: Any) -> tuple[Any, Any, int]:
    step = 1 if part.step is None else operator.index(part.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    n = as_number(size, PLACE)
    low, high = (0, n) if step > 0 else (-1, do.sub(n, _number(1)))
    start = _bound(part.start, low if step > 0 else high, n, low, high)
    stop = _bound(part.stop, high if step > 0 else low, n, low, high)
    span = do.sub(stop, start) if step > 0 else do.sub(start, stop)
    if abs(step) != 1:
        span = do.div(do.add(span, _number(abs(step) - 1)), _number(abs(step)))
    return start, found_size(do.max(span, _number(0)), f"x[{_shown(part)}]", size), step


def _bound(v: Any, default: Any, n: Any, low: Any, high: Any) -> Any:
    """A bound of a slice: negative ones count from the end, all are kept inside."""
    if v is None:
        return _number(default)
    if isinstance(v, Tracer):
        if v.aval.ndim or not is_integer(v.aval.dtype):
            raise TypeError(f"slice indices must be integers or None, got {v.aval.str_short()}")
        wide = np.iinfo(v.aval.dtype).max > np.iinfo(PLACE).max
        if wide:  # what is cut off is far outside on either side
            ends = [
                np.asarray(e, v.aval.dtype)
                for e in (max(-(1 << 31), np.iinfo(v.aval.dtype).min), (1 << 31) - 1)
            ]
            v = do.clamp(ends[0], v, ends[1])
        v = do.convert_element_type(v, new_dtype=PLACE)
    else:
        v = as_number(as_size(v), PLACE)
    v = do.select_n(do.lt(v, _number(0)), v, do.add(v, n))
    return do.min(do.max(v, _number(low)), _number(high))


def _number(x: Any) -> Any:
    return np.asarray(x, PLACE) if is_concrete(x) else x


def _shown(part: slice) -> str:
    def show(v: Any) -> str:
        return "" if v is None else "n" if isinstance(v, Tracer) else str(v)

    return f"{show(part.start)}:{show(part.stop)}" + (
        f":{part.step}" if part.step is not None else ""
    )
