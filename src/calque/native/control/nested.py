"""Loops in registers: a loop whose whole state is a few scalars is one native loop, with the loops
and choices inside it.

Small arrays are taken apart into their elements. A scan without carries (the lanes of a vmap that
go each another way) is a loop over independent elements: it may be a vector, whose lanes part and
meet, and be shared out among threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from calque.core.dims import Dim
from calque.native.control.checks import late_checks
from calque.native.control.loops import LoopParts, NotPointwiseError, alias, bind, loop_parts
from calque.native.control.scalar import (
    Results,
    carried,
    elements,
    inline,
    pieces,
    states_of,
    store,
    symbol,
)
from calque.native.loops.tree import For, If, Out, Recurrence, Statement
from calque.native.lower.cost import body_size
from calque.native.lower.graph import Node, reachable
from calque.native.lower.rules import Value, View
from calque.native.plan.blocks import CodeBlock, Planner
from calque.native.plan.steps import Nest, Step
from calque.native.scalars.expr import Expr, const, ex

MOST_ELEMENTS: Final = 48  # carried, and stacked in one round
LARGEST: Final = 8
MOST_NODES: Final = 4000
NESTED: Final = frozenset(("scan", "while", "cond"))


def scalar_loop(p: Planner, loop: LoopParts, block: CodeBlock) -> list[Step] | None:
    """before: scan over c:f32[3]      after: loop with c.0, c.1, c.2 in registers; what is stacked
    is stored element by element"""
    if not few(loop.stacked):
        return None
    body, results = loop_statement(p, loop)
    homes = {i: block.targets.get(get) or View(p.temporary(get)) for i, get in loop.gets.items()}
    stores = stacks(p, loop, homes)
    last = [
        s
        for i in loop.gets
        if i < len(loop.carries)
        for idx, v in results[i]
        for s in store(homes[i], idx, v)
    ]
    rounds = Recurrence(body.states, (*body.body, *stores), body.var, body.cond, body.test)
    rounds, after = late_checks(rounds, tuple(last))
    return finished(p, loop, [rounds, *after], homes)


def few(nodes: Sequence[Node]) -> bool:
    """Can their elements be names?"""
    return (
        all(type(n.aval.size) is int for n in nodes)
        and sum(n.aval.size for n in nodes) <= MOST_ELEMENTS
    )


def lanes_loop(p: Planner, loop: LoopParts, block: CodeBlock) -> list[Step] | None:
    """before: scan without carries: y[t] = while(x[t])      after: for t: loop with c = x[t]: ...;
    y[t] = c"""
    if loop.carries or loop.var is None or not few(loop.stacked):
        return None
    body = nested(p, loop.stacked)
    homes = {i: block.targets.get(get) or View(p.temporary(get)) for i, get in loop.gets.items()}
    return finished(p, loop, [For(loop.t, (*body, *stacks(p, loop, homes)))], homes)


def stacks(p: Planner, loop: LoopParts, homes: dict[int, View]) -> list[Statement]:
    """What one round adds to the stacked results."""
    first = len(loop.carries)
    out: list[Statement] = []
    for i in homes:
        if i >= first:
            y = loop.stacked[i - first]
            out += [
                s
                for idx in elements(y.shape)
                for s in store(homes[i], (loop.at, *idx), p.at(y, idx))
            ]
    return out


def finished(
    p: Planner, loop: LoopParts, kernel: list[Statement], homes: dict[int, View]
) -> list[Step] | None:
    if body_size(tuple(kernel)) > MOST_NODES:
        return None
    for i, get in loop.gets.items():
        p.view[get] = homes[i]
    return [Nest(tuple(kernel))]


# --- statements of nested control -----------------------------------------------------------------


def nested(p: Planner, outputs: Sequence[Node]) -> list[Statement]:
    """The statements that loops and choices need before these outputs are expressions; afterwards
    their results are known."""
    order = [n for n in reachable(outputs, p.view) if n not in p.view]
    if any(
        type(n.aval.size) is Dim for n in order if n.aval is not None
    ):  # its elements cannot be listed
        raise NotPointwiseError
    work = sum(max(n.aval.size, 1) for n in order if n.aval is not None)
    if work > MOST_NODES or not all(n.op in NESTED or inline(p, n) for n in order):
        raise NotPointwiseError
    out: list[Statement] = []
    for n in order:
        if n.op == "cond":
            out += choice(p, n, order)
        elif n.op in NESTED:
            p.depth += 1
            loop = loop_parts(p, n, order, f"t{p.depth}.{n.id}")
            if loop.count is not None or any(
                i >= len(loop.carries) for i in loop.gets
            ):  # what lies in memory
                raise NotPointwiseError
            statement, results = loop_statement(p, loop)
            out.append(statement)
            for i, get in loop.gets.items():
                for idx, v in results[i]:
                    p.memo[get, idx] = v
    return out


def loop_statement(p: Planner, loop: LoopParts) -> tuple[Recurrence, Results]:
    """A loop with everything in registers, and the carries after it."""
    if not few(loop.carries) or any(
        c.aval.size > LARGEST for c in loop.carries
    ):  # long enough for a vector
        raise NotPointwiseError
    results = carried(p, loop)
    cond: Expr | None = None
    test: list[Statement] = []
    if loop.test is not None:
        test = nested(p, loop.test.outputs)
        cond = p.at(loop.test.outputs[0], ())
    body = nested(p, [*loop.next, *loop.stacked])
    states = states_of(p, loop, results)
    return Recurrence(tuple(states), tuple(body), loop.var, cond, tuple(test)), results


def choice(p: Planner, n: Node, order: Sequence[Node]) -> list[Statement]:
    """before: y = cond[branches=(f, g, h)] i x      after: if i < 1: y.0 = f(x) else: (if i < 2:
    y.1 = g(x) else: y.1 = h(x)); y.0 = y.1"""
    p.depth += 1
    index: Expr = p.at(n.args[0], ())
    gets = [m for m in order if m.op == "get" and m.args[0] is n]
    wanted = [(get, idx) for get in gets for idx in elements(get.shape)]
    sides: list[tuple[list[Statement], list[Value]]] = []
    for branch in n.params["branches"]:
        g = bind(p, branch, "")
        alias(p, g.inputs, n.args[1:], ())
        body = nested(p, [g.outputs[get.params["index"]] for get in gets])
        sides.append((body, [p.at(g.outputs[get.params["index"]], idx) for get, idx in wanted]))
    body, values = sides[-1]
    for k in reversed(range(len(sides) - 1)):
        names = [
            symbol(f"y{p.depth}.{n.id}.{k}.{j}", get.dtype) for j, (get, _) in enumerate(wanted)
        ]
        body = [either(ex("lt", index, const(k + 1, index.dtype)), sides[k], (body, values), names)]
        values = names
    for key, v in zip(wanted, values):
        p.memo[key] = v
    return body


def either(
    cond: Expr,
    then: tuple[list[Statement], list[Value]],
    orelse: tuple[list[Statement], list[Value]],
    names: Sequence[Value],
) -> If:
    outs = [
        Out(str(name.attr[0]), a, b)
        for v, x, y in zip(names, then[1], orelse[1])
        for name, a, b in zip(pieces(v), pieces(x), pieces(y))
    ]
    return If(cond, tuple(then[0]), tuple(orelse[0]), tuple(outs))
