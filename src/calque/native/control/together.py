"""Lanes that call Python: one call for the whole batch instead of one for each lane."""

from __future__ import annotations

from typing import Final

from calque.core.jaxprs import ClosedJaxpr, subjaxprs
from calque.native.control.loops import LoopParts, alias, bind
from calque.native.lower.graph import graph_of
from calque.native.lower.rules import View
from calque.native.passes.pipeline import run as run_passes
from calque.native.plan.blocks import CodeBlock, Planner
from calque.native.plan.steps import Step
from calque.transforms.engines.axes import Axis
from calque.transforms.engines.batching import batch_jaxpr

SMALL: Final = (
    1 << 12
)  # elements of an operand for which the call, not the work, is what a host call costs
LOOPS: Final = frozenset(("scan", "while"))


def lanes_together(p: Planner, loop: LoopParts, block: CodeBlock) -> list[Step] | None:
    """before: scan without carries over lanes: y[t] = while(x[t]), with a small host call inside
    after:  one loop over all lanes until the last has ended; lanes that have keep their values"""
    params = loop.node.params
    if loop.carries or loop.length is None or type(loop.length) is not int:
        return None
    closed: ClosedJaxpr = params["jaxpr"]
    if len(closed.eqns) != 1 or not suits(p, closed):
        return None
    args = loop.node.args
    fixed = params["num_consts"]
    dims = (None,) * fixed + (0,) * (len(args) - fixed)
    batched, _ = batch_jaxpr(closed, Axis(None, loop.length, together=True), dims, True)
    g = bind(p, batched, "")
    alias(p, g.inputs, args, ())
    homes = {i: block.targets.get(get) or View(p.temporary(get)) for i, get in loop.gets.items()}
    steps = p.block(
        f"lanes of %{loop.node.id}", [(g.outputs[i], home) for i, home in homes.items()]
    )
    for i, get in loop.gets.items():
        p.view[get] = homes[i]
    return steps


def suits(p: Planner, closed: ClosedJaxpr) -> bool:
    """A loop, or a choice between branches without loops (which may be dear), with small host calls
    inside."""
    (e,) = closed.eqns
    if e.primitive.name == "cond":
        inner = [x.primitive.name for j in subjaxprs(e.params) for x in j.eqns]
        if not LOOPS.isdisjoint(inner):
            return False
    elif e.primitive.name != "while":
        return False
    return any(
        calls(p, ClosedJaxpr(j, ()) if not j.constvars else None) for j in subjaxprs(e.params)
    )


def calls(p: Planner, closed: ClosedJaxpr | None) -> bool:
    """Is there a host call on small operands, not one that the user wrote?"""
    if closed is None:
        return False
    for n in graph_of(run_passes(closed)).nodes:
        if n.op in p.emitters:
            if any(
                calls(p, ClosedJaxpr(j, ()) if not j.constvars else None)
                for j in subjaxprs(n.params)
            ):
                return True
        elif p.is_host(n) and "callback" not in n.op:
            sizes = [a.aval.size for a in n.args if a.aval is not None]
            if all(type(s) is int and s <= SMALL for s in sizes):
                return True
    return False
