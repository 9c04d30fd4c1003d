"""Transforms of real lines of an even length, made of complex ones of half the length, and the
other way round: elements `k` and `h - k` of the one are made of the same two of the other. Worked
out in double precision: other ways round once less."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from calque.machine.lang.types import Function
from calque.machine.lang.unit import Unit, i64, ptr
from calque.machine.routines.fft.numbers import SINGLE, SINGLE_ITEM
from calque.machine.routines.fft.sums import Complex, Real
from calque.machine.routines.fft.vectors import Code, Kind

Pair = tuple[Complex, Complex]


def halves(re: ptr, im: ptr, to_re: ptr, to_im: ptr, roots: ptr, h: i64, lanes: i64) -> None:
    """Lines side by side, from `re` and `im` to others, with the roots of order `2 * h`."""


def join(a: Complex, b: Complex, c: Real, s: Real) -> Pair:
    """Two elements of a real transform."""
    e = Complex((a.re + b.re) * 0.5, (a.im - b.im) * 0.5)
    t = Complex((a.im + b.im) * 0.5, (b.re - a.re) * 0.5).turned(c, s)
    return e + t, Complex(e.re - t.re, t.im - e.im)


def part(a: Complex, b: Complex, c: Real, s: Real) -> Pair:
    """Two elements of the complex transform of half the length, twice as large."""
    e, d = Complex(a.re + b.re, a.im - b.im), Complex(a.re - b.re, a.im + b.im)
    t = Complex(d.im * c - d.re * s, d.re * c + d.im * s)
    return Complex(e.re - t.re, e.im + t.im), Complex(e.re + t.re, t.im - e.im)


class HalvesWriter:
    """Writes a function that joins halves, or one that parts them. Vectors run over the elements of
    a line, or over lines that stand side by side; a whole line is alone and fills vectors."""

    def __init__(self, item: int, joins: bool, whole: bool) -> None:
        self.item, self.joins, self.whole, self.code = item, joins, whole, Code()
        self.rule: Callable[[Complex, Complex, Real, Real], Pair] = join if joins else part

    def text(self) -> str:
        """The body of the function."""
        c = self.code
        row = c.times("%lanes", self.item)
        end, count = c.let(f"mul i64 {row}, %h"), c.let("sdiv i64 %h, 2")
        sines = c.at("%roots", "%h", 8)
        self.ends(row, end)
        if self.whole:
            self.line(end, count, sines)
            return c.finished()
        with c.either(c.let("icmp eq i64 %lanes, 1")):
            self.line(end, count, sines)
        with c.rounds(1, count) as k:
            before = c.let(f"add i64 {c.let(f'mul i64 {k}, {row}')}, {row}")
            at_root = c.let(f"add i64 {c.times(k, 8)}, 8")
            one = [c.load(Kind(8, 1), c.at(p, at_root)) for p in ("%roots", sines)]
            behind = c.let(f"sub i64 {end}, {before}")
            for kind, at in c.ranges(self.item, row):
                wide = Kind(8, kind.lanes)
                factors = [Real(c, wide, c.everywhere(wide, w)) for w in one]
                x, y = (c.let(f"add i64 {p}, {at}") for p in (before, behind))
                self.pair(kind, x, y, factors, mirrored=False)
        return c.finished()

    def line(self, end: str, count: str, sines: str) -> None:
        """All pairs of one line."""
        c = self.code
        for kind, at in c.ranges(self.item, c.times(count, self.item), self.whole):
            before = c.let(f"add i64 {at}, {self.item}")
            behind = c.let(f"sub i64 {end}, {c.let(f'add i64 {at}, {kind.bytes}')}")
            wide = Kind(8, kind.lanes)
            at_root = c.let(f"add i64 {c.times(at, 8 // self.item)}, 8")
            factors = [Real(c, wide, c.load(wide, c.at(p, at_root))) for p in ("%roots", sines)]
            self.pair(kind, before, behind, factors)

    def ends(self, row: str, end: str) -> None:
        """The first element, and the last one; they count as real."""
        c = self.code
        last = c.at("%re", end), c.at("%to_re", end), c.at("%to_im", end)
        for kind, at in [(Kind(self.item, 1), "0")] if self.whole else c.ranges(self.item, row):
            x = self.read(kind, c.at("%re", at))
            y = self.read(kind, c.at("%im" if self.joins else last[0], at))
            total, difference = (x + y).text, (x - y).text
            c.store(kind, total, c.at("%to_re", at))
            if self.joins:
                zero = kind.constant(0.0)
                c.store(kind, zero, c.at("%to_im", at))
                c.store(kind, difference, c.at(last[1], at))
                c.store(kind, zero, c.at(last[2], at))
            else:
                c.store(kind, difference, c.at("%to_im", at))

    def pair(
        self, kind: Kind, before: str, behind: str, factors: list[Real], mirrored: bool = True
    ) -> None:
        """Elements that stand before the middle, and those that face them, mirrored or not."""
        c = self.code
        a, b = (
            Complex(*(self.widened(kind, c.at(p, at), turn) for p in ("%re", "%im")))
            for at, turn in ((before, False), (behind, mirrored))
        )
        made = self.rule(a, b, factors[0], factors[1])
        # the last one where both are one: its zeros are +0
        for at, turn, y in ((behind, mirrored, made[1]), (before, False, made[0])):
            for p, x in (("%to_re", y.re), ("%to_im", y.im)):
                c.store(kind, self.narrowed(kind, x, turn), c.at(p, at))

    def read(self, kind: Kind, place: str) -> Real:
        """Numbers in memory."""
        return Real(self.code, kind, self.code.load(kind, place))

    def widened(self, kind: Kind, place: str, turn: bool) -> Real:
        """Numbers in memory, in double precision, in their order or in the opposite one."""
        text, wide = self.code.load(kind, place), Kind(8, kind.lanes)
        text = self.code.reversed(kind, text) if turn else text
        if kind != wide:
            text = self.code.let(f"fpext {kind.text} {text} to {wide.text}")
        return Real(self.code, wide, text)

    def narrowed(self, kind: Kind, x: Real, turn: bool) -> str:
        """What is to be put into memory."""
        text = x.text
        if kind != x.kind:
            text = self.code.let(f"fptrunc {x.kind.text} {text} to {kind.text}")
        return self.code.reversed(kind, text) if turn else text


def write_halves(item: int, joins: bool, whole: bool) -> str:
    """The body of a function that joins halves or parts them, over numbers of `item` bytes; for
    whole lines only or for any."""
    return HalvesWriter(item, joins, whole).text()


def both(suffix: str, item: int) -> dict[str, Function]:
    """What joins halves and what parts them, any lines and whole ones, by name."""
    made = {}
    for kind in ("", "whole_"):
        for change in ("join", "part"):
            name = f"fft_{kind}{change}_halves{suffix}"
            writer = partial(write_halves, item, change == "join", bool(kind))
            made[name] = Unit(name, item).written(name, halves, writer, {})
    return made


HALVES: Final = both("", 8)
SINGLE_HALVES: Final = both(SINGLE, SINGLE_ITEM)
