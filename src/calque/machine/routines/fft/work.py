"""Lines in the memory in which a Fourier transform works: how they get there and back, and the
complex transform, which real ones and convolutions are made of. Inverse transforms are those of
numbers whose parts have changed places.

What only some lengths need (passes of a radix, convolutions, real lines) is called by pointer: who
asks for a transform gives those that its lengths need, and no other is compiled.
"""

from __future__ import annotations

from typing import Final

from calque.machine.lang.unit import NULL, Unit, f64, i64, layout, load_i64, ptr, signature
from calque.machine.routines.fft.lines import (
    SINGLE_MEANINGS,
    fft_load_real,
    fft_store_real,
    load_type,
    store_type,
)
from calque.machine.routines.fft.numbers import ITEM, SINGLE, SINGLE_ITEM, SINGLE_NAMES, number

# The length of complex transforms and the number of their passes, or the length of those in a
# convolution, and where its table is; where the chirp is, with the transform of its inverse behind
# it; where the roots are that join two halves of a real transform (0: it is not made of halves).
# Places count from here. Radix and place of the factors of each pass follow.
Table = layout("Table", n=i64, passes=i64, longer=i64, other=i64, chirp=i64, roots=i64)
TABLE_WORDS: Final = 6

# The passes of each radix; a transform of any length; real lines, or lines to real ones, that are
# made of halves, and whole ones; what reads and writes rows of complex elements, and what joins
# halves or parts them. NULL: no length of this call needs it.
Functions = layout(
    "Functions",
    pass_2=ptr,
    pass_3=ptr,
    pass_4=ptr,
    pass_5=ptr,
    pass_7=ptr,
    pass_8=ptr,
    pass_any=ptr,
    convolve=ptr,
    halves=ptr,
    whole=ptr,
    load=ptr,
    store=ptr,
    turn_halves=ptr,
)
one_pass_type = signature(None, ptr, ptr, ptr, ptr, ptr, i64, i64)
any_pass_type = signature(None, i64, ptr, ptr, ptr, ptr, ptr, i64, i64)
convolve_type = signature(None, ptr, ptr)
halves_type = signature(None, ptr, ptr, ptr, ptr, ptr, i64, i64)

# One axis: what is read and written, the sizes before, along and behind the axis; how many lines
# are done side by side, and in how many such parts the lines behind the axis fall.
Job = layout(
    "Job",
    source=ptr,
    target=ptr,
    outer=i64,
    n=i64,
    inner=i64,
    lanes=i64,
    parts=i64,
    table=ptr,
    room=i64,
    inverse=i64,
    real=i64,
    scale=f64,
    run=ptr,
    functions=ptr,
)
# Lines in work: real and imaginary parts, room for as many, how many lines stand side by side, and
# `Functions`.
Work = layout("Work", re=ptr, im=ptr, other_re=ptr, other_im=ptr, lanes=i64, functions=ptr)

unit = Unit("fft_work", leads=True)
lines = Unit("fft_lines_of_work")  # only what others take from it


@unit.helper
def change_places(work: ptr) -> None:
    """Let the result be what is worked on."""
    re, im = Work(work).re, Work(work).im
    Work(work).re = Work(work).other_re
    Work(work).im = Work(work).other_im
    Work(work).other_re = re
    Work(work).other_im = im


@unit.function
def fft_turn_round(work: ptr) -> None:
    """Real and imaginary parts change places."""
    re, other = Work(work).re, Work(work).other_re
    Work(work).re = Work(work).im
    Work(work).other_re = Work(work).other_im
    Work(work).im = re
    Work(work).other_im = other


@unit.helper
def pass_of(functions: ptr, r: i64) -> ptr:
    """The passes of a radix that has sums of its own; else NULL."""
    match r:
        case 2:
            return Functions(functions).pass_2
        case 3:
            return Functions(functions).pass_3
        case 4:
            return Functions(functions).pass_4
        case 5:
            return Functions(functions).pass_5
        case 7:
            return Functions(functions).pass_7
        case 8:
            return Functions(functions).pass_8
        case _:
            return NULL


@unit.function
def fft_passes(work: ptr, table: ptr) -> None:
    """All passes of a transform whose length has small factors."""
    m = Table(table).n
    s = Work(work).lanes
    functions = Work(work).functions
    for k in range(Table(table).passes):
        r = load_i64(table, 8 * (TABLE_WORDS + 2 * k))
        w = table + load_i64(table, 8 * (TABLE_WORDS + 2 * k) + 8)
        m = m // r
        re, im = Work(work).re, Work(work).im
        to_re, to_im = Work(work).other_re, Work(work).other_im
        one_pass = pass_of(functions, r)
        if one_pass:
            one_pass_type(one_pass, re, im, to_re, to_im, w, m, s)
        else:
            any_pass_type(Functions(functions).pass_any, r, re, im, to_re, to_im, w, m, s)
        change_places(work)
        s = s * r


@unit.function
def fft_transform(work: ptr, table: ptr, inverse: i64) -> None:
    """The complex transform of lines."""
    if inverse != 0:
        fft_turn_round(work)
    if Table(table).longer != 0:
        convolve_type(Functions(Work(work).functions).convolve, work, table)
    else:
        fft_passes(work, table)
    if inverse != 0:
        fft_turn_round(work)


@lines.helper
def load_lines(work: ptr, x: ptr, step: i64, between: i64, n: i64) -> None:
    """Read complex lines side by side: elements are `step` bytes apart, lines `between` bytes."""
    lanes = Work(work).lanes
    load = Functions(Work(work).functions).load
    if lanes == 1:  # one row of all elements
        load_type(load, x, 0, step, Work(work).re, Work(work).im, 1, n)
    else:
        load_type(load, x, step, between, Work(work).re, Work(work).im, n, lanes)


@lines.helper
def store_lines(work: ptr, x: ptr, step: i64, between: i64, n: i64, scale: number) -> None:
    """Write complex lines."""
    lanes = Work(work).lanes
    re, im = Work(work).re, Work(work).im
    store = Functions(Work(work).functions).store
    if lanes == 1:
        store_type(store, re, im, x, 0, step, 1, n, scale)
    else:
        store_type(store, re, im, x, step, between, n, lanes, scale)


@lines.helper
def load_real_lines(work: ptr, x: ptr, step: i64, between: i64, n: i64) -> None:
    """Read real lines."""
    lanes = Work(work).lanes
    re, im = Work(work).re, Work(work).im
    if lanes == 1:
        fft_load_real(x, step, re, im, n)
    else:
        for j in range(n):
            at = ITEM * j * lanes
            fft_load_real(x + j * step, between, re + at, im + at, lanes)


@lines.helper
def store_real_lines(work: ptr, x: ptr, step: i64, between: i64, n: i64, scale: number) -> None:
    """Write real lines."""
    lanes = Work(work).lanes
    re, im = Work(work).re, Work(work).im
    if lanes == 1:
        fft_store_real(re, im, x, step, n, scale)
    else:
        for j in range(n):
            at = ITEM * j * lanes
            fft_store_real(re + at, im + at, x + j * step, between, lanes, scale)


lines_single, _LINES = lines.over(SINGLE, SINGLE_ITEM, {**SINGLE_NAMES, **SINGLE_MEANINGS})
unit_single, SINGLE_WORK = unit.over(SINGLE, SINGLE_ITEM, _LINES)
