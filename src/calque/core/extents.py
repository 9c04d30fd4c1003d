"""What a slice selects of an axis, and the smaller and larger of two sizes, where sizes may be free
or found."""

from __future__ import annotations

from typing import Any

from calque.core.dims import Dim, as_size, hint_of, is_found, poly_of, whole
from calque.core.errors import InconclusiveDimensionOperation


def smaller(a: Any, b: Any) -> Any:
    """The smaller of two sizes. Of found ones it is a size of its own."""
    return _chosen("min", a, b)


def larger(a: Any, b: Any) -> Any:
    """The larger of two sizes. Of found ones it is a size of its own."""
    return _chosen("max", a, b)


def _chosen(op: str, a: Any, b: Any) -> Any:
    if not (is_found(a) or is_found(b)):
        return a if (is_at_most(a, b) if op == "min" else is_at_most(b, a)) else b
    difference = a - b
    symbols = (a if type(a) is Dim else b).symbols
    lo, hi = symbols.bounds(poly_of(difference) or ())
    if lo >= 0 or hi <= 0:
        return b if (lo >= 0) == (op == "min") else a
    for x, y in ((a, b), (b, a)):
        if op == "max" and y == 0 and type(x) is Dim:  # max(max(p, 0) - c, 0) == max(p - c, 0)
            inner = symbols.clipped(x.poly)
            if inner is not None:
                return _chosen("max", inner, 0)
    p, q = sorted((poly_of(a) or (), poly_of(b) or ()))
    pick = min if op == "min" else max
    return symbols.dim(symbols.atom(op, p, q, pick(hint_of(a), hint_of(b))))


def is_at_most(a: Any, b: Any) -> bool:
    """Whether a <= b, or, of sizes of which only the other is known, not b <= a."""
    try:
        return bool(a <= b)
    except InconclusiveDimensionOperation:
        if b <= a:  # raises where that is not known, either
            return False
        raise


def _bounds_found(start: Any, stop: Any, size: Any) -> tuple[Any, Any]:
    """(start, length) of a slice with sizes that the program finds. Where nothing is selected the
    start may lie behind the end."""
    end = size if stop is None else larger(stop + size, 0) if stop < 0 else smaller(stop, size)
    if start is None:
        return 0, end
    if start < 0 and stop is None:
        return larger(start + size, 0), smaller(-start, size)
    first = larger(start + size, 0) if start < 0 else start
    return first, larger(end - first, 0)


def slice_bounds(s: slice, size: Any) -> tuple[Any, Any, int]:
    """(start, length, step) of a Python slice of an axis."""
    start, stop = (None if v is None else as_size(v) for v in (s.start, s.stop))
    step = 1 if s.step is None else whole(s.step, "the step of a slice")
    if not any(type(v) is Dim for v in (start, stop, size)):
        first, end, step = slice(start, stop, step).indices(size)
        return first, max(-((first - end) // step), 0), step  # `len(range)` ends at 2**63
    if step == 0:
        raise ValueError("slice step cannot be zero")
    if step == 1 and any(map(is_found, (start, stop, size))):
        return (*_bounds_found(start, stop, size), 1)
    low, high = (0, size) if step > 0 else (-1, size - 1)

    def clipped(v: Any, default: Any) -> Any:
        if v is None:
            return default
        if v < 0:
            v = v + size
            return low if v < low else v
        return high if v > high else v

    first = clipped(start, low if step > 0 else high)
    end = clipped(stop, high if step > 0 else low)
    span = end - first if step > 0 else first - end
    never = type(span) is Dim and span.symbols.bounds(span.poly)[0] >= 0 and abs(step) == 1
    if not never and span <= 0:
        return first, 0, step
    return first, span if abs(step) == 1 else (span - 1) // abs(step) + 1, step
