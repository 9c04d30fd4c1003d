"""The passes of a Fourier transform: sums of 2, 3, 4, 5, 7, 8 or another small prime of elements,
turned, and written in the order of Stockham.

Real and imaginary parts stand in arrays of their own. Before a pass an array
is `r * m` rows of `s` elements: `s` independent sequences with steps of `s`. A pass of radix `r`
makes it `r * s` sequences of length `m`:

    y[q, j, p] = turn[j, p] * sum over k of root_r ** (j * k) * x[q, p + m * k]      at x[q + s * (p
    + m * k)] and y[q + s * (r * p + j)]

so after all passes the result stands in order. Several transforms side by side are merely a larger
`s` to begin with: a row is one element of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from calque.machine.lang.types import Function
from calque.machine.lang.unit import Unit, apart, i64, ptr
from calque.machine.routines.fft.numbers import (
    ITEM,
    SINGLE,
    SINGLE_ITEM,
    SINGLE_NAMES,
    load_number,
    number,
    store_number,
)
from calque.machine.routines.fft.sums import SUMS, Complex, Elements, Real
from calque.machine.routines.fft.vectors import Code, Kind, Steps, vector

MOST_RADIX: Final = 47  # larger primes are made of transforms of other lengths
OWN_SUMS: Final = tuple(SUMS)  # the radices whose sums are written out

others = Unit("fft_pass_any")


# ---------------------------------------------------------------- radices with sums of their own


def fft_pass(xr: ptr, xi: ptr, yr: ptr, yi: ptr, w: ptr, m: i64, s: i64) -> None:
    """One pass from `x` to `y`: `m` is the length that is left behind it, `s` the number of
    sequences before it."""


class PassWriter:
    """Writes the pass of a radix. Vectors run over the sequences, those of the only sequence over
    its sums; the last one makes some sums again where they do not come out even. What is too little
    for vectors is done one by one, unless there is never so little."""

    def __init__(self, radix: int, item: int, whole: bool) -> None:
        self.radix, self.item, self.whole = radix, item, whole
        self.code = c = Code()
        self.row = c.times("%s", item)  # of one element of each sequence
        self.step = c.times("%m", item)  # between the factors of one and of the next element
        self.gap = Steps(c, c.let(f"mul i64 {self.row}, %m"), radix - 1)
        self.to = Steps(c, self.row, radix - 1)
        self.factors = Steps(c, self.step, radix - 1)

    def text(self) -> str:
        """The body of the function."""
        c = self.code
        with c.either(c.let("icmp eq i64 %m, 1")):
            self.sequences("%xr", "%xi", "%yr", "%yi", "")
        with c.either(c.let("icmp eq i64 %s, 1")):
            self.only_sequence()
        rows = c.times(self.row, self.radix)
        with c.rounds(1, "%m") as p:
            x, y = c.let(f"mul i64 {p}, {self.row}"), c.let(f"mul i64 {p}, {rows}")
            w = c.at("%w", p, self.item)
            self.sequences(c.at("%xr", x), c.at("%xi", x), c.at("%yr", y), c.at("%yi", y), w)
        return c.finished()

    def sequences(self, xr: str, xi: str, yr: str, yi: str, w: str) -> None:
        """One sum of each sequence, turned by factors if they are given."""
        c = self.code
        sines = self.factors.at(w, self.radix - 1) if w else ""
        for kind, at in c.ranges(self.item, self.row, self.whole):
            to_re, to_im = c.at(yr, at), c.at(yi, at)
            for j, y in self.sums(kind, c.at(xr, at), c.at(xi, at)):
                if w and j:
                    y = y.turned(*(self.factor(kind, part, j) for part in (w, sines)))
                c.store(kind, y.re.text, self.to.at(to_re, j))
                c.store(kind, y.im.text, self.to.at(to_im, j))

    def only_sequence(self) -> None:
        """All sums of one sequence, turned; their elements follow each other."""
        c, r = self.code, self.radix
        sines = self.factors.at("%w", r - 1)
        for kind, at in c.ranges(self.item, self.step, self.whole):
            made: list[Any] = [None] * r
            parts = c.at("%w", at), c.at(sines, at)
            for j, y in self.sums(kind, c.at("%xr", at), c.at("%xi", at)):
                if j:
                    y = y.turned(*(self.read(kind, self.factors.at(w, j - 1)) for w in parts))
                made[j] = y
            c.store_woven(kind, [y.re.text for y in made], c.at("%yr", at, r))
            c.store_woven(kind, [y.im.text for y in made], c.at("%yi", at, r))

    def sums(self, kind: Kind, xr: str, xi: str) -> Elements:
        """The sums of elements that are `gap` apart."""
        parts = [(self.gap.at(xr, k), self.gap.at(xi, k)) for k in range(self.radix)]
        return SUMS[self.radix]([Complex(*(self.read(kind, p) for p in pair)) for pair in parts])

    def read(self, kind: Kind, place: str) -> Real:
        """Numbers in memory."""
        return Real(self.code, kind, self.code.load(kind, place))

    def factor(self, kind: Kind, part: str, j: int) -> Real:
        """The same factor for all sequences."""
        one = self.read(Kind(self.item, 1), self.factors.at(part, j - 1))
        return Real(self.code, kind, self.code.everywhere(kind, one.text))


def write_pass(radix: int, item: int, whole: bool) -> str:
    """The body of `fft_pass` for a radix, over numbers of `item` bytes; for whole vectors only or
    for any lengths."""
    return PassWriter(radix, item, whole).text()


def fills_vectors(radices: Sequence[int], n: int, lanes: int, item: int) -> list[bool]:
    """Whether each pass of transforms of length `n`, of which so many stand side by side, finds as
    many sequences, or sums of the only one, as a vector has numbers."""
    fewest, m, s, found = vector(item).lanes, n, lanes, []
    for r in radices:
        m //= r
        found.append(s >= fewest if s > 1 or m == 1 else m >= fewest)
        s *= r
    return found


# ---------------------------------------------------------------- any odd radix


@others.function
def fft_pair(re: ptr, im: ptr, back: i64, count: i64) -> None:
    """The sums of two rows that are `back` bytes apart in place of the first one, and their
    differences in place of the other one."""
    for q in apart(count):
        at = ITEM * q
        ar, ai = load_number(re, at), load_number(im, at)
        br, bi = load_number(re, at + back), load_number(im, at + back)
        store_number(re, at, ar + br)
        store_number(im, at, ai + bi)
        store_number(re, at + back, ar - br)
        store_number(im, at + back, ai - bi)


@others.helper
def start(xr: ptr, xi: ptr, yr: ptr, yi: ptr, to: i64, count: i64) -> None:
    """Let elements that are `to` bytes apart be those that follow each other."""
    for q in apart(count):
        store_number(yr, to * q, load_number(xr, ITEM * q))
        store_number(yi, to * q, load_number(xi, ITEM * q))


@others.helper
def add(xr: ptr, xi: ptr, yr: ptr, yi: ptr, to: i64, factor: number, count: i64) -> None:
    """Add a multiple."""
    for q in apart(count):
        store_number(yr, to * q, load_number(yr, to * q) + factor * load_number(xr, ITEM * q))
        store_number(yi, to * q, load_number(yi, to * q) + factor * load_number(xi, ITEM * q))


@others.helper
def add_both(
    x: ptr,
    xi: ptr,
    k: i64,
    back: i64,
    y: ptr,
    yi: ptr,
    z: i64,
    to: i64,
    c: number,
    s: number,
    count: i64,
    is_first: i64,
) -> None:
    """Add what a pair of rows gives to two elements, or begin with it: `c` times their sum and `s`
    times their difference."""
    for q in apart(count):
        at, put_at = k + ITEM * q, to * q
        er, ei = c * load_number(x, at), c * load_number(xi, at)
        dr, di = s * load_number(x, at + back), s * load_number(xi, at + back)
        if is_first != 0:
            store_number(y, put_at, load_number(x, ITEM * q) + er)
            store_number(yi, put_at, load_number(xi, ITEM * q) + ei)
            store_number(y, put_at + z, dr)
            store_number(yi, put_at + z, di)
        else:
            store_number(y, put_at, load_number(y, put_at) + er)
            store_number(yi, put_at, load_number(yi, put_at) + ei)
            store_number(y, put_at + z, load_number(y, put_at + z) + dr)
            store_number(yi, put_at + z, load_number(yi, put_at + z) + di)


@others.helper
def part_both(y: ptr, yi: ptr, z: i64, to: i64, count: i64) -> None:
    """Two elements from what they have in common and what differs in sign."""
    for q in apart(count):
        at = to * q
        er, ei = load_number(y, at), load_number(yi, at)
        dr, di = load_number(y, at + z), load_number(yi, at + z)
        store_number(y, at, er - di)
        store_number(yi, at, ei + dr)
        store_number(y, at + z, er + di)
        store_number(yi, at + z, ei - dr)


@others.helper
def both_any(
    r: i64,
    j: i64,
    x: ptr,
    xi: ptr,
    y: ptr,
    yi: ptr,
    z: i64,
    roots: ptr,
    gap: i64,
    count: i64,
    to: i64,
) -> None:
    """Elements `j` and `r - j` of the sums of `r`, `z` bytes apart, for sequences that stand side
    by side, from the sums and differences of rows; the roots of order `r` are given."""
    for k in range(1, r // 2 + 1):
        c = load_number(roots, ITEM * (j * k % r))
        s = load_number(roots, ITEM * (r + j * k % r))
        back = (r - 2 * k) * gap
        if k == 1:
            add_both(x, xi, gap, back, y, yi, z, to, c, s, count, 1)
        else:
            add_both(x, xi, k * gap, back, y, yi, z, to, c, s, count, 0)
    part_both(y, yi, z, to, count)


@others.helper
def turn(yr: ptr, yi: ptr, to: i64, w: ptr, gap: i64, step: i64, count: i64) -> None:
    """Turn elements that are `to` bytes apart by factors that are `step` bytes apart, `gap` bytes
    between the two parts."""
    for q in apart(count):
        c, s = load_number(w, step * q), load_number(w, gap + step * q)
        ar, ai = load_number(yr, to * q), load_number(yi, to * q)
        store_number(yr, to * q, ar * c - ai * s)
        store_number(yi, to * q, ar * s + ai * c)


@others.helper
def sums_any(
    r: i64,
    x: ptr,
    xi: ptr,
    y: ptr,
    yi: ptr,
    w: ptr,
    roots: ptr,
    m: i64,
    s: i64,
    to: i64,
    step: i64,
    count: i64,
) -> None:
    """Sums of `r` for sequences that stand side by side: results `to` bytes apart, their factors
    `step` bytes."""
    gap = ITEM * m * s
    factors = ITEM * (r - 1) * m
    start(x, xi, y, yi, to, count)
    for k in range(1, r // 2 + 1):
        add(x + k * gap, xi + k * gap, y, yi, to, 1.0, count)
    for j in range(1, r // 2 + 1):
        at, z = ITEM * s * j, ITEM * s * (r - 2 * j)
        both_any(r, j, x, xi, y + at, yi + at, z, roots, gap, count, to)
        if m > 1:
            turn(y + at, yi + at, to, w + ITEM * (j - 1) * m, factors, step, count)
            turn(y + at + z, yi + at + z, to, w + ITEM * (r - j - 1) * m, factors, step, count)


@others.function
def fft_pass_any(r: i64, xr: ptr, xi: ptr, yr: ptr, yi: ptr, w: ptr, m: i64, s: i64) -> None:
    """A pass of any odd radix. Its roots stand behind the factors. What it reads is lost."""
    gap = ITEM * m * s
    roots = w + 2 * ITEM * (r - 1) * m
    for k in range(1, r // 2 + 1):
        fft_pair(xr + k * gap, xi + k * gap, (r - 2 * k) * gap, m * s)
    if s == 1:
        sums_any(r, xr, xi, yr, yi, w, roots, m, 1, ITEM * r, ITEM, m)
    else:
        for p in range(m):
            x, y = ITEM * p * s, ITEM * s * r * p
            sums_any(r, xr + x, xi + x, yr + y, yi + y, w + ITEM * p, roots, m, s, ITEM, 0, s)


others_single, _SINGLE_OTHERS = others.over(SINGLE, SINGLE_ITEM, SINGLE_NAMES)


def passes(suffix: str, item: int) -> dict[str, Function]:
    """The passes of each radix that has sums of its own, by name, those over whole vectors too."""
    made = {}
    for r in OWN_SUMS:
        for kind in ("pass", "whole_pass"):
            name = f"fft_{kind}_{r}{suffix}"
            writer = partial(write_pass, r, item, kind == "whole_pass")
            made[name] = Unit(name, item).written(name, fft_pass, writer, {})
    return made


PASSES: Final = {**passes("", 8), "fft_pass_any": fft_pass_any}
SINGLE_PASSES: Final = {
    **passes(SINGLE, SINGLE_ITEM),
    "fft_pass_any_single": _SINGLE_OTHERS["fft_pass_any"],
}
