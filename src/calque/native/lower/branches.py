"""Branches so small that both are computed and one is chosen: no jump, and loops stay in
registers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.jaxprs import ClosedJaxpr, has_effects
from calque.native.lower.cost import primitive_weight
from calque.native.lower.graph import EXPANSIONS, GraphBuilder, Node, extend
from calque.native.passes.pipeline import run as run_passes
from calque.native.scalars import elements

MOST_WORK: Final = 60  # of all branches together, by weight
MOST_ELEMENTS: Final = 64
LAYOUT: Final = frozenset(
    ["broadcast_in_dim", "reshape", "squeeze", "transpose", "slice", "expand_dims"]
)


def expand_cond(
    g: GraphBuilder, args: Sequence[Node], params: dict[str, Any], avals: Sequence[Any]
) -> list[Node] | None:
    """before: y = cond[branches=({ a. mul a 2 }, { a. add a 1 })] i x
    after:  y = select_n (i > 0) (mul x 2) (add x 1)"""
    branches = [run_passes(b) for b in params["branches"]]
    if any(has_effects(b.jaxpr) for b in branches):
        return None
    if any(a.size > MOST_ELEMENTS for a in avals) or sum(map(work, branches)) > MOST_WORK:
        return None
    index, operands = args[0], args[1:]
    if index.shape:
        return None
    cases = [extend(g, b.jaxpr, operands) for b in branches]
    out = cases[0]
    flag = ShapedArray((), np.dtype(bool))
    for k, case in enumerate(cases[1:], 1):
        limit = g.add(
            "literal",
            (),
            {"value": np.asarray(k).astype(index.aval.dtype)},
            ShapedArray((), index.aval.dtype),
        )
        chosen = g.add("ge", (index, limit), {}, flag) if index.dtype != "i1" else index
        out = [
            a if a is b else g.add("select_n", (chosen, a, b), {}, aval)
            for a, b, aval in zip(out, case, avals)
        ]
    return out


def work(b: ClosedJaxpr) -> float:
    """What a branch costs; infinitely much when it is more than a few elementwise operations."""
    total = 0.0
    for e in b.jaxpr.eqns:
        name = e.primitive.name
        plain = elements.supports(name) or name in LAYOUT
        if not plain or any(v.aval.size > MOST_ELEMENTS for v in e.outvars):
            return float("inf")
        total += primitive_weight(name)
    return total if not b.consts else float("inf")


EXPANSIONS["cond"] = expand_cond
