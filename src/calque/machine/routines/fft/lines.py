"""Lines of elements between arrays and the memory in which a Fourier transform works: real and
imaginary parts apart."""

from __future__ import annotations

from enum import IntEnum

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


class Form(IntEnum):
    """How an element stands in an array."""

    COMPLEX = 0
    REAL = 1


unit = Unit("fft_lines")
real_unit = Unit("fft_real_lines")  # which few lines need


@unit.helper
def load_some(form: i64, x: ptr, step: i64, re: ptr, im: ptr, n: i64) -> None:
    """Read elements that are `step` bytes apart; form and, where that is worth it, step are known
    when this is compiled."""
    for i in apart(n):
        store_number(re, ITEM * i, load_number(x, step * i))
        if form == Form.COMPLEX:
            store_number(im, ITEM * i, load_number(x, step * i + ITEM))
        else:
            store_number(im, ITEM * i, 0.0)


@unit.function
def fft_load(x: ptr, step: i64, re: ptr, im: ptr, n: i64) -> None:
    """Read a line of complex elements that are `step` bytes apart."""
    if step == 2 * ITEM:
        load_some(Form.COMPLEX, x, 2 * ITEM, re, im, n)
    else:
        load_some(Form.COMPLEX, x, step, re, im, n)


@real_unit.function
def fft_load_real(x: ptr, step: i64, re: ptr, im: ptr, n: i64) -> None:
    """Read a line of real elements."""
    if step == ITEM:
        load_some(Form.REAL, x, ITEM, re, im, n)
    else:
        load_some(Form.REAL, x, step, re, im, n)


@unit.helper
def store_some(form: i64, re: ptr, im: ptr, x: ptr, step: i64, n: i64, scale: number) -> None:
    """Write elements that are `step` bytes apart."""
    for i in apart(n):
        store_number(x, step * i, scale * load_number(re, ITEM * i))
        if form == Form.COMPLEX:
            store_number(x, step * i + ITEM, scale * load_number(im, ITEM * i))


@unit.function
def fft_store(re: ptr, im: ptr, x: ptr, step: i64, n: i64, scale: number) -> None:
    """Write a line of complex elements that are `step` bytes apart, scaled."""
    if step == 2 * ITEM:
        store_some(Form.COMPLEX, re, im, x, 2 * ITEM, n, scale)
    else:
        store_some(Form.COMPLEX, re, im, x, step, n, scale)


@real_unit.function
def fft_store_real(re: ptr, im: ptr, x: ptr, step: i64, n: i64, scale: number) -> None:
    """Write a line of real elements, scaled."""
    if step == ITEM:
        store_some(Form.REAL, re, im, x, ITEM, n, scale)
    else:
        store_some(Form.REAL, re, im, x, step, n, scale)


unit_single, _COMPLEX = unit.over(SINGLE, SINGLE_ITEM, SINGLE_NAMES)
real_unit_single, SINGLE_LINES = real_unit.over(SINGLE, SINGLE_ITEM, _COMPLEX)
