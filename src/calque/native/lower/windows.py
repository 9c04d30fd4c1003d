"""Selection in windows: the derivatives of maximum and minimum over windows.

First the position of each window's greatest (least) element is found; then an element of the result
asks the windows it lies in (select_and_scatter_add), or a window reads the element that it selects
(select_and_gather_add)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Final

import numpy as np

from calque.core.avals import ShapedArray
from calque.native.lower.dot import count, spread
from calque.native.lower.graph import EXPANSIONS, GraphBuilder, Node
from calque.native.lower.layout import choose, guarded
from calque.native.lower.reductions import expand_reduce, identity_of, reshape, with_shape
from calque.native.lower.renamed import filled
from calque.native.lower.rules import RULES, ElementSteps, Index, Lower, View
from calque.native.lower.stages import MAKERS, Stage, loops_of, parts_of, sum_in_order
from calque.native.scalars.expr import DTYPES, TRUE, ZERO, Expr, both, cast, const, ex
from calque.ops.padding import dilated

Params = dict[str, Any]
TERMS: Final = (
    9  # where windows that overlap have so many elements at most, each is a term of an expression
)
PLACE: Final = np.dtype("int32")
FLAG: Final = np.dtype("bool")


class Windows:
    """The windows of one equation."""

    def __init__(self, g: GraphBuilder, x: Node, p: Params, counts: Sequence[int]) -> None:
        ones = (1,) * len(x.shape)
        self.g, self.x, self.counts = g, x, tuple(counts)
        self.kind = {"ge": "max", "le": "min"}[p["select_prim"].name]
        self.size: tuple[int, ...] = tuple(p["window_dimensions"])
        self.stride: tuple[int, ...] = tuple(p["window_strides"])
        self.pads: tuple[tuple[int, int], ...] = tuple(tuple(pair) for pair in p["padding"])
        self.base: tuple[int, ...] = tuple(p.get("base_dilation") or ones)
        self.dilation: tuple[int, ...] = tuple(p.get("window_dilation") or ones)
        self.elements = count(self.size)

    def view(self, x: Node, fill: Any) -> Node:
        """[*windows, elements of a window]"""
        g, config, shape = self.g, [], []
        for n, (low, high), base in zip(x.shape, self.pads, self.base):
            whole = dilated(n, base)
            config.append((low, max(high, -low - whole), base - 1))
            shape.append(whole + low + config[-1][1])
        if any(c != (0, 0, 0) for c in config):
            none = g.add(
                "literal",
                (),
                {"value": np.asarray(fill).astype(x.aval.dtype)},
                with_shape(x.aval, ()),
            )
            x = g.add(
                "pad", (x, none), {"padding_config": tuple(config)}, with_shape(x.aval, shape)
            )
        for d, (n, w, s, k) in enumerate(zip(self.counts, self.size, self.stride, self.dilation)):
            shape = [*x.shape[:d], n, *x.shape[d + 1 :], w]
            x = g.add(
                "windows", (x,), {"axis": d, "stride": s, "dilation": k}, with_shape(x.aval, shape)
            )
        return reshape(g, x, (*self.counts, self.elements))

    def selected(self) -> Node:
        """The number of the first greatest (least) element of each window, nan above (below) all;
        `elements` when it has none."""
        g = self.g
        values = self.view(self.x, identity_of(self.kind, self.x))
        flags, places = (
            with_shape(values.aval, values.shape, FLAG),
            with_shape(values.aval, values.shape, PLACE),
        )
        last = len(self.counts)

        def fold(kind: str, v: Node) -> Node:
            return expand_reduce(kind)(
                g, (v,), {"axes": (last,)}, [with_shape(v.aval, self.counts)]
            )[0]

        best = spread(g, fold(self.kind, values), values.shape, range(last))
        hit = g.add("eq", (values, best), {}, flags)
        if self.x.aval.dtype.kind not in "iub":
            hit = g.add("or", (hit, g.add("ne", (values, values), {}, flags)), {}, flags)
        if any(max(pair) > 0 for pair in self.pads) or any(b > 1 for b in self.base):
            real = self.view(filled(g, True, with_shape(self.x.aval, self.x.shape, FLAG)), False)
            hit = g.add("and", (hit, real), {}, flags)
        number = g.add(
            "iota", (), {"dimension": last, "dtype": PLACE, "shape": values.shape}, places
        )
        none = filled(g, self.elements, places)
        return fold("min", g.add("select_n", (hit, none, number), {}, places))


# --- from windows to elements ---------------------------------------------------------------------


def expand_scatter(
    g: GraphBuilder, args: Sequence[Node], p: Params, avals: Sequence[Any]
) -> list[Node] | None:
    """before: select_and_scatter_add source x
    after:  each element: the source of the window it lies in where that selects it; or the sum of
    these, where windows overlap
    """
    source, x = args
    if x.dtype not in DTYPES or source.dtype not in DTYPES:
        return None
    w = Windows(g, x, p, source.shape)
    if 0 in source.shape or 0 in x.shape or not w.elements:
        return [filled(g, 0, avals[0])]
    apart = all(n == 1 or s >= k for n, s, k in zip(w.counts, w.stride, w.size))
    if apart:
        return [add(g, beside(g, w, source), filled(g, 0, avals[0]))]
    if w.elements > TERMS:
        terms = with_shape(source.aval, (*x.shape, w.elements))
        each = g.add("window_terms", (source, w.selected()), {"windows": w}, terms)
        return [g.add("window_sum", (each,), {}, avals[0])]
    return [overlapping(g, w, source, filled(g, 0, source.aval))]


def add(g: GraphBuilder, a: Node, b: Node) -> Node:
    return g.add("or" if a.dtype == "i1" else "add", (a, b), {}, a.aval)


def beside(g: GraphBuilder, w: Windows, source: Node) -> Node:
    """Windows that do not overlap: blocks [*(window, element of its block)], merged and cut to the
    array."""
    rank = range(len(w.counts))
    block = [max(k, s) if n == 1 else s for n, s, k in zip(w.counts, w.stride, w.size)]
    shape = [n for d in rank for n in (w.counts[d], block[d])]
    places, flags = (ShapedArray(tuple(shape), t) for t in (PLACE, FLAG))

    def over(v: Node) -> Node:
        return spread(g, v, shape, range(0, 2 * len(w.counts), 2))

    number: Node | None = None
    inside: Node | None = None
    for d in rank:
        i = g.add(
            "iota", (), {"dimension": 2 * d + 1, "dtype": PLACE, "shape": tuple(shape)}, places
        )
        if block[d] > w.size[d]:
            ok = g.add("lt", (i, filled(g, w.size[d], places)), {}, flags)
            inside = ok if inside is None else g.add("and", (inside, ok), {}, flags)
        if block[d] > 1:
            step = count(w.size[d + 1 :])
            i = i if step == 1 else g.add("mul", (i, filled(g, step, places)), {}, places)
            number = i if number is None else g.add("add", (number, i), {}, places)
    hit = g.add("eq", (over(w.selected()), number or filled(g, 0, places)), {}, flags)
    hit = hit if inside is None else g.add("and", (hit, inside), {}, flags)
    aval = with_shape(source.aval, shape)
    out = g.add("select_n", (hit, filled(g, 0, aval), over(source)), {}, aval)
    out = reshape(g, out, [n * b for n, b in zip(w.counts, block)])
    ends = [(-low, n + low - m, 0) for (low, _), n, m in zip(w.pads, w.x.shape, out.shape)]
    return placed(g, out, ends, w.x.shape)


def placed(
    g: GraphBuilder, x: Node, config: Sequence[tuple[int, int, int]], shape: Sequence[int]
) -> Node:
    """Zeros of a shape, with `x` in them."""
    if all(c == (0, 0, 0) for c in config):
        return x
    zero = g.add("literal", (), {"value": np.zeros((), x.aval.dtype)[()]}, with_shape(x.aval, ()))
    return g.add("pad", (x, zero), {"padding_config": tuple(config)}, with_shape(x.aval, shape))


def overlapping(g: GraphBuilder, w: Windows, source: Node, zero: Node) -> Node:
    """One term for each element of a window, the last first: so each element meets its windows in
    their order."""
    selected = w.selected()
    places, flags = (
        with_shape(source.aval, source.shape, PLACE),
        with_shape(source.aval, source.shape, FLAG),
    )
    out = filled(g, 0, with_shape(source.aval, w.x.shape))
    for number, k in reversed(list(enumerate(product(*map(range, w.size))))):
        hit = g.add("eq", (selected, filled(g, number, places)), {}, flags)
        term = g.add("select_n", (hit, zero, source), {}, source.aval)
        config = [
            (i - low, m - (i - low) - dilated(n, s), s - 1)
            for i, (low, _), m, n, s in zip(k, w.pads, w.x.shape, w.counts, w.stride)
        ]
        out = add(g, out, placed(g, term, config, w.x.shape))
    return out


def window_terms(low: Lower, n: Node, idx: Index) -> ElementSteps:
    """[*i, t]: the source of the window of which element i is the one numbered t from the last,
    where it selects that; else 0."""
    source, selected = n.args
    w: Windows = n.params["windows"]
    number = ex("sub", const(w.elements - 1), idx[-1])
    ok, at = TRUE, []
    for i, k, s, m, (before, _) in zip(idx, places_in(w, number), w.stride, w.counts, w.pads):
        first = ex("sub", ex("add", i, const(before)), k)
        j = ex("max", first, ZERO)
        ok = both(ok, both(ex("ge", first, ZERO), ex("eq", ex("mod", j, const(s)), ZERO)))
        at.append(ex("floordiv", j, const(s)))
        ok = both(ok, ex("lt", at[-1], low.sizes.dim(m)))
    which = yield selected, tuple(at)
    hit = both(ok, ex("eq", guarded(which, ok), cast(number, which.dtype)))
    value = yield source, tuple(at)
    return choose(hit, guarded(value, hit), low.constant(np.zeros((), n.aval.dtype)[()], n.dtype))


def window_sum(low: Lower, n: Node, home: View) -> list[Stage]:
    """The terms, added in their order."""
    dims, idx = loops_of(low, n.shape)
    inner, (k,) = loops_of(low, n.args[0].shape[-1:], len(dims))
    accs, result = sum_in_order(low, f"r.{home.buf.name}", low.at(n.args[0], (*idx, k)), k)
    return [Stage(home.buf, dims + inner, len(dims), home.prefix + idx, parts_of(result), accs)]


def places_in(w: Windows, number: Expr) -> list[Expr]:
    """The index inside a window of its element of this number."""
    out: list[Expr] = []
    for k in reversed(w.size):
        out.append(ZERO if k == 1 else ex("mod", number, const(k)))
        number = number if k == 1 else ex("floordiv", number, const(k))
    return out[::-1]


# --- from elements to windows ---------------------------------------------------------------------


def expand_gather(
    g: GraphBuilder, args: Sequence[Node], p: Params, avals: Sequence[Any]
) -> list[Node] | None:
    """before: select_and_gather_add values x        after: window_pick values (the place that each
    window of x selects)"""
    values, x = args
    if x.dtype not in DTYPES or values.dtype not in DTYPES:
        return None
    w = Windows(g, x, p, avals[0].shape)
    if 0 in w.counts or 0 in x.shape or not w.elements:
        return [filled(g, 0, avals[0])]
    return [g.add("window_pick", (values, w.selected()), {"windows": w}, avals[0])]


def window_pick(low: Lower, n: Node, idx: Index) -> ElementSteps:
    """The element that a window selects, 0 where it has none."""
    values, selected = n.args
    w: Windows = n.params["windows"]
    number = yield selected, idx
    ok = ex("lt", number, const(w.elements, number.dtype))
    at = []
    inside = places_in(w, cast(number, "i64"))
    for i, k, s, d, b, (before, _) in zip(idx, inside, w.stride, w.dilation, w.base, w.pads):
        j = ex("add", ex("mul", i, const(s)), ex("mul", k, const(d)))
        j = ex("sub", j, const(before)) if before else j
        at.append(j if b == 1 else ex("floordiv", j, const(b)))
    value = yield values, tuple(at)
    return choose(ok, guarded(value, ok), low.constant(np.zeros((), n.aval.dtype)[()], n.dtype))


EXPANSIONS["select_and_scatter_add"] = expand_scatter
EXPANSIONS["select_and_gather_add"] = expand_gather
RULES["window_pick"] = window_pick
RULES["window_terms"] = window_terms
MAKERS["window_sum"] = window_sum
