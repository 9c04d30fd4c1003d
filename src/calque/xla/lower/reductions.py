"""Folds along dimensions: sums, extremes, positions of extremes, cumulative ones, any program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from calque.core.dtypes import finfo, iinfo, is_complex, is_float, is_integer
from calque.xla.lower.elementwise import lexicographic
from calque.xla.lower.rules import (
    BYTES,
    RULES,
    Builder,
    Rule,
    array_i64,
    as_bytes,
    has_two_bits,
    listed,
    rule,
)
from calque.xla.lower.sizes import is_free, shape_operand
from calque.xla.text.tree import Function, Part, Region, Value
from calque.xla.text.types import Tensor, signature

Combine = Callable[[Builder, Value, Value], Value]


def least(dtype: Any) -> Any:
    """What the maximum with leaves everything as it is."""
    if dtype.kind == "b":
        return False
    if is_integer(dtype):
        return int(iinfo(dtype).min)
    return -np.inf if has_infinity(dtype) else finfo(dtype).min


def greatest(dtype: Any) -> Any:
    if dtype.kind == "b":
        return True
    if is_integer(dtype):
        return int(iinfo(dtype).max)
    return np.inf if has_infinity(dtype) else finfo(dtype).max


def has_infinity(dtype: Any) -> bool:
    return bool(np.isinf(float(np.asarray(np.inf).astype(dtype))))


def _op(name: str) -> Combine:
    return lambda b, x, y: b.binary(name, x, y)


def _extreme(name: str, direction: str) -> Combine:
    def combine(b: Builder, x: Value, y: Value) -> Value:
        if is_complex(x.dtype):
            return b.select(lexicographic(b, direction, x, y), x, y)
        return b.binary(name, x, y)

    return combine


def _all_ones(dtype: Any) -> Any:
    return True if dtype.kind == "b" else np.asarray(-1).astype(dtype)


def _lowest(dtype: Any) -> Any:
    return complex(-np.inf, -np.inf) if is_complex(dtype) else least(dtype)


def _highest(dtype: Any) -> Any:
    return complex(np.inf, np.inf) if is_complex(dtype) else greatest(dtype)


# name -> (how two elements become one, the element that changes nothing)
MONOIDS: Final[dict[str, tuple[Combine, Callable[[Any], Any]]]] = {
    "sum": (_op("add"), lambda d: 0),
    "prod": (_op("multiply"), lambda d: 1),
    "max": (_extreme("maximum", "GT"), _lowest),
    "min": (_extreme("minimum", "LT"), _highest),
    "and": (_op("and"), _all_ones),
    "or": (_op("or"), lambda d: 0),
    "xor": (_op("xor"), lambda d: 0),
}
_APPLIED: Final = {
    "sum": "add",
    "prod": "multiply",
    "max": "maximum",
    "min": "minimum",
    "and": "and",
    "or": "or",
    "xor": "xor",
}

_SHORT: Final = frozenset(f"stablehlo.{op}" for op in _APPLIED.values())


def fold(b: Builder, kind: str, x: Value, axes: Sequence[int]) -> Value:
    """A reduction with a known operation."""
    out = x.tensor.with_shape([n for d, n in enumerate(x.shape) if d not in axes])
    combine, identity = MONOIDS[kind]
    start = b.scalar(identity(x.dtype), x.dtype)
    if (is_complex(x.dtype) and kind in ("max", "min")) or has_two_bits(x.dtype):
        return _reduce(b, [x], [start], axes, [out], lambda inner, a: [combine(inner, *a)])[0]
    return _applied(b, f"stablehlo.{_APPLIED[kind]}", x, start, axes, out)


def _applied(
    b: Builder, op: str, x: Value, start: Value, axes: Sequence[int], out: Tensor
) -> Value:
    """A reduction with one operation, in the short form."""
    dims = ", ".join(map(str, axes))
    ending = f") applies {op} across dimensions = [{dims}]"
    types = signature([x.type, start.type], [out])
    return b.one(out, "stablehlo.reduce(", x, " init: ", start, f"{ending} : {types}")  # type: ignore[no-any-return]


def _are_short(xs: Sequence[Value]) -> bool:
    """Whether there are integers of two bits: what XLA's CPU folds of them starts anywhere."""
    return any(has_two_bits(x.dtype) for x in xs)


def _in_bytes(
    b: Builder,
    fold: Callable[..., list[Value]],
    xs: Sequence[Value],
    starts: Sequence[Value],
    where: Any,
    outs: Sequence[Tensor],
    combine: Callable[[Builder, list[Value]], Sequence[Value]],
) -> list[Value]:
    """A fold whose integers of two bits are bytes outside of the program of two elements."""
    kinds = [x.dtype for x in xs] * 2

    def whole(inner: Builder, args: list[Value]) -> list[Value]:
        found = combine(inner, [inner.convert(a, kind) for a, kind in zip(args, kinds)])
        return [as_bytes(inner, v) for v in found]

    wide = [out.with_dtype(BYTES.get(out.dtype.name, out.dtype)) for out in outs]
    xs, starts = [as_bytes(b, x) for x in xs], [as_bytes(b, s) for s in starts]
    found = fold(b, xs, starts, where, wide, whole)
    return [b.convert(v, out.dtype) for v, out in zip(found, outs)]


def _single_operation(region: Region) -> str | None:
    """The operation of a region that does nothing but apply it to its two arguments in order."""
    if len(region.args) != 2 or len(region.ops) != 2:
        return None
    op, end = region.ops
    is_plain = (
        len(op.parts) == 5
        and (op.parts[1], op.parts[3]) == tuple(region.args)
        and len(op.results) == 1
        and tuple(end.parts[2:3]) == tuple(op.results)
    )
    name = str(op.parts[0]).strip()
    return name if is_plain and name in _SHORT else None


def _reduce(
    b: Builder,
    xs: Sequence[Value],
    starts: Sequence[Value],
    axes: Sequence[int],
    outs: Sequence[Tensor],
    combine: Callable[[Builder, list[Value]], Sequence[Value]],
) -> list[Value]:
    """A reduction with any program of (values so far, elements)."""
    if _are_short(xs):
        return _in_bytes(b, _reduce, xs, starts, axes, outs, combine)
    n = len(xs)
    types = [s.type for s in starts]
    inner, args = b.inside([*types, *types], header=False)
    inner.returns(*combine(inner, args))
    known = _single_operation(inner.region)
    if known:
        return [_applied(b, known, xs[0], starts[0], axes, outs[0])]
    parts: list[Part] = ["stablehlo.reduce("]
    for i, (x, start) in enumerate(zip(xs, starts)):
        parts += ["), (" if i else "", x, " init: ", start]
    dims = ", ".join(map(str, axes))
    types_of = signature([v.type for v in (*xs, *starts)], outs)
    parts.append(f") across dimensions = [{dims}] : {types_of}\n reducer")
    for left, right in zip(args[:n], args[n:]):
        parts += ["(", left, f": {left.type}, ", right, f": {right.type}) "]
    return b.emit(outs, *parts, " ", inner.region)


def _reduction(kind: str) -> Rule:
    def lower(b: Builder, out: Tensor, x: Value, *, axes: Sequence[int], **_: Any) -> Value:
        return fold(b, kind, x, axes)

    return lower


RULES.update({f"reduce_{kind}": _reduction(kind) for kind in MONOIDS})


def _position(direction: str) -> Rule:
    def lower(b: Builder, out: Tensor, x: Value, *, axes: Sequence[int], index_dtype: Any) -> Value:
        (axis,) = axes
        x = as_bytes(b, x)
        places = b.iota(index_dtype, x.shape, axis)
        limit = least(x.dtype) if direction == "GT" else greatest(x.dtype)
        starts = [b.scalar(limit, x.dtype), b.scalar(0, index_dtype)]
        outs = [x.tensor.with_shape(out.shape), out]
        return _reduce(b, [x, places], starts, axes, outs, _better(direction))[1]

    return lower


def _better(direction: str) -> Callable[[Builder, list[Value]], Sequence[Value]]:
    """The better of two values and its place: NaN is the best, of equal values the first."""

    def combine(b: Builder, args: list[Value]) -> Sequence[Value]:
        x, i, y, j = args
        best = b.compare(direction, x, y)
        if is_float(x.dtype):
            best = b.binary("or", best, b.compare("NE", x, x))
        earlier = b.binary("and", b.compare("EQ", x, y), b.compare("LT", i, j))
        return b.select(best, x, y), b.select(b.binary("or", best, earlier), i, j)

    return combine


RULES.update(argmax=_position("GT"), argmin=_position("LT"))

# ---------------------------------------------------------------- cumulative


def _cumulative(combine: Combine, identity: Callable[[Any], Any]) -> Rule:
    """A window over all that comes before (after, in reverse)."""

    def lower(b: Builder, out: Tensor, x: Value, *, axis: int, reverse: bool) -> Value:
        n = x.shape[axis]
        if n == 0:
            return x
        window = [n if d == axis else 1 for d in range(x.ndim)]
        pads = [(0, 0)] * x.ndim
        pads[axis] = (0, n - 1) if reverse else (n - 1, 0)
        start = b.scalar(identity(x.dtype), x.dtype)
        ones = (1,) * x.ndim
        windows = Windows(window, ones, pads, ones, ones)
        return over_windows(b, [out], [x, start], windows, lambda i, args: [combine(i, *args)])[0]

    return lower


RULES.update({f"cum{kind}": _cumulative(*MONOIDS[kind]) for kind in ("sum", "prod", "max", "min")})


class Windows(NamedTuple):
    """Where windows are."""

    dimensions: Sequence[Any]
    strides: Sequence[Any]
    padding: Sequence[tuple[Any, Any]]
    base_dilation: Sequence[Any]
    window_dilation: Sequence[Any]

    def attributes(self) -> dict[str, str]:
        """Those of reduce_window, where all is fixed."""
        return {
            "padding": pairs(self.padding),
            "window_dimensions": array_i64(self.dimensions),
            "window_strides": array_i64(self.strides),
            "base_dilations": array_i64(self.base_dilation),
            "window_dilations": array_i64(self.window_dilation),
        }


def over_windows(
    b: Builder,
    outs: Sequence[Tensor],
    xs: Sequence[Value],
    windows: Windows,
    combine: Callable[[Builder, list[Value]], Sequence[Value]],
) -> list[Value]:
    """A reduction over windows of arrays, with as many values to start from, by any program of
    (values so far, elements)."""
    if _are_short(xs):
        n = len(xs) // 2
        return _in_bytes(b, _windows_of, xs[:n], xs[n:], windows, outs, combine)
    types = [x.tensor for x in xs[len(xs) // 2 :]]
    if not is_free(*windows[:2], *windows.padding, *windows[3:]):
        inner, args = b.inside([*types, *types])
        inner.returns(*combine(inner, args))
        return b.generic("stablehlo.reduce_window", outs, xs, windows.attributes(), inner.region)
    function = Function(
        b.state.unique_name("reducer"), Region([Value(t) for t in (*types, *types)]), types
    )
    b.state.module.functions.append(function)
    body = Builder(b.state, function.body)
    body.returns(*combine(body, list(function.body.args)))
    rows = [shape_operand(b, windows[i]) for i in (0, 1, 3, 4)]
    operands = [*xs, *rows, pads_operand(b, windows.padding)]
    call = "stablehlo.custom_call @stablehlo.dynamic_reduce_window("
    signed = signature([x.type for x in operands], outs)
    ending = f") {{called_computations = [@{function.name}]}} : {signed}"
    return b.emit(outs, call, *listed(operands), ending)


def _windows_of(
    b: Builder, xs: Sequence[Value], starts: Sequence[Value], windows: Windows, outs: Any, how: Any
) -> list[Value]:
    return over_windows(b, outs, [*xs, *starts], windows, how)


def pads_operand(b: Builder, pads: Sequence[tuple[Any, Any]]) -> Value:
    """Paddings as rows of two numbers."""
    return b.concatenate([b.reshape(shape_operand(b, p), (1, 2)) for p in pads], 0)


def pairs(pads: Sequence[tuple[int, int]]) -> str:
    """dense<[[0, 1], [2, 2]]> : tensor<2x2xi64>"""
    numbers = {n for pair in pads for n in pair}
    listed = ", ".join(f"[{low}, {high}]" for low, high in pads)
    if not pads:
        return "dense<> : tensor<0x2xi64>"
    text = str(numbers.pop()) if len(numbers) == 1 else f"[{listed}]"
    return f"dense<{text}> : tensor<{len(pads)}x2xi64>"


rule_of_reduce = _reduce


# ---------------------------------------------------------------- logarithms of sums


def _logaddexp(b: Builder, x: Value, y: Value) -> Value:
    """log(exp(x) + exp(y)); the sum of both where their difference is no number."""
    t = x.tensor
    gap = b.binary("subtract", x, y)
    away = b.same("stablehlo.negate", t, b.same("stablehlo.abs", t, gap))
    more = b.same("stablehlo.log_plus_one", t, b.same("stablehlo.exponential", t, away))
    usual = b.binary("add", b.binary("maximum", x, y), more)
    return b.select(b.compare("NE", gap, gap), b.binary("add", x, y), usual)


_cumulative_logarithm: Final = _cumulative(_logaddexp, least)


@rule("cumlogsumexp")
def cumlogsumexp(b: Builder, out: Tensor, x: Value, **p: Any) -> Value:
    """In a type that has the logarithm of 0."""
    wide = x if has_infinity(x.dtype) else b.convert(x, np.dtype("float32"))
    found: Value = _cumulative_logarithm(b, wide.tensor, wide, **p)
    return b.convert(found, out.dtype)
