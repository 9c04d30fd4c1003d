"""Long products with small results, as x.T @ y of many rows: threads share the rounds of the sum
instead of the rows of the result.

    before: for blocks of rows: for rounds: c[block] += a[block, round] b[round]
    after:  for rounds (threads): copy b[round] near; sums[round] = a[:, round] b[round]
            for rows: c[row] = sums[0, row] + sums[1, row] + ...

So what is multiplied is read from memory once, one stretch by each thread, and not once for every
block of rows; the right side is packed where it is near. The rounds and the order in which they are
added are those of any other long product: no bit depends on the choice.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

from calque.core.dims import is_symbolic
from calque.machine.records import record, replace
from calque.native.library.ahead import next_round
from calque.native.library.matmul import SUM, Product, ceil_div, temporary
from calque.native.library.near_rows import turned
from calque.native.library.tiles import Extents
from calque.native.loops.tree import ROUND, Acc, Body, For, Store
from calque.native.lower.layout import guarded
from calque.native.plan.steps import Nest, Step
from calque.native.scalars.expr import TRUE, Buffer, Expr, const, ex, item_size, load, ref, var

ROUNDS: Final = "rounds"  # begins the name of the memory that holds the sums of rounds
FEWEST: Final = 8  # rounds, for threads to share
LEAST: Final = 48  # rows and columns: of fewer, all that is read of a round stays near anyway
PART: Final = 4  # the sums of all rounds take at most this part of what is multiplied
NEAR: Final = 1 << 19  # bytes that the panels of one round take at most
TILES: Final = 8  # of rows that are copied at a time


def shares_rounds(extents: Extents, dtype: str) -> bool:
    """Are there many rounds, and little that each of them makes?"""
    m, n, k = extents.rows, extents.columns, extents.depth
    if extents.batch is not None or is_symbolic((m, n, k)) or min(m, n) < LEAST:
        return False
    rounds = -(-k // (ROUND // item_size(dtype)))
    near = ROUND * n <= NEAR
    return near and rounds >= FEWEST and PART * rounds * m * n <= k * (m + n)


@record(eq=False)
class SharedRounds(Product):
    """A product whose rounds threads share."""

    @cached_property
    def parts(self) -> Buffer:
        """The sums of each round."""
        return temporary(self.p, ROUNDS, (self.rounds(), self.M, self.N), self.node.dtype)

    @cached_property
    def near(self) -> Buffer:
        """The panels of the right side in one round, which stay with the thread."""
        width = self.tile.columns
        shape = (const(-(-self.n // width)), const(self.depth), const(width))
        return Buffer("near", shape, self.node.dtype, "stack")

    @cached_property
    def r(self) -> Expr:
        """Which of the rounds."""
        return var("r", self.rounds())

    def pack_near(self) -> Body:
        """The right side of a round, row by row as it stands in memory, into its panels."""
        start, depth = self.round_at(self.r)
        q, k, j = var("q", self.panels), var("kn", depth), var("j", self.tile.columns)
        value = self.right_at(ex("add", start, k), q, j)
        guard = self.column(q, j)[1]
        value = value if guard is None else guarded(value, guard)
        store = Store(self.near, (q, k, j), value)
        panel = For(j, (store,), kind="vector", width=self.tile.columns)
        return (For(k, (For(q, (panel,)),)),)

    def reads_columns(self) -> bool:
        """Does the right side lie in memory along what is summed?"""
        k, j = var("k", self.K), var("j", self.N)
        return turned(self.right(k, j), k, j)

    def element(self, k: Expr, q: Expr, j: Expr) -> Expr:
        return load(self.near, (q, ex("sub", k, self.round_at(self.r)[0]), j))

    def products(self, stands_in: bool = False) -> list[Step]:
        return [
            Nest(self.nest(), vectors=True, stands_in=stands_in),
            Nest(self.added(), vectors=True),
        ]

    def nest(self) -> Body:
        """for rounds: for blocks of tiles of rows: copy rows; for panels: for tiles: ..."""
        tiles, r = ceil_div(self.M, self.tile.rows), self.r
        block = var("i", ceil_div(tiles, TILES))
        first = ex("mul", block, const(TILES))
        t, q = var("t", ex("min", const(TILES), ex("sub", tiles, first))), var("q", self.panels)
        rows, copy = self.rows_of_a_block(TILES, first, t, r)
        j, k = var("j", self.tile.columns), var("k", self.round_at(r)[1])
        sums = self.sums(ex("add", first, t), q, j, k, r, rows)
        near = next_round(self, r, ex("add", first, t), q, k)
        sums = sums._replace(loop=replace(sums.loop, ahead=near))
        column, guard = self.column(q, j)
        store = Store(self.parts, (r, sums.row, column), ref(SUM, self.node.dtype), guard)
        tile = For(j, sums.for_all((store,)), kind="vector", width=self.tile.columns)
        product = For(block, (*copy, For(q, (For(t, (tile,)),))))
        return (For(r, (*self.pack_near(), product)),)

    def added(self) -> Body:
        """The sums of the rounds are added in their order."""
        row, r, j = var("i", self.M), self.r, var("j", self.tile.columns)
        q = var("q", self.panels)
        column, guard = self.column(q, j)
        part = load(self.parts, (r, row, column), *([] if guard is None else [guard]))
        acc = Acc("s", "sum", part, order="sequential")
        total = ref("s", self.node.dtype)
        ok = TRUE if guard is None else guard
        whole = self.epilogue(row, column, total, ok)
        store = Store(self.home.buf, self.place(row, column), whole, guard)
        tile = For(j, (For(r, (), (acc,)), store), kind="vector", width=self.tile.columns)
        return (For(row, (For(q, (tile,)),)),)

    def column(self, q: Expr, j: Expr) -> tuple[Expr, Expr | None]:
        """A column of a panel, and where there is such a one, if that is not always."""
        column = ex("add", ex("mul", q, const(self.tile.columns)), j)
        ok = self.inside(column)
        return column, None if ok is TRUE else ok
