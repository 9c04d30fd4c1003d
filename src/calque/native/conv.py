"""Convolutions in register tiles: products of matrices whose left side is read where it stands.

    before: conv_tiled x w, x padded
    after:  panels of w are packed; for tiles of 14 places of the result: sums over x[row[place] + depth[k]] * w[k, feature]

What a row of the left side reads lies at fixed offsets from where the row begins, so that two small tables take the place of the
matrix. They are made while planning."""

from __future__ import annotations

import numpy as np

from calque.native.expr import ZERO, Buffer, Expr, cast, ex, load
from calque.native.lower import Index, View
from calque.native.lower_conv import Geometry
from calque.native.lower_graph import Node
from calque.native.matmul import Extents, Product, emit_with
from calque.native.plan import Block, Planner
from calque.native.plan_steps import Step


class Convolution(Product):
    """One convolution being planned."""

    most_rows = 8  # as many pointers as there are registers for

    def __init__(self, p: Planner, n: Node, last: Node, home: View) -> None:
        self.geometry: Geometry = n.params["geometry"]
        super().__init__(p, n, last, home)
        self.depth = self.k
        self.input = p.view[n.args[0]].buf
        self.row_table = self.table("rows", self.geometry.row_offsets())
        self.depth_table = self.table("depths", self.geometry.depth_offsets())

    def extents(self) -> Extents:
        geo = self.geometry
        return Extents(geo.groups if geo.groups > 1 else None, geo.rows, geo.features_out, geo.depth)

    def table(self, name: str, offsets: np.ndarray) -> Buffer:
        p = self.p
        p.count += 1
        b = Buffer(f"{name}{p.count}", (p.sizes.dim(len(offsets)),), "i32")
        p.measure(b)
        p.consts.append((b, np.ascontiguousarray(offsets)))
        return b

    def left(self, i: Expr, k: Expr) -> Expr:
        at = ex("add", cast(load(self.row_table, (i,)), "i64"), cast(load(self.depth_table, (k,)), "i64"))
        if self.batched:
            at = ex("add", at, ex("mul", self.b, self.p.sizes.dim(self.geometry.group_offset())))
        # counted from the first element: all of the distance stands in the last index
        return load(self.input, (*[ZERO] * (len(self.input.shape) - 1), at))

    def at(self, row: Expr, column: Expr) -> Index:
        return (row, ex("add", ex("mul", self.b, self.p.sizes.dim(self.n)), column)) if self.batched else (row, column)


def emit_conv(p: Planner, n: Node, block: Block) -> list[Step]:
    """A convolution and what follows it."""
    x = n.args[0]
    p.view[x] = View(p.in_memory(x, block))
    return emit_with(Convolution, p, n, block)
