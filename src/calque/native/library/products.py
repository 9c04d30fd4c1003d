"""Which form a product of matrices takes."""

from __future__ import annotations

from calque.core.dims import is_symbolic, surely_at_most
from calque.native.library.matmul import (
    FEW,
    NEAR,
    Product,
    RightSide,
    emit_with,
    right_side,
)
from calque.native.library.near_rows import turned
from calque.native.library.shared_columns import SharedColumns, shared_tile
from calque.native.library.shared_rounds import SharedRounds, shares_rounds
from calque.native.library.tiles import (
    MOST_ROWS,
    Extents,
    flat_tile,
    goes_by_panel,
    has_masks,
    tile_for,
)
from calque.native.loops.tree import ROUND
from calque.native.lower.graph import Node
from calque.native.lower.rules import View
from calque.native.plan.blocks import CodeBlock, Planner
from calque.native.plan.steps import Step
from calque.native.scalars.expr import item_size, var


def product_of(p: Planner, n: Node, last: Node, home: View) -> Product:
    """The product of a node, whose home is that of the last node fused into it."""
    batch = n.shape[0] if len(n.shape) == 3 else None
    extents = Extents(batch, n.shape[-2], n.shape[-1], n.args[0].shape[-1])
    shared = shares_rounds(extents, n.dtype)
    if surely_at_most(extents.rows, FEW * MOST_ROWS):
        near = surely_at_most(extents.right_bytes(n.dtype), NEAR)
        tile = flat_tile(extents.rows, extents.columns, n.dtype, near)
        right = RightSide(has_masks(), None, None, near=True)
        flat = Product(p, n, last, home, extents, tile, right)
        if flat.can_stand() and not (shared and is_turned(flat)):
            return flat
    tile = tile_for(extents, n.dtype)
    if shared:
        right = RightSide(has_masks(), None, None)
        product = SharedRounds(p, n, last, home, extents, tile, right)
        if not product.reads_columns():
            return product
    wide = shared_tile(extents, tile, n.dtype)
    if wide is not None:
        right = RightSide(has_masks(), None, None)
        columns = SharedColumns(p, n, last, home, extents, wide, right)
        if columns.plain() and not columns.reads_columns():
            return columns
    return Product(p, n, last, home, extents, tile, right_side(p, n, extents, tile))


def copies_left(n: Node) -> bool:
    """Does a product copy its left side near, a block of rows at a time, so that each of its
    elements is asked for once?"""
    batch, dtype = n.shape[:-2], n.dtype
    extents = Extents(None, n.shape[-2], n.shape[-1], n.args[0].shape[-1])
    if batch or is_symbolic((extents.rows, extents.columns, extents.depth)):
        return False
    if shares_rounds(extents, dtype):
        return True
    if surely_at_most(extents.rows, FEW * MOST_ROWS):
        return False
    tile = tile_for(extents, dtype)
    by_panel = goes_by_panel(extents, tile.rows, tile.columns)
    return not by_panel and extents.depth * item_size(dtype) <= ROUND


def is_turned(product: Product) -> bool:
    """Does the left side lie in memory along its rows, and not along what is summed?"""
    i, k = var("i", product.M), var("k", product.K)
    return turned(product.left(i, k), i, k)


def emit_product(p: Planner, n: Node, block: CodeBlock) -> list[Step]:
    """A product and what follows it, as one kernel (and one that packs)."""
    return emit_with(product_of, p, n, block)
