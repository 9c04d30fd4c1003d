"""Rows of the left side of a long product are copied near for each round: what is summed lies apart
from all else, and in the order in which it is read.

    rows side by side in memory (x in x.T @ y):  for tiles: for k: rows[tile, k, m] = x[k, row]
    otherwise:                                   for tiles: for m: rows[tile, m, k] = x[row, k]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from calque.machine.code.target import describe
from calque.machine.records import record, replace
from calque.native.loops.tree import Body, For, If, Store
from calque.native.lower.rules import Index
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import (
    Buffer,
    Expr,
    const,
    ex,
    index_and_guard,
    item_size,
    linear,
    load,
    rewrite,
    stride,
    var,
    walk,
)
from calque.native.scalars.sums import summands
from calque.native.schedule.cuts import cut

PADDING: Final = (
    16  # keeps rows that are a power of two long from falling on each other in the cache
)


class Stretches(NamedTuple):
    """A row of so many elements side by side, and so many again, somewhere else: what stands behind
    the first one of a stretch, by row, the place of the first in the sum, and how far."""

    length: int
    element: Callable[[Expr, Expr, Expr], Expr]


@record
class Block:
    """Tiles of rows that are copied for one round: the left side by row and place in the sum, how
    many rows there are in all and in a tile, the first tile, how many tiles (and at most), where
    the round begins and how deep it is; and how stretches of a row are read, if it is known to
    consist of some."""

    left: Callable[[Expr, Expr], Expr]
    extent: Expr
    rows: int
    even: bool
    first: Expr
    tile: Expr
    most: int
    start: Expr
    depth: Expr
    sizes: Sizes
    stretches: Stretches | None = None


@record
class NearRows:
    """The copy: where it is, the tile, and whether rows of a tile lie side by side in it."""

    buffer: Buffer
    tile: Expr
    beside: bool

    def place(self, m: Expr, k: Expr) -> Index:
        """Where element `k` of row `m` is."""
        return (self.tile, k, m) if self.beside else (self.tile, m, k)

    def element(self, m: Expr, k: Expr) -> Expr:
        return load(self.buffer, self.place(m, k))


def turned(value: Expr, along: Expr, across: Expr) -> bool:
    """Whether something is read that lies in memory along one loop, and not along the other."""
    loads = [x for x in walk(value, set()) if x.op == "load"]
    at = [linear(x.attr.shape, index_and_guard(x)[0]) for x in loads]
    return any(
        stride(a, along.attr[0]) == 1 and stride(a, across.attr[0]) not in (0, 1) for a in at
    )


def copied(b: Block, deepest: int, dtype: str) -> tuple[NearRows, Body]:
    """A place for the rows, and how they come there."""
    i, k = var("i", b.extent), var("k", b.depth)
    beside = b.rows > 1 and turned(b.left(i, k), i, k)
    deep = deepest + PADDING
    shape = (b.most, deep, lanes(b)) if beside else (b.most, b.rows, deep)
    to = NearRows(Buffer("rows", shape, dtype, "stack"), b.tile, beside)
    return to, (side_by_side(b, to) if beside else one_by_one(b, to),)


def one_by_one(b: Block, to: NearRows) -> For:
    """Each row by itself."""
    width = 2 * describe().vector_bytes // item_size(to.buffer.dtype)
    m = var("m", b.rows)
    if b.stretches is None:
        k = var("kc", b.depth)
        whole = For(k, (stored(b, to, m, k),))
        parts = [replace(f, kind="vector", width=width) for f in cut(whole, b.sizes, width)]
    else:
        length = const(b.stretches.length)
        piece, far = var("p", ex("floordiv", b.depth, length)), var("kc", length)
        first = ex("mul", piece, length)
        value = b.stretches.element(row_of(b, m), ex("add", b.start, first), far)
        store = Store(to.buffer, to.place(m, ex("add", first, far)), value)
        parts = [For(piece, (For(far, (store,), kind="vector", width=width),))]
    return For(to.tile, (For(m, tuple(parts)),))


def lanes(b: Block) -> int:
    """A vector that holds a row of memory as far as a tile goes, or a little farther."""
    return int(1 << (b.rows - 1).bit_length())


def side_by_side(b: Block, to: NearRows) -> For:
    """A row of memory holds elements of all rows of a tile; tile by tile, so that few places are
    written at a time, but one that must be looked for is looked for once."""
    m, k, wide = var("m", b.rows), var("kc", b.depth), var("mv", lanes(b))
    store = stored(b, to, wide, k, full=True)
    store = replace(store, value=for_all_lanes(store.value, wide, lanes(b), b.sizes))
    whole = For(wide, (store,), kind="vector", width=lanes(b))
    if b.even and lanes(b) == b.rows:
        inner, outer = (to.tile, k) if is_gathered(store.value) else (k, to.tile)
        return For(outer, (For(inner, (whole,)),))
    first = ex("mul", ex("add", b.first, b.tile), const(b.rows))
    fits = ex("ge", b.extent, ex("add", first, const(lanes(b))))
    rest = For(m, (stored(b, to, m, k),))
    return For(to.tile, (If(fits, (For(k, (whole,)),), (For(k, (rest,)),)),))


def asked_for(e: Expr) -> Expr:
    """Without the guards of what is read at a place of other loops than a guard asks about, which
    is there in any case: of `i[row]` in `join(x[i], y)[row, column]`, where the column says which
    part is meant. Else each lane of a vector would ask for the place of its own element."""

    def rule(x: Expr) -> Expr | None:
        if x.op != "load":
            return None
        idx, guard = index_and_guard(x)
        names = {name for i in idx for name in i.names}
        if guard is None or not names or not guard.names or any(i.bufs for i in idx):
            return None
        return load(x.attr, idx) if guard.names.isdisjoint(names) else None

    return rewrite(e, rule, {})


def is_gathered(e: Expr) -> bool:
    """Does what is read say where something else is read?"""
    return any(i.bufs for x in walk(e, set()) if x.op == "load" for i in index_and_guard(x)[0])


def for_all_lanes(e: Expr, lane: Expr, width: int, sizes: Sizes) -> Expr:
    """With questions about a place that a vector begins at in place of those about each of its
    places, where the answer is the same: ``8 * i + lane < 64`` is ``8 * i < 64``."""

    def is_multiple(k: int, t: Expr) -> bool:
        low, high = sizes.interval(t) if k % width else (0, 0)
        return low == high and low * k % width == 0

    def rule(x: Expr) -> Expr | None:
        if x.op not in ("lt", "ge") or lane.attr[0] not in x.names:
            return None
        terms, rest = summands(ex("sub", *x.args))
        if terms.get(lane) != 1 or rest % width != 0:
            return None
        if not all(is_multiple(k, t) for t, k in terms.items() if t is not lane):
            return None
        return ex(x.op, ex("sub", x.args[0], lane), x.args[1])

    return rewrite(e, rule, {})


def stored(b: Block, to: NearRows, m: Expr, k: Expr, full: bool = False) -> Store:
    """An element of the copy."""
    return Store(to.buffer, to.place(m, k), b.left(row_of(b, m, full), ex("add", b.start, k)))


def row_of(b: Block, m: Expr, full: bool = False) -> Expr:
    """The row that is copied to row `m` of a tile. Those that are not there, in tiles that are not
    full, are the last one again."""
    row = ex("add", ex("mul", ex("add", b.first, b.tile), const(b.rows)), m)
    return row if full or b.even else ex("min", row, ex("sub", b.extent, const(1)))
