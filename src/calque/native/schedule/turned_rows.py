"""Rows too short to fill vectors: many of them beside each other, a lane for each.

before: for i < 1000: for c < 10: t[c] = exp(x[i, c]); for c < 10: y[i, c] = t[c] / (t[0] + ...)
after:  for i < 1000 @vector(16):
            for c < 10: x.row[c] = x[i, c]      (a square of memory, turned in registers)
            for c < 10: t[c] = exp(x.row[c])    (t and the others: 16 of each element)
            for c < 10: y.row[c] = t[c] / (t[0] + ...)
            for c < 10: y[i, c] = y.row[c]      (turned back)

Every row is read and written whole; what else is read is the same for all lanes, or lies lane by
lane, or is very short. Orders of sums stay what they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, Final

from calque.machine.records import record, replace
from calque.native.loops.tree import (
    NEAR,
    SQUARE,
    Acc,
    Body,
    For,
    Let,
    Statement,
    Store,
    map_exprs,
    map_stores,
    own_exprs,
    statements,
    stored,
)
from calque.native.lower.cost import step_along, sums_in_order, turns
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import (
    ZERO,
    Buffer,
    Expr,
    const,
    ex,
    index_and_guard,
    is_const,
    item_size,
    linear,
    load,
    rewrite,
    var,
    walk,
)
from calque.native.schedule.short_rows import with_brief_written_out
from calque.native.schedule.unroll import with_sums_beside

LONGEST: Final = 32  # elements of a row that is turned; longer ones fill vectors, ...
SEVERAL: Final = 64  # ... if they are one axis: of several axes, each of them is ...
SHORT: Final = 16  # ... no longer than this
ROOM: Final = 256  # elements on the stack, of which every lane has its own, if no loop is longer

ONE: Final = const(1)
Index = tuple[Expr, ...]


@record
class Row:
    """The elements of an array that differ in their last indices."""

    buf: Buffer
    lead: Index

    @property
    def trailing(self) -> Index:
        return self.buf.shape[len(self.lead) :]


class Unsuited(Exception):
    """A loop whose lanes touch memory in another way."""


def in_turned_rows(f: For, sizes: Sizes, lanes: int, least: int = 1) -> For | None:
    """The loop with its rows beside each other; None if it has none, or touches memory in another
    way. Parts of squares are read under masks, which have elements of at least so many bytes."""
    if f.accs or not 4 <= lanes <= SQUARE or turns(f.extent, sizes) < 2 * lanes:
        return None
    inner = [s for s in statements(f.body) if isinstance(s, For)]
    if (
        not inner
        or not all(map(is_calm, (f, *inner)))
        or any(f.name in x.extent.names for x in inner)
    ):
        return None
    together = with_sums_beside(with_brief_written_out(f))
    for near in (True, False):
        try:
            turning = _Turning(together, sizes, lanes, least, inner, near)
            turning.look()
        except Unsuited:
            continue
        if turning.rows or turning.stacks or together is not f:
            return turning.made()
    return None


def is_calm(f: For) -> bool:
    """A loop that lanes may go through together."""
    if f.kind != "serial" or f.colliding:
        return False
    plain = all(isinstance(s, (Let, Store, For)) for s in f.body)
    return plain and all(isinstance(a, Acc) and not a.running for a in f.accs)


def is_read_in_squares(s: Statement, e: Expr, f: For) -> bool:
    """Does a sum in the order of its loop read along it, another row in each turn of the loop
    around? Such are read in squares anyway."""
    if not isinstance(s, For) or not sums_in_order(s) or is_near(s.extent):
        return False
    idx = index_and_guard(e)[0]
    if e.attr.place != "arg" or step_along(e.attr.shape, idx, s.name) != 1:
        return False
    return step_along(e.attr.shape, idx, f.name) not in (0, 1)


def filled_by(shape: Index, idx: Index) -> Iterator[Any]:
    """The places that a store fills, if its indices are numbers and loops of known extent."""
    turns = [(i.attr,) if is_const(i) else whole_range(i) for i in idx]
    for at in product(*turns):
        yield linear(shape, tuple(map(const, at))).attr


def whole_range(i: Expr) -> Sequence[int]:
    """The values of a loop variable, if these are known."""
    return range(i.attr[1].attr) if i.op == "var" and is_const(i.attr[1]) else ()


def is_near(extent: Expr) -> bool:
    return is_const(extent) and extent.attr <= NEAR


def elements(b: Buffer) -> int:
    """How many a row of known size has."""
    return int(prod(d.attr for d in b.shape))


def is_inside(buf: Buffer, lead: Index) -> bool:
    """Is a row there in every turn of the loops that say which one?"""
    return all(
        i.attr < d.attr if is_const(i) and is_const(d) else i.op == "var" and i.attr[1] is d
        for i, d in zip(lead, buf.shape, strict=False)
    )


def in_order(body: Body) -> Iterator[Statement]:
    """All statements in the order in which they are done for the first time: what a loop folds
    behind what is in its body."""
    for s in body:
        if isinstance(s, For):
            yield from in_order(s.body)
        yield s


def names_bound(body: Body) -> Iterator[str]:
    """The names of values and folds in a loop's turn."""
    for s in statements(body):
        if isinstance(s, Let):
            yield s.name
        elif isinstance(s, For):
            for a in s.accs:
                yield from a.names


class _Turning:
    """One loop whose rows are turned, those of very few elements as well if these are written and
    `near`."""

    def __init__(
        self, f: For, sizes: Sizes, lanes: int, least: int, inner: Sequence[For], near: bool
    ) -> None:
        self.f, self.sizes, self.lanes, self.least = f, sizes, lanes, least
        self.near = stored(f.body) if near else frozenset[Buffer]()
        self.inner = {x.name for x in inner}
        self.found = frozenset(names_bound(f.body))  # values of a turn, which lanes do not share
        longest = max([turns(x.extent, sizes) for x in inner], default=0)
        self.longest = LONGEST if longest > SHORT else SEVERAL
        self.room = LONGEST if longest > LONGEST else ROOM
        self.own = stored(f.body)
        self.rows: dict[Row, None] = {}
        self.read: dict[Row, None] = {}  # before they are written
        self.written: dict[Row, list[Index]] = {}
        self.stacks: dict[Buffer, Buffer] = {}
        self.others: set[Buffer] = set()  # what is touched as it lies

    def made(self) -> For:
        rows = {r: self.lane_row(r, k) for k, r in enumerate(self.rows)}
        body = self.moved(rows)
        before = [s for r in self.read for s in self.copied(r, rows[r], back=False)]
        after = [s for r in self.written for s in self.copied(r, rows[r], back=True)]
        return replace(self.f, body=(*before, *body, *after))

    # --- what is touched --------------------------------------------------------------------------

    def look(self) -> None:
        """Note the rows, and which of them are read before they are written."""
        for s in self.f.body:
            for r in self.reads(s):
                if not self.covers(r, self.written.get(r, ())):
                    self.read[r] = None
                self.rows[r] = None
            for t in in_order((s,)):
                self.look_at_stacks(t)
                if isinstance(t, Store):
                    self.note(t)
        self.check()

    def look_at_stacks(self, s: Statement) -> None:
        """Refuse a turn that reads what an earlier one has left on the stack."""
        for b in {b for e in own_exprs(s) for b in e.bufs}:
            if b.place == "stack" and b in self.own and b not in self.stacks:
                raise Unsuited

    def reads(self, s: Statement) -> list[Row]:
        """The rows that a statement and those inside of it read."""
        rows = []
        for t in statements((s,)):
            seen: set[Expr] = set()
            for e in (x for root in own_exprs(t) for x in walk(root, seen)):
                if e.op != "load":
                    continue
                if e.attr in self.own or not is_read_in_squares(t, e, self.f):
                    row = self.row(e.attr, *index_and_guard(e))
                    rows += [] if row is None else [row]
        return rows

    def note(self, s: Store) -> None:
        """Note the row that a store fills, or a part of."""
        row = self.row(s.buf, s.idx)
        if row is not None:
            if s.guard is not None:
                raise Unsuited
            self.rows[row] = None
            self.written.setdefault(row, []).append(s.idx[len(row.lead) :])
        elif not any(self.f.name in i.names for i in s.idx):
            if s.buf.place != "stack" or s.guard is not None:
                raise Unsuited
            self.stacks.setdefault(s.buf, self.lane_stack(s.buf))  # each turn has its own

    def row(self, buf: Buffer, idx: Index, guard: Expr | None = None) -> Row | None:
        """The row that an access is in, if it is to be turned. A guard says which elements of a
        row are read; all of them may be copied."""
        name = self.f.name
        if buf.place == "stack" and any(not self.found.isdisjoint(i.names) for i in idx):
            raise Unsuited
        at = [k for k, i in enumerate(idx) if name in i.names]
        step = step_along(buf.shape, idx, name) if at else 0
        if step in (0, 1):
            self.others.add(buf)
            return None
        if buf.place != "arg":
            raise Unsuited
        lead = idx[: self.length_of_lead(idx, at[-1] + 1)]
        size = prod(self.sizes.interval(d)[1] for d in buf.shape[len(lead) :])
        if guard is not None and name in guard.names:
            raise Unsuited
        if size < 2 or (size <= NEAR and buf not in self.near):
            self.others.add(buf)
            return None
        if size > self.longest or not self.sizes.known:
            raise Unsuited
        if guard is not None and not is_inside(buf, lead):
            raise Unsuited
        if size > NEAR and size % self.lanes and item_size(buf.dtype) < self.least:
            raise Unsuited
        if any(i.bufs or not self.inner.isdisjoint(i.names) for i in lead):
            raise Unsuited
        if any(i.bufs for i in idx):
            raise Unsuited
        return Row(buf, lead)

    def length_of_lead(self, idx: Index, least: int) -> int:
        """How many indices say which row it is, in the loop or in those around it."""
        n = least
        while n < len(idx) and idx[n].names and self.inner.isdisjoint(idx[n].names):
            n += 1
        return n

    def check(self) -> None:
        """Is nothing else touched of rows that are written? Of those that are not written whole the
        rest is read, since it is written back."""
        for row, places in self.written.items():
            if not self.covers(row, places):
                self.read[row] = None
            if any(r.buf is row.buf and r != row for r in self.rows) or row.buf in self.others:
                raise Unsuited

    def covers(self, row: Row, places: Sequence[Index]) -> bool:
        """Do stores fill a row: loops over all of it, or all its places?"""
        trailing = row.trailing
        for idx in places:
            if all(
                (i.op == "var" and i.attr[1] is d and i.attr[0] in self.inner) or is_const(d, 1)
                for i, d in zip(idx, trailing, strict=True)
            ):
                names = [i.attr[0] for i in idx if i.op == "var"]
                if len(set(names)) == len(names):
                    return True
        if not all(is_const(d) for d in trailing):
            return False
        filled = {at for idx in places for at in filled_by(trailing, idx)}
        return len(filled) == prod(d.attr for d in trailing)

    # --- the loop ---------------------------------------------------------------------------------

    def places(self, n: int) -> Expr:
        """Room for whole squares."""
        return const(-(-n // self.lanes) * self.lanes)

    def lane_row(self, row: Row, k: int) -> Buffer:
        n = prod(self.sizes.interval(d)[1] for d in row.trailing)
        return Buffer(f"{row.buf.name}.row{k}", (self.places(n),), row.buf.dtype, "lane")

    def lane_stack(self, b: Buffer) -> Buffer:
        rows = (b, *self.stacks)
        if not all(is_const(d) for d in b.shape) or sum(map(elements, rows)) > self.room:
            raise Unsuited
        return Buffer(b.name, b.shape, b.dtype, "lane")

    def copied(self, row: Row, lane: Buffer, back: bool) -> Body:
        """A row into its lane, or back; very few elements one by one, which are written as one."""
        size = ONE
        for d in row.trailing:
            size = ex("mul", size, d)
        if is_near(size):
            places = product(*[range(d.attr) for d in row.trailing])
            return tuple([
                self.moved_back(row, lane, tuple(map(const, at)), const(c), back)
                for c, at in enumerate(places)
            ])  # fmt: skip
        c = var(f"{lane.name}.c", size)
        at = (*[ZERO] * (len(row.trailing) - 1), c)
        return (For(c, (self.moved_back(row, lane, at, c, back),)),)

    def moved_back(self, row: Row, lane: Buffer, at: Index, c: Expr, back: bool) -> Store:
        """An element of a row into its lane, or back."""
        there = (*row.lead, *at)
        if back:
            return Store(row.buf, there, load(lane, (c,)))
        return Store(lane, (c,), load(row.buf, there))

    def moved(self, rows: dict[Row, Buffer]) -> Body:
        """What is done, with rows of lanes."""
        memo: dict[Expr, Expr] = {}

        def place(buf: Buffer, idx: Index) -> tuple[Buffer, Index] | None:
            if buf in self.stacks:
                return self.stacks[buf], idx
            for k in range(1, len(idx)):
                lane = rows.get(Row(buf, idx[:k]))
                if lane is not None:
                    return lane, (linear(buf.shape[k:], idx[k:]),)
            return None

        def rule(e: Expr) -> Expr | None:
            if e.op != "load":
                return None
            idx, guard = index_and_guard(e)
            to = place(e.attr, idx)
            if to is None:
                return None
            inside = tuple([rewrite(i, rule, memo) for i in to[1]])
            return load(to[0], inside, None if guard is None else rewrite(guard, rule, memo))

        def store(s: Store) -> Store:
            to = place(s.buf, s.idx)
            return s if to is None else Store(to[0], to[1], s.value, s.guard)

        return map_stores(map_exprs(self.f.body, lambda e: rewrite(e, rule, memo)), store)
