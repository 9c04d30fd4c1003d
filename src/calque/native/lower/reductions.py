"""Reductions in simpler terms, and small ones as expressions.

The order of a float sum is part of the meaning of the program (see `loops.Acc`): along the merged
reduced extent, blocks of 64 elements are folded by halves into 16 partial sums, those by halves in
the end; more than `CHUNK` elements are cut into chunks whose sums are summed by the same rule. All
forms here and in the schedule keep to it: an unrolled tree, a vector loop, lanes beside each other
in a column sum, a sum of chunks run by several threads."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, Final

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.dims import Dim, may_exceed, product, surely_at_most
from calque.core.extents import larger
from calque.native.lower.graph import EXPANSIONS, REAL_PART, GraphBuilder, Node
from calque.native.lower.rules import RULES, ElementSteps, Index, Lower, Value
from calque.native.lower.sizes import BAKED
from calque.native.scalars.elements import Cx
from calque.native.scalars.elements.complex_numbers import before, choose
from calque.native.scalars.expr import DTYPES, Expr, const, const_bits, ex, is_float
from calque.ops.reductions import largest, smallest

FOLD_OF: Final = {f"reduce_{k}": k for k in ("sum", "prod", "max", "min", "and", "or", "xor")}
BINARY: Final = {
    "sum": "add",
    "prod": "mul",
    "max": "max",
    "min": "min",
    "and": "and",
    "or": "or",
    "xor": "xor",
}
F32: Final = np.dtype("float32")
CHUNK: Final = 1 << 14


def with_shape(aval: Any, shape: Sequence[int], dtype: Any = None) -> ShapedArray:
    return ShapedArray(tuple(shape), dtype or aval.dtype)


def convert(g: GraphBuilder, x: Node, dtype: Any) -> Node:
    """x as another dtype."""
    if x.aval.dtype == dtype:
        return x
    return g.add(
        "convert_element_type",
        (x,),
        {"new_dtype": dtype, "weak_type": False, "sharding": None},
        x.aval.update(dtype=dtype),
    )


def reshape(g: GraphBuilder, x: Node, shape: Sequence[int]) -> Node:
    if tuple(shape) == x.shape:
        return x
    params = {"new_sizes": tuple(shape), "dimensions": None, "sharding": None}
    return g.add("reshape", (x,), params, with_shape(x.aval, shape))


def runs(axes: Sequence[int]) -> list[list[int]]:
    """Sorted axes as runs of neighbours."""
    out: list[list[int]] = []
    for a in sorted(axes):
        if out and out[-1][-1] == a - 1:
            out[-1].append(a)
        else:
            out.append([a])
    return out


def expand_reduce(kind: str) -> Callable[..., list[Node]]:
    """reduce over several axes -> neighbouring axes merged, one reduction per run, the last run
    first; halves are summed in float32.

    before: reduce_sum[axes=(0, 2, 3)] x:bf16[n,c,h,w]
    after:  reduce_sum[axes=(0,)] (reduce_sum[axes=(2,)] (reshape x:f32[n,c,h*w])), as bf16"""

    def expand(
        g: GraphBuilder, args: Sequence[Node], params: dict[str, Any], avals: Sequence[Any]
    ) -> list[Node]:
        x, out = args[0], avals[0]
        axes = [a % x.aval.ndim for a in params["axes"]]
        if kind in BOUNDS and x.dtype in REAL_PART and axes:
            return [folded_in_order(g, x, axes, kind, out)]
        empty = not all(type(x.shape[a]) is int and x.shape[a] for a in axes)
        x = widened(g, x, kind in ("sum", "prod"))
        for run in reversed(runs(axes)):
            lo, hi = run[0], run[-1] + 1
            shape = x.shape
            extent = product(shape[lo:hi])
            x = reshape(g, x, (*shape[:lo], extent, *shape[hi:]))
            x = folded(g, x, lo, kind)
        if empty and kind in BOUNDS and x.aval.dtype != out.dtype:
            x = bounded(g, x, kind, out.dtype)
        return [convert(g, x, out.dtype)]

    return expand


BOUNDS: Final = {"max": smallest, "min": largest}


def bounded(g: GraphBuilder, x: Node, kind: str, dtype: Any) -> Node:
    """A maximum or minimum of nothing in a wider type, as the narrow one has it."""
    bound = np.asarray(BOUNDS[kind](dtype)).astype(x.aval.dtype)[()]
    one = g.add("literal", (), {"value": bound}, ShapedArray((), x.aval.dtype))
    params = {"shape": x.shape, "broadcast_dimensions": ()}
    return g.add(kind, (x, g.add("broadcast_in_dim", (one,), params, x.aval)), {}, x.aval)


def folded(g: GraphBuilder, x: Node, axis: int, kind: str) -> Node:
    """A fold over one axis; over more than `CHUNK` elements the folds of its chunks are folded.

    before: reduce_sum[axes=(0,)] x:f32[100000]
    after:  reduce_sum[axes=(0,)] (reduce_chunks[axes=(0,) kind=sum] x):f32[7]"""
    before, behind = x.shape[:axis], x.shape[axis + 1 :]
    params = {"axes": (axis,), "kind": kind}
    while may_exceed(x.shape[axis], CHUNK):
        chunks = (*before, -(-x.shape[axis] // CHUNK), *behind)
        x = g.add("reduce_chunks", (x,), params, with_shape(x.aval, chunks))
    return g.add(f"reduce_{kind}", (x,), {"axes": (axis,)}, with_shape(x.aval, (*before, *behind)))


def folded_in_order(
    g: GraphBuilder, x: Node, axes: Sequence[int], kind: str, out: ShapedArray
) -> Node:
    """The greatest or least complex number, one after the other: which one it is beside NaN depends
    on the order."""
    others = [d for d in range(x.aval.ndim) if d not in axes]
    order = (*others, *axes)
    if order != tuple(range(x.aval.ndim)):
        turned = with_shape(x.aval, [x.shape[d] for d in order])
        x = g.add("transpose", (x,), {"permutation": order}, turned)
    n = len(others)
    x = reshape(g, x, (*x.shape[:n], product(x.shape[n:])))
    return g.add(f"reduce_{kind}", (x,), {"axes": (n,)}, out)


def size_node(g: GraphBuilder, n: Any, dtype: np.dtype) -> Node:
    """A size as a scalar."""
    if type(n) is Dim:
        return g.add("size_value", (), {"dim": n}, ShapedArray((), dtype))
    return g.add("literal", (), {"value": np.asarray(n).astype(dtype)[()]}, ShapedArray((), dtype))


def widened(g: GraphBuilder, x: Node, sums: bool) -> Node:
    """Types that expressions hold as bits, and halves when they are summed, are reduced in a wider
    type."""
    dtype = x.aval.dtype
    if x.dtype not in DTYPES and x.dtype not in REAL_PART:
        return convert(g, x, np.dtype("int32") if "int" in x.dtype else F32)
    return convert(g, x, F32) if sums and (dtype == np.float16 or x.dtype == "bf16") else x


def small(n: Node) -> bool:
    """Is this a reduction short enough to be an expression?"""
    return n.op in FOLD_OF and surely_at_most(n.args[0].shape[n.params["axes"][0]], BAKED)


def reduce_element(low: Lower, n: Node, idx: Index) -> ElementSteps:
    """A short reduction, unrolled: the tree of halves that the vector loop would make of it; what a
    loop folds turn by turn (`accumulate`) goes so here, too."""
    x, (axis,), kind = n.args[0], n.params["axes"], FOLD_OF[n.op]
    values = []
    for k in range(x.shape[axis]):
        values.append((yield x, (*idx[:axis], const(k), *idx[axis:])))
    if not values:
        return low.constant(identity_of(kind, n), n.dtype)
    if kind != "sum" and isinstance(values[0], Cx):
        start = complex_identity(kind, values[0].re.dtype)
        return reduce(partial(combine, kind), values, start)
    if kind == "sum" and any([is_product(v) for v in values]):
        # each meets zero first, as in a loop, so that no two are fused with each other
        return tree(kind, [started(kind, v, n) for v in values])
    return started(kind, tree(kind, values), n)


def is_product(v: Value) -> bool:
    """Might an addition be fused with it?"""
    if isinstance(v, Cx):
        return is_product(v.re) or is_product(v.im)
    return v.op in ("mul", "neg")


def tree(kind: str, values: list[Value]) -> Value:
    """Halves upon halves of (at most 16) values, as if filled up with the identity."""
    width = 1 << (len(values) - 1).bit_length()
    while len(values) > 1:
        width //= 2
        low, high = values[:width], values[width:]
        values = [combine(kind, a, b) for a, b in zip(low, high)] + low[len(high) :]
    return values[0]


def combine(kind: str, a: Value, b: Value) -> Value:
    if isinstance(a, Cx):
        if kind == "sum":
            return Cx(ex("add", a.re, b.re), ex("add", a.im, b.im))
        if kind == "prod":
            re = ex("sub", ex("mul", a.re, b.re), ex("mul", a.im, b.im))
            return Cx(re, ex("add", ex("mul", a.re, b.im), ex("mul", a.im, b.re)))
        return choose(before(a, b, "gt" if kind == "max" else "lt"), a, b)
    op = BINARY[kind]
    if a.dtype == "i1":
        op = {"max": "or", "min": "and", "add": "or", "mul": "and"}.get(op, op)
    return ex(op, a, b)


def complex_identity(kind: str, part: str) -> Cx:
    """What a product, or the greatest or the least of numbers starts from."""
    start = {"prod": 1.0, "max": -math.inf, "min": math.inf}[kind]
    return Cx(const(start, part), const(0.0, part))


def started(kind: str, v: Value, n: Node) -> Value:
    """A sum starts from 0.0: only -0.0 notices."""
    if kind != "sum" or not (n.dtype in ("c64", "c128") or is_float(n.dtype)):
        return v
    if isinstance(v, Cx):
        return Cx(started(kind, v.re, n), started(kind, v.im, n))
    return ex("add", v, const_bits(0, v.dtype))


def identity_of(kind: str, n: Node) -> Any:
    """What an empty reduction gives."""
    dtype = n.aval.dtype
    if kind in ("sum", "or", "xor"):
        return np.zeros((), dtype)[()]
    if kind == "prod":
        return np.ones((), dtype)[()]
    if kind == "and":
        return np.invert(np.zeros((), dtype))[()]
    if dtype.kind == "b":
        return np.asarray(kind == "min")[()]
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.asarray(info.min if kind == "max" else info.max).astype(dtype)[()]
    return np.asarray(-np.inf if kind == "max" else np.inf).astype(dtype)[()]


def expand_arg(kind: str) -> Callable[..., list[Node]]:
    """argmax -> the maximum, then the least index that has it; a nan counts as greater than
    everything.

    before: argmax[axes=(1,)] x
    after:  reduce_min[axes=(1,)] (select (x == max(x) or x != x) iota (largest))"""

    def expand(
        g: GraphBuilder, args: Sequence[Node], params: dict[str, Any], avals: Sequence[Any]
    ) -> list[Node]:
        x, (axis,), index = args[0], params["axes"], np.dtype(params["index_dtype"])
        axis %= len(x.shape)
        x = convert(g, x, np.dtype("int8")) if x.dtype == "i1" else widened(g, x, False)
        flags = with_shape(x.aval, x.shape, np.dtype(bool))
        best = g.add(f"reduce_{kind}", (x,), {"axes": (axis,)}, with_shape(x.aval, avals[0].shape))
        others = tuple(d for d in range(len(x.shape)) if d != axis)
        spread = g.add(
            "broadcast_in_dim", (best,), {"shape": x.shape, "broadcast_dimensions": others}, x.aval
        )
        hit = g.add("eq", (x, spread), {}, flags)
        if x.aval.dtype.kind not in "iu":
            hit = g.add("or", (hit, g.add("ne", (x, x), {}, flags)), {}, flags)
        indices = with_shape(x.aval, x.shape, index)
        i = g.add("iota", (), {"dimension": axis, "dtype": index, "shape": x.shape}, indices)
        none = size_node(g, larger(x.shape[axis] - 1, 0), index)
        none = g.add(
            "broadcast_in_dim", (none,), {"shape": x.shape, "broadcast_dimensions": ()}, indices
        )
        candidates = g.add("select_n", (hit, none, i), {}, indices)
        return [
            g.add(
                "reduce_min", (candidates,), {"axes": (axis,)}, ShapedArray(avals[0].shape, index)
            )
        ]

    return expand


for _name, _kind in FOLD_OF.items():
    EXPANSIONS[_name] = expand_reduce(_kind)
    RULES[_name] = reduce_element
EXPANSIONS["argmax"] = expand_arg("max")
EXPANSIONS["argmin"] = expand_arg("min")


def logaddexp(a: Expr, b: Expr) -> Expr:
    """log(exp(a) + exp(b)), as cumlogsumexp combines."""
    top = ex("max", a, b)
    gap = ex("sub", a, b)
    soft = ex("add", top, ex("log1p", ex("exp", ex("neg", ex("abs", gap)))))
    return ex("select", ex("ne", gap, gap), ex("add", a, b), soft)
