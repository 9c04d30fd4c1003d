"""Rows that are added up, or written one over the other, where several go to one place: threads
share their columns, so that the rows of each column keep their order.

before: for d < n @colliding: for c < m @vector: y[i[d], c] += x[d, c]
after:  for b < blocks of columns @parallel: for d < n @colliding: for c in b @vector: ..."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from calque.machine.records import replace
from calque.native.loops.tree import For, Let, Store, own_exprs
from calque.native.lower.cost import turns
from calque.native.lower.sizes import Sizes, is_size
from calque.native.scalars.expr import Buffer, Expr, index_and_guard, item_size, walk

LINE: Final = 64  # bytes that no two threads write
PAIR: Final = 128  # bytes that are read at a time
MOST: Final = 4  # blocks: each reads all places again


def columns_of(f: For, sizes: Sizes) -> tuple[For, int] | None:
    """The vector loop over the columns of colliding rows, and how many of them make a block; None
    where columns depend on each other, or are too few."""
    inner = f
    while inner.colliding and not inner.accs and len(inner.body) == 1:
        (only,) = inner.body
        if not isinstance(only, For):
            return None
        inner = only
    if inner is f or inner.colliding or inner.accs or inner.kind != "vector":
        return None
    if not is_size(inner.extent) or not keeps_columns(inner):
        return None
    item = min(item_size(s.buf.dtype) for s in inner.body if isinstance(s, Store))
    row = int(turns(inner.extent, sizes.hinted)) * item
    if row < 2 * LINE:
        return None
    least = PAIR if row >= 2 * PAIR else LINE
    return inner, max(least, -(-row // (MOST * LINE)) * LINE) // item


def keeps_columns(f: For) -> bool:
    """Is what a turn writes, and what it reads of the same memory, a column of its own?"""
    if not all(isinstance(s, (Let, Store)) for s in f.body):
        return False
    places: dict[Buffer, tuple[int, Expr]] = {}
    for s in f.body:
        if not isinstance(s, Store):
            continue
        along = [k for k, e in enumerate(s.idx) if f.name in e.names]
        if s.buf.place != "arg" or len(along) != 1 or s.idx[along[0]] is not f.var:
            return False
        if places.setdefault(s.buf, (along[0], f.var)) != (along[0], f.var):
            return False
    return bool(places) and all(
        index_and_guard(x)[0][places[x.attr][0]] is f.var for x in loads(f) if x.attr in places
    )


def loads(f: For) -> Iterator[Expr]:
    """What the statements of a loop read of memory."""
    seen: set[Expr] = set()
    for s in f.body:
        for e in own_exprs(s):
            yield from (x for x in walk(e, seen) if x.op == "load")


def over_columns(f: For, inner: For, columns: For) -> For:
    """The nest `f` with other loops over columns in place of the inner one: `columns` around all,
    and what is in it within."""
    (block,) = columns.body

    def put(g: For) -> For:
        if g is inner:
            assert isinstance(block, For)
            return block
        (only,) = g.body
        assert isinstance(only, For)
        return replace(g, body=(put(only),))

    return replace(columns, body=(put(f),))
