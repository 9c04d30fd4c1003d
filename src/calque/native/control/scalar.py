"""Scalars for the loops that live in registers: small arrays taken apart into their elements, known
by name."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

from calque.native.control.loops import LoopParts
from calque.native.loops.tree import LoopValue, Store
from calque.native.lower.cost import is_expression
from calque.native.lower.graph import REAL_PART, Node
from calque.native.lower.rules import Index, Lower, Value, View
from calque.native.lower.stages import MAKERS, parts_of
from calque.native.plan.blocks import Planner
from calque.native.scalars.elements import Cx
from calque.native.scalars.expr import Expr, const, ref

EXPRESSION: Final = frozenset(("dynamic_update_slice",))  # stages that are expressions as well

Results = list[list[tuple[Index, Value]]]


def inline(p: Planner, n: Node) -> bool:
    """Can this node be an expression of scalars?"""
    if p.is_barrier(n):
        return False
    return n.op not in MAKERS or n.op in EXPRESSION or is_expression(n)


def elements(shape: Sequence[int]) -> Iterator[Index]:
    """All indices of a small array."""
    return (tuple(map(const, i)) for i in itertools.product(*map(range, shape)))


def carried(p: Planner, loop: LoopParts) -> Results:
    """Let every scalar of every carry be known by name; the carries in terms of these."""
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
    return results


def states_of(p: Planner, loop: LoopParts, results: Results) -> list[LoopValue]:
    """A state per scalar of every carry."""
    states = []
    for i, row in enumerate(results):
        for idx, v in row:
            first, then = p.at(loop.init[i], idx), p.at(loop.next[i], idx)
            states += [
                LoopValue(str(s.attr[0]), a, b)
                for s, a, b in zip(pieces(v), pieces(first), pieces(then))
            ]
    return states


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
