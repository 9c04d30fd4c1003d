"""Text of LLVM over numbers that stand side by side: what the innermost loops of Fourier transforms
are made of.

Vectors are written as such, and addresses so that nothing is left for LLVM to look for: its search
for vectors and for addresses takes longer than all the rest of the compilation.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from calque.machine.records import record

_BYTES: Final = 32  # of a vector; where the processor's are shorter LLVM splits it
_HALF: Final = 16  # bytes of the parts of a vector between which nothing is cheap to move
_WORDS: Final = {4: "float", 8: "double"}


@record
class Kind:
    """So many numbers of `item` bytes side by side; one is a plain number."""

    item: int
    lanes: int

    @property
    def number(self) -> str:
        """The type of one."""
        return _WORDS[self.item]

    @property
    def text(self) -> str:
        """The type of all."""
        return f"<{self.lanes} x {self.number}>" if self.lanes > 1 else self.number

    @property
    def bytes(self) -> int:
        """How much memory they take."""
        return self.item * self.lanes

    def constant(self, value: float) -> str:
        """A number, rounded to this precision, in all places."""
        rounded = value if self.item == 8 else ctypes.c_float(value).value
        word = f"0x{struct.unpack('<Q', struct.pack('<d', rounded))[0]:016X}"
        return word if self.lanes == 1 else f"splat ({self.number} {word})"


def vector(item: int) -> Kind:
    """A whole vector of numbers of `item` bytes."""
    return Kind(item, _BYTES // item)


class Code:
    """The body of a function while it grows, line by line."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0

    def let(self, text: str) -> str:
        """A new value."""
        self._count += 1
        self.lines.append(f"%t{self._count} = {text}")
        return f"%t{self._count}"

    def label(self) -> str:
        """A name for a new block."""
        self._count += 1
        return f"b{self._count}"

    def begin(self, label: str) -> None:
        """What follows is the block of this name, which the lines before lead to."""
        self.lines += [f"br label %{label}", f"{label}:"]

    def branch(self, test: str, then: str, other: str) -> None:
        """Go on in one of two blocks."""
        self.lines.append(f"br i1 {test}, label %{then}, label %{other}")

    def finished(self) -> str:
        """All of it, with the end of the function."""
        return "\n".join([*self.lines, "ret void"])

    def times(self, value: str, factor: int) -> str:
        """A multiple of an integer."""
        return value if factor == 1 else self.let(f"mul i64 {value}, {factor}")

    def at(self, base: str, offset: str, factor: int = 1) -> str:
        """An address some bytes behind another one."""
        unit = "i8" if factor == 1 else f"[{factor} x i8]"
        return self.let(f"getelementptr {unit}, ptr {base}, i64 {offset}")

    def load(self, kind: Kind, place: str) -> str:
        """Numbers in memory."""
        return self.let(f"load {kind.text}, ptr {place}, align {kind.item}")

    def store(self, kind: Kind, value: str, place: str) -> None:
        """Put numbers into memory."""
        self.lines.append(f"store {kind.text} {value}, ptr {place}, align {kind.item}")

    def store_woven(self, kind: Kind, rows: Sequence[str], place: str) -> None:
        """Put numbers into memory, first those in place 0 of all rows, then those in place 1, and
        so on."""
        if kind.lanes > 1 and len(rows) & (len(rows) - 1):
            rows, kind = [woven_long(self, kind, rows)], Kind(kind.item, kind.lanes * len(rows))
        elif kind.lanes > 1:
            rows = woven(self, kind, rows)
        for k, row in enumerate(rows):
            self.store(kind, row, self.at(place, str(k * kind.bytes)))

    def gathered(self, item: int, places: Sequence[str]) -> str:
        """Pairs of numbers from several places, behind each other."""
        pair = Kind(item, 2)
        parts = [self.load(pair, place) for place in places]
        while len(parts) > 1:
            whole = Kind(item, 2 * len(places) // len(parts))
            parts = [
                self.shuffle(whole, a, b, range(2 * whole.lanes))
                for a, b in zip(parts[::2], parts[1::2], strict=True)
            ]
        return parts[0]

    def scatter_woven(self, kind: Kind, parts: Sequence[str], places: Sequence[str]) -> None:
        """Put pairs, each of one number of two vectors, into several places."""
        for k, place in enumerate(places):
            pair = self.shuffle(kind, parts[0], parts[1], (k, kind.lanes + k))
            self.store(Kind(kind.item, 2), pair, place)

    def everywhere(self, kind: Kind, value: str) -> str:
        """One number in all places."""
        if kind.lanes == 1:
            return value
        one = self.let(f"insertelement {kind.text} poison, {kind.number} {value}, i64 0")
        return self.shuffle(kind, one, one, [0] * kind.lanes)

    def shuffle(self, kind: Kind, a: str, b: str, picks: Sequence[int]) -> str:
        """Numbers of two vectors by their places, as many as are picked."""
        mask = ", ".join(f"i32 {p}" for p in picks)
        return self.let(
            f"shufflevector {kind.text} {a}, {kind.text} {b}, <{len(picks)} x i32> <{mask}>"
        )

    def reversed(self, kind: Kind, value: str) -> str:
        """Numbers in the opposite order."""
        if kind.lanes == 1:
            return value
        return self.shuffle(kind, value, "poison", range(kind.lanes)[::-1])

    @contextmanager
    def either(self, test: str) -> Iterator[None]:
        """A `with` block that is done where a test holds, and ends the function."""
        then, other = self.label(), self.label()
        self.branch(test, then, other)
        self.lines.append(f"{then}:")
        yield
        self.lines += ["ret void", f"{other}:"]

    def ranges(self, item: int, end: str, whole_only: bool = False) -> Iterator[tuple[Kind, str]]:
        """What is done for a number of bytes, once for whole vectors and once for what is less than
        one (unless that does not happen): the kind of numbers, and how many bytes stand before
        them. The last vector takes the last numbers, some of which were done already."""
        whole = vector(item)
        if whole_only:
            last = self.let(f"sub i64 {end}, {whole.bytes}")
            with self.rounds(whole.bytes, end, last) as at:
                yield whole, at
            return
        less, more, done = self.label(), self.label(), self.label()
        few = self.let(f"icmp slt i64 {end}, {whole.bytes}")
        self.branch(few, less, more)
        self.lines.append(f"{less}:")
        with self.rounds(item, end) as at:
            yield Kind(item, 1), at
        self.lines += [f"br label %{done}", f"{more}:"]
        yield from self.ranges(item, end, whole_only=True)
        self.begin(done)

    @contextmanager
    def rounds(self, step: int, end: str, last: str = "") -> Iterator[str]:
        """A `with` block that is done again and again, for a number that grows by `step` from 0 to
        `end`; where `last` is given it is never more than that. Nothing is done where `end` is not
        positive. LLVM is not told that the number grows steadily."""
        before, head, body, done = (self.label() for _ in range(4))
        self.begin(before)
        self.begin(head)
        next_at = f"%n{head}"
        now = self.let(f"phi i64 [ 0, %{before} ], [ {next_at}, %x{body} ]")
        more = self.let(f"icmp slt i64 {now}, {end}")
        self.branch(more, body, done)
        self.lines.append(f"{body}:")
        at = now
        if last:
            is_less = self.let(f"icmp slt i64 {now}, {last}")
            at = self.let(f"select i1 {is_less}, i64 {now}, i64 {last}")
        yield self.let(f"freeze i64 {at}")
        self.begin(f"x{body}")
        self.lines += [f"{next_at} = add i64 {now}, {step}", f"br label %{head}", f"{done}:"]


class Steps:
    """Multiples of a distance in bytes, of which those by odd numbers are worked out once, ahead of
    all loops."""

    def __init__(self, code: Code, step: str, most: int) -> None:
        self.code = code
        self.odd = {k: code.times(step, k) for k in range(1, most + 1, 2)}

    def at(self, base: str, k: int) -> str:
        """The address `k` steps behind another one."""
        if k == 0:
            return base
        twos = (k & -k).bit_length() - 1
        while twos > 3:  # processors multiply by 8 at most in an address
            base, k = self.at(base, k - 8), 8
            twos = 3
        return self.code.at(base, self.odd[k >> twos], 1 << twos)


def woven(code: Code, kind: Kind, rows: Sequence[str]) -> list[str]:
    """The numbers of 2, 4 or 8 vectors, first those in place 0, then those in place 1, and so
    on."""
    few = _HALF // kind.item
    size = min(few, len(rows))
    groups = [_transposed(code, kind, rows[k : k + size]) for k in range(0, len(rows), size)]
    halves = [(g[i], few * h) for h in range(2) for i in range(size) for g in groups]
    return [
        code.shuffle(kind, a, b, [*range(p, p + few), *range(kind.lanes + q, kind.lanes + q + few)])
        for (a, p), (b, q) in zip(halves[::2], halves[1::2], strict=True)
    ]


def _transposed(code: Code, kind: Kind, rows: Sequence[str]) -> list[str]:
    """In each half of the vectors: what stood in place 0, then what stood in place 1, ..."""
    few, n, size = _HALF // kind.item, kind.lanes, 1
    rows = list(rows)
    while size < len(rows):
        out = list(rows)
        for k in range(len(rows) // 2):
            a, b = rows[k], rows[k + len(rows) // 2]
            for upper in range(2):
                picks = []
                for half in range(2):
                    for i in range(few // 2):
                        place = half * few + upper * (few // 2) + i
                        picks += [place, n + place]
                out[2 * k + upper] = code.shuffle(kind, a, b, picks)
        rows, size = out, 2 * size
    return rows


def woven_long(code: Code, kind: Kind, rows: Sequence[str]) -> str:
    """As `woven`, for any number of vectors, as one."""
    count = 1 << (len(rows) - 1).bit_length()
    parts, size = [*rows, *["poison"] * (count - len(rows))], kind.lanes
    while len(parts) > 1:
        whole = Kind(kind.item, size)
        parts = [
            "poison" if a == "poison" else code.shuffle(whole, a, b, range(2 * size))
            for a, b in zip(parts[::2], parts[1::2], strict=True)
        ]
        size *= 2
    picks = [j * kind.lanes + p for p in range(kind.lanes) for j in range(len(rows))]
    return code.shuffle(Kind(kind.item, size), parts[0], "poison", picks)
