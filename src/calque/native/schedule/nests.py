"""Which loop of a nest becomes a vector, how wide; which is run by several threads; and why.

Vector loops: the innermost loop along which memory is contiguous, or the one around serial
reductions (a column sum). Orders of float sums are kept: a sum that does not run along the vector
keeps its 16 partial sums beside each other (`lanes`). Every decision is noted in words, in
`Schedule.reasons`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from calque.machine.code.target import describe
from calque.native.loops.tree import (
    BLOCK,
    LANES,
    SCAN_BLOCK,
    Acc,
    Accumulator,
    Body,
    For,
    If,
    Let,
    Loop,
    Statement,
    Store,
    acc_exprs,
    identity,
    map_acc,
    map_exprs,
    own_exprs,
    statements,
    vector_names,
)
from calque.native.lower.layout import guarded
from calque.native.lower.sizes import Sizes, is_size
from calque.native.scalars.expr import (
    ZERO,
    Buffer,
    Expr,
    const,
    ex,
    index_and_guard,
    is_const,
    item_size,
    load,
    ref,
    rewrite,
    select,
    var,
    walk,
)
from calque.native.scalars.weights import HEAVY
from calque.native.schedule.cost import UNKNOWN, Steps, cost
from calque.native.schedule.running import Rows
from calque.native.schedule.unroll import unrolled

PARALLEL_NS: Final = 35_000  # a kernel shorter than this is run by one thread
GRAIN_NS: Final = 2_000  # no thread gets less at a time: what is left over at the end is small then
SPLIT: Final = 4096  # elements of a parallel block of a one-dimensional loop
PLACE_BYTES: Final = 8  # of an index that is an element of a vector
SHORT: Final = 32  # loops up to here get vectors of just this length
BULK: Final = 40  # weight of a summand
LIGHT: Final = 24  # weight of what joins two parts of a running fold
FEW: Final = 5  # blocks of a sum in lanes
TILES: Final = 64  # rows of a parallel block of a transposition
LONGEST: Final = 1 << 40  # a loop that nobody knows more of is not cut into pieces


class Plan:
    """How a kernel is to be run: its body, and the range of its outermost loop when that is
    parallel."""

    __slots__ = ("body", "extent", "grain", "ns", "reasons")

    def __init__(self, body: Body, ns: float, reasons: list[str]) -> None:
        self.body, self.ns, self.reasons = body, ns, reasons
        self.extent: Expr | None = None
        self.grain: int | Expr = 0  # turns that are worth a thread


class Schedule:
    """Makes a kernel of a nest."""

    def __init__(self, sizes: Sizes, threads: bool = True) -> None:
        self.sizes, self.threads = sizes, threads
        self.reasons: list[str] = []
        self.fresh = 0
        self.steps = Steps()
        t = describe()
        self.vector_bytes, self.registers = t.vector_bytes, t.vector_registers

    # --- which loop -------------------------------------------------------------------------------

    def run(self, body: Body) -> Plan:
        """Short loops, vectors, threads."""
        return self.finish(self.body(unrolled(body)))

    def finish(self, body: Body, slower: float = 1.0) -> Plan:
        """Threads only: the vectors are there already."""
        plan = Plan(body, slower * self.time(body), self.reasons)
        if self.threads and len(body) == 1 and isinstance(body[0], For):
            if plan.ns > PARALLEL_NS or self.may_grow(body[0].extent):
                self.parallel(plan, body[0])
        return plan

    def body(self, body: Body) -> Body:
        return tuple(x for s in body for x in (self.loop(s) if isinstance(s, For) else (s,)))

    def loop(self, f: For) -> Body:
        """A nest with its best loop made a vector: this one, or those inside."""
        if f.kind != "serial":
            return (f,)
        inner = [s for s in f.body if isinstance(s, For)]
        if not inner:
            return (self.leaf(f),)
        if len(f.body) == 1 and self.suits_tile(f, inner[0]):
            return (self.tile(f, inner[0]),)
        if len(f.body) == 1 and self.suits_rows(f, inner[0]):
            return (self.rows(f, inner[0]),)
        if self.suits_outer(f, inner):
            lanes = self.vector_bytes // self.element_bytes(f)
            around, inside = (cost(f, self.sizes, lanes, v, self.steps) for v in (f.name, None))
            if around < (inside / 2 if self.bulky(inner) else inside):
                return self.outer(f, f"cost {around:.3g} against {inside:.3g}")
        return (replace(f, body=self.body(f.body)),)

    def leaf(self, f: For) -> For:
        """An innermost loop."""
        ordered = any(self.keeps_order(a) for a in f.accs)
        running = any(a.running for a in f.accs)
        if f.colliding:
            return self.note(f, "serial: its iterations write the same places")
        if self.keeps_rows(f):
            return self.note(f, "serial: its iterations share a row on the stack")
        if ordered:
            return self.note(
                replace(f, kind="vector", width=SCAN_BLOCK if running else self.sum_width(f)),
                "vector: the order of its sum",
            )
        if any(a.order == "sequential" for a in f.accs):
            return self.note(f, "serial: added in the order of the loop")
        if running:
            return self.note(replace(f, kind="vector", width=SCAN_BLOCK), "vector: a running fold")
        lanes = self.vector_bytes // self.element_bytes(f)
        wide, narrow = (cost(f, self.sizes, n, f.name, self.steps) for n in (lanes, 1))
        if wide >= narrow:
            return self.note(f, f"serial: cost {narrow:.3g}, as a vector {wide:.3g}")
        return self.note(
            replace(f, kind="vector", width=self.width(f)),
            f"vector: cost {wide:.3g}, serial {narrow:.3g}",
        )

    def suits_tile(self, f: For, inner: For) -> bool:
        """Is something read along `f` but written along the loop inside: a transposition?"""
        if f.accs or inner.accs or any(not isinstance(s, Store) for s in inner.body):
            return False
        if f.colliding or inner.colliding or f.name in inner.extent.names:
            return False
        if any(is_const(x.extent) for x in (f, inner)) or self.element_bytes(f) not in (4, 8):
            return False
        turned = False
        seen: set[Expr] = set()
        for s in inner.body:
            assert isinstance(s, Store)
            if self.steps(s.buf, s.idx, inner.name) != 1:
                return False
            for e in own_exprs(s):
                for x in walk(e, seen):
                    if x.op == "load":
                        idx = index_and_guard(x)[0]
                        turned |= self.steps(x.attr, idx, f.name) == 1 and self.steps(
                            x.attr, idx, inner.name
                        ) not in (
                            0,
                            1,
                        )
        return turned

    def tile(self, f: For, inner: For) -> For:
        """Square tiles, transposed in registers."""
        width = self.vector_bytes // self.element_bytes(f)
        body = replace(inner, kind="vector", width=width)
        return self.note(
            replace(f, kind="tile", width=width, body=(body,)),
            f"tiles of {width}: read along it, written along {inner.name}",
        )

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
            or not all(a.running and self.light(a) for a in inner.accs)
        ):
            return False
        stores = [s for s in inner.body if isinstance(s, Store)]
        along = all(self.steps(s.buf, s.idx, f.name) == 1 for s in stores)
        return along and len(stores) == len(inner.body) > 0 and not inner.colliding

    def light(self, a: Accumulator) -> bool:
        """Is joining two parts little code? It is written for every row of a block."""
        return (
            isinstance(a, Acc)
            or sum(HEAVY.get(x.op, 1) for e in a.combine for x in walk(e, set())) <= LIGHT
        )

    def rows(self, f: For, inner: For) -> For:
        """The running folds of many columns, side by side."""
        n = self.sizes.interval(inner.extent)[0]
        body = Rows(inner, n, self.weight(inner) > BULK).body()
        width = self.fit(self.vector_bytes // self.element_bytes(f), f.extent)
        return self.note(
            replace(f, body=tuple(body), kind="vector", width=width),
            f"vector: {inner.name} steps from row to row",
        )

    def suits_outer(self, f: For, inner: Sequence[For]) -> bool:
        """Can `f` be a vector with the loops inside it serial?"""
        if not all(isinstance(a, Acc) and a.op in ("and", "or") for a in f.accs) or f.colliding:
            return False
        for i in inner:
            if any(isinstance(s, (For, Loop, If)) for s in i.body) or any(
                a.running for a in i.accs
            ):
                return False
            if f.name in i.extent.names:
                return False
        return not self.keeps_rows(f)

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
            self.weight(replace(i, body=())) > BULK
            for i in inner
            if any(map(self.keeps_order, i.accs))
        )

    def outer(self, f: For, why: str) -> Body:
        """A vector loop around serial ones: eight accumulators hide the latency of an addition."""
        lanes = self.vector_bytes // self.element_bytes(f)
        sums = any(isinstance(s, For) and any(map(self.keeps_order, s.accs)) for s in f.body)
        f = replace(f, body=tuple(x for s in f.body for x in self.serial(s)))
        width = self.fit(8 * lanes, f.extent)
        if (
            self.may_grow(f.extent) and not sums
        ):  # rows may stay as short as they were while tracing: not much wider
            while width > 2 * lanes and width // 2 >= self.sizes.hinted.interval(f.extent)[1]:
                width //= 2
        f = replace(f, kind="vector", width=width)
        return (self.note(f, f"vector around serial loops: {why}"),)

    def serial(self, s: Statement) -> Sequence[Statement]:
        """A loop inside a vector loop: sums with an order of their own keep it."""
        if isinstance(s, For) and any(self.keeps_order(a) for a in s.accs):
            return self.in_lanes(s)
        return (s,)

    def note(self, f: For, why: str) -> For:
        self.reasons.append(
            f"{f.name}: {why}" + (f", {f.width} wide" if f.kind == "vector" else "")
        )
        return f

    def keeps_order(self, a: Accumulator) -> bool:
        """Is this a fold whose result tells in which blocks it was taken?"""
        return a.ordered and a.order == "blocked"

    # --- how good, how wide -----------------------------------------------------------------------

    def element_bytes(self, f: For) -> int:
        """The widest element that the vector handles; where places differ from lane to lane, or
        decide, they count, too."""
        size = 1
        for s in statements((f,)):
            if isinstance(s, Store):
                size = max(size, item_size(s.buf.dtype))
            for e in own_exprs(s):
                size = max(
                    size,
                    item_size(e.dtype) if e.dtype != "i64" else 1,
                    *(item_size(b.dtype) for b in e.bufs),
                    1,
                )
        return PLACE_BYTES if size < 4 and self.handles_places(f) else size

    def handles_places(self, f: For) -> bool:
        """Are indices themselves vectors: gathered at, or compared?"""
        seen: set[Expr] = set()
        for s in statements((f,)):
            for root in own_exprs(s):
                for e in walk(root, seen):
                    if f.name not in e.names:
                        continue
                    if e.op == "load" and self.steps(e.attr, index_and_guard(e)[0], f.name) not in (
                        -1,
                        0,
                        1,
                    ):
                        return True
                    if e.dtype == "i1" and e.args and e.args[0].dtype == "i64":
                        return True
        return False

    def weight(self, f: For) -> int:
        seen: set[Expr] = set()
        n = 0
        for s in statements((f,)):
            for e in own_exprs(s):
                for x in walk(e, seen):
                    if x.op not in ("var", "ref", "const", "param") and not (
                        x.dtype == "i64" and x.index
                    ):
                        n += HEAVY.get(x.op, 1)
        return n

    def width(self, f: For) -> int:
        """Four registers at a time for light loops, one for heavy ones: long chains keep the units
        busy by themselves."""
        w = self.weight(f)
        lanes = self.vector_bytes // self.element_bytes(f)
        most = (
            1 if parts(f, If) else 2 if parts(f, Loop) else 4
        )  # lanes that part wait for each other
        return self.fit(lanes * min(most, 4 if w <= 120 else 2 if w <= 300 else 1), f.extent)

    def fit(self, width: int, extent: Expr) -> int:
        """No wider than a loop of constant extent needs, or a short one of any extent."""
        most = extent.attr if is_const(extent) else self.sizes.interval(extent)[1]
        least = 2 if is_const(extent) else SHORT if most <= SHORT else width
        while width > least and width // 2 >= most:
            width //= 2
        return max(width, 2)

    def sum_width(self, f: For) -> int:
        if not is_const(f.extent):
            return BLOCK
        width = 2
        while width < BLOCK and width < f.extent.attr:
            width *= 2
        return width

    # --- sums across a vector ---------------------------------------------------------------------

    def in_lanes(self, f: For) -> list[Statement]:
        """An ordered sum along a loop inside a vector loop: 16 partial sums per lane, in the order
        that a vector along k would take.

        before: for k: s = sum(x[k, lane])
        after:  for q: for j < 16: p[j] += (x[64q+j] + x[64q+32+j]) + (x[64q+16+j] + x[64q+48+j]);
        the rest guarded; p folded by halves
        """
        self.fresh += 1
        kept = kept_values(f)
        memo: dict[Expr, Expr] = {}
        mine = [
            map_acc(a, lambda e: rewrite(e, kept.get, memo)) for a in f.accs if self.keeps_order(a)
        ]
        rest = tuple(a for a in f.accs if not self.keeps_order(a))
        out: list[Statement] = [replace(f, accs=rest)] if rest or f.body else []
        parts = []
        for n, a in enumerate(mine):
            assert isinstance(a, Acc)
            parts.append((a, Buffer(f"p{self.fresh}.{n}", (LANES,), a.value.dtype, "lane")))
        j = var(f"j{self.fresh}", LANES)
        q = var(f"q{self.fresh}", ex("floordiv", f.extent, const(BLOCK)))
        out += self.blocks(f, parts, j, q)
        out += self.rest(f, parts, q.attr[1], j)
        i = var(f"h{self.fresh}", 4)

        def at(p: Buffer, n: int) -> Expr:
            return load(p, (ex("add", i, const(n)),))

        halves = [
            (p, add(a, add(a, at(p, 0), at(p, 8)), add(a, at(p, 4), at(p, 12)))) for a, p in parts
        ]
        out.append(For(i, tuple(Store(p, (i,), e) for p, e in halves)))
        for a, p in parts:
            x = [load(p, (const(n),)) for n in range(4)]
            out.append(Let(a.name, add(a, add(a, x[0], x[2]), add(a, x[1], x[3]))))
        return out

    def blocks(
        self, f: For, parts: Sequence[tuple[Acc, Buffer]], j: Expr, q: Expr
    ) -> list[Statement]:
        """The whole blocks. Where there are few, the partial sums stay in registers; many are read
        in the order of memory."""
        start = tuple(Store(p, (j,), identity(a.op, a.value.dtype)) for a, p in parts)
        base = ex("mul", q, const(BLOCK))
        most = self.sizes.interval(f.extent)[1]
        if self.sizes.known and most < BLOCK:
            return [For(j, start)]
        if self.sizes.known and most < FEW * BLOCK and len(parts) == 1:
            sums = tuple(
                replace(
                    a,
                    name=f"{a.name}.{j.attr[0]}",
                    value=self.block_of(a, f, base, j, False),
                    order="sequential",
                )
                for a, _ in parts
            )
            stores = tuple(
                Store(p, (j,), ref(s.name, s.value.dtype)) for s, (_, p) in zip(sums, parts)
            )
            return [For(j, (For(q, (), sums), *stores))]
        step = tuple(self.block(a, p, f, base, j, False) for a, p in parts)
        return [For(j, start), For(q, (For(j, step),))]

    def rest(
        self, f: For, parts: Sequence[tuple[Acc, Buffer]], blocks: Expr, j: Expr
    ) -> list[Statement]:
        """The last, incomplete block: missing elements are the identity, which changes nothing, and
        are left out.

        Where the size is known it is known how many of the four 16s are there: the first `left`
        sums take one element more than the others.
        """
        low, high = self.sizes.interval(f.extent)
        base = ex("mul", blocks, const(BLOCK))
        if low != high or not self.sizes.known:
            return self.any_rest(f, parts, base, j)
        some, extra = divmod(low % BLOCK, LANES)
        left = ex("sub", ex("sub", f.extent, base), const(some * LANES))
        out: list[Statement] = []
        if extra:
            i = var(f"{j.attr[0]}.a", left)
            out.append(
                For(i, tuple(self.block(a, p, f, base, i, False, some + 1) for a, p in parts))
            )
        if some and extra < LANES:
            i = var(f"{j.attr[0]}.b", ex("sub", const(LANES), left))
            at = ex("add", i, left)
            out.append(For(i, tuple(self.block(a, p, f, base, at, False, some) for a, p in parts)))
        return out

    def any_rest(
        self, f: For, parts: Sequence[tuple[Acc, Buffer]], base: Expr, j: Expr
    ) -> list[Statement]:
        """The same for any size: a loop for the sums that take one more element, one for those that
        take two, three, four."""
        left = ex("sub", f.extent, base)

        def reach(n: int) -> Expr:
            return ex("min", ex("max", ex("sub", left, const(LANES * (n - 1))), ZERO), const(LANES))

        out: list[Statement] = []
        for count in (1, 2, 3, 4):
            more = reach(count + 1) if count < 4 else ZERO
            i = var(f"{j.attr[0]}.{count}", ex("sub", reach(count), more))
            at = ex("add", i, more)
            out.append(For(i, tuple(self.block(a, p, f, base, at, False, count) for a, p in parts)))
        return out

    def block(
        self, a: Acc, p: Buffer, f: For, base: Expr, j: Expr, guard: bool, count: int = 4
    ) -> Store:
        """One block of 64 elements, or the first `count` times 16 of them, added to the partial
        sums."""
        return Store(p, (j,), add(a, load(p, (j,)), self.block_of(a, f, base, j, guard, count)))

    @staticmethod
    def block_of(a: Acc, f: For, base: Expr, j: Expr, guard: bool, count: int = 4) -> Expr:
        """What a block adds to partial sum `j`."""

        def element(offset: int) -> Expr:
            k = ex("add", ex("add", base, j), const(offset))
            memo: dict[Expr, Expr] = {}
            value = rewrite(a.value, lambda e: k if e is f.var else None, memo)
            if not guard:
                return value
            ok = ex("lt", k, f.extent)
            return select(ok, guarded(value, ok), identity(a.op, value.dtype))

        total = element(0)
        if count > 2:
            total = add(a, total, element(32))
        if count > 1:
            other = element(16)
            total = add(a, total, add(a, other, element(48)) if count > 3 else other)
        return total

    # --- threads ----------------------------------------------------------------------------------

    def time(self, body: Body) -> float:
        """A guess of nanoseconds on one core."""
        total, todo = 0.0, [(s, 1.0) for s in body]
        while todo:
            s, times = todo.pop()
            if isinstance(s, For):
                times *= self.turns(s.extent)
                total += times * sum(self.exprs_time(acc_exprs(a)) for a in s.accs)
                todo += [(x, times) for x in s.body]
            elif isinstance(s, Loop):
                times *= self.turns(s.var.attr[1]) if s.var is not None else UNKNOWN
                total += times * self.exprs_time([t.next for t in s.states])
                todo += [(x, times) for x in (*s.test, *s.body)]
            else:
                total += times * self.exprs_time(own_exprs(s))
                if isinstance(s, If):
                    todo += [(x, times) for x in (*s.then, *s.orelse)]
        return total

    def turns(self, extent: Expr) -> float:
        hi = self.sizes.hinted.interval(extent)[1]
        return float(hi) if hi < 1 << 40 else UNKNOWN

    def exprs_time(self, exprs: Sequence[Expr]) -> float:
        seen: set[Expr] = set()
        w = 0
        for e in exprs:
            for x in walk(e, seen):
                if x.op not in ("var", "ref", "const", "param") and not x.index:
                    w += HEAVY.get(x.op, 1)
        return 0.02 * w + 0.02

    def parallel(self, plan: Plan, f: For) -> None:
        """The outermost loop shared out among threads, in pieces of at least `GRAIN_NS`."""
        if f.accs or f.colliding or not self.sizes.known:
            return
        n, grows = self.sizes.hinted.interval(f.extent)[1], self.may_grow(f.extent)
        found = not is_size(f.extent)  # its elements say how long the loop is
        if found and self.sizes.interval(f.extent)[1] > LONGEST:
            return
        per, inner = plan.ns / max(n, 1), self.growing_turns(f.body) if grows else None
        if f.kind in ("vector", "tile"):
            size = (
                TILES
                if f.kind == "tile"
                else f.width
                if holds(f, (Loop, If))
                else self.block_size(f)
            )
            if n < (4 if size == SPLIT else 2) * size and not grows:
                return
            f, per = self.split(f, size), per * size
            n = -(-n // size)
        elif found:
            f = self.split(f, 1)
        if n < 2 and not grows:
            return
        least = max(1, int((PARALLEL_NS / 2 if grows else GRAIN_NS) / max(per, 1e-3)))
        if inner is not None:  # less of a loop whose turns have become longer
            turns = int(self.turns(inner))
            plan.grain = ex(
                "add", ex("floordiv", const(least * turns), ex("max", inner, const(1))), const(1)
            )
        else:
            plan.grain = least if grows else -(-n // max(n // least, 1))  # pieces of one size
        plan.extent = f.extent
        plan.body = (replace(f, kind="parallel"),)
        self.note(
            f,
            f"threads: about {plan.ns / 1000:.0f} us of work, {least if grows else plan.grain}"
            " iterations at a time",
        )

    def block_size(self, f: For) -> int:
        """How many elements of a vector loop go to a thread at a time: fewer when loops inside take
        long."""
        inside = sum(self.turns(s.extent) for s in statements(f.body) if isinstance(s, For))
        size = SPLIT
        while size > f.width and size * inside > 4 * SPLIT:
            size //= 2
        return max(size, f.width)

    def may_grow(self, extent: Expr) -> bool:
        """May this program be called with a much longer loop than this one? Then pieces that are
        worth a thread are cut when it is."""
        return not self.sizes.free.isdisjoint(extent.names)

    def growing_turns(self, body: Body) -> Expr | None:
        """The free extents inside, multiplied: of the nest that runs longest."""
        found: list[Expr] = []
        for s in body:
            if isinstance(s, For):
                inside = self.growing_turns(s.body)
                known = is_size(s.extent) and s.extent.names <= self.sizes.values.keys()
                if self.may_grow(s.extent) and known:
                    inside = s.extent if inside is None else ex("mul", s.extent, inside)
                found += [inside] if inside is not None else []
        return max(found, key=self.turns, default=None)

    def split(self, f: For, size: int) -> For:
        """before: for i < n @vector        after: for b < ceil(n / 4096): for i < min(4096, n -
        4096 b) @vector, at 4096 b + i

        Of a loop whose extent only its kernel finds there are as many pieces as there may be at
        most; those that lie beyond the end are empty."""
        low, high = self.sizes.interval(f.extent)
        most = f.extent if is_size(f.extent) else self.sizes.dim(high)
        b = var("b", ex("floordiv", ex("add", most, const(size - 1)), const(size)))
        base = ex("mul", b, const(size))
        left = ex("sub", f.extent, base)
        if most is not f.extent:
            left = ex("max", left, ZERO)
        whole = low == high and high % size == 0
        i = var(f"{f.name}.in", const(size) if whole else ex("min", const(size), left))
        at = ex("add", base, i)
        memo: dict[Expr, Expr] = {}

        def fix(e: Expr) -> Expr:
            return rewrite(e, lambda x: at if x is f.var else None, memo)

        body = map_exprs(f.body, fix)
        accs = tuple(map_acc(a, fix) for a in f.accs)
        return For(b, (replace(f, var=i, body=body, accs=accs),))


def kept_values(f: For) -> dict[Expr, Expr]:
    """What the body of a loop computes and stores, for each turn in a place of its own: it can be
    read again."""
    stores = [s for s in f.body if isinstance(s, Store)]
    out: dict[Expr, Expr] = {}
    for s in stores:
        alone = (
            sum(t.buf is s.buf for t in stores) == 1
            and s.guard is None
            and any(i is f.var for i in s.idx)
        )
        if alone and s.value.args and s.value.op != "load" and s.value.dtype == s.buf.dtype:
            out[s.value] = load(s.buf, s.idx)
    return out


def parts(f: For, kind: type[Loop] | type[If]) -> bool:
    """Are there loops (or choices) inside `f` that end (or fall out) differently for each of its
    turns?"""
    varying = {f.name} | vector_names(f, {f.name})
    return any(
        isinstance(s, kind) and s.cond is not None and not varying.isdisjoint(s.cond.names)
        for s in statements((f,))
    )


def holds(f: For, kinds: tuple[type, ...]) -> bool:
    """Is any statement inside of one of these kinds?"""
    return any(isinstance(s, kinds) for s in statements(f.body))


def add(a: Acc, x: Expr, y: Expr) -> Expr:
    return ex("add" if a.op == "sum" else "mul", x, y)
