"""Loops whose body is pointwise in all that it carries commute with the loops over elements:
elements outside, rounds inside, in registers."""

from __future__ import annotations

from collections.abc import Container, Sequence

from calque.core.dims import hint_of
from calque.native.control.checks import late_checks
from calque.native.control.in_place import chain
from calque.native.control.loops import LoopParts, NotPointwiseError
from calque.native.control.scalar import inline, pieces, store, symbol
from calque.native.loops.tree import Body, For, LoopValue, Recurrence, Statement, Store
from calque.native.lower.cost import body_size
from calque.native.lower.graph import Node, reachable
from calque.native.lower.rules import Index, Value, View
from calque.native.lower.stages import loops_of
from calque.native.plan.blocks import CodeBlock, Planner
from calque.native.plan.steps import Nest, Step
from calque.native.scalars.expr import FALSE, TRUE, Expr, ex, ref

WORTH = 16  # elements for each one that an update writes: then a round is to cost the update
MOST_STATES = 12
MOST_NODES = 600


def pointwise_loop(p: Planner, loop: LoopParts, block: CodeBlock) -> list[Step] | None:
    """before: loop: for i: z[i] = f(z[i], n)      after: for i: loop with z in a register: z = f(z,
    n); z'[i] = z

    Carries are arrays of one shape, scalars (such as the counter of a fori loop) that depend on
    scalars only, and cells that are marked where an element fails a test: each element keeps its
    own."""
    marks = marked_carries(loop)
    shape = common_shape(p, loop, marks)
    if shape is None or only_updated(p, loop):
        return None
    scalars = [i for i, c in enumerate(loop.carries) if not c.shape and i not in marks]
    arrays = [i for i, c in enumerate(loop.carries) if c.shape]
    dims, idx = loops_of(p, shape)
    guard = PointwiseCarries(p, loop, idx, marks)
    try:
        wanted_scalars = [i for i in scalars if i in loop.gets]
        inner = states_of(p, loop, scalars, ()) + states_of(p, loop, arrays, idx)
        inner += [mark_state(p, loop, i, tests, idx) for i, tests in marks.items()]
        if guard.mixed(scalars):
            return None
        test = p.at(loop.test.outputs[0], ()) if loop.test is not None else None
        homes = {i: block.targets.get(g) or View(p.temporary(g)) for i, g in loop.gets.items()}
        body: list[Statement] = []
        for k, y in enumerate(loop.stacked):
            home = homes.get(len(loop.carries) + k)
            if home is not None:
                body += store(home, (loop.at, *idx), p.at(y, idx))
    except NotPointwiseError:
        return None
    rounds = Recurrence(tuple(inner), tuple(body), loop.var, test)
    if body_size((rounds,)) > MOST_NODES or len(inner) > MOST_STATES:
        return None
    after = [s for i in arrays if i in loop.gets for s in store(homes[i], idx, guard.values[i])]
    wanted_marks = [i for i in marks if i in loop.gets]
    after += [
        Store(homes[i].buf, homes[i].prefix, TRUE, ref(mark_name(loop, i), "i1"))
        for i in wanted_marks
    ]
    for i, g in loop.gets.items():
        p.view[g] = homes[i]
    first = [s for i in wanted_marks for s in store(homes[i], (), p.at(loop.init[i], ()))]
    steps: list[Step] = [Nest(tuple(first))] if first else []
    if after or body:
        rounds, last = late_checks(rounds, tuple(after))
        steps.append(Nest(nested(dims, (rounds, *last))))
    if wanted_scalars:
        only = Recurrence(
            tuple(s for s in inner if s.name in guard.scalar_names(scalars)), (), loop.var, test
        )
        stores = [s for i in wanted_scalars for s in store(homes[i], (), guard.values[i])]
        steps.append(Nest((only, *stores)))
    return steps


def nested(dims: Sequence[Expr], body: Body) -> Body:
    for v in reversed(dims):
        body = (For(v, body),)
    return body


def marked_carries(loop: LoopParts) -> dict[int, list[Node]]:
    """The carries of a counted loop that are marked in every round, and what they are marked by."""
    out: dict[int, list[Node]] = {}
    for i, (c, n) in enumerate(zip(loop.carries, loop.next)):
        tests = []
        while n.op == "mark":
            tests.append(n.args[1])
            n = n.args[0]
        if tests and n is c and loop.test is None:
            out[i] = tests
    return out


def only_updated(p: Planner, loop: LoopParts) -> bool:
    """Are all arrays that change changed in a few places only? A round in memory writes those, a
    round in registers would look at every element."""
    changing = [
        (c, n) for c, n in zip(loop.carries, loop.next) if c.shape and c is not n and n.op != "mark"
    ]
    return bool(changing) and not loop.stacked and all(writes_little(p, c, n) for c, n in changing)


def writes_little(p: Planner, before: Node, after: Node) -> bool:
    links = chain(p, after, before)
    if not links or any(n.op != "dynamic_update_slice" for n in links):
        return False
    written = sum([hint_of(n.args[1].aval.size) for n in links])
    return WORTH * written <= hint_of(before.aval.size)


def mark_name(loop: LoopParts, i: int) -> str:
    return f"c{loop.t.attr[0]}.{i}"


def mark_state(p: Planner, loop: LoopParts, i: int, tests: Sequence[Node], idx: Index) -> LoopValue:
    """Has this element ever failed?"""
    failed = ref(mark_name(loop, i), "i1")
    now: Expr = failed
    for x in tests:
        now = ex("or", now, p.at(x, idx))
    return LoopValue(mark_name(loop, i), FALSE, now)


def common_shape(
    p: Planner, loop: LoopParts, marks: dict[int, list[Node]]
) -> tuple[int, ...] | None:
    """The one shape of all array carries, when the body has nothing but expressions."""
    shapes = {c.shape for c in loop.carries if c.shape} | {
        x.shape for xs in marks.values() for x in xs
    }
    if len(shapes) != 1:
        return None
    (shape,) = shapes
    outputs = [n for i, n in enumerate(loop.next) if i not in marks] + [
        x for xs in marks.values() for x in xs
    ]
    outputs += [*loop.stacked, *(loop.test.outputs if loop.test is not None else ())]
    if any(y.shape != shape for y in loop.stacked):
        return None
    return shape if all(n in p.view or inline(p, n) for n in reachable(outputs)) else None


class PointwiseCarries:
    """The carries of a loop as states, readable at their own element only."""

    def __init__(self, p: Planner, loop: LoopParts, idx: Index, marks: Container[int]) -> None:
        self.p, self.loop = p, loop
        self.values: dict[int, Value] = {}
        self.nodes = set(loop.carries) | set(loop.test_carries if loop.test is not None else ())
        tag = loop.t.attr[0]
        for i, c in enumerate(loop.carries):
            if i in marks:
                continue
            v = self.values[i] = symbol(f"c{tag}.{i}", c.dtype)
            p.memo[c, idx if c.shape else ()] = v
            if loop.test is not None and not c.shape:
                p.memo[loop.test_carries[i], ()] = v
        p.in_registers |= self.nodes

    def scalar_names(self, scalars: Sequence[int]) -> set[str]:
        return {str(e.attr[0]) for i in scalars for e in pieces(self.values[i])}

    def mixed(self, scalars: Sequence[int]) -> bool:
        """Does a scalar carry depend on the elements of an array?"""
        names = self.scalar_names(scalars)
        others = {
            str(e.attr[0]) for i, v in self.values.items() if i not in scalars for e in pieces(v)
        }
        for i in scalars:
            for e in pieces(self.p.at(self.loop.next[i], ())):
                if not others.isdisjoint(e.names):
                    return True
        return not names.isdisjoint(others)


def states_of(p: Planner, loop: LoopParts, which: Sequence[int], idx: Index) -> list[LoopValue]:
    out = []
    for i in which:
        tag = f"c{loop.t.attr[0]}.{i}"
        names = [str(e.attr[0]) for e in pieces(symbol(tag, loop.carries[i].dtype))]
        first, then = pieces(p.at(loop.init[i], idx)), pieces(p.at(loop.next[i], idx))
        out += [LoopValue(n, a, b) for n, a, b in zip(names, first, then)]
    return out
