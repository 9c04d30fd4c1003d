"""Fourier transforms along the last axes of an array: the kernel behind `fft`.

`calque_fft(args, begin, end)` transforms everything; the range means nothing. `args` are words, see
`Args`; what depends only on the lengths stands in a table (`Plan`, `Axis`, `Table`), made once. One
axis is transformed after the other: lines are read into memory of the thread's own, as many side by
side as vectors are good for, transformed by the passes of `fft_passes`, and written.
`calque_fft_single` is the same in single precision, for data of it.

Real transforms of an even length are complex ones of half the length, with pairs of elements as
numbers. A length with a large prime factor is a convolution with a chirp (Bluestein), made of
transforms of a longer length. Inverse transforms are those of numbers whose parts have changed
places.
"""

from __future__ import annotations

from typing import Final

from calque.machine.driver.interpreter import NO_MEMORY, calque_poll
from calque.machine.lang.unit import (
    NULL,
    Unit,
    alloca,
    apart,
    f64,
    i64,
    layout,
    load_f64,
    load_i64,
    load_ptr,
    memset,
    ptr,
)
from calque.machine.memory import calque_alloc, calque_free
from calque.machine.routines.fft.lines import SINGLE_LINES, Form, fft_load, fft_store
from calque.machine.routines.fft.numbers import (
    ITEM,
    SINGLE,
    SINGLE_ITEM,
    SINGLE_NAMES,
    load_number,
    number,
    store_number,
)
from calque.machine.routines.fft.passes import SINGLE_PASSES, fft_pass
from calque.machine.routines.sort.work import stop
from calque.machine.threads import calque_parallel_for

# From where, to where, how many transforms, and the table.
Args = layout("Args", source=ptr, target=ptr, outer=i64, plan=ptr)
# How many axes; forward or inverse; what is real (0 nothing, 1 what is
# read, 2 what is written); a factor. Axes follow.
Plan = layout("Plan", rank=i64, inverse=i64, real=i64, scale=f64)
# The length of an axis, where its table is, counted from the plan, and the elements of memory that
# a line takes.
Axis = layout("Axis", n=i64, table=i64, room=i64)
# The length of complex transforms and the number of their passes, or the length of those in a
# convolution, and where its table is; where the chirp is, with the transform of its inverse behind
# it; where the roots are that join two halves of a real transform (0: it is not made of halves).
# Places count from here. Radix and place of the factors of each pass follow.
Table = layout("Table", n=i64, passes=i64, longer=i64, other=i64, chirp=i64, roots=i64)
PLAN_WORDS: Final = 4
AXIS_WORDS: Final = 3
TABLE_WORDS: Final = 6

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
)
_JOB_BYTES: Final = 104
# Lines in work: real and imaginary parts, room for as many, and how many lines stand side by side.
Work = layout("Work", re=ptr, im=ptr, other_re=ptr, other_im=ptr, lanes=i64)
_WORK_BYTES: Final = 40

_FEWEST_LANES: Final = 8
_MOST_LANES: Final = 64
_NEAR: Final = 2048  # elements side by side that stay in the nearest cache
_ROWS: Final = 16  # short transforms side by side
_SHORT: Final = 48
_GRAIN: Final = 1 << 12  # elements that are worth a thread
_BETWEEN_POLLS: Final = 1 << 18
_PAGE: Final = 4096
_ASIDE: Final = 1088

unit = Unit("fft")


# ---------------------------------------------------------------- complex transforms


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


@unit.function
def fft_passes(work: ptr, table: ptr) -> None:
    """All passes of a transform whose length has small factors."""
    m = Table(table).n
    s = Work(work).lanes
    for k in range(Table(table).passes):
        r = load_i64(table, 8 * (TABLE_WORDS + 2 * k))
        w = table + load_i64(table, 8 * (TABLE_WORDS + 2 * k) + 8)
        m = m // r
        fft_pass(r, Work(work).re, Work(work).im, Work(work).other_re, Work(work).other_im, w, m, s)
        change_places(work)
        s = s * r


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


@unit.helper
def transform(work: ptr, table: ptr, inverse: i64) -> None:
    """The complex transform of lines."""
    if inverse != 0:
        fft_turn_round(work)
    if Table(table).longer != 0:
        fft_convolve(work, table)
    else:
        fft_passes(work, table)
    if inverse != 0:
        fft_turn_round(work)


# ---------------------------------------------------------------- real transforms


@unit.helper
def join(re: ptr, im: ptr, to_re: ptr, to_im: ptr, at: i64, back: i64, c: f64, s: f64) -> None:
    """Two elements of a real transform, `k` and `h - k`, from the same two of the complex one of
    half the length `h`. Worked out in double precision: other ways round once less."""
    ar, ai = f64(load_number(re, at)), f64(load_number(im, at))
    br, bi = f64(load_number(re, back)), f64(load_number(im, back))
    er, ei = 0.5 * (ar + br), 0.5 * (ai - bi)
    dr, di = 0.5 * (ai + bi), 0.5 * (br - ar)
    tr, ti = dr * c - di * s, dr * s + di * c
    store_number(to_re, back, number(er - tr))
    store_number(to_im, back, number(ti - ei))
    store_number(to_re, at, number(er + tr))  # the last one where both are one: its zeros are +0
    store_number(to_im, at, number(ei + ti))


@unit.helper
def part(re: ptr, im: ptr, to_re: ptr, to_im: ptr, at: i64, back: i64, c: f64, s: f64) -> None:
    """Two elements of the complex transform of half the length, twice as large, from the same two
    of the real one."""
    ar, ai = f64(load_number(re, at)), f64(load_number(im, at))
    br, bi = f64(load_number(re, back)), f64(load_number(im, back))
    er, ei = ar + br, ai - bi
    dr, di = ar - br, ai + bi
    tr, ti = di * c - dr * s, dr * c + di * s
    store_number(to_re, back, number(er + tr))
    store_number(to_im, back, number(ti - ei))
    store_number(to_re, at, number(er - tr))
    store_number(to_im, at, number(ei + ti))


@unit.function
def fft_join(work: ptr, h: i64, roots: ptr) -> None:
    """The first `h + 1` elements of real transforms of length `2 * h`."""
    re, im = Work(work).re, Work(work).im
    to, to_im = Work(work).other_re, Work(work).other_im
    lanes = Work(work).lanes
    end = ITEM * h * lanes
    for v in apart(lanes):
        x, y = load_number(re, ITEM * v), load_number(im, ITEM * v)
        store_number(to, ITEM * v, x + y)
        store_number(to_im, ITEM * v, 0.0)
        store_number(to, end + ITEM * v, x - y)
        store_number(to_im, end + ITEM * v, 0.0)
    if lanes == 1:
        for k in apart(h // 2):
            c, s = load_f64(roots, 8 * k + 8), load_f64(roots, 8 * (h + k + 1))
            join(re, im, to, to_im, ITEM * k + ITEM, end - ITEM * k - ITEM, c, s)
    else:
        for k in range(1, h // 2 + 1):
            at = ITEM * k * lanes
            c, s = load_f64(roots, 8 * k), load_f64(roots, 8 * (h + k))
            for v in apart(lanes):
                join(re, im, to, to_im, at + ITEM * v, end - at + ITEM * v, c, s)
    change_places(work)


@unit.function
def fft_part(work: ptr, h: i64, roots: ptr) -> None:
    """The opposite of `fft_join`, twice as large. The first and the last element count as real."""
    re, im = Work(work).re, Work(work).im
    to, to_im = Work(work).other_re, Work(work).other_im
    lanes = Work(work).lanes
    end = ITEM * h * lanes
    for v in apart(lanes):
        x, y = load_number(re, ITEM * v), load_number(re, end + ITEM * v)
        store_number(to, ITEM * v, x + y)
        store_number(to_im, ITEM * v, x - y)
    if lanes == 1:
        for k in apart(h // 2):
            c, s = load_f64(roots, 8 * k + 8), load_f64(roots, 8 * (h + k + 1))
            part(re, im, to, to_im, ITEM * k + ITEM, end - ITEM * k - ITEM, c, s)
    else:
        for k in range(1, h // 2 + 1):
            at = ITEM * k * lanes
            c, s = load_f64(roots, 8 * k), load_f64(roots, 8 * (h + k))
            for v in apart(lanes):
                part(re, im, to, to_im, at + ITEM * v, end - at + ITEM * v, c, s)
    change_places(work)


@unit.function
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


# ---------------------------------------------------------------- lines


@unit.helper
def load_lines(work: ptr, form: i64, x: ptr, step: i64, between: i64, n: i64) -> None:
    """Read lines side by side: elements are `step` bytes apart, lines `between` bytes."""
    lanes = Work(work).lanes
    if lanes == 1:
        fft_load(form, x, step, Work(work).re, Work(work).im, n)
    else:
        for j in range(n):
            fft_load(
                form,
                x + j * step,
                between,
                Work(work).re + ITEM * j * lanes,
                Work(work).im + ITEM * j * lanes,
                lanes,
            )


@unit.helper
def store_lines(
    work: ptr, form: i64, x: ptr, step: i64, between: i64, n: i64, scale: number
) -> None:
    """Write lines side by side."""
    lanes = Work(work).lanes
    re, im = Work(work).re, Work(work).im
    if lanes == 1:
        fft_store(form, re, im, x, step, n, scale)
    else:
        for j in range(n):
            fft_store(
                form,
                re + ITEM * j * lanes,
                im + ITEM * j * lanes,
                x + j * step,
                between,
                lanes,
                scale,
            )


@unit.function
def fft_complex_lines(job: ptr, work: ptr, first: i64) -> None:
    """Complex lines, of which the first begins at an element of this number."""
    item = 2 * ITEM
    inner = Job(job).inner
    n = Job(job).n
    between = item if inner > 1 else n * item
    load_lines(work, Form.COMPLEX, Job(job).source + first * item, inner * item, between, n)
    transform(work, Job(job).table, Job(job).inverse)
    store_lines(
        work,
        Form.COMPLEX,
        Job(job).target + first * item,
        inner * item,
        between,
        n,
        number(Job(job).scale),
    )


@unit.function
def fft_real_lines(job: ptr, work: ptr, first: i64) -> None:
    """Real lines, of which the first has this number."""
    item = 2 * ITEM
    n = Job(job).n
    half = n // 2
    table = Job(job).table
    line, out = n * item // 2, (half + 1) * item
    source = Job(job).source + first * line
    if Table(table).roots != 0:
        load_lines(work, Form.COMPLEX, source, item, line, half)
        transform(work, table, 0)
        fft_join(work, half, table + Table(table).roots)
    else:
        load_lines(work, Form.REAL, source, item // 2, line, n)
        transform(work, table, 0)
    store_lines(
        work,
        Form.COMPLEX,
        Job(job).target + first * out,
        item,
        out,
        half + 1,
        number(Job(job).scale),
    )


@unit.function
def fft_lines_to_real(job: ptr, work: ptr, first: i64) -> None:
    """Lines whose inverse transform is real, of which the first has this number."""
    item = 2 * ITEM
    n = Job(job).n
    half = n // 2
    table = Job(job).table
    line, out = (half + 1) * item, n * item // 2
    target = Job(job).target + first * out
    load_lines(work, Form.COMPLEX, Job(job).source + first * line, item, line, half + 1)
    if Table(table).roots != 0:
        fft_part(work, half, table + Table(table).roots)
        transform(work, table, 1)
        store_lines(work, Form.COMPLEX, target, item, out, half, number(Job(job).scale))
    else:
        fft_mirror(work, n)
        transform(work, table, 1)
        store_lines(work, Form.REAL, target, item // 2, out, n, number(Job(job).scale))


@unit.helper
def some_lines(job: ptr, work: ptr, part_number: i64) -> None:
    """The lines of one part."""
    lanes = Job(job).lanes
    inner = Job(job).inner
    if inner > 1:
        begin = part_number % Job(job).parts * lanes
        is_last = part_number % Job(job).parts == Job(job).parts - 1
        Work(work).lanes = inner - begin if is_last else lanes
        fft_complex_lines(job, work, part_number // Job(job).parts * Job(job).n * inner + begin)
        return
    first = part_number * lanes
    Work(work).lanes = min(lanes, Job(job).outer - first)
    match Job(job).real:
        case 0:
            fft_complex_lines(job, work, first * Job(job).n)
        case 1:
            fft_real_lines(job, work, first)
        case _:
            fft_lines_to_real(job, work, first)


@unit.function
def fft_parts(job: ptr, first: i64, last: i64) -> None:
    """Some parts of the lines along an axis, in memory of their own."""
    work = alloca(_WORK_BYTES)
    most_lanes = Job(job).lanes + Job(job).lanes // 2
    size = (ITEM * Job(job).room * most_lanes + 63) & ~63
    # else the lines of a pass, which are powers of two apart, would fight for the same places of
    # the cache
    if size >= _PAGE:
        size = ((size + _PAGE - 1) & ~(_PAGE - 1)) + _ASIDE
    block = calque_alloc(4 * size)
    if block == NULL:
        stop(Job(job).run, NO_MEMORY)
        return
    since = 0
    for part_number in range(first, last):
        Work(work).re = block
        Work(work).im = block + size
        Work(work).other_re = block + 2 * size
        Work(work).other_im = block + 3 * size
        some_lines(job, work, part_number)
        since += Job(job).room * Job(job).lanes
        if since >= _BETWEEN_POLLS:
            since = 0
            if calque_poll(Job(job).run) != 0:
                break
    calque_free(block)


# ---------------------------------------------------------------- axes


@unit.helper
def ceiling(a: i64, b: i64) -> i64:
    """How many parts of at most `b` there are in `a`."""
    return (a + b - 1) // b


@unit.function
def fft_axis(job: ptr) -> None:
    """Transform along one axis."""
    n = Job(job).n
    inner = Job(job).inner
    if inner > 1:
        lanes = min(inner, min(max(_NEAR // n, _FEWEST_LANES), _MOST_LANES))
        # a few lines that are left go with the last part
        Job(job).parts = inner // lanes + i64(inner % lanes > lanes // 2)
        parts = Job(job).outer * Job(job).parts
    else:
        lanes = min(Job(job).outer, _ROWS) if n < _SHORT else 1
        parts = ceiling(Job(job).outer, lanes)
    Job(job).lanes = lanes
    calque_parallel_for(fft_parts, job, 0, parts, max(_GRAIN // (n * lanes), 1))


@unit.helper
def axis_number(plan: ptr, k: i64) -> ptr:
    """The description of an axis."""
    return plan + 8 * (PLAN_WORDS + AXIS_WORDS * k)


@unit.helper
def length(plan: ptr, k: i64) -> i64:
    """The length of an axis among complex numbers."""
    n = Axis(axis_number(plan, k)).n
    return n // 2 + 1 if Plan(plan).real != 0 and k == Plan(plan).rank - 1 else n


@unit.helper
def along(job: ptr, plan: ptr, k: i64, outer: i64) -> None:
    """Describe the work along an axis."""
    axis = axis_number(plan, k)
    rows = outer
    inner = 1
    for i in range(Plan(plan).rank):
        if i < k:
            rows = rows * length(plan, i)
        elif i > k:
            inner = inner * length(plan, i)
    Job(job).outer = rows
    Job(job).n = Axis(axis).n
    Job(job).inner = inner
    Job(job).table = plan + Axis(axis).table
    Job(job).room = Axis(axis).room


@unit.helper
def between(args: ptr) -> ptr:
    """Memory for what lies between the axes of a transform to real numbers."""
    plan = Args(args).plan
    size = Args(args).outer * 2 * ITEM
    for i in range(Plan(plan).rank):
        size = size * length(plan, i)
    return calque_alloc(size)


@unit.function
def calque_fft(args: ptr, begin: i64, end: i64) -> None:
    """Transform along all axes: the last one first, or last when its lines become real."""
    job = alloca(_JOB_BYTES)
    plan = Args(args).plan
    rank = Plan(plan).rank
    to_real = Plan(plan).real == 2
    if Args(args).outer == 0:
        return
    Job(job).run = load_ptr(args, -8)
    Job(job).inverse = Plan(plan).inverse
    Job(job).source = Args(args).source
    Job(job).target = Args(args).target
    middle: ptr = NULL
    if to_real and rank > 1:
        middle = between(args)
        if middle == NULL:
            stop(Job(job).run, NO_MEMORY)
            return
        Job(job).target = middle
    for i in range(rank):
        k = i if to_real else rank - 1 - i
        along(job, plan, k, Args(args).outer)
        Job(job).real = Plan(plan).real if k == rank - 1 else 0
        Job(job).scale = Plan(plan).scale if i == rank - 1 else 1.0
        if to_real and k == rank - 1:
            Job(job).target = Args(args).target
        fft_axis(job)
        Job(job).source = Job(job).target
        if calque_poll(Job(job).run) != 0:
            break
    calque_free(middle)


unit_single, _SINGLE = unit.over(
    SINGLE, SINGLE_ITEM, {**SINGLE_NAMES, **SINGLE_LINES, **SINGLE_PASSES}
)
calque_fft_single = _SINGLE["calque_fft"]
