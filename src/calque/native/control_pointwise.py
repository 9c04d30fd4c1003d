"""Loops whose body is pointwise in all that it carries commute with the loops over elements: elements outside, rounds inside, in registers."""

from __future__ import annotations

from collections.abc import Sequence

from calque.native.control_loops import LoopParts, NotPointwiseError
from calque.native.control_scalar import inline, pieces, size, store, symbol
from calque.native.expr import Expr
from calque.native.loops import Body, For, Loop, State, Statement
from calque.native.lower import Index, Value, View
from calque.native.lower_graph import reachable
from calque.native.lower_stages import loops_of
from calque.native.plan import Block, Planner
from calque.native.plan_steps import Call, Step

MOST_STATES = 12
MOST_NODES = 600


def pointwise_loop(p: Planner, loop: LoopParts, block: Block) -> list[Step] | None:
    """before: loop: for i: z[i] = f(z[i], n)      after: for i: loop with z in a register: z = f(z, n); z'[i] = z

    Carries are arrays of one shape, and scalars (such as the counter of a fori loop) that depend on scalars only."""
    shape = common_shape(p, loop)
    if shape is None:
        return None
    scalars = [i for i, c in enumerate(loop.carries) if not c.shape]
    arrays = [i for i, c in enumerate(loop.carries) if c.shape]
    dims, idx = loops_of(p, shape)
    guard = Guard(p, loop, idx)
    try:
        wanted_scalars = [i for i in scalars if i in loop.gets]
        inner = states_of(p, loop, scalars, ()) + states_of(p, loop, arrays, idx)
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
    finally:
        guard.release()
    rounds = Loop(tuple(inner), tuple(body), loop.var, test)
    if size((rounds,)) > MOST_NODES or len(inner) > MOST_STATES:
        return None
    after = [s for i in arrays if i in loop.gets for s in store(homes[i], idx, guard.values[i])]
    for i, g in loop.gets.items():
        p.view[g] = homes[i]
    steps: list[Step] = [Call(p.kernel(nested(dims, (rounds, *after))))] if after or body else []
    if wanted_scalars:
        only = Loop(tuple(s for s in inner if s.name in guard.scalar_names(scalars)), (), loop.var, test)
        stores = [s for i in wanted_scalars for s in store(homes[i], (), guard.values[i])]
        steps.append(Call(p.kernel((only, *stores))))
    return steps


def nested(dims: Sequence[Expr], body: Body) -> Body:
    for v in reversed(dims):
        body = (For(v, body),)
    return body


def common_shape(p: Planner, loop: LoopParts) -> tuple[int, ...] | None:
    """The one shape of all array carries, when the body has nothing but expressions."""
    shapes = {c.shape for c in loop.carries if c.shape}
    if len(shapes) != 1:
        return None
    (shape,) = shapes
    outputs = [*loop.next, *loop.stacked, *(loop.test.outputs if loop.test is not None else ())]
    if any(y.shape != shape for y in loop.stacked):
        return None
    return shape if all(n in p.view or inline(p, n) for n in reachable(outputs)) else None


class Guard:
    """The carries of a loop as states, readable at their own element only."""

    def __init__(self, p: Planner, loop: LoopParts, idx: Index) -> None:
        self.p, self.loop = p, loop
        self.values: dict[int, Value] = {}
        self.nodes = set(loop.carries) | set(loop.test_carries if loop.test is not None else ())
        tag = loop.t.attr[0]
        for i, c in enumerate(loop.carries):
            v = self.values[i] = symbol(f"c{tag}.{i}", c.dtype)
            p.memo[c, idx if c.shape else ()] = v
            if loop.test is not None and not c.shape:
                p.memo[loop.test_carries[i], ()] = v
        p.in_registers |= self.nodes

    def release(self) -> None:
        self.p.in_registers -= self.nodes

    def scalar_names(self, scalars: Sequence[int]) -> set[str]:
        return {str(e.attr[0]) for i in scalars for e in pieces(self.values[i])}

    def mixed(self, scalars: Sequence[int]) -> bool:
        """Does a scalar carry depend on the elements of an array?"""
        names = self.scalar_names(scalars)
        others = {str(e.attr[0]) for i, v in self.values.items() if i not in scalars for e in pieces(v)}
        for i in scalars:
            for e in pieces(self.p.at(self.loop.next[i], ())):
                if not others.isdisjoint(e.names):
                    return True
        return not names.isdisjoint(others)


def states_of(p: Planner, loop: LoopParts, which: Sequence[int], idx: Index) -> list[State]:
    out = []
    for i in which:
        tag = f"c{loop.t.attr[0]}.{i}"
        names = [str(e.attr[0]) for e in pieces(symbol(tag, loop.carries[i].dtype))]
        first, then = pieces(p.at(loop.init[i], idx)), pieces(p.at(loop.next[i], idx))
        out += [State(n, a, b) for n, a, b in zip(names, first, then)]
    return out
