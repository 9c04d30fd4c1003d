"""Loops whose whole state is a few scalars: one native loop with everything in registers, small arrays taken apart into their elements."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

from calque.core.dims import Dim, hint_of, surely_at_most
from calque.native.control_loops import LoopParts
from calque.native.elements import Cx
from calque.native.expr import Expr, const, ref, walk
from calque.native.loops import Body, Loop, State, Statement, Store
from calque.native.lower import Index, Lower, Value, View
from calque.native.lower_graph import REAL_PART, Node, reachable
from calque.native.lower_stages import MAKERS, parts_of
from calque.native.plan import Block, Planner
from calque.native.plan_roots import is_small
from calque.native.plan_steps import Call, Step

MOST_ELEMENTS: Final = 48  # carried, and stacked in one round
LARGEST: Final = 8
MOST_NODES: Final = 4000
EXPRESSION: Final = frozenset(("dynamic_update_slice",))  # stages that are expressions as well


def inline(p: Planner, n: Node) -> bool:
    """Can this node be an expression of scalars?"""
    if p.is_barrier(n):
        return False
    return n.op not in MAKERS or n.op in EXPRESSION or is_small(n)


def elements(shape: Sequence[int]) -> Iterator[Index]:
    """All indices of a small array."""
    return (tuple(map(const, i)) for i in itertools.product(*map(range, shape)))


def suits(p: Planner, loop: LoopParts) -> bool:
    outputs = [*loop.next, *loop.stacked]
    if not all(surely_at_most(c.aval.size, LARGEST) for c in loop.carries):  # long enough for a vector
        return False
    if (
        sum(c.aval.size for c in loop.carries) > MOST_ELEMENTS
        or sum(hint_of(y.aval.size) for y in loop.stacked) > MOST_ELEMENTS
    ):
        return False
    if loop.test is not None:
        outputs += loop.test.outputs
    inner = reachable(outputs)
    if any(
        n.aval is not None and type(n.aval.size) is Dim and n not in p.view and n.op not in ("input", "const")
        for n in inner
    ):
        return False  # its elements cannot be listed
    work = sum(max(hint_of(n.aval.size), 1) for n in inner if n.aval is not None)
    return work <= MOST_NODES and all(n in p.view or inline(p, n) for n in inner)


def scalar_loop(p: Planner, loop: LoopParts, block: Block) -> list[Step] | None:
    """before: scan over c:f32[3]      after: loop with c.0, c.1, c.2 in registers; what is stacked is stored element by element"""
    if not suits(p, loop):
        return None
    states, results = carried(p, loop)
    if states is None:
        return None
    test = p.at(loop.test.outputs[0], ()) if loop.test is not None else None
    body: list[Statement] = []
    for k, y in enumerate(loop.stacked):
        get = loop.gets.get(len(loop.carries) + k)
        if get is not None:
            home = p.view[get] = block.targets.get(get) or View(p.temporary(get))
            body += [s for idx in elements(y.shape) for s in store(home, (loop.at, *idx), p.at(y, idx))]
    var = loop.t if loop.length is not None else None
    kernel: list[Statement] = [Loop(tuple(states), tuple(body), var, test)]
    for i, get in loop.gets.items():
        if i < len(loop.carries):
            home = p.view[get] = block.targets.get(get) or View(p.temporary(get))
            kernel += [s for idx, v in results[i] for s in store(home, idx, v)]
    if size(tuple(kernel)) > MOST_NODES:
        for get in loop.gets.values():
            p.view.pop(get, None)
        return None
    return [Call(p.kernel(tuple(kernel)))]


Results = list[list[tuple[Index, Value]]]


def carried(p: Planner, loop: LoopParts) -> tuple[list[State], Results]:
    """A state per scalar of every carry; and the carries in terms of them."""
    results: Results = []
    tag = loop.t.attr[0]
    for i, c in enumerate(loop.carries):
        row = []
        for k, idx in enumerate(elements(c.shape)):
            v = symbol(f"c{tag}.{i}.{k}", c.dtype)
            row.append((idx, v))
            p.memo[c, idx] = v
            if loop.test is not None:
                p.memo[loop.test_carries[i], idx] = v
        results.append(row)
    states = []
    for i, row in enumerate(results):
        for idx, v in row:
            first, then = p.at(loop.init[i], idx), p.at(loop.next[i], idx)
            states += [State(str(s.attr[0]), a, b) for s, a, b in zip(pieces(v), pieces(first), pieces(then))]
    return states, results


def symbol(name: str, dtype: str) -> Value:
    """A scalar (or a pair) known by name."""
    real = REAL_PART.get(dtype)
    if real is not None:
        return Cx(ref(f"{name}.re", real), ref(f"{name}.im", real))
    return ref(name, Lower.expression_dtype(dtype))


def pieces(v: Value) -> list[Expr]:
    return [v.re, v.im] if isinstance(v, Cx) else [v]


def store(home: View, idx: Index, v: Value) -> list[Store]:
    return [Store(home.buf, (*home.prefix, *idx, *suffix), e) for suffix, e in parts_of(v)]


def size(body: Body) -> int:
    """Distinct nodes in a loop."""
    seen: set[Expr] = set()
    count = 0
    for s in body:
        roots = [s.value, *s.idx] if isinstance(s, Store) else []
        if isinstance(s, Loop):
            roots = [e for st in s.states for e in (st.init, st.next)]
            roots += [x.value for x in s.body if isinstance(x, Store)]
        for e in roots:
            for _ in walk(e, seen):
                count += 1
    return count
