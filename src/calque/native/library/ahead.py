"""What a product of large matrices reads next is brought near while it multiplies: memory that is
far is waited for otherwise, at each panel and at each tile of the result.

    for blocks of tiles of rows: for rounds: for panels: for tiles: for k:
        multiply; ahead: a line of the next panel, a line of what the tile adds to

The tiles of a block share the next panel, each brings its part of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from calque.core.dims import hint_of
from calque.native.scalars.expr import Expr, const, ex, item_size, load

if TYPE_CHECKING:
    from calque.native.library.matmul import Product

LINE: Final = 64  # bytes that memory brings at a time
FAR: Final = 1 << 22  # bytes of a right side that stays near by itself


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
    if p.right_side.packed is None or hint_of(p.extents.right_bytes(p.node.dtype)) <= FAR:
        return ()
    panel = next_panel(p, at, k)
    return (panel,) if at.r is None else (panel, result(p, at, k))


def next_panel(p: Product, at: Place, k: Expr) -> Expr:
    """An element of the next panel, of which each tile of the block brings as many rows."""
    assert p.right_side.packed is not None
    tiles, width = at.tiles, p.tile.columns
    start, depth = (const(0), hint_of(p.k)) if at.r is None else (p.round_at(at.r)[0], p.depth)
    own = ex("mul", at.tile, const(-(-depth // tiles)))
    row = ex("add", ex("add", start, own), ex("floordiv", k, const(tiles)))
    column = ex("mul", ex("mod", k, const(tiles)), const(width // tiles))
    place = following(at.q, p.panels), ex("min", row, ex("sub", p.K, const(1))), column
    return load(p.right_side.packed, (*p.pre(), *place))


def following(q: Expr, n: Expr) -> Expr:
    """The number after `q`, if there is one."""
    return ex("min", ex("add", q, const(1)), ex("sub", n, const(1)))


def result(p: Product, at: Place, k: Expr) -> Expr:
    """An element of the tile of the result, which takes its lines one after the other."""
    line = LINE // item_size(p.node.dtype)
    lines = max(p.tile.columns // line, 1)
    turns = 1 << (max(p.depth // (p.tile.rows * lines), 1).bit_length() - 1)
    m = ex("min", ex("floordiv", k, const(turns * lines)), const(p.tile.rows - 1))
    far = ex("mul", ex("mod", ex("floordiv", k, const(turns)), const(lines)), const(line))
    column = ex("add", ex("mul", at.q, const(p.tile.columns)), far)
    column = ex("min", column, ex("sub", p.N, const(1)))
    return load(p.home.buf, p.place(p.row_of_a_round(at.i, m), column))
