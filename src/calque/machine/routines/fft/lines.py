"""Lines of elements between arrays and the memory in which a Fourier transform works: real and
imaginary parts apart, in double precision."""

from __future__ import annotations

from enum import IntEnum

from calque.machine.lang.unit import (
    Unit,
    apart,
    f32,
    f64,
    i64,
    load_f32,
    load_f64,
    ptr,
    store_f32,
    store_f64,
)


class Form(IntEnum):
    """How an element stands in an array."""

    C64 = 0
    C128 = 1
    F32 = 2
    F64 = 3


unit = Unit("fft_lines")


@unit.helper
def load_some(form: i64, x: ptr, step: i64, re: ptr, im: ptr, n: i64) -> None:
    """Read elements that are `step` bytes apart; form and, where that is worth it, step are known
    when this is compiled."""
    for i in apart(n):
        match form:
            case Form.C64:
                store_f64(re, 8 * i, f64(load_f32(x, step * i)))
                store_f64(im, 8 * i, f64(load_f32(x, step * i + 4)))
            case Form.C128:
                store_f64(re, 8 * i, load_f64(x, step * i))
                store_f64(im, 8 * i, load_f64(x, step * i + 8))
            case Form.F32:
                store_f64(re, 8 * i, f64(load_f32(x, step * i)))
                store_f64(im, 8 * i, 0.0)
            case _:
                store_f64(re, 8 * i, load_f64(x, step * i))
                store_f64(im, 8 * i, 0.0)


@unit.function
def fft_load(form: i64, x: ptr, step: i64, re: ptr, im: ptr, n: i64) -> None:
    """Read a line of elements that are `step` bytes apart."""
    match form:
        case Form.C64:
            if step == 8:
                load_some(Form.C64, x, 8, re, im, n)
            else:
                load_some(Form.C64, x, step, re, im, n)
        case Form.C128:
            if step == 16:
                load_some(Form.C128, x, 16, re, im, n)
            else:
                load_some(Form.C128, x, step, re, im, n)
        case Form.F32:
            if step == 4:
                load_some(Form.F32, x, 4, re, im, n)
            else:
                load_some(Form.F32, x, step, re, im, n)
        case _:
            if step == 8:
                load_some(Form.F64, x, 8, re, im, n)
            else:
                load_some(Form.F64, x, step, re, im, n)


@unit.helper
def store_some(form: i64, re: ptr, im: ptr, x: ptr, step: i64, n: i64, scale: f64) -> None:
    """Write elements that are `step` bytes apart."""
    for i in apart(n):
        match form:
            case Form.C64:
                store_f32(x, step * i, f32(scale * load_f64(re, 8 * i)))
                store_f32(x, step * i + 4, f32(scale * load_f64(im, 8 * i)))
            case Form.C128:
                store_f64(x, step * i, scale * load_f64(re, 8 * i))
                store_f64(x, step * i + 8, scale * load_f64(im, 8 * i))
            case Form.F32:
                store_f32(x, step * i, f32(scale * load_f64(re, 8 * i)))
            case _:
                store_f64(x, step * i, scale * load_f64(re, 8 * i))


@unit.function
def fft_store(form: i64, re: ptr, im: ptr, x: ptr, step: i64, n: i64, scale: f64) -> None:
    """Write a line of elements that are `step` bytes apart, scaled."""
    match form:
        case Form.C64:
            if step == 8:
                store_some(Form.C64, re, im, x, 8, n, scale)
            else:
                store_some(Form.C64, re, im, x, step, n, scale)
        case Form.C128:
            if step == 16:
                store_some(Form.C128, re, im, x, 16, n, scale)
            else:
                store_some(Form.C128, re, im, x, step, n, scale)
        case Form.F32:
            if step == 4:
                store_some(Form.F32, re, im, x, 4, n, scale)
            else:
                store_some(Form.F32, re, im, x, step, n, scale)
        case _:
            if step == 8:
                store_some(Form.F64, re, im, x, 8, n, scale)
            else:
                store_some(Form.F64, re, im, x, step, n, scale)
