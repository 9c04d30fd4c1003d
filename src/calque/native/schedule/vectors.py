"""Which loop of a nest becomes a vector, and how wide.

Vector loops: the innermost loop along which memory is contiguous, or the one around serial
reductions (a column sum). Orders of float sums are kept: a sum that does not run along the vector
keeps its 16 partial sums beside each other (`lanes`). Every decision is noted in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from calque.machine.code.target import describe
from calque.machine.records import replace
from calque.native.loops.tree import (
    BLOCK,
    NEAR,
    SCAN_BLOCK,
    Acc,
    Accumulator,
    Body,
    For,
    If,
    Recurrence,
    Statement,
    Store,
    loaded,
    nodes,
    statements,
    stored,
    vector_names,
)
from calque.native.lower.cost import (
    body_weight,
    nanoseconds,
    nest_cost,
    step_along,
    turns,
    weight,
)
from calque.native.lower.sizes import BAKED, Sizes
from calque.native.scalars.expr import Expr, index_and_guard, is_const, item_size, walk
from calque.native.schedule.cuts import cut
from calque.native.schedule.elements import element_bytes, memory_bytes
from calque.native.schedule.far_rows import in_far_rows, suits_far_rows
from calque.native.schedule.flat import divided, flattened, nested
from calque.native.schedule.lanes import as_expressions, in_lanes, keeps_blocks, short_block
from calque.native.schedule.running import RowBlocks
from calque.native.schedule.short_rows import with_brief_written_out
from calque.native.schedule.stripes import in_stripes, suits_stripes
from calque.native.schedule.sums_first import rows_of_block, sums_first
from calque.native.schedule.threads import PARALLEL_NS
from calque.native.schedule.turned_round import turned_round
from calque.native.schedule.turned_rows import in_turned_rows
from calque.native.schedule.unroll import FEW, with_sums_beside, written_out

WORTH: Final = 1.05  # how much more rows beside each other may cost: short vectors idle in parts
ENOUGH: Final = 1 << 12  # elements that are worth the code of turning them, or ...
GAINED: Final = 800.0  # ... what it saves of the cost of a nest
MASKED: Final = 32  # bytes of the vectors of processors that read parts of them under masks
SHORT: Final = 32  # loops up to here get vectors of just this length
BULK: Final = 40  # weight of a summand
LIGHT: Final = 24  # weight of what joins two parts of a running fold
GATHERS: Final = (
    64  # bytes of the vectors of processors that gather as quickly as they read, and mask
)
LONG: Final = 50  # weight of a body that keeps the units busy with few registers at a time


def vectorized(body: Body, sizes: Sizes) -> tuple[Body, list[str]]:
    """A nest of which some loops are vectors, and why these."""
    v = _Vectorizer(sizes)
    return v.body(body), v.reasons


class _Vectorizer:
    """Chooses for each nest of one kernel."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.reasons: list[str] = []
        self.made_lanes = 0
        self.vector_bytes = describe().vector_bytes

    def body(self, body: Body, inside: bool = False) -> Body:
        return tuple(
            x for s in body for x in (self.loop(s, inside) if isinstance(s, For) else (s,))
        )

    def loop(self, f: For, inside: bool) -> Body:
        """A nest with its best loop made a vector: this one, or those inside."""
        if f.kind != "serial":
            return (f,)
        f = flattened(f, self.sizes, 4 * (self.lanes_of(f)))
        turned = turned_round(f, self.sizes, self.vector_bytes)
        if turned is not None:
            self.reasons.append(turned.reason)
            return (turned.nest,)
        if len(parts := self.parts(f, inside)) > 1:
            return tuple(y for x in parts for y in self.loop(x, inside))
        beside = self.turned_rows(f)
        if beside is not None:
            return (beside,)
        sums = self.sums_beside(f)
        if sums is not None:
            return sums
        inner = [s for s in f.body if isinstance(s, For)]
        if not inner:
            return (self.leaf(f),)
        if len(f.body) == 1 and self.suits_rows(f, inner[0]):
            return (self.rows(f, inner[0]),)
        if self.suits_outer(f, inner) and self.sums_rows(f, inner):
            return self.row_sums(f)
        flat = written_out(f)
        inner = [s for s in flat.body if isinstance(s, For)]
        if self.suits_outer(flat, inner):
            lanes = self.lanes_of(f)
            around = nest_cost(flat, self.sizes, lanes, f.name)
            within = nest_cost(f, self.sizes, lanes, None)
            if around < (within / 2 if self.bulky(inner) else within):
                if suits_stripes(flat, self.sizes):
                    return self.stripes(flat, lanes)
                return self.outer(flat, f"cost {around:.3g} against {within:.3g}")
        if not inside and (rows := rows_of_block(f, self.sizes)):
            blocks, added, made = sums_first(f, rows)
            self.note(blocks, f"blocks of {rows} rows, whose sums come first")
            return (replace(blocks, body=(*self.body(added, inside=True), self.leaf(made))),)
        if not inside and suits_far_rows(f, self.sizes):
            f = self.note(in_far_rows(f), "four rows at a time, far apart")
        return (replace(f, body=self.body(f.body, inside=True)),)

    def leaf(self, f: For) -> For:
        """An innermost loop."""
        ordered = any(keeps_blocks(a) for a in f.accs)
        running = any(a.running for a in f.accs)
        if f.colliding:  # in their order, but without a division for each of them
            two = nested(divided([f], self.sizes))
            return self.note(two, "serial: its iterations write the same places")
        if self.keeps_rows(f):
            return self.note(f, "serial: its iterations share a row on the stack")
        if ordered:
            f = short_block(f, self.sizes)
            return self.note(
                replace(f, kind="vector", width=SCAN_BLOCK if running else self.sum_width(f)),
                "vector: the order of its sum",
            )
        if any(a.order == "sequential" for a in f.accs):
            return self.note(f, "serial: added in the order of the loop")
        if running:
            return self.note(replace(f, kind="vector", width=SCAN_BLOCK), "vector: a running fold")
        lanes = self.lanes_of(f)
        parts = divided([f], self.sizes)
        if len(parts) == 2 and turns(parts[1].extent, self.sizes) > NEAR:
            return nested([parts[0], self.leaf(parts[1])])
        wide, narrow = (nest_cost(f, self.sizes, n, f.name) for n in (lanes, 1))
        if wide >= narrow:
            return self.note(f, f"serial: cost {narrow:.3g}, as a vector {wide:.3g}")
        return self.note(
            replace(f, kind="vector", width=self.width(f, lanes)),
            f"vector: cost {wide:.3g}, serial {narrow:.3g}",
        )

    def parts(self, f: For, inside: bool) -> Sequence[For]:
        """A loop over what was joined from parts as several, unless threads would share it."""
        if not inside and nanoseconds((f,), self.sizes) > PARALLEL_NS:
            return (f,)
        leaf = not any(isinstance(s, For) for s in f.body)
        return cut(f, self.sizes, self.vector_bytes // memory_bytes(f) if leaf else 1)

    def suits_rows(self, f: For, inner: For) -> bool:
        """Is the loop inside a running fold that steps from row to row, while `f` runs along the
        rows?"""
        low, high = self.sizes.interval(inner.extent)
        if (
            not (self.sizes.known and low == high > 0)
            or f.accs
            or f.colliding
            or self.keeps_rows(f)
        ):
            return False
        if (
            inner.kind != "serial"
            or not inner.accs
            or not all(a.running and is_light(a) for a in inner.accs)
        ):
            return False
        stores = [s for s in inner.body if isinstance(s, Store)]
        along = all(step_along(s.buf.shape, s.idx, f.name) == 1 for s in stores)
        return along and len(stores) == len(inner.body) > 0 and not inner.colliding

    def rows(self, f: For, inner: For) -> For:
        """The running folds of many columns, side by side."""
        n = self.sizes.interval(inner.extent)[0]
        body = RowBlocks(inner, n, body_weight((inner,)) > BULK).body()
        width = self.fit(self.lanes_of(f), f.extent)
        return self.note(
            replace(f, body=tuple(body), kind="vector", width=width),
            f"vector: {inner.name} steps from row to row",
        )

    def suits_outer(self, f: For, inner: Sequence[For]) -> bool:
        """Can `f` be a vector with the loops inside it serial?"""
        if not all(isinstance(a, Acc) and a.op in ("and", "or") for a in f.accs) or f.colliding:
            return False
        for i in inner:
            if any(isinstance(s, (For, Recurrence, If)) for s in i.body) or any(
                a.running for a in i.accs
            ):
                return False
            if f.name in i.extent.names:
                return False
        return not self.keeps_rows(f)

    def sums_rows(self, f: For, inner: Sequence[For]) -> bool:
        """Does each turn add a row of a matrix, one element after the other?"""
        if len(inner) != 1 or element_bytes(f) not in (4, 8):
            return False
        lanes, (row,) = self.lanes_of(f), inner
        if row.body or turns(f.extent, self.sizes) < 2 * lanes:
            return False
        if turns(row.extent, self.sizes) <= NEAR:
            return False
        seen: set[Expr] = set()
        for a in row.accs:
            if not isinstance(a, Acc) or a.order != "sequential":
                return False
            for e in walk(a.value, seen):
                if e.op == "load" and e.attr.place == "arg":
                    idx = index_and_guard(e)[0]
                    along = step_along(e.attr.shape, idx, row.name)
                    if along == 1 and step_along(e.attr.shape, idx, f.name) not in (0, 1):
                        return True
        return False

    def turned_rows(self, f: For) -> For | None:
        """A loop over short rows as one of many rows beside each other, if that costs less."""
        lanes = self.lanes_of(f)
        if self.vector_bytes < MASKED:
            return None
        least = 1 if self.vector_bytes >= GATHERS else 4
        made = in_turned_rows(f, self.sizes, lanes, least)
        if made is None:
            return None
        made = replace(made, body=self.serial_inside(made.body))
        turned = nest_cost(made, self.sizes, lanes, f.name, rows=True)
        others = self.cost_of_others(f, lanes)
        if turned > WORTH * others:
            return None
        if self.elements(f) < ENOUGH and turned > others - GAINED:
            return None
        made = replace(made, kind="vector", width=lanes)
        return self.note(made, f"vector: rows beside each other, cost {turned:.3g}, {others:.3g}")

    def elements(self, f: For) -> float:
        """How many elements the longest of the loops inside goes through."""
        inside = [self.elements(s) for s in f.body if isinstance(s, For)]
        return turns(f.extent, self.sizes) * max(inside, default=1.0)

    def sums_beside(self, f: For) -> Body | None:
        """A loop with sums that read the same row beside each other, if that costs less."""
        made = with_sums_beside(f)
        if made is f or turns(f.extent, self.sizes) < 2 * (lanes := self.lanes_of(f)):
            return None
        inner = [s for s in made.body if isinstance(s, For)]
        around = nest_cost(made, self.sizes, lanes, f.name, rows=True)
        others = self.cost_of_others(f, lanes)
        if not self.suits_outer(made, inner) or around >= others:
            return None
        if self.sums_rows(made, inner):
            return self.row_sums(made)
        return self.outer(made, f"cost {around:.3g} against {others:.3g}")

    def cost_of_others(self, f: For, lanes: int) -> float:
        """The cost of a nest with any of its loops a vector that may be one."""
        around = [x.name for x in statements((f,)) if isinstance(x, For) and has_loops(x)]
        return min(nest_cost(f, self.sizes, lanes, x, rows=True) for x in (None, *around))

    def lanes_of(self, f: For) -> int:
        """How many elements a register holds."""
        return self.vector_bytes // element_bytes(f)

    def serial_inside(self, body: Body) -> Body:
        """Loops inside a vector loop, with those inside of them."""
        made = [
            replace(s, body=self.serial_inside(s.body)) if isinstance(s, For) else s for s in body
        ]
        return tuple(x for s in made for x in self.serial(s, BAKED))

    def row_sums(self, f: For) -> Body:
        """Sums of rows beside each other: squares are turned in registers."""
        lanes = self.lanes_of(f)
        made = replace(f, kind="vector", width=lanes)
        return (self.note(made, "vector around sums of rows, which are read in squares"),)

    def keeps_rows(self, f: For) -> bool:
        """Is there a row on the stack that every turn of the loop writes anew? Lanes would write it
        all at once."""
        return any(
            isinstance(s, Store)
            and s.buf.place == "stack"
            and not any(f.name in i.names for i in s.idx)
            for s in statements((f,))
        )

    def bulky(self, inner: Sequence[For]) -> bool:
        """Would sums in lanes, which write what they sum nine times, make a kernel that takes long
        to compile?"""
        return any(
            body_weight((replace(i, body=()),)) > BULK
            for i in inner
            if any(map(keeps_blocks, i.accs))
        )

    def outer(self, f: For, why: str) -> Body:
        """A vector loop around serial ones: eight accumulators hide the latency of an addition.
        Where nothing is added, or much is done in each turn, fewer registers are as quick, and
        LLVM, which writes every register's part of the body, is done sooner."""
        f = with_brief_written_out(f)
        lanes = self.lanes_of(f)
        inner = [s for s in f.body if isinstance(s, For)]
        sums = any(any(map(keeps_blocks, s.accs)) for s in inner)
        registers = 8 if any(s.accs for s in inner) else 4
        f = replace(f, body=tuple(x for s in f.body for x in self.serial(s)))
        if body_weight((f,)) > LONG:
            registers //= 2
        if self.goes_one_by_one(f):
            registers = 1
        width = self.evenly(self.fit(registers * lanes, f.extent), f, lanes)
        most = self.sizes.interval(f.extent)[1]
        while width > 2 * lanes and width // 2 >= most:  # registers that have nothing to add
            width //= 2
        if (
            self.sizes.may_grow(f.extent) and not sums
        ):  # rows may stay as short as they were while tracing: not much wider
            while width > 2 * lanes and width // 2 >= self.sizes.hinted.interval(f.extent)[1]:
                width //= 2
        f = replace(f, kind="vector", width=width)
        return (self.note(f, f"vector around serial loops: {why}"),)

    def stripes(self, f: For, lanes: int) -> Body:
        """Sums of the columns of a large matrix, whose rows stream past."""
        self.made_lanes += 1
        made = in_stripes(f, self.sizes, self.made_lanes, lanes)
        how = "whole rows" if len(made) > 1 else "stripes of columns"
        self.note(f, f"{how}: the rows of a large matrix stream")
        return made

    def serial(self, s: Statement, most: int = FEW) -> Sequence[Statement]:
        """A loop inside a vector loop: sums with an order of their own keep it; those of at most
        so many elements are written out."""
        if isinstance(s, For) and any(keeps_blocks(a) for a in s.accs):
            short = as_expressions(s, most)
            if short is not None:
                return short
            self.made_lanes += 1
            return in_lanes(s, self.sizes, self.made_lanes)
        return (s,)

    def note(self, f: For, why: str) -> For:
        self.reasons.append(
            f"{f.name}: {why}" + (f", {f.width} wide" if f.kind == "vector" else "")
        )
        return f

    def goes_one_by_one(self, f: For) -> bool:
        """Does it read elements that are apart, on a processor that does not gather? LLVM writes
        a read for each lane, however many there are."""
        if self.vector_bytes >= GATHERS:
            return False
        return any(
            step_along(e.attr.shape, index_and_guard(e)[0], f.name) not in (-1, 0, 1)
            for e in nodes((f,))
            if e.op == "load" and f.name in e.names
        )

    def width(self, f: For, lanes: int) -> int:
        """Four registers at a time for light loops, one for heavy ones: long chains keep the units
        busy by themselves."""
        w = body_weight((f,))
        most = (
            1 if parting(f, If) else 2 if parting(f, Recurrence) else 4
        )  # lanes that part wait for each other
        if self.goes_one_by_one(f):
            most = 1
        width = self.fit(lanes * min(most, 4 if w <= 120 else 2 if w <= 300 else 1), f.extent)
        return self.evenly(width, f, lanes) if f.accs else width

    def fit(self, width: int, extent: Expr) -> int:
        """No wider than a loop of constant extent needs, or a short one of any extent. Where what
        is left over is not masked, one that is longer has a whole vector at least."""
        most = extent.attr if is_const(extent) else self.sizes.interval(extent)[1]
        masks = self.vector_bytes >= GATHERS
        least = 2 if is_const(extent) else width if masks and most > SHORT else SHORT
        while width > least and (width // 2 >= most or width > most > SHORT):
            width //= 2
        return max(width, 2)

    def evenly(self, width: int, f: For, lanes: int) -> int:
        """So wide that little is left over, where that is done element by element, all of each:
        nothing of less than four bytes is masked but by AVX-512."""
        low, high = self.sizes.interval(f.extent)
        touched = stored((f,)) | loaded((f,))
        if low != high or self.vector_bytes >= GATHERS:
            return width
        if all(item_size(b.dtype) >= 4 for b in touched if b.place == "arg"):
            return width
        while width > lanes and high % width >= lanes:
            width //= 2
        return width

    def sum_width(self, f: For) -> int:
        if not is_const(f.extent):
            return BLOCK
        width = 2
        while width < BLOCK and width < f.extent.attr:
            width *= 2
        return width


def has_loops(f: For) -> bool:
    return any(isinstance(s, For) for s in f.body)


def is_light(a: Accumulator) -> bool:
    """Is joining two parts little code? It is written for every row of a block."""
    return isinstance(a, Acc) or weight(a.combine) <= LIGHT


def parting(f: For, kind: type[Recurrence] | type[If]) -> bool:
    """Are there loops (or choices) inside `f` that end (or fall out) differently for each of its
    turns?"""
    varying = {f.name} | vector_names(f, {f.name})
    return any(
        isinstance(s, kind) and s.cond is not None and not varying.isdisjoint(s.cond.names)
        for s in statements((f,))
    )
