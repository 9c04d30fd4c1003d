"""Fourier transforms of a length with a large prime factor: convolutions with a chirp (Bluestein),
made of transforms of a longer length."""

from __future__ import annotations

from typing import Final

from calque.machine.lang.unit import Unit, apart, i64, memset, ptr
from calque.machine.routines.fft.numbers import ITEM, SINGLE, SINGLE_ITEM, load_number, store_number
from calque.machine.routines.fft.work import SINGLE_WORK, Table, Work, fft_passes, fft_turn_round

unit = Unit("fft_convolution")


@unit.helper
def turn_by(re: ptr, im: ptr, to_re: ptr, to_im: ptr, w: ptr, n: i64, lanes: i64) -> None:
    """Turn each element of lines by its own factor."""
    if lanes == 1:
        for i in apart(n):
            x, y = load_number(re, ITEM * i), load_number(im, ITEM * i)
            c, s = load_number(w, ITEM * i), load_number(w, ITEM * (n + i))
            store_number(to_re, ITEM * i, x * c - y * s)
            store_number(to_im, ITEM * i, x * s + y * c)
    else:
        for j in range(n):
            c, s = load_number(w, ITEM * j), load_number(w, ITEM * (n + j))
            at = ITEM * j * lanes
            for v in apart(lanes):
                x, y = load_number(re, at + ITEM * v), load_number(im, at + ITEM * v)
                store_number(to_re, at + ITEM * v, x * c - y * s)
                store_number(to_im, at + ITEM * v, x * s + y * c)


@unit.function
def fft_convolve(work: ptr, table: ptr) -> None:
    """A transform of any length: turned by the chirp, convolved with its inverse, and turned
    again."""
    n = Table(table).n
    longer = Table(table).longer
    lanes = Work(work).lanes
    chirp = table + Table(table).chirp
    turn_by(Work(work).re, Work(work).im, Work(work).re, Work(work).im, chirp, n, lanes)
    rest = ITEM * (longer - n) * lanes
    memset(Work(work).re + ITEM * n * lanes, 0, rest)
    memset(Work(work).im + ITEM * n * lanes, 0, rest)
    other = table + Table(table).other
    fft_passes(work, other)
    turn_by(
        Work(work).re,
        Work(work).im,
        Work(work).re,
        Work(work).im,
        chirp + 2 * ITEM * n,
        longer,
        lanes,
    )
    fft_turn_round(work)
    fft_passes(work, other)
    fft_turn_round(work)
    turn_by(Work(work).re, Work(work).im, Work(work).re, Work(work).im, chirp, n, lanes)


unit_single, _SINGLE = unit.over(SINGLE, SINGLE_ITEM, SINGLE_WORK)
fft_convolve_single: Final = _SINGLE["fft_convolve"]
