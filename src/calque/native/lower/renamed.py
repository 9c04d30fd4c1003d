"""Operations that are others under another name, and windows of an array as a view of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, Final

import numpy as np

from calque.core.avals import ShapedArray
from calque.native.lower.graph import EXPANSIONS, REAL_PART, GraphBuilder, Node
from calque.native.lower.reductions import expand_reduce, identity_of, reshape, with_shape
from calque.native.lower.rules import RULES, ElementSteps, Index, Lower
from calque.native.scalars.expr import DTYPES, const, ex
from calque.ops.windows import WINDOW, monoid_of

Params = dict[str, Any]


def same(g: GraphBuilder, args: Sequence[Node], params: Params, avals: Sequence[Any]) -> list[Node]:
    """Its operands, as they are: stop_gradient, name, optimization_barrier."""
    return list(args)


def renamed(name: str) -> Callable[..., list[Node]]:
    def expand(
        g: GraphBuilder, args: Sequence[Node], params: Params, avals: Sequence[Any]
    ) -> list[Node]:
        return [g.add(name, args, params, avals[0])]

    return expand


def slice_of(g: GraphBuilder, x: Node, axis: int, start: int, aval: Any) -> Node:
    lo = tuple(start if d == axis else 0 for d in range(x.aval.ndim))
    hi = tuple(a + n for a, n in zip(lo, aval.shape))
    return g.add("slice", (x,), {"start_indices": lo, "limit_indices": hi, "strides": None}, aval)


def split(
    g: GraphBuilder, args: Sequence[Node], params: Params, avals: Sequence[Any]
) -> list[Node]:
    """split[sizes=(2, 3)] x -> x[:2], x[2:5]"""
    starts = [0, *accumulate(params["sizes"])]
    return [slice_of(g, args[0], params["axis"], s, a) for s, a in zip(starts, avals)]


def stack(
    g: GraphBuilder, args: Sequence[Node], params: Params, avals: Sequence[Any]
) -> list[Node]:
    """stack[axis=k] x y -> concatenate of x and y, reshaped"""
    axis, out = params["axis"], avals[0]
    part = (*out.shape[:axis], 1, *out.shape[axis + 1 :])
    return [g.add("concatenate", [reshape(g, x, part) for x in args], {"dimension": axis}, out)]


def unstack(
    g: GraphBuilder, args: Sequence[Node], params: Params, avals: Sequence[Any]
) -> list[Node]:
    """unstack[axis=k] x -> slices of x, reshaped"""
    x, axis = args[0], params["axis"]
    part = (*x.aval.shape[:axis], 1, *x.aval.shape[axis + 1 :])
    return [
        reshape(g, slice_of(g, x, axis, i, x.aval.update(shape=part)), a.shape)
        for i, a in enumerate(avals)
    ]


def empty(
    g: GraphBuilder, args: Sequence[Node], params: Params, avals: Sequence[Any]
) -> list[Node]:
    """An array whose values do not matter: zeros."""
    return [filled(g, np.zeros((), avals[0].dtype)[()], avals[0])]


def filled(g: GraphBuilder, value: Any, aval: Any) -> Node:
    scalar = g.add(
        "literal", (), {"value": np.asarray(value).astype(aval.dtype)}, ShapedArray((), aval.dtype)
    )
    return g.add(
        "broadcast_in_dim", (scalar,), {"shape": aval.shape, "broadcast_dimensions": ()}, aval
    )


def tile(low: Lower, n: Node, idx: Index) -> ElementSteps:
    """Element i of the operand, i taken modulo its size."""
    x = n.args[0]
    at = tuple(
        ex("mod", i, low.sizes.dim(d)) if d != m else i for i, d, m in zip(idx, x.shape, n.shape)
    )
    return (yield x, at)


# --- windows --------------------------------------------------------------------------------------


def expand_window(kind: str) -> Callable[..., list[Node]]:
    """A reduction over windows is a padded view with one more dimension, reduced; one axis after
    another.

    before: reduce_window_max[window_dimensions=(1, 2, 2, 1), ...] x
    after:  reduce_max (windows[axis=2] (pad (reduce_max (windows[axis=1] (pad x)))))"""

    def expand(
        g: GraphBuilder, args: Sequence[Node], p: Params, avals: Sequence[Any]
    ) -> list[Node]:
        x = args[0]
        if x.dtype not in DTYPES and (kind != "sum" or x.dtype not in REAL_PART):
            return [g.add(f"reduce_window_{kind}", args, p, avals[0])]
        rank = len(p["window_dimensions"])
        ones = (1,) * rank
        base, dilation = p.get("base_dilation") or ones, p.get("window_dilation") or ones
        for d in range(rank):
            w, s, pads = p["window_dimensions"][d], p["window_strides"][d], tuple(p["padding"][d])
            if (w, s, base[d], pads) != (1, 1, 1, (0, 0)):
                x = one_axis(g, x, kind, d, (w, s, base[d], dilation[d]), pads, avals[0].shape[d])
        return [x]

    return expand


def expand_any_window(
    g: GraphBuilder, args: Sequence[Node], p: Params, avals: Sequence[Any]
) -> list[Node] | None:
    """A program that is a sum or an extreme from its identity, which was no number yet when it was
    traced."""
    if len(args) != 2 or args[1].op != "literal":
        return None
    name = monoid_of(p["jaxpr"], args[1].params["value"], avals[0].dtype)
    if name is None:
        return None
    windows = {k: p[k] for k in WINDOW}
    return expand_window(name.removeprefix("reduce_window_"))(g, args[:1], windows, avals)


def one_axis(
    g: GraphBuilder,
    x: Node,
    kind: str,
    d: int,
    window: tuple[int, int, int, int],
    pads: tuple[int, int],
    count: int,
) -> Node:
    """Windows along one axis, reduced."""
    w, stride, base, dilation = window
    size = x.shape[d]
    spread = (size - 1) * base + 1 if size else 0
    if base > 1 or pads != (0, 0):
        high = max(pads[1], -pads[0] - spread)
        config = tuple(
            (pads[0], high, base - 1) if k == d else (0, 0, 0) for k in range(len(x.shape))
        )
        start = identity_of(kind, x)
        none = g.add(
            "literal",
            (),
            {"value": np.asarray(start).astype(x.aval.dtype)},
            ShapedArray((), x.aval.dtype),
        )
        shape = tuple(spread + pads[0] + high if k == d else n for k, n in enumerate(x.shape))
        x = g.add("pad", (x, none), {"padding_config": config}, with_shape(x.aval, shape))
    shape = (*x.shape[:d], count, *x.shape[d + 1 :])
    if w == 1:
        start_indices, limits = [0] * len(shape), list(x.shape)
        limits[d] = (count - 1) * stride + 1 if count else 0
        strides = tuple(stride if k == d else 1 for k in range(len(shape)))
        params = {
            "start_indices": tuple(start_indices),
            "limit_indices": tuple(limits),
            "strides": strides,
        }
        return g.add("slice", (x,), params, with_shape(x.aval, shape))
    view = g.add(
        "windows",
        (x,),
        {"axis": d, "stride": stride, "dilation": dilation},
        with_shape(x.aval, (*shape, w)),
    )
    (out,) = expand_reduce(kind)(g, (view,), {"axes": (len(shape),)}, [with_shape(x.aval, shape)])
    return out


def windows(low: Lower, n: Node, idx: Index) -> ElementSteps:
    """[..., i, ..., k] -> x[..., i * stride + k * dilation, ...]"""
    d, k = n.params["axis"], idx[-1]
    at = ex(
        "add",
        ex("mul", idx[d], const(n.params["stride"])),
        ex("mul", k, const(n.params["dilation"])),
    )
    return (yield n.args[0], (*idx[:d], at, *idx[d + 1 : -1]))


def size_value(low: Lower, n: Node, idx: Index) -> ElementSteps:
    return low.number(low.sizes.dim(n.params["dim"]), n.dtype)
    yield


NAMES: Final[dict[str, Callable[..., list[Node] | None]]] = {
    "add_any": renamed("add"),
    "stop_gradient": same,
    "sharding_constraint": same,
    "device_put": same,
    "name": same,
    "optimization_barrier": same,
    "split": split,
    "stack": stack,
    "unstack": unstack,
    "empty": empty,
    "reduce_window": expand_any_window,
    "reduce_window_sum": expand_window("sum"),
    "reduce_window_max": expand_window("max"),
    "reduce_window_min": expand_window("min"),
}
EXPANSIONS.update(NAMES)
RULES["tile"] = tile
RULES["size_value"] = size_value
RULES["windows"] = windows
