"""Convolutions in register tiles: products of matrices whose left side is read where it stands.

    before: conv_tiled x w, x padded
    after:  panels of w are packed; for tiles of 14 places of the result: sums over x[row[place] +
    depth[k]] * w[k, feature]

What a row of the left side reads lies at fixed offsets from where the row begins, so that two small
tables take the place of the matrix. They are made while planning; where the offsets depend on a
free size, each call fills the table of depths before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np

from calque.core.dims import Dim, hint_of, product
from calque.machine.code.target import describe
from calque.machine.records import record, remade, replace
from calque.native.library.matmul import (
    Product,
    RightSide,
    emit_with,
    right_side,
)
from calque.native.library.near_rows import NearRows, Stretches
from calque.native.library.shared_columns import SharedColumns, shared_tile
from calque.native.library.tiles import (
    Extents,
    Tile,
    has_masks,
    tile_for,
)
from calque.native.loops.tree import Body, For, Store
from calque.native.lower.convolution import Geometry, Strides, weight_met
from calque.native.lower.graph import Node
from calque.native.lower.layout import reindex
from calque.native.lower.rules import Index, View
from calque.native.plan.blocks import CodeBlock, Planner
from calque.native.plan.steps import Nest, Step, Switch
from calque.native.scalars.expr import ZERO, Buffer, Expr, cast, ex, item_size, load, var

LONGEST: Final = 1 << 18  # entries of a table
FAR: Final = 1 << 18  # a right side of more bytes is read by rounds, a block of rows at a time
MOST_ROWS: Final = 8  # as many pointers as there are registers for


@record(eq=False)
class Convolution(Product):
    """One convolution.

    input                     its left side, in memory
    row_table, depth_table    offsets in it; none where they are worked out
    filled                    the table of depths is filled by each call
    asked                     where it stands whether every element of the kernel is finite, if the
                              input has holes
    asks_holes                is every element of the input asked whether it is a hole?"""

    geometry: Geometry
    input: Buffer
    row_table: Buffer | None
    depth_table: Buffer | None
    filled: bool
    asked: Buffer | None
    asks_holes: bool = False

    @cached_property
    def depth(self) -> int:
        """All is one round where what every tile reads of the right side stays near."""
        far = hint_of(self.extents.right_bytes(self.node.dtype)) > FAR
        return super().depth if far else self.k

    def plain(self) -> bool:
        """Whether the result can hold sums that are not finished, be it of another shape."""
        return self.last.dtype == self.node.dtype

    def rows_of_a_block(
        self, high: int, first: Expr, t: Expr, r: Expr
    ) -> tuple[NearRows | None, Body]:
        """Rows are not copied."""
        return None, ()

    def copies_rows(self, by_panel: bool) -> bool:
        """Rows are not copied."""
        return False

    @cached_property
    def row_steps(self) -> Strides:
        return self.geometry.row_steps()

    @cached_property
    def depth_steps(self) -> Strides:
        return self.geometry.depth_steps()

    def offset(self, i: Expr, whole: Any, steps: Strides, table: Buffer | None) -> Expr:
        """How far from the first element index `i` leads."""
        if table is not None:
            return cast(load(table, (i,)), "i64")
        parts = reindex(self.p.sizes, (i,), (whole,), [n for n, _ in steps])
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
        if self.asked is None:
            return super().products(stands_in)
        careful = replace(self, asks_holes=True, asked=None, tile=Tile(1, self.tile.columns))
        cases = [careful.products(stands_in=True), super().products(stands_in)]
        return [Switch(self.asked, cases)]

    def steps(self) -> list[Step]:
        """The steps of the product, after that which fills the table of depths."""
        if not self.filled or self.depth_table is None:
            return super().steps()
        k = var("k", self.K)
        fill = For(
            k, (Store(self.depth_table, (k,), self.offset(k, self.k, self.depth_steps, None)),)
        )
        return [Nest((fill,), vectors=True), *super().steps()]

    def row(self, i: Expr, m: Expr) -> Expr:
        """As in a long sum: where a row reads follows from its number by divisions, which a sum of
        two ends makes longer."""
        return self.row_of_a_round(i, m)

    def at(self, row: Expr, column: Expr) -> Index:
        return (
            (row, ex("add", ex("mul", self.b, self.p.sizes.dim(self.n)), column))
            if self.batched
            else (row, column)
        )


class SharedConvolution(Convolution, SharedColumns):
    """One of few rows, whose columns threads share: the rows are copied near, so that a tile needs
    no pointer for each."""

    @cached_property
    def stretches(self) -> Stretches | None:
        return Stretches(self.stretch, self.behind)

    def can_share(self) -> bool:
        """Are features side by side in the input and in the kernel, a vector of them at least?"""
        whole = describe().vector_bytes // item_size(self.dtype)
        beside = self.depth_steps[-1][1] == 1 and self.stretch % whole == 0
        return beside and not self.reads_columns()

    @property
    def stretch(self) -> int:
        """How many features of the input lie side by side in a round."""
        return math.gcd(int(self.depth_steps[-1][0]), self.depth)

    def behind(self, row: Expr, k: Expr, far: Expr) -> Expr:
        """What is read so far behind place `k` of a sum."""
        at = ex("add", self.offset(row, self.m, self.row_steps, self.row_table), far)
        first = self.offset(k, self.k, self.depth_steps, self.depth_table)
        return load(self.input, (*[ZERO] * (len(self.input.shape) - 1), ex("add", at, first)))


def is_free(steps: Strides) -> bool:
    """Whether the offsets depend on a free size."""
    return any(type(n) is Dim for pair in steps for n in pair)


def linear_sum(parts: Sequence[Expr]) -> Expr:
    out = ZERO
    for e in parts:
        out = ex("add", out, e)
    return out


def table(p: Planner, name: str, steps: Strides) -> Buffer | None:
    """The offsets of all indices in row-major order; none where sizes are free, or would take too
    much memory."""
    if is_free(steps) or product(n for n, _ in steps) > LONGEST:
        return None
    offsets = np.zeros(1, np.int64)
    for n, step in steps:
        offsets = (offsets[:, None] + np.arange(n, dtype=np.int64) * step).ravel()
    p.count += 1
    b = Buffer(f"{name}{p.count}", (p.sizes.dim(len(offsets)),), "i32")
    p.measure(b)
    p.consts.append((b, offsets.astype(np.int32)))
    return b


def filled_table(p: Planner, length: Any) -> Buffer:
    """Memory for a table that each call fills."""
    p.count += 1
    b = Buffer(f"depths{p.count}", (p.sizes.dim(length),), "i64")
    p.measure(b)
    p.mutable.add(b)
    return b


def convolution_of(p: Planner, n: Node, last: Node, home: View) -> Convolution:
    geo: Geometry = n.params["geometry"]
    groups = geo.groups if geo.groups > 1 else None
    extents = Extents(groups, geo.rows, geo.features_out, geo.depth)
    tile = tile_for(extents, n.dtype, MOST_ROWS)
    rows, depths = table(p, "rows", geo.row_steps()), table(p, "depths", geo.depth_steps())
    filled = is_free(geo.depth_steps())
    made = Convolution(
        p,
        n,
        last,
        home,
        extents,
        tile,
        RightSide(has_masks(), None, None),
        geometry=geo,
        input=p.view[n.args[0]].buf,
        row_table=rows,
        depth_table=filled_table(p, geo.depth) if filled else depths,
        filled=filled,
        asked=p.view[n.args[2]].buf if geo.holes else None,
    )
    wide = shared_tile(extents, tile, n.dtype)
    if wide is not None and not geo.holes and made.plain():
        shared = remade(SharedConvolution, made, tile=wide)
        if shared.can_share():
            return shared
    return replace(made, right_side=right_side(p, n, extents, tile))


def emit_conv(p: Planner, n: Node, block: CodeBlock) -> list[Step]:
    """A convolution and what follows it."""
    for a in (n.args[0], *n.args[2:]):
        p.view[a] = View(p.in_memory(a, block))
    return emit_with(convolution_of, p, n, block)
