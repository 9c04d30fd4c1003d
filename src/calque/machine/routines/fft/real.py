"""Fourier transforms of real lines, and to real lines. Those of an even length are complex ones of
half the length, with pairs of elements as numbers; those of an odd length are whole ones. Each of
the four is compiled where it is needed."""

from __future__ import annotations

from typing import Final

from calque.machine.lang.types import Function
from calque.machine.lang.unit import Unit, apart, i64, memset, ptr
from calque.machine.routines.fft.numbers import (
    ITEM,
    SINGLE,
    SINGLE_ITEM,
    load_number,
    number,
    store_number,
)
from calque.machine.routines.fft.work import (
    SINGLE_WORK,
    Functions,
    Job,
    Table,
    Work,
    change_places,
    fft_transform,
    halves_type,
    load_lines,
    load_real_lines,
    store_lines,
    store_real_lines,
)

from_halves = Unit("fft_real_halves", leads=True)
from_whole = Unit("fft_real_whole", leads=True)
to_halves = Unit("fft_halves_to_real", leads=True)
to_whole = Unit("fft_whole_to_real")


@from_halves.function
def fft_join(work: ptr, h: i64, roots: ptr) -> None:
    """The first `h + 1` elements of real transforms of length `2 * h`."""
    re, im, lanes = Work(work).re, Work(work).im, Work(work).lanes
    to_re, to_im = Work(work).other_re, Work(work).other_im
    join_halves = Functions(Work(work).functions).turn_halves
    halves_type(join_halves, re, im, to_re, to_im, roots, h, lanes)
    change_places(work)


@from_halves.function
def fft_real_halves(job: ptr, work: ptr, first: i64) -> None:
    """Real lines of an even length, of which the first has this number."""
    item = 2 * ITEM
    n = Job(job).n
    half = n // 2
    table = Job(job).table
    line, out = n * item // 2, (half + 1) * item
    load_lines(work, Job(job).source + first * line, item, line, half)
    fft_transform(work, table, 0)
    fft_join(work, half, table + Table(table).roots)
    target = Job(job).target + first * out
    store_lines(work, target, item, out, half + 1, number(Job(job).scale))


@from_whole.function
def fft_real_whole(job: ptr, work: ptr, first: i64) -> None:
    """Real lines of an odd length, of which the first has this number."""
    item = 2 * ITEM
    n = Job(job).n
    half = n // 2
    line, out = n * item // 2, (half + 1) * item
    load_real_lines(work, Job(job).source + first * line, item // 2, line, n)
    fft_transform(work, Job(job).table, 0)
    target = Job(job).target + first * out
    store_lines(work, target, item, out, half + 1, number(Job(job).scale))


@to_halves.function
def fft_part(work: ptr, h: i64, roots: ptr) -> None:
    """The opposite of `fft_join`, twice as large. The first and the last element count as real."""
    re, im, lanes = Work(work).re, Work(work).im, Work(work).lanes
    to_re, to_im = Work(work).other_re, Work(work).other_im
    part_halves = Functions(Work(work).functions).turn_halves
    halves_type(part_halves, re, im, to_re, to_im, roots, h, lanes)
    change_places(work)


@to_halves.function
def fft_halves_to_real(job: ptr, work: ptr, first: i64) -> None:
    """Lines whose inverse transform is real and of an even length, of which the first has this
    number."""
    item = 2 * ITEM
    n = Job(job).n
    half = n // 2
    table = Job(job).table
    line, out = (half + 1) * item, n * item // 2
    load_lines(work, Job(job).source + first * line, item, line, half + 1)
    fft_part(work, half, table + Table(table).roots)
    fft_transform(work, table, 1)
    target = Job(job).target + first * out
    store_lines(work, target, item, out, half, number(Job(job).scale))


@to_whole.function
def fft_mirror(work: ptr, n: i64) -> None:
    """All elements of transforms of real lines of an odd length from the first half. The first
    element counts as real."""
    re, im = Work(work).re, Work(work).im
    lanes = Work(work).lanes
    memset(im, 0, ITEM * lanes)
    for k in range(1, n // 2 + 1):
        at = ITEM * k * lanes
        to = ITEM * (n - k) * lanes
        for v in apart(lanes):
            store_number(re, to + ITEM * v, load_number(re, at + ITEM * v))
            store_number(im, to + ITEM * v, -load_number(im, at + ITEM * v))


@to_whole.function
def fft_whole_to_real(job: ptr, work: ptr, first: i64) -> None:
    """Lines whose inverse transform is real and of an odd length, of which the first has this
    number."""
    item = 2 * ITEM
    n = Job(job).n
    line, out = (n // 2 + 1) * item, n * item // 2
    load_lines(work, Job(job).source + first * line, item, line, n // 2 + 1)
    fft_mirror(work, n)
    fft_transform(work, Job(job).table, 1)
    target = Job(job).target + first * out
    store_real_lines(work, target, item // 2, out, n, number(Job(job).scale))


from_halves_single, _FROM_HALVES = from_halves.over(SINGLE, SINGLE_ITEM, SINGLE_WORK)
from_whole_single, _FROM_WHOLE = from_whole.over(SINGLE, SINGLE_ITEM, SINGLE_WORK)
to_halves_single, _TO_HALVES = to_halves.over(SINGLE, SINGLE_ITEM, SINGLE_WORK)
to_whole_single, _TO_WHOLE = to_whole.over(SINGLE, SINGLE_ITEM, SINGLE_WORK)
REAL: Final[tuple[Function, ...]] = (
    fft_real_halves,
    fft_real_whole,
    fft_halves_to_real,
    fft_whole_to_real,
    _FROM_HALVES["fft_real_halves"],
    _FROM_WHOLE["fft_real_whole"],
    _TO_HALVES["fft_halves_to_real"],
    _TO_WHOLE["fft_whole_to_real"],
)
