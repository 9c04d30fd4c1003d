"""Panels of a right side that is a transposed matrix: read in square tiles, which are turned in
registers, beside each other in a loop: written out, each would be compiled anew.

    for tiles: for k @tile: for j < 8 @vector: panel[k, 8 * tile + j] = y[32 * q + 8 * tile + j, k]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from calque.core.dims import surely_divides
from calque.machine.code.target import describe
from calque.native.library.near_rows import turned
from calque.native.loops.tree import Body, For, Store
from calque.native.lower.rules import Index
from calque.native.scalars.expr import Buffer, Expr, const, ex, item_size, var

if TYPE_CHECKING:
    from calque.native.library.matmul import Product

SQUARE: Final = 32  # bytes of a row of a tile, at most


def square(p: Product) -> int:
    """The side of a tile."""
    return min(describe().vector_bytes, SQUARE) // item_size(p.node.dtype)


def goes_in_squares(p: Product) -> bool:
    """Is the right side a transposed matrix that square tiles fill?"""
    k, j = var("k", p.K), var("j", p.tile.columns)
    value = p.right_at(k, var("q", p.panels), j)
    return surely_divides(square(p), p.n) and turned(value, k, j)


def turned_panel(p: Product, q: Expr, k: Expr, first: Expr, to: Buffer, at: Index = ()) -> Body:
    """Panel `q` from row `first` on, its row `k` at `at` and `k`. The last panel may have fewer
    columns, and zeros behind them."""
    side = square(p)
    tiles, j = p.tile.columns // side, var("j", side)

    def squares(column: Expr) -> For:
        value = p.right_at(ex("add", first, k), q, column)
        store = Store(to, (*at, k, column), value)
        return For(k, (For(j, (store,), kind="vector", width=side),), kind="tile", width=side)

    if tiles == 1:
        return (squares(j),)
    if surely_divides(p.tile.columns, p.n):
        tile = var("tile", tiles)
        return (For(tile, (squares(column_of(tile, j, side)),)),)
    all_there = ex("floordiv", ex("add", p.N, const(side - 1)), const(side))
    there = ex("min", const(tiles), ex("sub", all_there, ex("mul", q, const(tiles))))
    tile, none = var("tile", there), var("none", ex("sub", const(tiles), there))
    behind = column_of(ex("add", there, none), j, side)
    zero = Store(to, (*at, k, behind), const(0, p.node.dtype))
    nothing = For(k, (For(j, (zero,), kind="vector", width=side),))
    return For(tile, (squares(column_of(tile, j, side)),)), For(none, (nothing,))


def column_of(tile: Expr, j: Expr, side: int) -> Expr:
    """Column `j` of a square tile, in its panel."""
    return ex("add", ex("mul", tile, const(side)), j)
