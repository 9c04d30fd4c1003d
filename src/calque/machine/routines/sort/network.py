"""Sorting networks on vectors: unsigned integers in ascending order, some 2 ns an element up to
what the caches hold.

A square of as many vectors as a vector has lanes is sorted in registers: its columns by a network
of comparators, then, turned round, its rows are merged in pairs (bitonic merges). Longer runs are
merged in memory, and end in registers again. Comparators put the smaller of two at the lower place
always, so those whose upper place lies behind the end are left out: what is missing counts as the
largest.

The straight pieces are LLVM text over plain vectors, for lanes of 32 and 64 bits; the loops around
them are the machine language.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any, Final

from calque.machine.code import llvm, shipped, target
from calque.machine.code.digest import hexdigest
from calque.machine.lang.unit import (
    Unit,
    i64,
    load_i64,
    load_ptr,
    load_u32,
    memcpy,
    memset,
    ptr,
    signature,
    store_i32,
    store_i64,
    ult,
)
from calque.machine.once import once

PAD: Final = 256  # elements that may be written behind the end of what is sorted
_UNROLLED: Final = 4  # vectors that are split in one turn
_PIECES: Final = 5  # groups of 1, 2, 4, 8 and 16 vectors


class _Text:
    """LLVM text over vectors of unsigned integers."""

    def __init__(self, bits: int, lanes: int) -> None:
        self.bits, self.lanes = bits, lanes
        self.type = f"<{lanes} x i{bits}>"
        self.lines: list[str] = []
        self.count = 0

    def let(self, text: str) -> str:
        self.count += 1
        self.lines.append(f" %v{self.count} = {text}")
        return f"%v{self.count}"

    def place(self, base: str, index: int) -> str:
        return self.let(f"getelementptr i8, ptr {base}, i64 {index * self.lanes * self.bits // 8}")

    def load(self, place: str) -> str:
        return self.let(f"load {self.type}, ptr {place}, align {self.bits // 8}")

    def store(self, value: str, place: str) -> None:
        self.lines.append(f" store {self.type} {value}, ptr {place}, align {self.bits // 8}")

    def shuffle(self, a: str, b: str, picks: list[int]) -> str:
        mask = ", ".join(f"i32 {p}" for p in picks)
        return self.let(
            f"shufflevector {self.type} {a}, {self.type} {b}, <{self.lanes} x i32> <{mask}>"
        )

    def least(self, a: str, b: str) -> str:
        return self.extreme("umin", a, b)

    def greatest(self, a: str, b: str) -> str:
        return self.extreme("umax", a, b)

    def extreme(self, which: str, a: str, b: str) -> str:
        return self.let(
            f"call {self.type} @llvm.{which}.v{self.lanes}i{self.bits}({self.type} {a}, {self.type}"
            f" {b})"
        )

    def compare(self, v: list[str], i: int, j: int) -> None:
        """The smaller of two vectors' elements to the first, the larger to the second."""
        v[i], v[j] = self.least(v[i], v[j]), self.greatest(v[i], v[j])

    def turned(self, a: str) -> str:
        """The lanes in reverse."""
        return self.shuffle(a, a, list(range(self.lanes))[::-1])

    def within(self, a: str, stride: int) -> str:
        """Comparators between the lanes of one vector that are `stride` apart."""
        n = self.lanes
        other = self.shuffle(a, a, [i ^ stride for i in range(n)])
        low, high = self.least(a, other), self.greatest(a, other)
        return self.shuffle(low, high, [i + n if i & stride else i for i in range(n)])

    def transposed(self, v: list[str]) -> list[str]:
        """A square of vectors turned round: blocks of growing size change places."""
        n, size = self.lanes, 1
        while size < n:
            out = list(v)
            for i in range(n):
                if not i & size:
                    a, b = v[i], v[i + size]
                    out[i] = self.shuffle(
                        a, b, [k if not k & size else k - size + n for k in range(n)]
                    )
                    out[i + size] = self.shuffle(
                        a, b, [k + size if not k & size else k + n for k in range(n)]
                    )
            v, size = out, 2 * size
        return v

    def finished(self, v: list[str]) -> list[str]:
        """The end of a bitonic merge: comparators of halving stride between vectors, then within
        them."""
        stride = len(v) // 2
        while stride:
            for i in range(len(v)):
                if not i & stride:
                    self.compare(v, i, i + stride)
            stride //= 2
        for t in halves(self.lanes):
            v = [self.within(x, t) for x in v]
        return v

    def merged(self, v: list[str], run: int) -> list[str]:
        """Pairs of sorted runs of so many vectors to runs of twice as many."""
        out: list[str] = []
        for base in range(0, len(v), 2 * run):
            low, high = (
                v[base : base + run],
                [self.turned(x) for x in reversed(v[base + run : base + 2 * run])],
            )
            for i in range(run):
                self.compare_across(low, high, i)
            out += self.finished(low) + self.finished(high)
        return out

    def compare_across(self, low: list[str], high: list[str], i: int) -> None:
        low[i], high[i] = self.least(low[i], high[i]), self.greatest(low[i], high[i])

    def ordered(self, a: str) -> str:
        """The lanes of one vector sorted."""
        n, run = self.lanes, 1
        while run < n:
            other = self.shuffle(a, a, [i ^ (2 * run - 1) for i in range(n)])
            low, high = self.least(a, other), self.greatest(a, other)
            a = self.shuffle(low, high, [i + n if i & run else i for i in range(n)])
            for t in halves(run):
                a = self.within(a, t)
            run *= 2
        return a


def halves(n: int) -> Iterator[int]:
    """n/2, n/4, ... 1."""
    while n > 1:
        n //= 2
        yield n


def comparators(n: int) -> Iterator[tuple[int, int]]:
    """Batcher's network for n, a power of two: 63 comparators for 16."""
    p = 1
    while p < n:
        k = p
        while k >= 1:
            for j in range(k % p, n - k, 2 * k):
                for i in range(min(k, n - j - k)):
                    if (i + j) // (2 * p) == (i + j + k) // (2 * p):
                        yield i + j, i + j + k
            k //= 2
        p *= 2


def lanes_of(bits: int) -> int:
    """The lanes of a vector on this processor."""
    return target.describe().vector_bytes * 8 // bits


def _piece(bits: int, name: str, count: int, sorting: bool) -> list[str]:
    """A function that sorts so many vectors, or ends a merge of them."""
    t = _Text(bits, lanes_of(bits))
    places = [t.place("%a", i) for i in range(count)]
    v = [t.load(p) for p in places]
    if not sorting:
        v = t.finished(v)
    elif count == t.lanes:
        for i, j in comparators(count):
            t.compare(v, i, j)
        v = t.transposed(v)
    else:
        v = [t.ordered(x) for x in v]
    run = 1
    while sorting and run < count:
        v, run = t.merged(v, run), 2 * run
    for x, p in zip(v, places):
        t.store(x, p)
    return [f"define void @{name}(ptr %a) {{", *t.lines, " ret void", "}"]


def _loop(bits: int, name: str, mirrored: bool) -> list[str]:
    """A function of two places and a count: comparators between vectors that follow the one and
    follow (or, mirrored, precede) the other."""
    t = _Text(bits, lanes_of(bits))
    step = t.lanes * bits // 8
    a, b = t.load("%p"), t.load("%q")
    if mirrored:
        b = t.turned(b)
    low, high = t.least(a, b), t.greatest(a, b)
    t.store(low, "%p")
    t.store(t.turned(high) if mirrored else high, "%q")
    return [
        f"define void @{name}(ptr %a, ptr %b, i64 %n) {{\nentry:\n br label %loop\nloop:",
        " %i = phi i64 [0, %entry], [%i1, %loop]\n %p = phi ptr [%a, %entry], [%p1, %loop]",
        " %q = phi ptr [%b, %entry], [%q1, %loop]",
        *t.lines,
        (
            f" %p1 = getelementptr i8, ptr %p, i64 {step}\n %q1 = getelementptr i8, ptr %q, i64"
            f" {-step if mirrored else step}"
        ),
        (
            " %i1 = add i64 %i, 1\n %more = icmp slt i64 %i1, %n\n br i1 %more, label %loop, label"
            " %end\nend:\n ret void\n}"
        ),
    ]


def _split(bits: int, name: str) -> list[str]:
    """A function that keeps what is less than a pivot, moves the rest elsewhere, both in order, and
    gives the number of the former.

    Both are written by whole vectors: what is behind the end of one is overwritten by the next."""
    t = _Text(bits, lanes_of(bits))
    n, vector, flags = t.lanes, t.type, f"<{t.lanes} x i1>"
    loaded = [t.load(t.let(f"getelementptr {vector}, ptr %p, i64 {u}")) for u in range(_UNROLLED)]
    low, at = "%low", "%i"
    for u, v in enumerate(loaded):
        less = t.let(f"icmp ult {vector} {v}, %pivots")
        rest = t.let(f"xor {flags} {less}, splat (i1 true)")
        for flag, base, index in ((less, "%a", low), (rest, "%b", t.let(f"sub i64 {at}, {low}"))):
            packed = (
                f"call {vector} @llvm.experimental.vector.compress.v{n}i{bits}({vector} {v},"
                f" {flags} {flag}, {vector} undef)"
            )
            t.store(t.let(packed), t.let(f"getelementptr i{bits}, ptr {base}, i64 {index}"))
        word = t.let(f"bitcast {flags} {less} to i{n}")
        count = t.let(f"zext i{n} {t.let(f'call i{n} @llvm.ctpop.i{n}(i{n} {word})')} to i64")
        low, at = t.let(f"add i64 {low}, {count}"), t.let(f"add i64 %i, {(u + 1) * n}")
    return [
        f"define i64 @{name}(ptr %a, ptr %b, i64 %n, i64 %pivot) {{\nentry:",
        f" %cut = trunc i64 %pivot to i{bits}" if bits < 64 else " %cut = add i64 %pivot, 0",
        f" %one = insertelement {vector} undef, i{bits} %cut, i32 0",
        (
            f" %pivots = shufflevector {vector} %one, {vector} undef, <{n} x i32> zeroinitializer\n"
            " br label %loop\nloop:"
        ),
        f" %i = phi i64 [0, %entry], [{at}, %loop]\n %low = phi i64 [0, %entry], [{low}, %loop]",
        f" %p = getelementptr i{bits}, ptr %a, i64 %i",
        *t.lines,
        (
            f" %more = icmp slt i64 {at}, %n\n br i1 %more, label %loop, label %end\nend:\n ret i64"
            f" {low}\n}}"
        ),
        (
            f"declare {vector} @llvm.experimental.vector.compress.v{n}i{bits}({vector}, {flags},"
            f" {vector})"
        ),
        f"declare i{n} @llvm.ctpop.i{n}(i{n})",
    ]


def _names(bits: int) -> list[str]:
    """The functions for a width, in the order in which `_table` lists them."""
    pieces = [
        f"calque_network_{kind}_{bits}_{1 << k}" for kind in ("sort", "end") for k in range(_PIECES)
    ]
    return [*pieces, *(f"calque_network_{kind}_{bits}" for kind in ("flip", "clean", "split"))]


def _exists(name: str) -> bool:
    """Whether vectors are long enough for a piece, and the processor has instructions that pack the
    lanes of a vector."""
    kind, bits, *count = name.removeprefix("calque_network_").split("_")
    return int(count[0]) <= lanes_of(int(bits)) if count else kind != "split" or can_split()


def can_split() -> bool:
    """Whether the processor packs the lanes of a vector, so that splitting by a pivot is quick."""
    return target.describe().is_x86 and target.describe().vector_bytes == 64


def text() -> str:
    """All straight pieces as one module."""
    out: list[str] = []
    for bits in (32, 64):
        lanes = lanes_of(bits)
        for name in filter(_exists, _names(bits)):
            kind, _, *count = name.removeprefix("calque_network_").split("_")
            if count:
                out += _piece(bits, name, int(count[0]), kind == "sort")
            else:
                out += _split(bits, name) if kind == "split" else _loop(bits, name, kind == "flip")
        vector = f"<{lanes} x i{bits}>"
        out += [
            f"declare {vector} @llvm.{f}.v{lanes}i{bits}({vector}, {vector})"
            for f in ("umin", "umax")
        ]
    return "\n".join(out) + "\n"


def _key() -> str:
    """What decides the text."""
    with open(__file__, encoding="utf-8") as file:
        return f"{hexdigest(file.read())} {lanes_of(32)}"


def image(level: str) -> tuple[str, bytes]:
    """What the straight pieces are known by in the pack of a level of processors, and their
    code."""
    return shipped.key_of(level, _key(), llvm.OPT, None), llvm.code_of(_key(), text)


def pieces() -> tuple[bytes, list[str | None]]:
    """The code of the straight pieces, for who links it himself, and the names that stand in their
    table, None for what the processor does not have."""
    names = [n for bits in (32, 64) for n in _names(bits)]
    return llvm.code_of(_key(), text), [n if _exists(n) else None for n in names]


@once
def _table() -> ctypes.Array[ctypes.c_int64]:
    """The addresses of the straight pieces, `_ROW` bytes for each width; 0 for what this processor
    does not have."""
    names = [n for bits in (32, 64) for n in _names(bits)]
    linked = llvm.link_cached(_key(), text, [n for n in names if _exists(n)])
    return (ctypes.c_int64 * len(names))(*[linked.get(n, 0) for n in names])


unit = Unit("sort_network")
_ROW: Final = 8 * (2 * _PIECES + 3)
_pieces: Any = unit.cell("network_pieces", ptr, lambda: ctypes.addressof(_table()))
_lanes: Any = unit.cell("network_lanes", i64, lambda: lanes_of(32))
_straight = signature(None, ptr)
_row = signature(None, ptr, ptr, i64)
_parted = signature(i64, ptr, ptr, i64, i64)
_END, _FLIP, _CLEAN, _SPLIT = 8 * _PIECES, 16 * _PIECES, 16 * _PIECES + 8, 16 * _PIECES + 16


@unit.helper
def group_of(vectors: i64) -> i64:
    """The number of the piece for so many vectors, rounded up to a power of two."""
    k = 0
    while (1 << k) < vectors:
        k += 1
    return k


@unit.helper
def merge_runs(table: ptr, data: ptr, run: i64, count: i64, lanes: i64, step: i64) -> None:
    """One merge: of `count` vectors the first `run` are sorted, and so are the rest."""
    first = (
        2 * run - count
    )  # what would stand opposite the vectors before this one lies behind the end
    _row(load_ptr(table, _FLIP), data + first * step, data + (count - 1) * step, run - first)
    stride = run >> 1
    while stride >= lanes:
        at = 0
        while at + stride < count:
            some = min(stride, count - at - stride)
            _row(load_ptr(table, _CLEAN), data + at * step, data + (at + stride) * step, some)
            at += 2 * stride
        stride = stride >> 1
    whole = group_of(lanes)
    at = 0
    while at + lanes <= count:
        _straight(load_ptr(table, _END + 8 * whole), data + at * step)
        at += lanes
    if at < count:
        _straight(load_ptr(table, _END + 8 * group_of(count - at)), data + at * step)


@unit.function
def network_sort(data: ptr, n: i64, wide: i64) -> None:
    """Sort n integers of 4 bytes, or (`wide`) of 8, in place. Up to `PAD` elements behind them are
    overwritten."""
    lanes = _lanes >> wide
    step = _lanes << 2  # the bytes of a vector
    table = _pieces + wide * _ROW
    vectors = (n + lanes - 1) // lanes
    tail = vectors % lanes
    if tail != 0:  # the last group is a power of two
        vectors += (1 << group_of(tail)) - tail
    size = 4 << wide
    memset(data + n * size, 255, vectors * step - n * size)
    whole = group_of(lanes)
    at = 0
    while at + lanes <= vectors:
        _straight(load_ptr(table, 8 * whole), data + at * step)
        at += lanes
    if at < vectors:
        _straight(load_ptr(table, 8 * group_of(vectors - at)), data + at * step)
    run = lanes
    while run < vectors:
        at = 0
        while at + run < vectors:
            merge_runs(table, data + at * step, run, min(2 * run, vectors - at), lanes, step)
            at += 2 * run
        run = 2 * run


@unit.helper
def network_split(data: ptr, other: ptr, n: i64, pivot: i64, wide: i64) -> i64:
    """Move what is less than a pivot to the front, the rest behind it, and give the number of the
    former. `PAD` elements behind `other` may be overwritten. Only where `can_split`."""
    size = 4 << wide
    turn = (_lanes >> wide) * _UNROLLED
    whole = n // turn * turn
    low = 0
    if whole != 0:
        low = _parted(load_ptr(_pieces + wide * _ROW, _SPLIT), data, other, whole, pivot)
    i = whole
    while i < n:
        if wide != 0:
            r = load_i64(data, 8 * i)
            store_i64(data, 8 * low, r)
            store_i64(other, 8 * (i - low), r)
        else:
            r = load_u32(data, 4 * i)
            store_i32(data, 4 * low, r)
            store_i32(other, 4 * (i - low), r)
        low += i64(ult(r, pivot))
        i += 1
    memcpy(data + low * size, other, (n - low) * size)
    return low
