"""Ordered sums over the rows of a large matrix, read in the order of memory: the partial sums lie
in a row each, and rows of the matrix stream past them.

before: for d < n: for k: s = sum(x[k] * w[k, d]); y[d] = s
after:  for q: for j < 16: for d < n: p[j, d] += the four rows 64 q + j + (0, 32, 16, 48); then p
        folded by halves, y[d] = ...

Memory is read at full speed only where what lies side by side is read one after the other for long:
so rows are read whole. Those that are too long for the partial sums to stay near are cut into
stripes, around all of this. Threads share the stripes, or of whole rows the partial sums
(`shared_sums`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from calque.machine.records import replace
from calque.native.loops.tree import (
    LANES,
    Body,
    For,
    Let,
    Statement,
    Store,
    map_exprs,
)
from calque.native.lower.cost import step_along, turns
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import (
    ZERO,
    Buffer,
    Expr,
    const,
    ex,
    index_and_guard,
    is_const,
    item_size,
    load,
    rewrite,
    var,
    walk,
)
from calque.native.schedule.lanes import in_lanes, keeps_blocks

LEAST: Final = 256  # columns; fewer stay in registers
WHOLE: Final = (
    8192  # bytes of a row that is read whole: sixteen partial sums of each column stay near
)
STRIPE: Final = 4096  # bytes of a row of a stripe
LARGE: Final = 1 << 18  # bytes of a matrix that are worth it; a smaller one is near in any case


def suits_stripes(f: For, sizes: Sizes) -> bool:
    """Does `f` run along the rows of a large matrix of which the one loop inside adds the
    columns?"""
    sums = f.body[0]
    if not isinstance(sums, For) or f.accs or f.colliding or not sizes.known:
        return False
    if sums.body or not sums.accs or not all(map(keeps_blocks, sums.accs)):
        return False
    if f.name in sums.extent.names or sums.kind != "serial" or is_const(f.extent):
        return False
    if not all(isinstance(s, (Let, Store)) and not _keeps_row(f, s) for s in f.body[1:]):
        return False
    count = turns(f.extent, sizes.hinted) * turns(sums.extent, sizes.hinted)
    if turns(f.extent, sizes.hinted) < LEAST:
        return False
    return any(
        count * item_size(b.dtype) >= LARGE for a in sums.accs for b in _matrices(a.values, f, sums)
    )


def _keeps_row(f: For, s: Statement) -> bool:
    return (
        isinstance(s, Store)
        and s.buf.place == "stack"
        and not any(f.name in i.names for i in s.idx)
    )


def _matrices(values: Sequence[Expr], f: For, sums: For) -> list[Buffer]:
    """What is read with its columns along `f` and its rows along the sum."""
    found: list[Buffer] = []
    seen: set[Expr] = set()
    for v in values:
        for x in walk(v, seen):
            if x.op == "load" and x.attr.place == "arg":
                idx = index_and_guard(x)[0]
                along = step_along(x.attr.shape, idx, f.name)
                if along == 1 and step_along(x.attr.shape, idx, sums.name) not in (0, 1):
                    found.append(x.attr)
    return found


def in_stripes(f: For, sizes: Sizes, number: int, lanes: int) -> Body:
    """The loop over whole rows, or in stripes of columns."""
    sums = f.body[0]
    assert isinstance(sums, For)
    item = sum(item_size(v.dtype) for a in sums.accs for v in a.values)
    low, high = sizes.interval(f.extent)
    whole = low == high and high * item <= WHOLE
    columns = width_of_stripes(int(turns(f.extent, sizes.hinted)), 4 * lanes, item, whole)
    added = (*in_lanes(sums, sizes, number, streaming=True), *f.body[1:])
    if whole:
        return _Stripes(f, columns, ZERO, f.extent, 4 * lanes).body(added)
    b = var(f"{f.name}.s", ex("floordiv", ex("add", f.extent, const(columns - 1)), const(columns)))
    start = ex("mul", b, const(columns))
    left = ex("min", const(columns), ex("sub", f.extent, start))
    return (For(b, _Stripes(f, columns, start, left, 4 * lanes).body(added)),)


def width_of_stripes(columns: int, lanes: int, item: int, whole: bool) -> int:
    """How many of the columns of a matrix make a stripe, whole vectors of `lanes`: all of them, or
    those of an even number of stripes of one width. There are `item` bytes of each."""
    stripes = 1 if whole else 2 * -(-columns * item // (2 * STRIPE))
    return -(-columns // (stripes * lanes)) * lanes


class _Stripes:
    """Statements of one column become those of a stripe: vector loops inside the loops over rows,
    partial sums in rows on the stack."""

    def __init__(self, f: For, columns: int, start: Expr, left: Expr, width: int) -> None:
        self.f, self.columns, self.start, self.left, self.width = f, columns, start, left, width
        self.made = 0
        self.rows: dict[Buffer, Buffer] = {}

    def body(self, body: Sequence[Statement]) -> Body:
        """Loops keep their place; what stands between them runs for the whole stripe."""
        out: list[Statement] = []
        between: list[Statement] = []
        for s in body:
            if isinstance(s, For):
                out += self.vector(between)
                between = []
                out.append(replace(s, body=self.body(s.body)))
            else:
                between.append(s)
        return (*out, *self.vector(between))

    def vector(self, body: Sequence[Statement]) -> list[Statement]:
        if not body:
            return []
        self.made += 1
        i = var(f"{self.f.name}.{self.made}", self.left)
        at = ex("add", self.start, i)
        memo: dict[Expr, Expr] = {}

        def fix(e: Expr) -> Expr:
            return rewrite(e, rule, memo)

        def rule(e: Expr) -> Expr | None:
            if e is self.f.var:
                return at
            if e.op == "load" and e.attr.place == "lane":
                return load(self.row(e.attr), self.place(e.args[0], i))
            return None

        moved = [
            Store(self.row(s.buf), self.place(s.idx[0], i), fix(s.value))
            if isinstance(s, Store) and s.buf.place == "lane"
            else s
            for s in body
        ]
        fixed = [
            s if isinstance(s, Store) and s.buf in self.rows.values() else t
            for s, t in zip(moved, map_exprs(tuple(moved), fix), strict=True)
        ]
        return [For(i, tuple(fixed), kind="vector", width=self.width)]

    def row(self, lane: Buffer) -> Buffer:
        if lane not in self.rows:
            shape = (LANES * self.columns,)
            self.rows[lane] = Buffer(f"{lane.name}.rows", shape, lane.dtype, "stack")
        return self.rows[lane]

    def place(self, j: Expr, i: Expr) -> tuple[Expr]:
        return (ex("add", ex("mul", j, const(self.columns)), i),)
