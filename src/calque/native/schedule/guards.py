"""Conditions of stores that a loop does not change stand around the loop: its vectors need no masks
then, and a turn that stores nothing ends at once.

before: for d < n: for c < m @vector: y[i[d], c] += x[d, c] if i[d] < k
after:  for d < n: if i[d] < k: for c < m @vector: y[i[d], c] += x[d, c]"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from calque.machine.records import replace
from calque.native.loops.decided import decided
from calque.native.loops.tree import (
    Body,
    For,
    If,
    Let,
    Recurrence,
    Statement,
    Store,
    map_exprs,
    statements,
    stored,
)
from calque.native.lower.layout import guarded
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import TRUE, ZERO, Expr, both, ex, rewrite

Conditions = tuple[Expr, ...]  # all of which hold


def with_conditions_outside(body: Body, sizes: Sizes) -> Body:
    """A kernel whose loops run only where their stores store."""
    guarded = any(isinstance(s, Store) and s.guard is not None for s in statements(body))
    return tuple([inside(s, sizes) for s in body]) if guarded else body


def inside(s: Statement, sizes: Sizes) -> Statement:
    """A statement whose parts stand behind what they wait for. Lanes of a vector wait for each
    other in any case."""
    if isinstance(s, For) and s.kind in ("serial", "parallel"):
        return replace(s, body=level(s.body, sizes))
    if isinstance(s, Recurrence):
        return replace(s, body=level(s.body, sizes), test=level(s.test, sizes))
    if isinstance(s, If):
        return replace(s, then=level(s.then, sizes), orelse=level(s.orelse, sizes))
    return s


def level(body: Body, sizes: Sizes) -> Body:
    """The statements of a loop: neighbours that wait for the same stand under one condition."""
    out: list[Statement] = []
    group: list[Statement] = []
    shared: Conditions = ()
    for s in body:
        common = awaited((*group, s), sizes)
        if group and not common:
            out += together(shared, group, sizes)
            group, common = [], awaited((s,), sizes)
        group.append(s)
        shared = common
    return tuple([*out, *together(shared, group, sizes)])


def together(conditions: Conditions, group: Sequence[Statement], sizes: Sizes) -> list[Statement]:
    """Statements that wait for the same; a single store asks by itself."""
    if not conditions or (len(group) == 1 and isinstance(group[0], Store)):
        return [inside(s, sizes) for s in group]
    memo: dict[Expr, Expr] = {}
    known = dict.fromkeys(conditions, TRUE)
    free = map_exprs(tuple(group), lambda e: rewrite(e, known.get, memo))
    turns = all_of([ex("gt", e, ZERO) for e in maybe_empty(group[0], sizes)])
    asked = guarded(all_of(conditions), turns)
    assert isinstance(asked, Expr)
    return [If(both(turns, asked), level(decided(free), sizes))]


def all_of(conditions: Iterable[Expr]) -> Expr:
    whole: Expr = TRUE
    for c in conditions:
        whole = both(whole, c)
    return whole


def awaited(body: Sequence[Statement], sizes: Sizes) -> Conditions:
    """What all of these statements wait for, and none of them changes."""
    found: Conditions | None = None
    for s in body:
        own = conditions_of(s, sizes)
        if own is not None:
            found = own if found is None else tuple([c for c in found if c in own])
    written = stored(tuple(body))
    lets = {s.name for s in body if isinstance(s, Let)}
    empty = len(body) > 1 and any(maybe_empty(s, sizes) for s in body)
    return tuple(
        [
            c
            for c in found or ()
            if written.isdisjoint(c.bufs) and lets.isdisjoint(c.names) and not (empty and c.bufs)
        ]
    )


def conditions_of(s: Statement, sizes: Sizes) -> Conditions | None:
    """What a statement waits for; None for a name, which is nothing by itself."""
    if isinstance(s, Let):
        return None
    if isinstance(s, Store):
        return () if s.guard is None else conjuncts(s.guard)
    if not isinstance(s, For) or s.accs:
        return ()
    own = awaited(s.body, sizes)
    outer = {n for e in maybe_empty(s, sizes) for n in e.names}
    return tuple([c for c in own if s.name not in c.names and not (c.bufs and s.name in outer)])


def maybe_empty(s: Statement, sizes: Sizes) -> list[Expr]:
    """The extents of loops, each alone in the one around it, that may have no turn: what is read
    for a turn may not be there then."""
    out = []
    while isinstance(s, For):
        if sizes.interval(s.extent)[0] < 1:
            out.append(s.extent)
        if len(s.body) != 1:
            break
        (s,) = s.body
    return out


def conjuncts(guard: Expr) -> Conditions:
    """The parts of a condition that all must hold."""
    out: list[Expr] = []
    todo = [guard]
    while todo:
        e = todo.pop()
        if e.op == "and":
            todo += reversed(e.args)
        else:
            out.append(e)
    return tuple(out)
