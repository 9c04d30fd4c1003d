"""Rows on the stack that are as short as that become names, and the short loops over them are
unrolled: the loop around them may be a vector, whose lanes would share the row.

before: for j: (for c < 3: t[c] = x[i, c] - x[j, c]); y[i, j] = t[0] * t[0] + t[1] * t[1] + ...
after:  for j: let t.0 = x[i, 0] - x[j, 0]; let t.1 = ...; y[i, j] = t.0 * t.0 + t.1 * t.1 + ...
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from calque.machine.records import replace
from calque.native.loops.tree import (
    Body,
    For,
    Let,
    Statement,
    Store,
    map_exprs,
    own_exprs,
    statements,
)
from calque.native.lower.cost import body_weight
from calque.native.scalars.expr import Buffer, Expr, const, is_const, ref, rewrite

MOST: Final = 4  # elements of a row, and turns of a loop; more fill a vector
HEAVIEST: Final = 600  # weight of an unrolled loop


def without_short_rows(body: Body) -> Body:
    """A kernel with names in place of its short rows."""
    uses: dict[Buffer, int] = {}
    for s in statements(body):
        for b in rows_of(s):
            uses[b] = uses.get(b, 0) + 1
    return level(body, uses) if uses else body


def rows_of(s: Statement) -> set[Buffer]:
    """The short rows that a statement itself writes or reads."""
    touched = {b for e in own_exprs(s) for b in e.bufs}
    if isinstance(s, Store):
        touched.add(s.buf)
    return {b for b in touched if is_short(b)}


def is_short(b: Buffer) -> bool:
    short = len(b.shape) == 1 and is_const(b.shape[0]) and b.shape[0].attr <= MOST
    return short and b.place == "stack"


def level(body: Body, uses: dict[Buffer, int]) -> Body:
    """The statements of one loop, with the rows gone that only they use."""
    here: dict[Buffer, int] = {}
    for s in body:
        for t in (s, *s.body) if isinstance(s, For) and is_brief(s) else (s,):
            for b in rows_of(t) if isinstance(t, (Let, Store)) else ():
                here[b] = here.get(b, 0) + 1
    whole = {b for b, n in here.items() if n == uses[b]}
    if whole:
        turned = tuple([t for s in body for t in turns(s, whole)])
        whole = {b for b in whole if is_plain(turned, b)}
        if whole:
            body = with_names(turned, whole)
    return tuple([replace(s, body=level(s.body, uses)) if isinstance(s, For) else s for s in body])


def is_brief(f: For) -> bool:
    """Is it a short loop of stores?"""
    return (
        is_const(f.extent)
        and f.extent.attr <= MOST
        and not f.accs
        and f.kind == "serial"
        and not f.colliding
        and all(isinstance(s, Store) for s in f.body)
        and body_weight((f,)) <= HEAVIEST
    )


def with_brief_written_out(f: For) -> For:
    """A loop whose short loops of stores are written out, turn by turn: as a vector it reads what
    each of them names."""
    if not any(isinstance(s, For) and is_brief(s) for s in f.body):
        return f
    body: list[Statement] = []
    for s in f.body:
        if isinstance(s, For) and is_brief(s):
            body += [t for k in range(s.extent.attr) for t in turn(s, const(k))]
        else:
            body.append(s)
    return replace(f, body=tuple(body))


def turns(s: Statement, rows: set[Buffer]) -> Sequence[Statement]:
    """A short loop over rows, turn by turn."""
    if not isinstance(s, For) or not any(rows_of(t) & rows for t in s.body):
        return (s,)
    return [t for k in range(s.extent.attr) for t in turn(s, const(k))]


def turn(f: For, at: Expr) -> Body:
    """One turn of a loop."""
    memo: dict[Expr, Expr] = {}
    return map_exprs(f.body, lambda e: rewrite(e, {f.var: at}.get, memo))


def is_plain(body: Sequence[Statement], b: Buffer) -> bool:
    """Is every element of a row written once, at a known place, before it is read?"""
    written: set[Expr] = set()
    for s in body:
        for e in own_exprs(s):
            if b in e.bufs and not all(i in written for i in places(e, b)):
                return False
        if isinstance(s, Store) and s.buf is b:
            if s.idx[0] in written or not is_const(s.idx[0]) or s.guard is not None:
                return False
            if s.value.dtype != b.dtype:
                return False
            written.add(s.idx[0])
    return True


def places(e: Expr, b: Buffer) -> set[Expr | None]:
    """Where a row is read; None for what is read under a guard."""
    out: set[Expr | None] = set()
    todo, seen = [e], set[Expr]()
    while todo:
        x = todo.pop()
        if x in seen or b not in x.bufs:
            continue
        seen.add(x)
        if x.op == "load" and x.attr is b:
            out.add(x.args[0] if len(x.args) == 1 else None)
        todo += x.args
    return out


def with_names(body: Sequence[Statement], rows: set[Buffer]) -> Body:
    memo: dict[Expr, Expr] = {}

    def name(b: Buffer, at: Expr) -> str:
        return f"{b.name}.{at.attr}"

    def rule(e: Expr) -> Expr | None:
        if e.op != "load" or e.attr not in rows:
            return None
        return ref(name(e.attr, e.args[0]), e.dtype)

    named: list[Statement] = [
        Let(name(s.buf, s.idx[0]), s.value) if isinstance(s, Store) and s.buf in rows else s
        for s in body
    ]
    return map_exprs(tuple(named), lambda e: rewrite(e, rule, memo))
