"""Convolutions in register tiles: products of matrices whose left side is read where it stands.

    before: conv_tiled x w, x padded
    after:  panels of w are packed; for tiles of 14 places of the result: sums over x[row[place] +
    depth[k]] * w[k, feature]

What a row of the left side reads lies at fixed offsets from where the row begins, so that two small
tables take the place of the matrix. They are made while planning; where the offsets depend on a
free size, each call fills the table of depths before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from calque.core.dims import Dim, product
from calque.native.library.matmul import Extents, Product, Tile, emit_with
from calque.native.loops.tree import For, Store
from calque.native.lower.convolution import Geometry, Steps, weight_met
from calque.native.lower.graph import Node
from calque.native.lower.layout import reindex
from calque.native.lower.rules import Index, View
from calque.native.plan.blocks import Block, Planner
from calque.native.plan.steps import Nest, Step, Switch
from calque.native.scalars.expr import ZERO, Buffer, Expr, cast, ex, load, var

LONGEST: Final = 1 << 18  # entries of a table


class Convolution(Product):
    """One convolution being planned."""

    most_rows = 8  # as many pointers as there are registers for

    def __init__(self, p: Planner, n: Node, last: Node, home: View) -> None:
        self.geometry: Geometry = n.params["geometry"]
        self.finite = p.view[n.args[2]].buf if self.geometry.holes else None
        self.asks_holes = False
        super().__init__(p, n, last, home)
        self.depth = self.k
        self.input = p.view[n.args[0]].buf
        self.row_steps, self.depth_steps = self.geometry.row_steps(), self.geometry.depth_steps()
        self.row_table, self.depth_table = (
            self.table("rows", self.row_steps),
            self.table("depths", self.depth_steps),
        )
        self.filled = is_free(self.depth_steps)
        if self.filled:
            p.count += 1
            self.depth_table = Buffer(f"depths{p.count}", (self.K,), "i64")
            p.measure(self.depth_table)
            p.mutable.add(self.depth_table)

    def extents(self) -> Extents:
        geo = self.geometry
        return Extents(
            geo.groups if geo.groups > 1 else None, geo.rows, geo.features_out, geo.depth
        )

    def table(self, name: str, steps: Steps) -> Buffer | None:
        """The offsets of all indices in row-major order; none where sizes are free, or would take
        too much memory."""
        if is_free(steps) or product(n for n, _ in steps) > LONGEST:
            return None
        p, offsets = self.p, np.zeros(1, np.int64)
        for n, step in steps:
            offsets = (offsets[:, None] + np.arange(n, dtype=np.int64) * step).ravel()
        p.count += 1
        b = Buffer(f"{name}{p.count}", (p.sizes.dim(len(offsets)),), "i32")
        p.measure(b)
        p.consts.append((b, offsets.astype(np.int32)))
        return b

    def offset(self, i: Expr, whole: Any, steps: Steps, table: Buffer | None) -> Expr:
        """How far from the first element index `i` leads."""
        if table is not None:
            return cast(load(table, (i,)), "i64")
        parts = reindex(self.p, (i,), (whole,), [n for n, _ in steps])
        return linear_sum(
            [ex("mul", k, self.p.sizes.dim(step)) for k, (_, step) in zip(parts, steps)]
        )

    def left(self, i: Expr, k: Expr) -> Expr:
        row = self.offset(i, self.m, self.row_steps, self.row_table)
        at = ex("add", row, self.offset(k, self.k, self.depth_steps, self.depth_table))
        if self.batched:
            at = ex("add", at, ex("mul", self.b, self.p.sizes.dim(self.geometry.group_step())))
        # counted from the first element: all of the distance stands in the last index
        return load(self.input, (*[ZERO] * (len(self.input.shape) - 1), at))

    def summand(self, left: Expr, right: Expr) -> Expr:
        return super().summand(left, weight_met(left, right) if self.asks_holes else right)

    def products(self, stands_in: bool = False) -> list[Step]:
        """Holes are asked for only where an element of the kernel is not finite: any other makes
        zero of them. That is rare: its tiles are single rows, which are little to compile."""
        if self.finite is None:
            return super().products(stands_in)
        tile = self.tile
        self.asks_holes, self.tile = True, Tile(1, tile.columns)
        careful = super().products(stands_in=True)
        self.asks_holes, self.tile = False, tile
        return [Switch(self.finite, [careful, super().products(stands_in)])]

    def steps(self) -> list[Step]:
        """The steps of the product, after that which fills the table of depths."""
        if not self.filled or self.depth_table is None:
            return super().steps()
        k = var("k", self.K)
        fill = For(
            k, (Store(self.depth_table, (k,), self.offset(k, self.k, self.depth_steps, None)),)
        )
        return [Nest((fill,), vectors=True), *super().steps()]

    def row(self, i: Expr, m: int) -> Expr:
        """As in a long sum: where a row reads follows from its number by divisions, which a sum of
        two ends makes longer."""
        return self.copied_row(i, m)

    def at(self, row: Expr, column: Expr) -> Index:
        return (
            (row, ex("add", ex("mul", self.b, self.p.sizes.dim(self.n)), column))
            if self.batched
            else (row, column)
        )


def is_free(steps: Steps) -> bool:
    """Whether the offsets depend on a free size."""
    return any(type(n) is Dim for pair in steps for n in pair)


def linear_sum(parts: Sequence[Expr]) -> Expr:
    out = ZERO
    for e in parts:
        out = ex("add", out, e)
    return out


def emit_conv(p: Planner, n: Node, block: Block) -> list[Step]:
    """A convolution and what follows it."""
    for a in (n.args[0], *n.args[2:]):
        p.view[a] = View(p.in_memory(a, block))
    return emit_with(Convolution, p, n, block)
