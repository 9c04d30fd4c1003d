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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from calque.core.dims import hint_of, is_found, is_symbolic, surely_at_most, surely_divides
from calque.machine.code.target import describe
from calque.native.loops.tree import ROUND, Acc, Body, For, Let, Store, round_of
from calque.native.lower.graph import REAL_PART, Node
from calque.native.lower.layout import guarded, reindex
from calque.native.lower.rules import Index, View
from calque.native.lower.table import elementwise
from calque.native.plan.blocks import Block, Planner
from calque.native.plan.steps import Nest, Step, Switch
from calque.native.scalars.expr import (
    TRUE,
    ZERO,
    Buffer,
    Expr,
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

TILES: Final = 4  # tiles of rows of a block in a long product
PADDING: Final = (
    16  # keeps rows that are a power of two long from falling on each other in the cache
)
PACKING: Final = (
    4.0  # how much slower than arithmetic a copy is that reads memory for the first time
)
MASKED: Final = 64  # bytes of a vector of processors that read and write under masks at no cost
NEAR: Final = 1 << 15  # a matrix of so many bytes is read where it stands


@dataclass(frozen=True)
class Tile:
    """How many rows and columns are summed at a time."""

    rows: int
    columns: int


@dataclass(frozen=True)
class Extents:
    """How much is multiplied; `batch` is None for a single product."""

    batch: int | None
    rows: int
    columns: int
    depth: int


def tile_for(m: Any, n: Any, dtype: str, most: int = 14) -> Tile:
    """As many sums as registers hold; fewer rows where that wastes much less at the edge. Few
    shapes, so that new sizes find their kernel.

    A free size may become much larger than it was while tracing: its tiles are not made for few."""
    t = describe()
    lanes = t.vector_bytes // max(item_size(dtype), 4)
    vectors = 1 if surely_at_most(n, lanes) else 2
    most = min((t.vector_registers - vectors - 2) // vectors, most)
    rows = min(
        (most, 8, *(() if is_symbolic((m,)) else (4,))),
        key=lambda r: (-(-hint_of(m) // r) * (r + 1.5), -r),
    )
    return Tile(min(rows, most), vectors * lanes)


class Product:
    """One product being planned: sizes as expressions, the elements of both sides, and where the
    result goes."""

    most_rows = 14

    def __init__(self, p: Planner, n: Node, last: Node, home: View) -> None:
        self.p, self.node, self.last, self.home = p, n, last, home
        size = self.extents()
        self.m, self.n, self.k = size.rows, size.columns, size.depth
        self.batched = size.batch is not None
        self.batch = size.batch or 1
        self.tile = tile_for(self.m, self.n, n.dtype, self.most_rows)
        self.depth = ROUND // item_size(n.dtype)
        most = p.sizes.interval(p.sizes.dim(self.k))[1]
        self.round = 0 if most <= round_of(n.dtype) else round_of(n.dtype)
        self.masks = describe().vector_bytes == MASKED
        self.rows: Buffer | None = None
        dim = p.sizes.dim
        self.M, self.N, self.K = dim(self.m), dim(self.n), dim(self.k)
        self.b = var("b", dim(self.batch)) if self.batched else ZERO
        self.panels = ceil_div(self.N, self.tile.columns)
        self.source = self.standing(n.args[1])
        self.packed = self.pack_buffer() if self.source is None or not self.surely_near() else None
        self.where_it_stands = self.packed is None

    def extents(self) -> Extents:
        shape = self.node.shape
        return Extents(
            shape[0] if len(shape) == 3 else None, shape[-2], shape[-1], self.node.args[0].shape[-1]
        )

    def pre(self) -> Index:
        return (self.b,) if self.batched else ()

    def left(self, i: Expr, k: Expr) -> Expr:
        e: Expr = self.p.at(self.node.args[0], (*self.pre(), i, k))
        return e

    def right(self, k: Expr, j: Expr) -> Expr:
        e: Expr = self.p.at(self.node.args[1], (*self.pre(), k, j))
        return e

    # --- packing ----------------------------------------------------------------------------------

    def standing(self, y: Node) -> Buffer | None:
        """The memory of the right side, if it can be read where it stands: contiguous along its
        columns, and perhaps small.

        A ragged edge is read through masks, where the processor has them."""
        home = self.p.view.get(y)
        even = surely_divides(self.tile.columns, self.n)
        if home is None or not (even or self.masks or is_symbolic((self.n,))):
            return None
        if self.surely_near():
            return home.buf if even or self.masks else None
        plain = not home.prefix and home.buf.place == "arg" and home.buf.data is None
        far = (
            hint_of(self.k * self.n) * item_size(self.node.dtype) > NEAR
        )  # masks would cost the long products that it is made for
        return (
            home.buf
            if plain and is_symbolic((self.k, self.n)) and not far and not is_found(self.k * self.n)
            else None
        )

    def surely_near(self) -> bool:
        """Whether the right side is so small, whatever its size, that it need not be packed."""
        return surely_at_most(self.k * self.n * item_size(self.node.dtype), NEAR)

    def nearness(self) -> Expr:
        """At least 1 where the right side is small, and can be read where it stands."""
        room = const(NEAR // item_size(self.node.dtype) + 1)
        near = ex("sub", room, ex("mul", self.K, self.N))
        if self.masks or surely_divides(self.tile.columns, self.n):
            return near
        return ex("min", near, ex("sub", const(1), ex("mod", self.N, const(self.tile.columns))))

    def pack_buffer(self) -> Buffer:
        p = self.p
        p.count += 1
        shape = (
            *((p.sizes.dim(self.batch),) if self.batched else ()),
            self.panels,
            self.K,
            const(self.tile.columns),
        )
        b = Buffer(f"panels{p.count}", shape, self.node.dtype)
        p.measure(b)
        p.mutable.add(b)
        return b

    def pack(self) -> Body:
        """Panels of the right side: one behind the other, row by row."""
        assert self.packed is not None
        width = self.tile.columns
        q, k, j = var("q", self.panels), var("k", self.K), var("j", width)
        column = ex("add", ex("mul", q, const(width)), j)
        value = self.right(k, column)
        if not surely_divides(width, self.n):
            value = guarded(value, ex("lt", column, self.N))
        elif self.turned(value, k, j):
            return self.around(For(q, self.pack_turned(q, k)))
        inner = For(
            j, (Store(self.packed, (*self.pre(), q, k, j), value),), kind="vector", width=width
        )
        return self.around(For(q, (For(k, (inner,)),)))

    @staticmethod
    def turned(value: Expr, k: Expr, j: Expr) -> bool:
        """Whether the right side lies in memory along k."""
        loads = [x for x in walk(value, set()) if x.op == "load"]
        at = [linear(x.attr.shape, index_and_guard(x)[0]) for x in loads]
        return any(stride(a, k.attr[0]) == 1 and stride(a, j.attr[0]) not in (0, 1) for a in at)

    def pack_turned(self, q: Expr, k: Expr) -> Body:
        """Panels of a right side that is a transposed matrix, in square tiles."""
        assert self.packed is not None
        side = describe().vector_bytes // item_size(self.node.dtype)
        out = []
        for first in range(0, self.tile.columns, side):
            j = var(f"j{first}", side)
            at = ex("add", j, const(first))
            value = self.right(k, ex("add", ex("mul", q, const(self.tile.columns)), at))
            inner = For(
                j, (Store(self.packed, (*self.pre(), q, k, at), value),), kind="vector", width=side
            )
            out.append(For(k, (inner,), kind="tile", width=side))
        return tuple(out)

    def around(self, f: For) -> Body:
        return (For(self.b, (f,)),) if self.batched else (f,)

    # --- the product ------------------------------------------------------------------------------

    def element(self, k: Expr, q: Expr, j: Expr) -> Expr:
        """An element of the right side, from its panel or where it stands."""
        if self.packed is not None and not self.where_it_stands:
            return load(self.packed, (*self.pre(), q, k, j))
        column = ex("add", ex("mul", q, const(self.tile.columns)), j)
        return guarded(self.right(k, column), self.inside(column) if self.masks else TRUE)

    def summand(self, left: Expr, right: Expr) -> Expr:
        return ex("mul", left, right)

    def inside(self, column: Expr) -> Expr:
        """Whether there is such a column."""
        return TRUE if surely_divides(self.tile.columns, self.n) else ex("lt", column, self.N)

    def row(self, i: Expr, m: int) -> Expr:
        """Row m of tile i. The last tile lies at the end, over the one before; rows that are not
        there are the last one again.

        What is computed twice is the same bit for bit, and nothing else is in its memory."""
        rows = const(self.tile.rows)
        if surely_divides(self.tile.rows, self.m):
            return ex("add", ex("mul", i, rows), const(m))
        first = ex("min", ex("mul", i, rows), ex("max", ex("sub", self.M, rows), ZERO))
        return ex("add", first, ex("min", const(m), ex("sub", self.M, const(1))))

    def nest(self) -> Body:
        """The loops over tiles, rows inside panels or panels inside rows, whichever there are more
        of outside."""
        if hint_of(self.k) > self.depth and self.plain():
            return self.deep()
        tiles = ceil_div(self.M, self.tile.rows)
        q, i = var("q", self.panels), var("i", tiles)
        by_panel = -(-hint_of(self.n) // self.tile.columns) * 2 >= -(
            -hint_of(self.m) // self.tile.rows
        )
        inner = For(i if by_panel else q, self.micro(q, i, ZERO, self.K, "all"))
        return self.around(For(q if by_panel else i, (inner,)))

    def deep(self) -> Body:
        """A long sum is taken in rounds, kept in the result in between; the rows of a round are
        copied to the stack, near and apart.

        for blocks of 4 tiles of rows: for rounds: copy rows; for panels: for tiles: ..."""
        tiles = ceil_div(self.M, self.tile.rows)
        blocks = var("i", ceil_div(tiles, TILES))
        first = ex("mul", blocks, const(TILES))
        t, q = var("t", ex("min", const(TILES), ex("sub", tiles, first))), var("q", self.panels)
        rounds = ceil_div(self.K, self.depth)
        if self.p.sizes.interval(self.K)[0] < 1:  # a sum of nothing is a round, too
            rounds = ex("max", rounds, const(1))
        before_last = ex("sub", rounds, const(1))
        r = var("r", before_last)
        out = []
        for part, start, depth in (
            ("some", ex("mul", r, const(self.depth)), const(self.depth)),
            (
                "last",
                ex("mul", before_last, const(self.depth)),
                ex("sub", self.K, ex("mul", before_last, const(self.depth))),
            ),
        ):
            shape = (TILES, self.tile.rows, self.depth + PADDING)
            self.rows = Buffer(f"rows.{part}", shape, self.node.dtype, "stack")
            work = (
                self.copy_rows(first, t, start, depth),
                For(q, (For(t, self.micro(q, ex("add", first, t), start, depth, part, t)),)),
            )
            out += [For(r, work)] if part == "some" else list(work)
        return self.around(For(blocks, tuple(out)))

    def copy_rows(self, first: Expr, t: Expr, start: Expr, depth: Expr) -> For:
        """The rows of a block, for one round."""
        assert self.rows is not None
        m, k = var("m", self.tile.rows), var("kc", depth)
        value = self.left(self.copied_row(ex("add", first, t), m), ex("add", start, k))
        width = 2 * describe().vector_bytes // item_size(self.node.dtype)
        return For(
            t,
            (For(m, (For(k, (Store(self.rows, (t, m, k), value),), kind="vector", width=width),)),),
        )

    def copied_row(self, i: Expr, m: Expr | int) -> Expr:
        """Row m of tile i in a long sum, of which no row may be in two tiles: each round adds to
        it."""
        row = ex("add", ex("mul", i, const(self.tile.rows)), const(m) if isinstance(m, int) else m)
        return (
            row
            if surely_divides(self.tile.rows, self.m)
            else ex("min", row, ex("sub", self.M, const(1)))
        )

    def plain(self) -> bool:
        """Whether the result can hold sums that are not finished."""
        return self.last.dtype == self.node.dtype and self.last.shape == self.node.shape

    def micro(
        self, q: Expr, i: Expr, start: Expr, depth: Expr, part: str, t: Expr | None = None
    ) -> Body:
        """One tile: its sums in registers, then what follows. With `t` the rows are those copied to
        place t."""
        j, k = var("j", self.tile.columns), var(f"k{part}", depth)
        column = ex("add", ex("mul", q, const(self.tile.columns)), j)
        ok = self.inside(column)
        at = ex("add", start, k)
        accs, lets, stores = [], [], []
        for m in range(
            min(self.tile.rows, self.M.attr) if self.M.op == "const" else self.tile.rows
        ):
            row = self.row(i, m) if t is None else self.copied_row(i, m)
            name = f"r.{part}{m}"
            left = (
                self.left(row, at)
                if t is None or self.rows is None
                else load(self.rows, (t, const(m), k))
            )
            accs.append(
                Acc(
                    name,
                    "sum",
                    self.summand(left, self.element(at, q, j)),
                    order="sequential",
                    round=self.round if part == "all" else 0,
                )
            )
            total = ref(name, self.node.dtype)
            if part != "all":  # before the first is stored: the last rows may be one and the same
                lets.append(Let(f"{name}.t", self.so_far(part, start, row, column, ok, total)))
                total = ref(f"{name}.t", self.node.dtype)
            done = total if part == "some" else self.epilogue(row, column, total, ok)
            stores.append(
                Store(self.home.buf, self.place(row, column), done, None if ok is TRUE else ok)
            )
        return (
            For(
                j, (For(k, (), tuple(accs)), *lets, *stores), kind="vector", width=self.tile.columns
            ),
        )

    def steps(self) -> list[Step]:
        """The steps: packing and the product; where a size tells whether the right side is near,
        the product without packing as well."""
        if self.packed is None:
            return self.products()
        packing = Nest(self.pack(), vectors=True, slower=PACKING)
        steps: list[Step] = [packing, *self.products()]
        if self.source is None:
            return steps
        self.where_it_stands = True
        return [Switch(self.nearness(), [steps, self.products(stands_in=True)])]

    def products(self, stands_in: bool = False) -> list[Step]:
        """The steps after packing."""
        return [Nest(self.nest(), vectors=True, stands_in=stands_in)]

    def so_far(
        self, part: str, start: Expr, row: Expr, column: Expr, guard: Expr, total: Expr
    ) -> Expr:
        """The sum after a round."""
        first = part == "some" or is_symbolic((self.k,))  # may this be the first round?
        there = both(guard, ex("gt", start, ZERO)) if first else guard
        return ex("add", load(self.home.buf, self.place(row, column), there), total)

    def place(self, row: Expr, column: Expr) -> Index:
        """Where an element goes: in another shape it is the same distance from the first one, all
        in the last index."""
        if self.last.shape == self.node.shape:
            return (*self.home.prefix, *self.at(row, column))
        far = linear([self.p.sizes.dim(d) for d in self.node.shape], self.at(row, column))
        return (*self.home.prefix, *[ZERO] * (len(self.last.shape) - 1), far)

    def at(self, row: Expr, column: Expr) -> Index:
        """The index of an element of the product."""
        return (*self.pre(), row, column)

    def index(self, row: Expr, column: Expr) -> Index:
        """The index of the last node of the epilogue that belongs to an element of the product."""
        return reindex(self.p, self.at(row, column), self.node.shape, self.last.shape)

    def epilogue(self, row: Expr, column: Expr, total: Expr, guard: Expr) -> Expr:
        """What becomes of an element of the product."""
        if self.last is self.node:
            return total
        hole = self.p.view[self.node].buf
        e: Expr = guarded(self.p.made(self.last, self.index(row, column)), guard)
        return rewrite(e, lambda x: total if x.op == "load" and x.attr is hole else None, {})


def ceil_div(e: Expr, n: int) -> Expr:
    return ex("floordiv", ex("add", e, const(n - 1)), const(n))


# --- what follows a product -----------------------------------------------------------------------


def followers(block: Block, n: Node) -> list[Node]:
    """The chain of elementwise operations that the product alone feeds, as far as their other
    operands are known."""
    out: list[Node] = []
    at = n
    while at not in block.targets:
        readers = block.readers_of(at)
        if len(readers) != 1 or readers[0].args.count(at) > 1:
            break
        (u,) = readers
        if (
            not (elementwise(u) or u.op == "reshape")
            or u.aval.size != n.aval.size
            or u.dtype in REAL_PART
        ):
            break
        others = [a for a in u.args if a is not at]
        if any(not block.ready(a) for a in others):
            break
        out.append(u)
        at = u
        if u in block.roots.stored:
            break
    return out


def emit_product(p: Planner, n: Node, block: Block) -> list[Step]:
    """A product and what follows it, as one kernel (and one that packs)."""
    return emit_with(Product, p, n, block)


def emit_with(make: type[Product], p: Planner, n: Node, block: Block) -> list[Step]:
    p.count += 1
    hole = Buffer(f"hole{p.count}", tuple(p.sizes.dim(d) for d in n.shape), n.dtype)
    last = last_straight(p, n, followers(block, n), hole)
    if last is not n:
        p.view[n] = View(hole)
    home = block.home(last)
    product = make(p, n, last, home)
    steps = product.steps()
    p.view[last] = home
    block.made[home.buf] = last
    return steps


def last_straight(p: Planner, n: Node, chain: Sequence[Node], hole: Buffer) -> Node:
    """The last node of a chain of which every element needs just its own element of the product."""
    attempt = p.attempt()
    attempt.view[n] = View(hole)
    probe = tuple(var(f"probe{k}", p.sizes.dim(d)) for k, d in enumerate(n.shape))
    return next((u for u in reversed(chain) if reads_straight(attempt, u, n, hole, probe)), n)


def reads_straight(p: Planner, u: Node, n: Node, hole: Buffer, probe: Index) -> bool:
    """Whether element by element of `u` needs just the same element of the product."""
    e = p.made(u, reindex(p, probe, n.shape, u.shape))
    return all(
        index_and_guard(x)[0] == probe for x in walk(e, set()) if x.op == "load" and x.attr is hole
    )
