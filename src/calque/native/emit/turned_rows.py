"""Rows of memory, one for each lane of a vector loop, into a lane buffer or back: in squares, which
are turned in registers."""

from __future__ import annotations

from collections.abc import Sequence

from calque.machine.records import record
from calque.native.emit.addresses import address, align, before, memory_type, moving_place, place
from calque.native.emit.flow import counted, guarded
from calque.native.emit.instructions import words, words_to
from calque.native.emit.lanes import SCALAR, Lanes
from calque.native.emit.statements import writes
from calque.native.emit.transposing import transposed
from calque.native.emit.values import value
from calque.native.emit.whole import whole_vectors
from calque.native.emit.writer import Writer
from calque.native.loops.tree import SQUARE, For, Store
from calque.native.scalars.expr import (
    Buffer,
    Expr,
    const,
    ex,
    is_const,
    rewrite,
    stride,
    terms,
    var,
    walk,
)


@record(eq=False)
class Copy:
    """A loop that copies a row for each lane between memory, at a place, and a lane buffer."""

    w: Writer
    f: For
    memory: Buffer
    at: Expr
    lane: Buffer
    step: int | None  # from row to row
    back: bool  # into memory

    @property
    def type(self) -> str:
        return memory_type(self.memory)


def turned_copy(w: Writer, f: For, lanes: Lanes) -> bool:
    """Write a loop that copies rows as squares; False if it is no such loop."""
    copy = copy_of(w, f, lanes)
    if copy is None:
        return False
    size, n = lanes.width, f.extent
    if is_const(n):  # what is left over first: it may reach into what is written then
        for begin in reversed(range(0, n.attr, size)):
            square(copy, lanes, const(begin), masks_of_rows(copy, begin, size))
        return True
    whole, written = whole_vectors(w, n, size), writes(w, f)
    first, limit = var(f"{f.name}.first"), value(w, n, SCALAR)
    masked = whole is not n and w.options.avx512
    end = limit if masked else value(w, whole, SCALAR)

    def part() -> str:
        return before(w, value(w, first, SCALAR), limit, size)

    def each(_: list[str]) -> list[str]:
        square(copy, lanes, first, [part() if masked else None] * size)
        return []

    def squares() -> list[str]:
        return counted(w, first.attr[0], ("0", end), size, written, [], each)

    def rest() -> list[str]:
        w.bind(first.attr[0], end)
        square(copy, lanes, first, [part()] * size)
        return []

    guarded(w, w.new(f"icmp sgt i64 {end}, 0"), written, [], squares)
    if not masked and whole is not n:
        guarded(w, w.new(f"icmp slt i64 {end}, {limit}"), written, [], rest)
    return True


def copy_of(w: Writer, f: For, lanes: Lanes) -> Copy | None:
    """What a loop copies, if it is a row for each lane."""
    size = lanes.width
    if len(f.body) != 1 or f.accs or f.kind != "serial" or not 4 <= size <= SQUARE:
        return None
    s = f.body[0]
    if lanes.active is not None or lanes.tile is not None or not isinstance(s, Store):
        return None
    if s.guard is not None or s.value.op != "load" or len(s.value.args) > len(s.value.attr.shape):
        return None
    ends = (s.buf, s.idx), (s.value.attr, s.value.args)
    (memory, idx), (lane, (own, *others)) = ends if s.buf.place == "arg" else ends[::-1]
    if memory.place != "arg" or lane.place != "lane" or own is not f.var or others:
        return None
    at, step = moving_place(memory, idx, lanes)
    if step in (0, 1) or not at.index or stride(at, f.name) != 1:
        return None
    even = is_const(f.extent) and f.extent.attr % size == 0
    copy = Copy(w, f, memory, at, lane, step, s.buf is memory)
    return copy if even or has_masks(w, memory) else None


def has_masks(w: Writer, b: Buffer) -> bool:
    """Can a part of a row be read and written under a mask at once?"""
    return w.options.avx512 or (w.options.register_bytes >= 32 and align(b) >= 4)


def masks_of_rows(copy: Copy, first: int, size: int) -> list[str | None]:
    """Which columns of a square there are, row by row. Where rows lie one behind the other, those
    that are not there are of the next ones, and are written by these; but for the last rows."""
    n = copy.f.extent.attr
    there = [k < n - first for k in range(size)]
    if all(there):
        return [None] * size
    mask = "<" + ", ".join([f"i1 {'true' if k else 'false'}" for k in there]) + ">"
    inside = [copy.step == n and r * n + first + size <= size * n for r in range(size)]
    return [None if free else mask for free in inside]


def square(copy: Copy, lanes: Lanes, first: Expr, masks: Sequence[str | None]) -> None:
    """A square of columns from one on, for all lanes, of which there are these."""
    w, t, size = copy.w, copy.type, lanes.width
    full = f"<{size} x {t}>"
    rows = row_pointers(copy, lanes, first)
    own = [column_pointer(copy, lanes, first, k) for k in range(size)]
    aligned = align(copy.memory)
    if copy.back:
        columns = [w.new(f"load {full}, ptr {p}, align {aligned}") for p in own]
        for p, v, mask in zip(rows, transposed(w, columns, t), masks, strict=True):
            words_to(w, t, aligned, v, p, mask, size)
    else:
        read = [words(w, t, aligned, p, m, size) for p, m in zip(rows, masks, strict=True)]
        for p, v in zip(own, transposed(w, read, t), strict=True):
            w.put(f" store {full} {v}, ptr {p}, align {aligned}")


def row_pointers(copy: Copy, lanes: Lanes, first: Expr) -> list[str]:
    """The first elements of the rows of all lanes."""
    w, size = copy.w, lanes.width
    lane = next(x for x in walk(copy.at, set()) if x.op == "var" and x.attr[0] == lanes.variable)
    apart = distance(copy.at, lane)
    if apart is None:
        moved = [{lane: ex("add", lane, const(r)), copy.f.var: first} for r in range(size)]
        places = [rewrite(copy.at, here.get, {}) for here in moved]
        return [address(w, copy.memory, at, SCALAR) for at in places]
    out = [address(w, copy.memory, rewrite(copy.at, {copy.f.var: first}.get, {}), SCALAR)]
    step = value(w, apart, SCALAR)
    while len(out) < size:
        out.append(w.new(f"getelementptr {copy.type}, ptr {out[-1]}, i64 {step}"))
    return out


def distance(at: Expr, lane: Expr) -> Expr | None:
    """How far a place moves from lane to lane, if always as far."""
    moving = [(e, k) for e, k in terms(at)[0].items() if lane.attr[0] in e.names]
    if len(moving) != 1:
        return None
    (e, k) = moving[0]
    rows, row = e.args if e.op == "mul" else (e, const(1))
    if lane.attr[0] in row.names or (steps := stride(rows, lane.attr[0])) is None:
        return None
    return ex("mul", row, const(k * steps))


def column_pointer(copy: Copy, lanes: Lanes, first: Expr, k: int) -> str:
    """An element of all lanes."""
    return address(copy.w, copy.lane, place(copy.lane, (ex("add", first, const(k)),)), lanes)
