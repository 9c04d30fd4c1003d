"""Lines of elements between arrays and the memory in which a Fourier transform works: real and
imaginary parts apart."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from calque.machine.lang.types import Function
from calque.machine.lang.unit import Unit, apart, f32, f64, i64, ptr, signature
from calque.machine.routines.fft.numbers import (
    ITEM,
    SINGLE,
    SINGLE_ITEM,
    SINGLE_NAMES,
    load_number,
    number,
    store_number,
)
from calque.machine.routines.fft.vectors import Code, Kind

load_type = signature(None, ptr, i64, i64, ptr, ptr, i64, i64)
store_type = signature(None, ptr, ptr, ptr, i64, i64, i64, i64, f64)
single_store_type = signature(None, ptr, ptr, ptr, i64, i64, i64, i64, f32)

real_unit = Unit("fft_real_lines")  # which few lines need


# ---------------------------------------------------------------- complex elements


def load_rows(x: ptr, step: i64, between: i64, re: ptr, im: ptr, n: i64, lanes: i64) -> None:
    """Read rows of complex elements: `lanes` of them that are `between` bytes apart, and as many
    `step` bytes behind them."""


def store_rows(
    re: ptr, im: ptr, x: ptr, step: i64, between: i64, n: i64, lanes: i64, scale: number
) -> None:
    """Write rows of complex elements, scaled."""


def write_load(item: int, whole: bool) -> str:
    """The body of `load_rows` over numbers of `item` bytes; for rows of elements that follow each
    other, enough for a vector, or for any rows."""
    c = Code()
    for kind, places, at in rows(c, item, whole):
        pairs = Kind(item, 2 * kind.lanes)
        both = c.load(pairs, places[0]) if len(places) == 1 else c.gathered(item, places)
        for k, part in enumerate(("%re", "%im")):
            if kind.lanes == 1:
                value = c.let(f"extractelement {pairs.text} {both}, i64 {k}")
            else:
                value = c.shuffle(pairs, both, "poison", range(k, pairs.lanes, 2))
            c.store(kind, value, c.at(part, at))
    return c.finished()


def write_store(item: int, whole: bool) -> str:
    """The body of `store_rows`, as that of `load_rows`."""
    c = Code()
    for kind, places, at in rows(c, item, whole):
        scale = c.everywhere(kind, "%scale")
        parts = [
            c.let(f"fmul {kind.text} {scale}, {c.load(kind, c.at(part, at))}")
            for part in ("%re", "%im")
        ]
        if len(places) == 1:
            c.store_woven(kind, parts, places[0])
        else:
            c.scatter_woven(kind, parts, places)
    return c.finished()


def rows(c: Code, item: int, whole: bool) -> Iterator[tuple[Kind, list[str], str]]:
    """What is done for the elements of all rows: their kind, where they stand, one place where they
    follow each other, and how many bytes there are before their parts."""
    row = c.times("%lanes", item)
    if whole:
        with c.rounds(1, "%n") as j:
            x, before = c.at("%x", c.let(f"mul i64 {j}, %step")), c.let(f"mul i64 {j}, {row}")
            for kind, at in c.ranges(item, row, whole):
                yield kind, [c.at(x, at, 2)], c.let(f"add i64 {before}, {at}")
        return
    follow, others, done = c.label(), c.label(), c.label()
    c.branch(c.let(f"icmp eq i64 %between, {2 * item}"), follow, others)
    for label in (follow, others):
        c.lines.append(f"{label}:")
        with c.rounds(1, "%n") as j:
            x, before = c.at("%x", c.let(f"mul i64 {j}, %step")), c.let(f"mul i64 {j}, {row}")
            for kind, at in c.ranges(item, row):
                behind = c.let(f"add i64 {before}, {at}")
                if label == follow:
                    yield kind, [c.at(x, at, 2)], behind
                else:
                    first = c.let(f"mul i64 {c.let(f'udiv i64 {at}, {item}')}, %between")
                    places = [c.at(x, first)]
                    while len(places) < kind.lanes:
                        places.append(c.at(places[-1], "%between"))
                    yield kind, places, behind
        c.lines.append(f"br label %{done}")
    c.lines.append(f"{done}:")


# ---------------------------------------------------------------- real elements


@real_unit.helper
def load_some(x: ptr, step: i64, re: ptr, im: ptr, n: i64) -> None:
    """Read elements that are `step` bytes apart, known when this is compiled or not."""
    for i in apart(n):
        store_number(re, ITEM * i, load_number(x, step * i))
        store_number(im, ITEM * i, 0.0)


@real_unit.function
def fft_load_real(x: ptr, step: i64, re: ptr, im: ptr, n: i64) -> None:
    """Read a line of real elements."""
    if step == ITEM:
        load_some(x, ITEM, re, im, n)
    else:
        load_some(x, step, re, im, n)


@real_unit.helper
def store_some(re: ptr, x: ptr, step: i64, n: i64, scale: number) -> None:
    """Write elements that are `step` bytes apart."""
    for i in apart(n):
        store_number(x, step * i, scale * load_number(re, ITEM * i))


@real_unit.function
def fft_store_real(re: ptr, im: ptr, x: ptr, step: i64, n: i64, scale: number) -> None:
    """Write a line of real elements, scaled."""
    if step == ITEM:
        store_some(re, x, ITEM, n, scale)
    else:
        store_some(re, x, step, n, scale)


# ---------------------------------------------------------------- both precisions


def complex_lines(suffix: str, item: int) -> dict[str, Function]:
    """What reads and writes complex elements, in any rows and in whole ones, by name."""
    types = SINGLE_NAMES if item == SINGLE_ITEM else {}
    made = {}
    for kind in ("", "whole_"):
        unit = Unit(f"fft_{kind}lines{suffix}", item)
        for name, python, writer in (
            (f"fft_{kind}load{suffix}", load_rows, write_load),
            (f"fft_{kind}store{suffix}", store_rows, write_store),
        ):
            made[name] = unit.written(name, python, partial(writer, item, bool(kind)), types)
    return made


LINES: Final = complex_lines("", 8)
SINGLE_LINES: Final = complex_lines(SINGLE, SINGLE_ITEM)
real_unit_single, _REAL = real_unit.over(SINGLE, SINGLE_ITEM, SINGLE_NAMES)
# What the functions over double precision mean, by name, in single precision.
SINGLE_MEANINGS: Final[dict[str, Any]] = {**_REAL, "store_type": single_store_type}
