"""Sums that are made of partial ones, shared out among threads, one of which adds up what they left
in memory of the program, in the same order.

Whole rows stream past partial sums: each thread reads the rows that go to some of the sixteen,
which are on the stack else.

before: for j < 16: p[j] = 0; for q: for j < 16: p[j] += rows 64 q + j + (0, 32, 16, 48); ...
after:  for c < 4 @parallel: for j < 4: p[4c + j] = 0; for q: for j < 4: p[4c + j] += ...
        then the rest of the kernel as another

Threads that shared the columns would each read pieces of rows, which memory gives at two thirds of
its speed.

A long sum in the order of its loop goes in rounds: each thread makes some of them.

before: for r: (for k < 512: p = sum(x[512 r + k])); s = sum(p); y = s
after:  for r @parallel: (for k < 512: p = sum(x[512 r + k])); left[r] = p
        for r: s = sum(left[r]); y = s"""

from __future__ import annotations

from typing import Final, NamedTuple

from calque.machine.records import replace
from calque.native.loops.rows import KEPT
from calque.native.loops.tree import (
    LANES,
    Acc,
    Accumulator,
    Body,
    For,
    Statement,
    Store,
    map_exprs,
    statements,
)
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import (
    Buffer,
    Expr,
    const,
    ex,
    is_const,
    item_size,
    load,
    rewrite,
    var,
)

LONG: Final = 2048  # bytes of a row of which a few, one behind the other, are worth a thread
PARTS: Final = (2, 4)  # of the partial sums: of short rows, of long ones


class SharedSums(NamedTuple):
    """The loop that threads share, what one of them does afterwards, and the partial sums."""

    loop: For
    rest: Body
    sums: tuple[Buffer, ...]


def shared_sums(body: Body, sizes: Sizes) -> SharedSums | None:
    """A kernel that begins with partial sums that threads can share, as two; None if it does
    not."""
    return (shared_rounds(body) or shared_rows(body)) if sizes.known and len(body) > 1 else None


def shared_rounds(body: Body) -> SharedSums | None:
    """A kernel that begins with the rounds of long sums."""
    rounds, *rest = body
    if not isinstance(rounds, For) or rounds.kind != "serial" or len(rounds.body) != 1:
        return None
    inner = rounds.body[0]
    if not isinstance(inner, For) or not rounds.accs or not all(map(_adds_rounds, rounds.accs)):
        return None
    parts = [a.value for a in rounds.accs if isinstance(a, Acc)]
    if [e.attr[0] for e in parts] != [a.name for a in inner.accs if isinstance(a, Acc)]:
        return None
    left = [Buffer(f"{e.attr[0]}.left", (rounds.extent,), e.dtype) for e in parts]
    stores = [Store(b, (rounds.var,), e) for b, e in zip(left, parts, strict=True)]
    again = var(f"{rounds.name}.again", rounds.extent)
    sums = [
        replace(a, value=load(b, (again,))) for a, b in zip(rounds.accs, left) if isinstance(a, Acc)
    ]
    loop = replace(rounds, body=(inner, *stores), accs=(), kind="parallel")
    return SharedSums(loop, (For(again, (), tuple(sums)), *rest), tuple(left))


def _adds_rounds(a: Accumulator) -> bool:
    """Is this a sum, in the order of the loop, of sums that memory can hold as they are?"""
    if not isinstance(a, Acc) or a.op != "sum" or a.order != "sequential" or a.running:
        return False
    return a.value.op == "ref" and a.value.dtype in KEPT


def shared_rows(body: Body) -> SharedSums | None:
    """A kernel that begins with whole rows streaming past partial sums."""
    if len(body) < 3:
        return None
    start, blocks, *rest = body
    rows = _started(start)
    if not rows or not _adds_to(blocks, rows):
        return None
    assert isinstance(start, For) and isinstance(blocks, For)
    inside = blocks.body[0]
    assert isinstance(inside, For)
    row = sum(item_size(b.dtype) * b.shape[0].attr // LANES for b in rows)
    parts = PARTS[row >= LONG]
    moved = {b: Buffer(b.name, b.shape, b.dtype) for b in rows}
    c = var(f"{start.name}.c", parts)

    def part(f: For, name: str) -> For:
        j = var(f"{f.name}.{name}", LANES // parts)
        at = ex("add", ex("mul", c, const(LANES // parts)), j)
        return For(j, _put(f.body, f.var, at))

    work = (part(start, "start"), replace(blocks, body=(part(inside, "in"),)))
    loop = For(c, _moved(work, moved), kind="parallel")
    return SharedSums(loop, _moved(tuple(rest), moved), tuple(moved.values()))


def _started(s: Statement) -> list[Buffer]:
    """The rows on the stack that a loop over the partial sums starts."""
    if not isinstance(s, For) or s.accs or not is_const(s.extent) or s.extent.attr != LANES:
        return []
    stores = [t for t in statements(s.body) if isinstance(t, Store)]
    if any(t.buf.place != "stack" or not is_const(t.value) for t in stores):
        return []
    return list(dict.fromkeys(t.buf for t in stores))


def _adds_to(s: Statement, rows: list[Buffer]) -> bool:
    """Does a loop over blocks do nothing but add to these rows?"""
    if not isinstance(s, For) or s.accs or len(s.body) != 1:
        return False
    inside = s.body[0]
    if not isinstance(inside, For) or inside.accs or not is_const(inside.extent):
        return False
    stores = [t for t in statements(inside.body) if isinstance(t, Store)]
    return inside.extent.attr == LANES and all(t.buf in rows for t in stores)


def _put(body: Body, old: Expr, new: Expr) -> Body:
    memo: dict[Expr, Expr] = {}
    return map_exprs(body, lambda e: rewrite(e, lambda x: new if x is old else None, memo))


def _moved(body: Body, moved: dict[Buffer, Buffer]) -> Body:
    """The same with other buffers in place of some."""
    memo: dict[Expr, Expr] = {}

    def rule(e: Expr) -> Expr | None:
        if e.op == "load" and e.attr in moved:
            return load(moved[e.attr], tuple(rewrite(i, rule, memo) for i in e.args))
        return None

    def statement(s: Statement) -> Statement:
        if isinstance(s, For):
            return replace(s, body=tuple(map(statement, s.body)))
        return replace(s, buf=moved[s.buf]) if isinstance(s, Store) and s.buf in moved else s

    return tuple(map(statement, map_exprs(body, lambda e: rewrite(e, rule, memo))))
