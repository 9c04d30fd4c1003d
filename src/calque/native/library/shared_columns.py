"""Long products of few rows: threads share the columns, and pack the right side where it is near.

    before: pack all of b; for blocks of rows (threads): for rounds: copy rows; for panels: ...
    after:  for groups of panels (threads): for rounds: copy rows; for panels: copy the panel; for
            tiles of rows: c[tile, panel] += rows[tile] panel

What is copied of the right side is used at once, by all rows, and never leaves the nearest caches.
Where rows are many, panels would be copied for every block of them. The rounds are those of any
other long product: no bit depends on the choice.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

from calque.core.dims import hint_of, is_symbolic
from calque.machine.records import record
from calque.machine.threads import get_num_threads
from calque.native.library.matmul import Product, ceil_div
from calque.native.library.near_rows import turned
from calque.native.library.tiles import VECTORS, Extents, Tile, even_part
from calque.native.library.turned_panels import turned_panel
from calque.native.loops.tree import ROUND, Body, For, Store
from calque.native.lower.layout import guarded
from calque.native.scalars.expr import ZERO, Buffer, Expr, const, ex, item_size, load, var

MOST_ROWS: Final = 168  # all of which are copied near for each round
LARGE: Final = 1 << 18  # bytes of a right side that is worth it
FEWEST: Final = 8  # panels, for threads to share


def shared_tile(extents: Extents, tile: Tile, dtype: str) -> Tile | None:
    """The tile of a product whose columns threads share: where rows are few, sums long, and columns
    many. It has many rows, since what it reads of a panel comes from the second cache."""
    m, n, k = extents.rows, extents.columns, extents.depth
    if extents.batch is not None or is_symbolic((m, n, k)):
        return None
    few = m <= MOST_ROWS and n >= FEWEST * tile.columns
    if not few or k * item_size(dtype) <= ROUND or extents.right_bytes(dtype) < LARGE:
        return None
    return Tile(even_part(m, VECTORS), tile.columns)


@record(eq=False)
class SharedColumns(Product):
    """A product whose columns threads share."""

    @cached_property
    def panel(self) -> Buffer:
        """A round of one panel of the right side."""
        return Buffer("panel", (const(self.depth), const(self.tile.columns)), self.dtype, "stack")

    @property
    def dtype(self) -> str:
        """Of the sums."""
        return self.node.dtype

    @cached_property
    def r(self) -> Expr:
        """Which of the rounds."""
        return var("r", self.rounds())

    def element(self, k: Expr, q: Expr, j: Expr) -> Expr:
        return load(self.panel, (ex("sub", k, self.round_at(self.r)[0]), j))

    def nest(self) -> Body:
        """for groups of panels: for rounds: copy rows; for panels: copy it; for tiles: ..."""
        count = -(-hint_of(self.n) // self.tile.columns)
        many = max(1, count // (2 * get_num_threads()))
        group = var("g", ceil_div(self.panels, many))
        first = ex("mul", group, const(many))
        t = var("t", ex("min", const(many), ex("sub", self.panels, first)))
        tiles = ceil_div(self.M, self.tile.rows)
        i, q, r = var("i", tiles), ex("add", first, t), self.r
        count_of_tiles = -(-self.m // self.tile.rows)
        rows, copy = self.copied_rows(ZERO, i, count_of_tiles, *self.round_at(r))
        panel = For(
            t,
            (
                *self.near_panel(q),
                For(i, self.micro(q, i, r, rows, (i, count_of_tiles))),
            ),
        )
        return (For(group, (For(r, (*copy, panel)),)),)

    def near_panel(self, q: Expr) -> Body:
        """The copy of a panel."""
        start, depth = self.round_at(self.r)
        j, k = var("j", self.tile.columns), var("kp", depth)
        if self.in_squares:
            return turned_panel(self, q, k, start, self.panel)
        column = ex("add", ex("mul", q, const(self.tile.columns)), j)
        value = guarded(self.right_at(ex("add", start, k), q, j), self.inside(column))
        inner = For(j, (Store(self.panel, (k, j), value),), kind="vector", width=self.tile.columns)
        return (For(k, (inner,)),)

    def reads_columns(self) -> bool:
        """Does the right side lie in memory along what is summed, and fills no squares?"""
        k, j = var("k", self.K), var("j", self.N)
        return turned(self.right(k, j), k, j) and not self.in_squares
