"""Gather as a change of the index, and the places that a scatter writes."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from calque.core.dims import surely_less
from calque.core.dtypes import iinfo, is_integer, is_signed
from calque.native.lower.graph import Node
from calque.native.lower.layout import choose, clamped, guarded
from calque.native.lower.rules import LIMITS, RULES, ElementSteps, Index, Lower, Request, Value
from calque.native.scalars.expr import FALSE, TRUE, ZERO, Expr, both, cast, const, ex


def mode_of(params: dict[str, Any]) -> str:
    """clip, fill or promise, however it is spelled."""
    mode = params.get("mode")
    text = str(getattr(mode, "name", mode)).lower()
    return "clip" if "clip" in text else "fill" if "fill" in text or "drop" in text else "promise"


def starts_of(
    low: Lower, indices: Node, batch: Index, count: int
) -> Generator[Request, Value, list[Expr]]:
    """The components of one index vector."""
    out = []
    for c in range(count):
        v = yield indices, (*batch, const(c))
        out.append(v)
    return out


def inside(low: Lower, v: Expr, top: Expr) -> Expr:
    """0 <= v <= top, in the type of v; what is certain is left out."""
    if v.dtype == "u64":
        return both(ex("lt", v, const(1 << 62, "u64")), ex("le", cast(v, "i64"), top))
    w = cast(v, "i64")
    below = low.sizes.decide("lt", w, ex("add", top, const(1)))
    if v.dtype[0] == "u" or low.sizes.decide("ge", w, ZERO):
        return TRUE if below else ex("le", w, top)
    if below:
        return ex("ge", v, const(0, v.dtype))
    # a negative number is a large one without its sign: one comparison answers both questions
    if v.dtype == "i32" and low.sizes.known and low.sizes.interval(top)[1] < 1 << 31:
        return ex("le", cast(v, "u32", "bitcast"), cast(top, "u32"))
    return ex("le", cast(w, "u64", "bitcast"), cast(top, "u64"))


def gather(low: Lower, n: Node, idx: Index) -> ElementSteps:
    """operand[start + offset]: the start read from `indices` at the batch part of the index."""
    x, indices = n.args
    p = n.params
    dn, sizes, mode = p["dimension_numbers"], p["slice_sizes"], mode_of(p)
    batch = tuple(i for d, i in enumerate(idx) if d not in dn.offset_dims)
    offsets = iter([i for d, i in enumerate(idx) if d in dn.offset_dims])
    outside = set(dn.collapsed_slice_dims) | set(dn.operand_batching_dims)
    at: list[Expr] = [ZERO if d in outside else next(offsets) for d in range(len(x.shape))]
    for d, b in zip(dn.operand_batching_dims, dn.start_indices_batching_dims):
        at[d] = batch[b]
    starts = yield from starts_of(low, indices, batch, len(dn.start_index_map))
    ok = TRUE
    for d, v in zip(dn.start_index_map, starts):
        room = x.shape[d] - sizes[d]
        top = const(-1) if surely_less(room, 0) else low.sizes.dim(room)
        if mode == "fill":
            ok = both(ok, inside(low, v, top))
            start = cast(v, "i64")
        else:
            start = clamped(low, v, top)
        at[d] = ex("add", at[d], start)
    if not all(x.shape):  # nothing to read from
        ok = FALSE
    if ok is TRUE:
        return (yield x, tuple(at))
    fill = fill_value(low, n)
    if ok is FALSE:
        return fill
    value = yield x, tuple(at)
    return choose(ok, guarded(value, ok), fill)


def fill_value(low: Lower, n: Node) -> Value:
    """What a gather gives for places outside: as JAX's default, nan, the least or the greatest
    integer, True."""
    v, dtype = n.params.get("fill_value"), n.aval.dtype
    if v is None:
        if not isinstance(dtype, np.dtype):
            v = np.uint32(0xFFFFFFFF)
            return low.constant(v, n.dtype)
        if is_integer(dtype):
            v = int(iinfo(dtype).min if is_signed(dtype) else iinfo(dtype).max)
        elif dtype.kind == "b":
            v = True
        else:
            v = np.nan
    return low.constant(
        np.asarray(v).astype(dtype if isinstance(dtype, np.dtype) else np.uint32), n.dtype
    )


class ElementPlace:
    """Where an element of the updates of a scatter goes: the index in the operand and the condition
    that it lies inside."""

    __slots__ = ("idx", "ok")

    def __init__(self, idx: Index, ok: Expr) -> None:
        self.idx, self.ok = idx, ok


def scatter_starts(n: Node, idx: Index) -> Index:
    """The batch part of an index into the updates."""
    window = n.params["dimension_numbers"].update_window_dims
    return tuple(i for d, i in enumerate(idx) if d not in window)


def scatter_place(low: Lower, n: Node, idx: Index) -> ElementPlace:
    """The place of element `idx` of the updates."""
    x, indices, updates = n.args
    dn, mode = n.params["dimension_numbers"], mode_of(n.params)
    batch = scatter_starts(n, idx)
    windows = iter([(i, updates.shape[d]) for d, i in enumerate(idx) if d in dn.update_window_dims])
    outside = set(dn.inserted_window_dims) | set(dn.operand_batching_dims)
    at, extent = [ZERO] * len(x.shape), [1] * len(x.shape)
    for d in range(len(x.shape)):
        if d not in outside:
            at[d], extent[d] = next(windows)
    for d, b in zip(dn.operand_batching_dims, dn.scatter_indices_batching_dims):
        at[d] = batch[b]
    ok = TRUE
    for c, d in enumerate(dn.scatter_dims_to_operand_dims):
        v = low.at(indices, (*batch, const(c)))
        room = x.shape[d] - extent[d]
        if surely_less(room, 0):
            return ElementPlace(tuple(at), FALSE)
        top = low.sizes.dim(room)
        if mode == "clip":
            start = clamped(low, v, top)
        # a broken promise must not write outside the array: such updates are dropped, as with fill
        else:
            start = cast(v, "i64")
            if not (v.op == "const" and top.op == "const" and 0 <= v.attr <= top.attr):
                ok = both(ok, inside(low, v, top))
        at[d] = ex("add", at[d], start)
    return ElementPlace(tuple(at), ok)


def plain(n: Node) -> bool:
    """Arrays of numbers, not of keys."""
    return isinstance(n.args[0].aval.dtype, np.dtype)


RULES["gather"] = gather
LIMITS["gather"] = plain
for _name in ("", "-add", "-sub", "-mul", "-min", "-max"):
    LIMITS[f"scatter{_name}"] = plain
