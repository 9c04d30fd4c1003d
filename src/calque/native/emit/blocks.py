"""Statements -> blocks: counted loops, vector loops with masked tails, loops that carry states,
conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from calque.native.emit.folds import Folds, Lanes, lanes_of, prepare
from calque.native.emit.scopes import NOTHING
from calque.native.emit.tiles import Tile
from calque.native.emit.types import VALUE, vector
from calque.native.loops.polls import DECLARATION, counter, latch, may_take_long
from calque.native.loops.tree import (
    Acc,
    Body,
    Fold,
    For,
    If,
    Let,
    Loop,
    Statement,
    Store,
    stored,
    vector_names,
)
from calque.native.scalars.expr import LANE, Buffer, Expr, const, ex, is_const, var


@dataclass(frozen=True)
class TileRows:
    """Inside the emitter only: the body of a tile's vector loop, once for each of its rows."""

    var: Expr
    first: Expr
    row: Expr
    body: Body


TAIL_LANES: Final = 16  # at most so many lanes in the masked rest of a map
Typed = list[tuple[str, str]]  # (type, initial value) of what a loop carries


class Blocks(Folds):
    """Every kind of statement."""

    def __init__(
        self,
        exact: bool = False,
        outline: bool = False,
        avx512: bool = True,
        tag: str = "",
        half: bool = True,
    ) -> None:
        super().__init__(exact, outline, avx512, tag, half)
        self.written: dict[
            int, tuple[Statement, frozenset[Buffer]]
        ] = {}  # the statement is kept, so that its id stays its own

    def writes(self, s: Statement) -> frozenset[Buffer]:
        if not self.mutable:
            return NOTHING
        known = self.written.get(id(s))
        if known is None:
            known = self.written[id(s)] = (s, stored((s,)) & self.mutable)
        return known[1]

    def statements(self, body: Body) -> None:
        i = 0
        while i < len(body):
            s = body[i]
            i += 1
            if isinstance(s, Store):
                if i < len(body):
                    after = body[i]
                    if isinstance(after, Store) and self.is_pair_store(s, after):
                        self.store_pair(s, after)
                        i += 1
                        continue
                self.store(s)
            elif isinstance(s, For):
                self.for_(s)
            elif isinstance(s, Let):
                self.let(s)
            elif isinstance(s, TileRows):
                self.tile_rows(s)
            elif isinstance(s, Loop):
                self.loop(s)
            else:
                self.if_(s)

    def let(self, s: Let) -> None:
        vec = self.is_vec(s.value)
        self.bind(s.name, self.operand(s.value, vec))
        if vec:
            self.vecnames.add(s.name)

    # -- building blocks ---------------------------------------------------------------------------

    def guarded(
        self,
        cond: str,
        writes: frozenset[Buffer],
        barrier: bool,
        initial: Typed,
        emit: Callable[[], Lanes],
        lazy: bool = False,
    ) -> Lanes:
        """Code that runs only when ``cond`` holds; its values, else the initial ones."""
        k, parent = self.number(), self.scopes[-1]
        scope = self.open(f"g{k}", writes, barrier, lazy)
        new = emit()
        self.scopes.pop()
        parent.lines.append(f" br i1 {cond}, label %g{k}, label %x{k}\ng{k}:")
        parent.lines += scope.lines
        parent.lines.append(f" br label %x{k}\nx{k}:")
        enter, parent.block = parent.block, f"x{k}"
        return [
            self.new(f"phi {t} [{v}, %{enter}], [{w}, %{scope.block}]")
            for (t, v), w in zip(initial, new, strict=True)
        ]

    def counted(
        self,
        name: str,
        start: str,
        limit: str,
        step: int,
        writes: frozenset[Buffer],
        initial: Typed,
        body: Callable[[Lanes], Lanes],
    ) -> Lanes:
        """``for (name = start; ; name += step) while name < limit``, at least once, with carried
        values -> their last values."""
        k, parent = self.number(), self.scopes[-1]
        scope = self.open(f"b{k}", writes)
        i, phis = f"%i{k}", [f"%c{k}_{j}" for j in range(len(initial))]
        self.bind(name, i)
        new = body(phis)
        self.scopes.pop()
        parent.lines.append(
            f" br label %b{k}\nb{k}:\n {i} = phi i64 [{start}, %{parent.block}], [%n{k},"
            f" %{scope.block}]"
        )
        for p, (t, v), w in zip(phis, initial, new, strict=True):
            parent.lines.append(f" {p} = phi {t} [{v}, %{parent.block}], [{w}, %{scope.block}]")
        parent.lines += scope.lines
        parent.lines.append(
            f" %n{k} = add nuw nsw i64 {i}, {step}\n %l{k} = icmp slt i64 %n{k}, {limit}"
        )
        parent.lines.append(f" br i1 %l{k}, label %b{k}, label %x{k}\nx{k}:")
        parent.block = f"x{k}"
        return new

    # -- counted loops -----------------------------------------------------------------------------

    def for_(self, f: For) -> None:
        self.forget(self.writes(f))
        if f.kind == "vector":
            self.vector_loop(f)
        elif f.kind == "tile":
            self.tile_loop(f)
        else:
            self.serial_loop(f)

    def serial_loop(self, f: For) -> None:
        folds = prepare(f.accs)
        vectors = vector_names(f, self.vecnames) if self.width else set()
        widths = [0 if vectors.isdisjoint(a.names) else self.width for a in folds]
        initial = [
            (t, v)
            for a, w in zip(folds, widths, strict=True)
            for t, v in zip(self.fold_types(a, w), self.starts(a, w), strict=True)
        ]
        writes = self.writes(f)
        n = f.extent
        start, limit = (
            ("%begin", "%end") if f.kind == "parallel" else ("0", self.value(n, lane0=True))
        )

        def body(phis: Lanes) -> Lanes:
            return self.serial_body(f, folds, widths, phis)

        def run() -> Lanes:
            return self.counted(f.name, start, limit, 1, writes, initial, body)

        if n.op == "const" and f.kind != "parallel":
            out = run() if n.attr > 0 else [v for _, v in initial]
        else:
            more = self.new(f"icmp slt i64 {start}, {limit}")
            out = self.guarded(more, writes, True, initial, run)
        self.bind_folds(folds, widths, out)

    def bind_folds(self, folds: list[Fold], widths: list[int], out: Lanes) -> None:
        k = 0
        for a, w in zip(folds, widths, strict=True):
            for name in a.names:
                self.bind(name, out[k])
                if w:
                    self.vecnames.add(name)
                else:
                    self.vecnames.discard(name)
                k += 1

    def serial_body(self, f: For, folds: list[Fold], widths: list[int], phis: Lanes) -> Lanes:
        parts = split(phis, folds)
        new: list[Lanes | None] = [None] * len(folds)
        for j, (a, w) in enumerate(zip(folds, widths, strict=True)):
            if a.running:
                new[j] = out = self.combine(
                    a, w, parts[j], [self.operand(v, w > 0) for v in a.values]
                )
                self.bind_folds([a], [w], out)
        self.statements(f.body)
        flat: Lanes = []
        for j, (a, w) in enumerate(zip(folds, widths, strict=True)):
            flat += new[j] or self.combine(
                a, w, parts[j], [self.operand(v, w > 0) for v in a.values]
            )
        return flat

    def tile_loop(self, f: For) -> None:
        """Steps of whole tiles; what is left of the outer loop goes element by element."""
        (inner,) = f.body
        assert isinstance(inner, For)
        size, n, writes = f.width, f.extent, self.writes(f)
        plain = For(inner.var, inner.body)
        first, row = var(f"{f.name}.first"), var(f"{f.name}.row", size)
        limit = self.value(n, lane0=True)
        end = self.value(ex("mul", ex("floordiv", n, const(size)), const(size)), lane0=True)

        def step(phis: Lanes) -> Lanes:
            self.tile = Tile(f.var, first, row, size, inner.var)
            rows: Any = TileRows(f.var, first, row, inner.body)
            columns = For(inner.var, (rows,), (), "vector", size)
            self.written[id(columns)] = (columns, writes)
            self.vector_loop(columns)
            self.tile = None
            return []

        def tiles() -> Lanes:
            return self.counted(first.attr[0], "0", end, size, writes, [], step)

        def one(phis: Lanes) -> Lanes:
            self.for_(plain)
            return phis

        def rest() -> Lanes:
            return self.counted(f.name, end, limit, 1, writes, [], one)

        self.guarded(self.new(f"icmp sgt i64 {end}, 0"), writes, True, [], tiles)
        self.guarded(self.new(f"icmp slt i64 {end}, {limit}"), writes, True, [], rest)

    def tile_rows(self, s: TileRows) -> None:
        """The body for each row of a tile, where the loop that surrounds it (outside) is replaced
        by its row."""
        assert self.tile is not None
        tile, self.tile.arrays = self.tile, {}
        inside = self.width == tile.size

        def one(phis: Lanes) -> Lanes:
            first, at = self.value(s.first), self.value(s.row, lane0=True)
            self.bind(s.var.attr[0], self.new(f"add i64 {first}, {at}"))
            self.statements(s.body)
            return []

        if not inside:
            self.tile = None
        self.forget(stored(s.body))
        self.counted(s.row.attr[0], "0", str(tile.size), 1, stored(s.body) & self.mutable, [], one)
        self.tile = tile

    # -- vector loops ------------------------------------------------------------------------------

    def vector_loop(self, f: For) -> None:
        """Whole vectors, then a masked rest."""
        name, n, W = f.name, f.extent, f.width
        folds = prepare(f.accs)
        lanes = [0 if a.running else lanes_of(W) for a in folds]
        initial = []
        inits: list[Lanes] = []
        for acc, a, w in zip(f.accs, folds, lanes, strict=True):
            inits.append(self.starts(a, 0))
            initial += list(
                zip(self.fold_types(a, w), self.starts(neutral(acc, a), w), strict=True)
            )
            if a.running:
                initial[-len(a.names) :] = list(zip(self.fold_types(a, 0), inits[-1], strict=True))
        folds = [neutral(acc, a) for acc, a in zip(f.accs, folds, strict=True)]
        outer, writes = set(self.vecnames), self.writes(f)
        self.vec = name
        self.vecnames |= {name, LANE}
        if n.op == "const":
            values = (
                self.vector_parts(f, folds, initial, writes)
                if n.attr > 0
                else [v for _, v in initial]
            )
        else:
            more = self.new(f"icmp sgt i64 {self.value(n, lane0=True)}, 0")
            values = self.guarded(
                more, writes, True, initial, lambda: self.vector_parts(f, folds, initial, writes)
            )
        self.vecnames, self.vec, self.width = outer, None, 0
        for acc, a, w, part, init in zip(
            f.accs, folds, lanes, split(values, folds), inits, strict=True
        ):
            if not a.running:
                part = self.last(a, self.halves(a, part, w, 1), 1)
                if isinstance(acc, Acc) and acc.init is not None:
                    part = self.combine(a, 0, init, part)
            self.bind_folds([a], [0], part)

    def vector_parts(
        self, f: For, folds: list[Fold], initial: Typed, writes: frozenset[Buffer]
    ) -> Lanes:
        """The main loop and the rest of a loop that is not empty."""
        name, n, W = f.name, f.extent, f.width
        limit = self.value(n, lane0=True)
        main = ex("mul", ex("floordiv", n, const(W)), const(W))
        end = self.value(main, lane0=True)
        values = [v for _, v in initial]
        self.used_math = False

        def whole(phis: Lanes) -> Lanes:
            self.width, self.mask = W, None
            self.where[LANE] = self.where[name]
            return self.vector_body(f, folds, phis)

        def loop() -> Lanes:
            return self.counted(name, "0", end, W, writes, initial, whole)

        if main.op != "const":
            enough = self.new(f"icmp sge i64 {limit}, {W}")
            values = self.guarded(enough, writes, False, initial, loop)
        elif main.attr:
            values = loop()
        rest = ex("sub", n, main)
        if is_const(rest, 0):
            return values
        carried = [(t, v) for (t, _), v in zip(initial, values, strict=True)]
        tail = self.fold_tail if folds else self.map_tail
        if rest.op == "const":
            return tail(f, folds, carried, writes, end, limit)
        more = self.new(f"icmp slt i64 {end}, {limit}")
        return self.guarded(
            more, writes, False, carried, lambda: tail(f, folds, carried, writes, end, limit)
        )

    def fold_tail(
        self,
        f: For,
        folds: list[Fold],
        carried: Typed,
        writes: frozenset[Buffer],
        start: str,
        limit: str,
    ) -> Lanes:
        """One more block, in which what does not exist is the identity."""
        parent = self.scopes[-1]
        self.open(parent.block, writes)
        self.width = f.width
        self.bind(f.name, start)
        self.where[LANE] = self.where[f.name]
        self.mask = self.rest_mask(start, limit)
        new = self.vector_body(f, folds, [v for _, v in carried])
        self.mask = None
        self.close(parent)
        return new

    def map_tail(
        self,
        f: For,
        folds: list[Fold],
        carried: Typed,
        writes: frozenset[Buffer],
        start: str,
        limit: str,
    ) -> Lanes:
        """A few lanes at a time: masked where the processor can, one by one where it cannot."""
        whole = self.used_math or any(
            isinstance(s, (For, Loop)) for s in f.body
        )  # loops inside are worth one more turn only
        width = min(f.width if whole else TAIL_LANES, f.width) if self.avx512 else 0
        names, vec = self.vecnames, self.vec
        scalar = (
            names - vector_names(f, names | {f.name}) - {f.name, LANE}
        )  # what the whole vectors bound is bound anew

        def some(phis: Lanes) -> Lanes:
            self.width = width
            self.where[LANE] = self.where[f.name]
            if width:
                self.mask = self.rest_mask(self.bound[f.name], limit)
            else:
                self.vec, self.vecnames = None, scalar
            self.statements(f.body)
            self.mask = None
            self.vec, self.vecnames = vec, names
            return []

        return self.counted(f.name, start, limit, width or 1, writes, carried, some)

    def rest_mask(self, start: str, limit: str) -> str:
        """Which lanes of the vector at ``start`` lie before ``limit``."""
        W = self.width
        left = self.new(f"trunc i64 {self.new(f'sub i64 {limit}, {start}')} to i32")
        lanes = ", ".join([f"i32 {i}" for i in range(W)])
        return self.new(f"icmp slt <{W} x i32> <{lanes}>, {self.splat(left, 'i32')}")

    def vector_body(self, f: For, folds: list[Fold], phis: Lanes) -> Lanes:
        W = self.width
        parts = split(phis, folds)
        new: list[Lanes | None] = [None] * len(folds)
        for j, a in enumerate(folds):
            if a.running:
                new[j] = self.running(a, parts[j])
        self.statements(f.body)
        flat: Lanes = []
        for j, a in enumerate(folds):
            out = new[j]
            if out is None:
                values = self.masked(a, [self.operand(v, True) for v in a.values], W)
                lanes = lanes_of(W)
                out = self.combine(a, lanes, parts[j], self.halves(a, values, W, lanes))
            flat += out
        return flat

    def running(self, a: Fold, carry: Lanes) -> Lanes:
        """The running fold inside the vector, after all before it; gives what is carried on."""
        W = self.width
        values = self.masked(a, [self.operand(v, True) for v in a.values], W)
        inside = self.prefix(a, values, W)
        spread = [self.splat(c, VALUE[e.dtype]) for c, e in zip(carry, a.values, strict=True)]
        for name, v in zip(a.names, self.combine(a, W, spread, inside), strict=True):
            self.bind(name, v)
            self.vecnames.add(name)
        return self.combine(a, 0, carry, self.last(a, inside, W, W - 1))

    # -- loops with states -------------------------------------------------------------------------

    def loop(self, s: Loop) -> None:
        """Where the condition differs from lane to lane, a lane that has ended keeps its states,
        for which the condition goes on to fail."""
        self.forget(self.writes(s))
        k, parent = self.number(), self.scopes[-1]
        vec = self.vec_states(s)
        widths = [self.width if t.name in vec else 0 for t in s.states]
        first = [self.start(t.init, w) for t, w in zip(s.states, widths, strict=True)]
        limit = self.value(s.var.attr[1], lane0=True) if s.var is not None else ""
        writes = self.writes(s)
        head = self.open(f"h{k}", writes)
        phis = [f"%c{k}_{j}" for j in range(len(s.states))]
        i = f"%i{k}"
        if s.var is not None:
            self.bind(s.var.attr[0], i)
        self.vecnames |= vec
        for t, p in zip(s.states, phis, strict=True):
            self.bind(t.name, p)
        self.statements(s.test)
        tests = [self.new(f"icmp slt i64 {i}, {limit}")] if s.var is not None else []
        here = self.live
        parting = s.cond is not None and self.width > 0 and self.is_vec(s.cond)
        if s.cond is not None:
            if parting:
                self.live = self.those(self.value(s.cond))
            tests.append(self.some(self.live) if parting else self.value(s.cond, lane0=True))
        go = tests[0] if len(tests) == 1 else self.new(f"and i1 {tests[0]}, {tests[1]}")
        inner = self.open(f"b{k}", writes, barrier=True)
        for t, p in zip(
            s.states, phis, strict=True
        ):  # from here on what depends on states belongs to the body
            self.bind(t.name, p)
        if s.var is not None:
            self.bind(s.var.attr[0], i)
        self.statements(s.body)
        new = [self.operand(t.next, w > 0) for t, w in zip(s.states, widths, strict=True)]
        if parting:
            new = [
                self.either(self.live, x, p, t.init.dtype)
                for t, x, p in zip(s.states, new, phis, strict=True)
            ]
            self.live = here
        if s.var is not None:
            self.put(f" %n{k} = add nuw nsw i64 {i}, 1")
        self.scopes.pop()
        self.scopes.pop()
        parent.lines.append(f" br label %h{k}\nh{k}:")
        if may_take_long(s):
            lines, inner.block = latch(s, k)
            inner.lines += lines
            self.declared.add(DECLARATION)
            parent.lines += counter(s, k, parent.block, inner.block)
        if s.var is not None:
            parent.lines.append(f" {i} = phi i64 [0, %{parent.block}], [%n{k}, %{inner.block}]")
        for p, t, w, v, x in zip(phis, s.states, widths, first, new, strict=True):
            parent.lines.append(
                f" {p} = phi {vector(VALUE[t.init.dtype], w)} [{v}, %{parent.block}], [{x},"
                f" %{inner.block}]"
            )
        parent.lines += head.lines
        parent.lines.append(f" br i1 {go}, label %b{k}, label %x{k}\nb{k}:")
        parent.lines += inner.lines
        parent.lines.append(f" br label %h{k}\nx{k}:")
        parent.block = f"x{k}"
        for t, p in zip(s.states, phis, strict=True):
            self.bind(t.name, p)

    def vec_states(self, s: Loop) -> set[str]:
        """States that differ from lane to lane: by their start, or by what they become (through
        others, too)."""
        if not self.width:
            return set()
        known = self.vecnames | vector_names(s, self.vecnames)
        return {t.name for t in s.states} & known

    # -- conditions --------------------------------------------------------------------------------

    def those(self, which: str) -> str:
        """The lanes in ``which`` that are here."""
        return (
            which
            if self.present is None
            else self.new(f"and <{self.width} x i1> {which}, {self.present}")
        )

    def some(self, which: str | None) -> str:
        """Is there any lane in ``which``?"""
        W = self.width
        return self.new(
            self.intrinsic("vector.reduce.or", f"v{W}i1", "i1", (f"<{W} x i1>", which or ""))
        )

    def either(self, which: str | None, a: str, b: str, dtype: str) -> str:
        """``a`` in the lanes in ``which``, ``b`` in the others."""
        t = vector(VALUE[dtype], self.width)
        return self.new(f"select <{self.width} x i1> {which}, {t} {a}, {t} {b}")

    def if_lanes(self, s: If) -> None:
        """Lanes part: each side runs if any lane takes it, for those that do."""
        here, cond = self.live, self.value(s.cond)
        other = self.new(f"xor <{self.width} x i1> {cond}, splat (i1 true)")
        initial = [(vector(VALUE[o.then.dtype], self.width), "zeroinitializer") for o in s.outs]
        found: list[Lanes] = []
        for mask, body, exprs in (
            (self.those(cond), s.then, [o.then for o in s.outs]),
            (self.those(other), s.orelse, [o.orelse for o in s.outs]),
        ):
            self.live = mask
            found.append(
                self.guarded(
                    self.some(mask),
                    self.writes(s),
                    True,
                    initial,
                    partial(self.side, body, exprs),
                    lazy=True,
                )
            )
            self.live = here
        for o, a, b in zip(s.outs, *found, strict=True):
            self.bind(o.name, self.either(cond, a, b, o.then.dtype))
            self.vecnames.add(o.name)

    def side(self, body: Body, exprs: list[Expr]) -> Lanes:
        self.statements(body)
        return [self.operand(e, True) for e in exprs]

    def if_(self, s: If) -> None:
        if self.width and self.is_vec(s.cond):
            self.if_lanes(s)
            return
        k, parent = self.number(), self.scopes[-1]
        cond = self.value(s.cond, lane0=True)
        vec = [self.width > 0 and (self.is_vec(o.then) or self.is_vec(o.orelse)) for o in s.outs]
        if self.width and s.outs:
            inner = vector_names(s, self.vecnames)
            vec = [
                v or not inner.isdisjoint(o.then.names | o.orelse.names)
                for v, o in zip(vec, s.outs, strict=True)
            ]
        sides = []
        for label, body, exprs in (
            ("t", s.then, [o.then for o in s.outs]),
            ("e", s.orelse, [o.orelse for o in s.outs]),
        ):
            scope = self.open(f"{label}{k}", self.writes(s), lazy=True)
            self.statements(body)
            values = [self.operand(e, v) for e, v in zip(exprs, vec, strict=True)]
            self.scopes.pop()
            sides.append((scope, values))
        parent.lines.append(f" br i1 {cond}, label %t{k}, label %e{k}")
        for label, (scope, _) in zip("te", sides, strict=True):
            parent.lines.append(f"{label}{k}:")
            parent.lines += scope.lines
            parent.lines.append(f" br label %x{k}")
        parent.lines.append(f"x{k}:")
        parent.block = f"x{k}"
        (then, a), (orelse, b) = sides
        for j, o in enumerate(s.outs):
            t = vector(VALUE[o.then.dtype], self.width if vec[j] else 0)
            self.bind(
                o.name, self.new(f"phi {t} [{a[j]}, %{then.block}], [{b[j]}, %{orelse.block}]")
            )
            if vec[j]:
                self.vecnames.add(o.name)


def neutral(acc: object, a: Fold) -> Fold:
    """The fold with its identity as start (a given start is folded in at the end)."""
    if isinstance(acc, Acc) and acc.init is not None:
        plain = prepare((Acc(acc.name, acc.op, acc.value, acc.running),))[0]
        return plain
    return a


def split(values: Iterable[str], folds: list[Fold]) -> list[Lanes]:
    """The flat list of carried values, fold by fold."""
    it = iter(values)
    return [[next(it) for _ in a.names] for a in folds]
