"""What a product of large matrices reads next is brought near while it multiplies: memory that is
far is waited for otherwise, at each panel and at each tile of the result.

    for blocks of tiles of rows: for rounds: for panels: for tiles: for k:
        multiply; ahead: a line of the next panel, a line of what the tile adds to

The tiles of a block share the next panel, each brings its part of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from calque.core.dims import hint_of
from calque.native.scalars.expr import ZERO, Expr, const, ex, item_size, load, walk

if TYPE_CHECKING:
    from calque.native.library.matmul import Product

LINE: Final = 64  # bytes that memory brings at a time
FAR: Final = 1 << 22  # bytes of a right side that stays near by itself
WIDE: Final = 512  # bytes of a row of a panel, which processors bring by themselves


class Place(NamedTuple):
    """Where a tile is: its number, its panel, the round (if there are some), its number in its
    block, and how many tiles a block has at most."""

    i: Expr
    q: Expr
    r: Expr | None
    tile: Expr
    tiles: int


def ahead(p: Product, at: Place, k: Expr) -> tuple[Expr, ...]:
    """What turn `k` of a tile brings near."""
    wide = p.tile.columns * item_size(p.node.dtype) >= WIDE
    if wide or hint_of(p.extents.right_bytes(p.node.dtype)) <= FAR:
        return ()
    panel = next_panel(p, at, k)
    return panel if at.r is None else (*panel, result(p, at, k))


def next_panel(p: Product, at: Place, k: Expr) -> tuple[Expr, ...]:
    """Elements of the next panel, line by line as they lie in memory; each tile of the block brings
    its part of the lines."""
    size, width = item_size(p.node.dtype), p.tile.columns
    start, depth = (ZERO, hint_of(p.k)) if at.r is None else (p.round_at(at.r)[0], p.depth)
    turned = p.right_side.packed is None and p.in_squares
    rows, length = (width, depth) if turned else (depth, width)
    lines = -(-length * size // LINE)  # of a row
    turns = depth << (at.tiles.bit_length() - 1)
    each, seldom = -(-rows * lines // turns), max(turns // (rows * lines), 1)
    turn = ex("floordiv", ex("add", k, ex("mul", at.tile, const(depth))), const(seldom))
    q, elements = within(ex("add", at.q, const(1)), p.panels), []
    for x in range(each):
        line = ex("add", ex("mul", turn, const(each)), const(x))
        far = ex("mul", ex("mod", line, const(lines)), const(LINE // size))
        row = ex("floordiv", line, const(lines))
        inner, j = (far, row) if turned else (row, far)
        e = of_right_side(p, q, within(ex("add", start, inner), p.K), within(j, const(width)))
        elements += [] if e is None else [e]
    return tuple(elements)


def of_right_side(p: Product, q: Expr, k: Expr, j: Expr) -> Expr | None:
    """An element of panel `q` in memory, if there it is: packed, or where it stands."""
    if p.right_side.packed is not None:
        return load(p.right_side.packed, (*p.pre(), q, k, j))
    column = within(ex("add", ex("mul", q, const(p.tile.columns)), j), p.N)
    loads = [e for e in walk(p.right(k, column), set()) if e.op == "load"]
    return loads[0] if len(loads) == 1 else None


def next_round(p: Product, r: Expr, i: Expr, q: Expr, k: Expr) -> tuple[Expr, ...]:
    """Elements of both sides of the next round, where threads share the rounds: turn `k` of a tile
    brings lines of row `k`, each tile others, so that nothing but an address moves between turns.
    """
    if (p.m + p.n) * p.tile.columns * item_size(p.node.dtype) <= p.m * p.n:
        return ()  # little is read for what is multiplied
    row = within(ex("add", p.round_at(ex("add", r, const(1)))[0], k), p.K)
    tiles, panels = -(-p.m // p.tile.rows), -(-p.n // p.tile.columns)
    tile = ex("add", ex("mul", i, const(panels)), q)
    return tuple(
        [
            *lines_of_row(p, tile, tiles * panels, p.m, lambda far: p.left(far, row)),
            *lines_of_row(p, tile, tiles * panels, p.n, lambda far: p.right(row, far)),
        ]
    )


def lines_of_row(
    p: Product, tile: Expr, tiles: int, length: int, element: Callable[[Expr], Expr]
) -> list[Expr]:
    """The lines of a row that one of so many tiles brings."""
    size = item_size(p.node.dtype)
    lines = -(-length * size // LINE)
    each, again = -(-lines // tiles), max(tiles // lines, 1)
    elements: list[Expr] = []
    for x in range(each):
        line = ex("add", ex("mul", ex("floordiv", tile, const(again)), const(each)), const(x))
        far = within(ex("mul", line, const(LINE // size)), p.p.sizes.dim(length))
        loads = [e for e in walk(element(far), set()) if e.op == "load"]
        elements += loads if len(loads) == 1 else []
    return elements


def within(e: Expr, n: Expr) -> Expr:
    """A number, or the last one below `n`."""
    return ex("min", e, ex("sub", n, const(1)))


def result(p: Product, at: Place, k: Expr) -> Expr:
    """An element of the tile of the result, which takes its lines one after the other."""
    line = LINE // item_size(p.node.dtype)
    lines = max(p.tile.columns // line, 1)
    turns = 1 << (max(p.depth // (p.tile.rows * lines), 1).bit_length() - 1)
    m = within(ex("floordiv", k, const(turns * lines)), const(p.tile.rows))
    far = ex("mul", ex("mod", ex("floordiv", k, const(turns)), const(lines)), const(line))
    column = ex("add", ex("mul", at.q, const(p.tile.columns)), far)
    column = within(column, p.N)
    return load(p.home.buf, p.place(p.row_of_a_round(at.i, m), column))
