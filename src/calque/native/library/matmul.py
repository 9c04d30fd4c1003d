"""Products of matrices: a register-blocked nest, packed panels, and what surrounds the product
fused into it.

    before: for i: for j: for k: c[i, j] += a[i, k] b[k, j]
    after:  panels of `NR` columns of b are packed, b's own expression inlined;
            for panels: for tiles of MR rows: for j < NR @vector: for k: MR sums in registers; then
            the epilogue and the stores

Every element is summed in the order of k, whatever the tile: in rounds (`loops.ROUND`), each in one
accumulator, whose sums are added one after the other. So the result does not depend on the machine,
panels stay near, and long sums lose few digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, partial
from typing import Final, NamedTuple

from calque.core.dims import hint_of, is_found, is_symbolic, surely_at_most, surely_divides
from calque.machine.code.target import describe
from calque.machine.records import record, replace
from calque.native.library.ahead import Place, ahead
from calque.native.library.near_rows import Block, NearRows, Stretches, asked_for, copied
from calque.native.library.repeats import Description, Made, Unlike
from calque.native.library.tiles import (
    TILES,
    Extents,
    Tile,
    goes_by_panel,
    has_masks,
    tiles_of_block,
)
from calque.native.library.turned_panels import goes_in_squares, turned_panel
from calque.native.loops.tree import ROUND, Acc, Body, For, If, Let, Store, round_of
from calque.native.lower.graph import Node
from calque.native.lower.layout import guarded, reindex
from calque.native.lower.rules import Index, View
from calque.native.plan.blocks import CodeBlock, Planner
from calque.native.plan.steps import Nest, Step, Switch
from calque.native.scalars.expr import (
    INDEX,
    TRUE,
    ZERO,
    Buffer,
    Expr,
    aligned,
    both,
    const,
    ex,
    index_and_guard,
    item_size,
    linear,
    load,
    ref,
    rewrite,
    stride,
    var,
    walk,
)

PACKING: Final = (
    4.0  # how much slower than arithmetic a copy is that reads memory for the first time
)
NEAR: Final = 1 << 15  # a matrix of so many bytes is read where it stands
FEW: Final = 5  # tiles of rows for which a right side is not packed
FAR: Final = 1 << 20  # bytes of a left side that is read as it lies in memory
STRETCH: Final = 512  # columns that are read before the next round
SUM: Final = "s"  # the name of a sum
TOTAL: Final = "s.t"  # ... and of what it makes with the rounds before
GROUPS: Final = 8  # of panels, at least, for threads to share


class RightSide(NamedTuple):
    """Where the right side of a product is read.

    masks     does the processor read and write under masks at no cost?
    source    its own memory, if it can be read there (perhaps only where it is small)
    packed    its panels; none where it is read where it stands
    near      is it read where it stands since rows are few?"""

    masks: bool
    source: Buffer | None
    packed: Buffer | None
    near: bool = False


class Sums(NamedTuple):
    """The loop that sums a row of a tile, which row of the tile and of the product it is, and
    how many rows a tile has."""

    loop: For
    m: Expr
    row: Expr
    rows: int

    def for_all(self, body: Body) -> Body:
        """The sums of a tile, and what follows them."""
        each = (self.loop, *body)
        return (For(self.m, each, kind="rows"),) if self.rows > 1 else each


@record(eq=False)
class Product:
    """One product: `node`, and what follows it as far as `last`, whose home this is."""

    p: Planner
    node: Node
    last: Node
    home: View
    extents: Extents
    tile: Tile
    right_side: RightSide

    @cached_property
    def m(self) -> int:
        return self.extents.rows

    @cached_property
    def n(self) -> int:
        return self.extents.columns

    @cached_property
    def k(self) -> int:
        return self.extents.depth

    @cached_property
    def batched(self) -> bool:
        return self.extents.batch is not None

    @cached_property
    def M(self) -> Expr:
        return self.p.sizes.dim(self.m)

    @cached_property
    def N(self) -> Expr:
        return self.p.sizes.dim(self.n)

    @cached_property
    def K(self) -> Expr:
        return self.p.sizes.dim(self.k)

    @cached_property
    def b(self) -> Expr:
        """Which of the products of a batch."""
        batch = self.extents.batch
        return ZERO if batch is None else var("b", self.p.sizes.dim(batch))

    @cached_property
    def panels(self) -> Expr:
        return ceil_div(self.N, self.tile.columns)

    @cached_property
    def depth(self) -> int:
        """How much of a sum is a round."""
        return ROUND // item_size(self.node.dtype)

    @cached_property
    def round(self) -> int:
        """The turns of a round; 0 where one round is all."""
        turns = round_of(self.node.dtype)
        return 0 if self.p.sizes.interval(self.K)[1] <= turns else turns

    @cached_property
    def in_squares(self) -> bool:
        """Is the right side a transposed matrix that square tiles fill?"""
        return goes_in_squares(self)

    def pre(self) -> Index:
        return (self.b,) if self.batched else ()

    def left(self, i: Expr, k: Expr) -> Expr:
        e: Expr = self.p.at(self.node.args[0], (*self.pre(), i, k))
        return asked_for(e)

    def right(self, k: Expr, j: Expr) -> Expr:
        e: Expr = self.p.at(self.node.args[1], (*self.pre(), k, j))
        return e

    def right_at(self, k: Expr, q: Expr, j: Expr) -> Expr:
        """Column `j` of panel `q`, which lies in one row of whatever its columns were merged of
        where that is known."""
        first = ex("mul", q, const(self.tile.columns))
        return aligned(self.right(k, ex("add", first, j)), first, j, self.holds_panels)

    def holds_panels(self, n: Expr) -> bool:
        """Is a size known to be a multiple of the columns of a panel?"""
        low, high = self.p.sizes.interval(n)
        return low == high and low % self.tile.columns == 0

    # --- packing ----------------------------------------------------------------------------------

    def nearness(self) -> Expr:
        """At least 1 where the right side is small, and can be read where it stands."""
        room = const(NEAR // item_size(self.node.dtype) + 1)
        near = ex("sub", room, ex("mul", self.K, self.N))
        if self.right_side.masks or surely_divides(self.tile.columns, self.n):
            return near
        return ex("min", near, ex("sub", const(1), ex("mod", self.N, const(self.tile.columns))))

    def can_stand(self) -> bool:
        """Can the right side be read where it stands, along its rows?"""
        if not self.right_side.masks and not surely_divides(self.tile.columns, self.n):
            return False
        j = var("j", self.N)
        loads = [x for x in walk(self.right(var("k", self.K), j), set()) if x.op == "load"]
        return all(
            stride(linear(x.attr.shape, index_and_guard(x)[0]), j.attr[0]) in (0, 1) for x in loads
        )

    def pack(self) -> Body:
        """Panels of the right side: one behind the other, row by row."""
        assert self.right_side.packed is not None
        width = self.tile.columns
        q, k, j = var("q", self.panels), var("k", self.K), var("j", width)
        if self.in_squares:
            panel = turned_panel(self, q, k, ZERO, self.right_side.packed, (*self.pre(), q))
            return self.around(For(q, panel))
        column = ex("add", ex("mul", q, const(width)), j)
        value = self.right_at(k, q, j)
        if not surely_divides(width, self.n):
            value = guarded(value, ex("lt", column, self.N))
        inner = For(
            j,
            (Store(self.right_side.packed, (*self.pre(), q, k, j), value),),
            kind="vector",
            width=width,
        )
        return self.around(For(q, (For(k, (inner,)),)))

    def around(self, f: For) -> Body:
        return (For(self.b, (f,)),) if self.batched else (f,)

    # --- the product ------------------------------------------------------------------------------

    def element(self, k: Expr, q: Expr, j: Expr) -> Expr:
        """An element of the right side, from its panel or where it stands."""
        if self.right_side.packed is not None:
            return load(self.right_side.packed, (*self.pre(), q, k, j))
        column = ex("add", ex("mul", q, const(self.tile.columns)), j)
        return guarded(
            self.right_at(k, q, j), self.inside(column) if self.right_side.masks else TRUE
        )

    def summand(self, left: Expr, right: Expr) -> Expr:
        return ex("dot2" if self.node.params.get("pairs") else "mul", left, right)

    def inside(self, column: Expr) -> Expr:
        """Whether there is such a column."""
        return TRUE if surely_divides(self.tile.columns, self.n) else ex("lt", column, self.N)

    def row(self, i: Expr, m: Expr) -> Expr:
        """Row m of tile i. The last tile lies at the end, over the one before; rows that are not
        there are the last one again.

        What is computed twice is the same bit for bit, and nothing else is in its memory."""
        rows = const(self.tile.rows)
        if surely_divides(self.tile.rows, self.m):
            return ex("add", ex("mul", i, rows), m)
        first = ex("min", ex("mul", i, rows), ex("max", ex("sub", self.M, rows), ZERO))
        return ex("add", first, ex("min", m, ex("sub", self.M, const(1))))

    def nest(self) -> Body:
        """The loops over tiles, rows inside panels or panels inside rows, whichever there are more
        of outside."""
        if hint_of(self.k) > self.depth and self.plain():
            return self.deep_columns() if self.right_side.near else self.deep()
        tiles = ceil_div(self.M, self.tile.rows)
        q, i = var("q", self.panels), var("i", tiles)
        by_panel = goes_by_panel(self.extents, self.tile.rows, self.tile.columns)
        if self.copies_rows(by_panel):
            return self.far_rows()
        inner = For(i if by_panel else q, self.micro(q, i))
        return self.around(For(q if by_panel else i, (inner,)))

    def copies_rows(self, by_panel: bool) -> bool:
        """Is the left side read in stretches, or from so far that it is better read as it lies
        there? Whoever goes by panels reads it again for each, and has a few rows at least."""
        if self.p.sizes.interval(self.K)[1] > self.depth:
            return False
        if self.stretches is not None:
            return not by_panel or hint_of(self.m) >= 2 * TILES * self.tile.rows
        n = hint_of(self.m) * hint_of(self.k) * item_size(self.node.dtype)
        return not by_panel and n >= FAR

    @cached_property
    def stretches(self) -> Stretches | None:
        """How rows of the left side that are merged of some dimensions are read: the last of these
        lies in memory as it is, or a part of it that vectors fill."""
        k, width = var("k", self.K), describe().vector_bytes // item_size(self.node.dtype)
        value = self.left(var("i", self.M), k)
        sizes = {x.args[1] for x in walk(value, set()) if x.op in INDEX and x.args[0] is k}
        known = [high for low, high in map(self.p.sizes.interval, sizes) if low == high]
        length = math.gcd(*known, self.depth)
        if not sizes or len(known) < len(sizes) or length % width != 0:
            return None

        def element(row: Expr, first: Expr, far: Expr) -> Expr:
            value = self.left(row, ex("add", first, far))
            return aligned(value, first, far, lambda n: n in sizes)

        return Stretches(length, element)

    def far_rows(self) -> Body:
        """for blocks of tiles of rows: copy rows; for panels: for tiles: ..."""
        tiles = ceil_div(self.M, self.tile.rows)
        block = var("i", ceil_div(tiles, TILES))
        first = ex("mul", block, const(TILES))
        t, q = var("t", ex("min", const(TILES), ex("sub", tiles, first))), var("q", self.panels)
        near, copy = self.copied_rows(first, t, TILES, ZERO, self.K)
        tile = self.micro(q, ex("add", first, t), None, near, (t, TILES))
        return self.around(For(block, (*copy, For(q, (For(t, tile),)))))

    def deep(self) -> Body:
        """A long sum is taken in rounds, kept in the result in between; the rows of a round are
        copied to the stack, near and apart, if they are read where they do not lie so.

        for blocks of tiles of rows: for rounds: copy rows; for panels: for tiles: ..."""
        tiles, r = ceil_div(self.M, self.tile.rows), var("r", self.rounds())
        high = tiles_of_block(self.extents, self.tile.rows)
        blocks = var("i", ceil_div(tiles, high))
        first = ex("mul", blocks, const(high))
        t, q = var("t", ex("min", const(high), ex("sub", tiles, first))), var("q", self.panels)
        rows, copy = self.rows_of_a_block(high, first, t, r)
        tile = self.micro(q, ex("add", first, t), r, rows, (t, high))
        return self.around(For(blocks, (For(r, (*copy, For(q, (For(t, tile),)))),)))

    def rows_of_a_block(
        self, high: int, first: Expr, t: Expr, r: Expr
    ) -> tuple[NearRows | None, Body]:
        """Where a block of tiles reads the rows of one round, and how they come there."""
        return self.copied_rows(first, t, high, *self.round_at(r))

    def copied_rows(
        self, first: Expr, tile: Expr, most: int, start: Expr, depth: Expr
    ) -> tuple[NearRows, Body]:
        """The copy of rows, from the first tile on, and of this part of their sums."""
        rows, even = self.tile.rows, surely_divides(self.tile.rows, self.m)
        shape = self.M, rows, even, first, tile, most, start, depth, self.p.sizes, self.stretches
        return copied(Block(self.left, *shape), self.depth, self.node.dtype)

    def rounds(self) -> Expr:
        """How many rounds a long sum has."""
        rounds = ceil_div(self.K, self.depth)
        if self.p.sizes.interval(self.K)[0] < 1:  # a sum of nothing is a round, too
            rounds = ex("max", rounds, const(1))
        return rounds

    def round_at(self, r: Expr) -> tuple[Expr, Expr]:
        """Where a round begins, and how deep it is: the last one may be less so than the others,
        and is written with them, since tiles are most of what is to be compiled."""
        start = ex("mul", r, const(self.depth))
        low, high = self.p.sizes.interval(self.K)
        if low == high and low % self.depth == 0:
            return start, const(self.depth)
        return start, ex("min", const(self.depth), ex("sub", self.K, start))

    def deep_columns(self) -> Body:
        """A long sum of few rows in rounds, kept in the result in between: what stands side by side
        in the right side is read one after the other.

        for groups of panels: for rounds: for panels: for tiles: ..."""
        width, count = self.tile.columns, -(-hint_of(self.n) // self.tile.columns)
        many = max(1, min(STRETCH // width, count // GROUPS))
        g = var("g", ceil_div(self.panels, many))
        first = ex("mul", g, const(many))
        t = var("t", ex("min", const(many), ex("sub", self.panels, first)))
        r, q = var("r", self.rounds()), ex("add", first, t)
        i, tiles = var("i", ceil_div(self.M, self.tile.rows)), -(-hint_of(self.m) // self.tile.rows)
        tile = self.micro(q, i, r, None, (i, tiles))
        return self.around(For(g, (For(r, (For(t, (For(i, tile),)),)),)))

    def row_of_a_round(self, i: Expr, m: Expr) -> Expr:
        """Row m of tile i in a long sum, of which no row may be in two tiles: each round adds to
        it."""
        row = ex("add", ex("mul", i, const(self.tile.rows)), m)
        return (
            row
            if surely_divides(self.tile.rows, self.m)
            else ex("min", row, ex("sub", self.M, const(1)))
        )

    def plain(self) -> bool:
        """Whether the result can hold sums that are not finished."""
        return self.last.dtype == self.node.dtype and self.last.shape == self.node.shape

    def micro(
        self,
        q: Expr,
        i: Expr,
        r: Expr | None = None,
        rows: NearRows | None = None,
        tile: tuple[Expr, int] | None = None,
    ) -> Body:
        """One tile: its sums in registers, then what follows. `r` is the round of a long sum,
        `rows` are those that were copied, `tile` is which one of its block it is, and of how many
        at most."""
        start, depth = (ZERO, self.K) if r is None else self.round_at(r)
        j, k = var("j", self.tile.columns), var("k", depth)
        column = ex("add", ex("mul", q, const(self.tile.columns)), j)
        ok = self.inside(column)
        sums = self.sums(i, q, j, k, r, rows)
        if tile is not None:
            near = ahead(self, Place(i, q, r, *tile), k)
            sums = sums._replace(loop=replace(sums.loop, ahead=near))
        row, total = sums.row, ref(SUM, self.node.dtype)
        lets: Body = ()
        if r is not None:  # before the first is stored: the last rows may be one and the same
            lets = (Let(TOTAL, self.so_far(start, row, column, ok, total)),)
            total = ref(TOTAL, self.node.dtype)
        kept = Store(self.home.buf, self.place(row, column), total, None if ok is TRUE else ok)
        stores: Body = (replace(kept, value=self.epilogue(row, column, total, ok)),)
        if r is not None and self.last is not self.node:
            is_last = ex("ge", ex("add", r, const(1)), self.rounds())
            stores = (If(is_last, stores, (kept,)),)
        inner = sums.for_all((*lets, *stores))
        return (For(j, inner, kind="vector", width=self.tile.columns),)

    def sums(
        self, i: Expr, q: Expr, j: Expr, k: Expr, r: Expr | None, rows: NearRows | None
    ) -> Sums:
        """The sums of one tile, over `k`."""
        at = k if r is None else ex("add", self.round_at(r)[0], k)
        count = min(self.tile.rows, self.M.attr) if self.M.op == "const" else self.tile.rows
        m = var("m", count) if count > 1 else ZERO
        row = self.row(i, m) if r is None and rows is None else self.row_of_a_round(i, m)
        left = self.left(row, at) if rows is None else rows.element(m, k)
        value = self.summand(left, self.element(at, q, j))
        acc = Acc(SUM, "sum", value, order="sequential", round=self.round if r is None else 0)
        return Sums(For(k, (), (acc,)), m, row, count)

    def steps(self) -> list[Step]:
        """The steps: packing and the product; where a size tells whether the right side is near,
        the product without packing as well."""
        if self.right_side.packed is None:
            return self.products()
        packing = Nest(self.pack(), vectors=True, slower=PACKING)
        steps: list[Step] = [packing, *self.products()]
        if self.right_side.source is None:
            return steps
        standing = replace(self, right_side=self.right_side._replace(packed=None))
        return [Switch(self.nearness(), [steps, standing.products(stands_in=True)])]

    def products(self, stands_in: bool = False) -> list[Step]:
        """The steps after packing."""
        return [Nest(self.nest(), vectors=True, stands_in=stands_in)]

    def so_far(self, start: Expr, row: Expr, column: Expr, guard: Expr, total: Expr) -> Expr:
        """The sum after a round: the first one adds to zero."""
        there = both(guard, ex("gt", start, ZERO))
        return ex("add", load(self.home.buf, self.place(row, column), there), total)

    def place(self, row: Expr, column: Expr) -> Index:
        """Where an element goes: in another shape it is the same distance from the first one, all
        in the last index."""
        if self.last.shape == self.node.shape:
            return (*self.home.prefix, *self.at(row, column))
        shape = tuple([self.p.sizes.dim(d) for d in self.node.shape])
        far = linear(shape, self.at(row, column))
        return (*self.home.prefix, *[ZERO] * (len(self.last.shape) - 1), far)

    def at(self, row: Expr, column: Expr) -> Index:
        """The index of an element of the product."""
        return (*self.pre(), row, column)

    def index(self, row: Expr, column: Expr) -> Index:
        """The index of the last node of the epilogue that belongs to an element of the product."""
        return reindex(self.p.sizes, self.at(row, column), self.node.shape, self.last.shape)

    def epilogue(self, row: Expr, column: Expr, total: Expr, guard: Expr) -> Expr:
        """What becomes of an element of the product."""
        if self.last is self.node:
            return total
        hole = self.p.view[self.node].buf
        e: Expr = guarded(self.p.made(self.last, self.index(row, column)), guard)
        return rewrite(e, lambda x: total if x.op == "load" and x.attr is hole else None, {})


def ceil_div(e: Expr, n: int) -> Expr:
    return ex("floordiv", ex("add", e, const(n - 1)), const(n))


# --- what a product is made of --------------------------------------------------------------------


def right_side(p: Planner, n: Node, extents: Extents, tile: Tile) -> RightSide:
    """Where the right side of a product is read."""
    masks = has_masks()
    source = standing(p, n, extents, tile, masks)
    near = surely_at_most(extents.right_bytes(n.dtype), NEAR)
    packed = None if source is not None and near else pack_buffer(p, n, extents, tile)
    return RightSide(masks, source, packed)


def standing(p: Planner, n: Node, extents: Extents, tile: Tile, masks: bool) -> Buffer | None:
    """The memory of the right side, if it can be read where it stands: contiguous along its
    columns, and perhaps small.

    A ragged edge is read through masks, where the processor has them."""
    home, size = p.view.get(n.args[1]), extents.right_bytes(n.dtype)
    even = surely_divides(tile.columns, extents.columns)
    if home is None or not (even or masks or is_symbolic((extents.columns,))):
        return None
    if surely_at_most(size, NEAR):
        return home.buf if even or masks else None
    plain = not home.prefix and home.buf.place == "arg" and home.buf.data is None
    if not plain or not is_symbolic((extents.depth, extents.columns)):
        return None
    far = hint_of(size) > NEAR  # masks would cost the long products that it is made for
    return None if far or is_found(extents.depth * extents.columns) else home.buf


def pack_buffer(p: Planner, n: Node, extents: Extents, tile: Tile) -> Buffer:
    batch = () if extents.batch is None else (p.sizes.dim(extents.batch),)
    panels = ceil_div(p.sizes.dim(extents.columns), tile.columns)
    shape = (*batch, panels, p.sizes.dim(extents.depth), const(tile.columns))
    return temporary(p, "panels", shape, n.dtype)


def temporary(p: Planner, name: str, shape: Index, dtype: str) -> Buffer:
    """Memory of the program that a product fills on its way."""
    p.count += 1
    b = Buffer(f"{name}{p.count}", shape, dtype)
    p.measure(b)
    p.mutable.add(b)
    return b


Maker = Callable[[Planner, Node, Node, View], Product]


def emit_with(make: Maker, p: Planner, n: Node, block: CodeBlock) -> list[Step]:
    p.count += 1
    hole = Buffer(f"hole{p.count}", tuple(p.sizes.dim(d) for d in n.shape), n.dtype)
    last = block.homes.ends[n]
    if last is not n:
        p.view[n] = View(hole)
    home = block.home(last)
    steps = steps_like_others(make, p, n, last, home, block)
    p.view[last] = home
    block.made[home.buf] = last
    return steps


def steps_like_others(
    make: Maker, p: Planner, n: Node, last: Node, home: View, block: CodeBlock
) -> list[Step]:
    """The steps of a product, which are those of an earlier one where all is the same but for the
    arrays."""
    if not p.sizes.known:
        return make(p, n, last, home).steps()
    told = Description(p)
    try:
        told.node(n)
        told.node(last)
        told.home(home)
    except Unlike:
        return make(p, n, last, home).steps()
    key = (make, *told.key())
    known = block.repeats.get(key)
    if known is not None:
        return known.again(told.buffers, partial(anew, p))
    steps = make(p, n, last, home).steps()
    nests = [s for s in steps if isinstance(s, Nest) and not s.stands_in]
    if len(nests) == len(steps):
        block.repeats[key] = Made(nests, told.buffers)
    return steps


def anew(p: Planner, b: Buffer) -> Buffer:
    """Memory of the program again; a table of constants as it is."""
    if b not in p.mutable:
        return b
    return temporary(p, b.name.rstrip("0123456789"), b.shape, b.dtype)
