"""Loops over the rows of a tile: `for m < 14 @rows`. Each statement of the body is done for all
rows before the next one, so that the sums of all rows stand in registers, where one panel is read
for all of them. Here they become what is written: each row by itself, or the rows one after the
other once their sums are there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeGuard

from calque.machine.records import replace
from calque.native.loops.tree import (
    Acc,
    Body,
    For,
    If,
    Let,
    Recurrence,
    Statement,
    Store,
    map_exprs,
    statements,
)
from calque.native.scalars.expr import Buffer, Expr, const, load, make, ref, rewrite

MANY: Final = 4  # rows that are worth a loop
KEPT: Final = ("f32", "f64", "i32", "i64")  # what memory keeps as it is
PICK: Final = "pick"  # one of several values: the number of it, and they


def is_rows(s: Statement) -> TypeGuard[For]:
    """Whether this is such a loop."""
    return isinstance(s, For) and s.kind == "rows"


def has_rows(body: Body) -> bool:
    """Whether there is such a loop."""
    return any(map(is_rows, statements(body)))


def written_out(body: Body, rolled: bool = False) -> Body:
    """The body without such loops. Where `rolled`, what follows the sums is a loop over the rows.

    before:  for m < 2 @rows: (for k: s = sum(x[m, k] * w[k, j])); y[m, j] = max(s, 0)
    after:   for k: s.0 = sum(x[0, k] * w[k, j]); s.1 = sum(x[1, k] * w[k, j])
             y[0, j] = max(s.0, 0); y[1, j] = max(s.1, 0)
    rolled:  for k: s.0 = ...; s.1 = ...
             for m < 2: let s = pick(m, s.0, s.1); y[m, j] = max(s, 0)
    """
    if not has_rows(body):
        return body
    out: list[Statement] = []
    for s in body:
        if is_rows(s):
            out += _in_loop(s) if rolled and _can_roll(s) else beside_each_other(s, s.body)
        elif isinstance(s, For):
            out.append(replace(s, body=written_out(s.body, rolled)))
        elif isinstance(s, If):
            then, orelse = written_out(s.then, rolled), written_out(s.orelse, rolled)
            out.append(replace(s, then=then, orelse=orelse))
        elif isinstance(s, Recurrence):
            test, inner = written_out(s.test, rolled), written_out(s.body, rolled)
            out.append(replace(s, test=test, body=inner))
        else:
            out.append(s)
    return tuple(out)


def _can_roll(f: For) -> bool:
    """Whether rows may be done one after the other, once there are sums."""
    kept = all(s.value.dtype in KEPT for s in f.body if isinstance(s, Let))
    return f.extent.attr >= MANY and kept


def _in_loop(f: For) -> list[Statement]:
    """The sums of all rows, and a loop over the rows; where rows have values of their own, which
    may be read where another one stores, one loop for these and one for what is stored."""
    sums = tuple([s for s in f.body if isinstance(s, For)])
    lets = tuple([s for s in f.body if isinstance(s, Let)])
    stores = tuple([s for s in f.body if not isinstance(s, (For, Let))])
    picked = []
    for a in [a for s in sums for a in s.accs if isinstance(a, Acc)]:
        dtype = a.value.dtype
        values = [ref(f"{a.name}.{m}", dtype) for m in range(f.extent.attr)]
        picked.append(Let(a.name, make(PICK, (f.var, *values), dtype)))
    out = beside_each_other(f, sums)
    if not lets:
        return [*out, replace(f, body=(*picked, *stores), kind="serial")]
    memory = [Buffer(f"{s.name}.kept", (f.extent,), s.value.dtype, "lane") for s in lets]
    keep = [Store(b, (f.var,), ref(s.name, b.dtype)) for b, s in zip(memory, lets, strict=True)]
    again = [Let(s.name, load(b, (f.var,))) for b, s in zip(memory, lets, strict=True)]
    return [
        *out,
        replace(f, body=(*picked, *lets, *keep), kind="serial"),
        replace(f, body=(*picked, *again, *stores), kind="serial"),
    ]


def beside_each_other(f: For, body: Body) -> list[Statement]:
    """A body of a loop of known extent: each statement for all turns, before the next one."""
    return _together([turn(f, body, m) for m in range(f.extent.attr)])


def _bound(body: Body) -> Iterator[str]:
    """The names of sums and values in a body."""
    for s in body:
        if isinstance(s, For):
            yield from [n for a in s.accs for n in a.names]
            yield from _bound(s.body)
        elif isinstance(s, Let):
            yield s.name


def turn(f: For, body: Body, m: int) -> Body:
    """One turn of a body of a loop, with names of its own."""
    names = frozenset(_bound(body))

    def rename(e: Expr) -> Expr | None:
        if e is f.var:
            return const(m)
        if e.op == "ref" and e.attr[0] in names:
            return ref(f"{e.attr[0]}.{m}", e.dtype)
        return None

    memo: dict[Expr, Expr] = {}
    return _named(map_exprs(body, lambda e: rewrite(e, rename, memo)), f".{m}")


def _named(body: Body, end: str) -> Body:
    """The statements with this end to the names that they give."""
    out: list[Statement] = []
    for s in body:
        if isinstance(s, For):
            accs = tuple([replace(a, name=a.name + end) for a in s.accs if isinstance(a, Acc)])
            s = replace(s, body=_named(s.body, end), accs=accs)
        elif isinstance(s, Let):
            s = Let(s.name + end, s.value)
        out.append(s)
    return tuple(out)


def _together(turns: Sequence[Body]) -> list[Statement]:
    """The statements of all turns: loops and conditions, which are the same for all, once."""
    out: list[Statement] = []
    for same in zip(*turns, strict=True):
        first = same[0]
        if isinstance(first, For):
            loops = [s for s in same if isinstance(s, For)]
            body = tuple(_together([s.body for s in loops]))
            out.append(replace(first, body=body, accs=tuple([a for s in loops for a in s.accs])))
        elif isinstance(first, If):
            cases = [s for s in same if isinstance(s, If)]
            then = tuple(_together([s.then for s in cases]))
            out.append(
                replace(first, then=then, orelse=tuple(_together([s.orelse for s in cases])))
            )
        else:
            out += same
    return out
