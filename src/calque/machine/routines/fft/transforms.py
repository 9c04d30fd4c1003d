"""Fourier transforms along the last axes of an array: the kernel behind `fft`.

`calque_fft(args, begin, end)` transforms everything; the range means nothing. `args` are words, see
`Args`; what depends only on the lengths stands in a table (`Plan`, `Axis`, `Table`), made once, and
the functions that these lengths need are words, too. One axis is transformed after the other: lines
are read into memory of the thread's own, as many side by side as vectors are good for, transformed,
and written. `calque_fft_single` is the same in single precision, for data of it.
"""

from __future__ import annotations

from typing import Final

from calque.machine.driver.interpreter import NO_MEMORY, calque_poll
from calque.machine.lang.types import Function
from calque.machine.lang.unit import (
    NULL,
    Unit,
    alloca,
    f64,
    i64,
    layout,
    load_ptr,
    ptr,
    signature,
    sizeof,
)
from calque.machine.memory import calque_alloc, calque_free
from calque.machine.routines.ending import stop
from calque.machine.routines.fft.convolution import fft_convolve, fft_convolve_single
from calque.machine.routines.fft.halves import HALVES, SINGLE_HALVES
from calque.machine.routines.fft.lines import LINES, SINGLE_LINES
from calque.machine.routines.fft.numbers import ITEM, SINGLE, SINGLE_ITEM, number
from calque.machine.routines.fft.passes import PASSES, SINGLE_PASSES
from calque.machine.routines.fft.real import REAL
from calque.machine.routines.fft.work import (
    SINGLE_WORK,
    Functions,
    Job,
    Table,
    Work,
    fft_transform,
    load_lines,
    store_lines,
)
from calque.machine.threads import calque_parallel_for

# From where, to where, how many transforms, the table, and the first one of `Functions`.
Args = layout("Args", source=ptr, target=ptr, outer=i64, plan=ptr, functions=ptr)
# How many axes; forward or inverse; what is real (0 nothing, 1 what is
# read, 2 what is written); a factor. Axes follow.
Plan = layout("Plan", rank=i64, inverse=i64, real=i64, scale=f64)
# The length of an axis, where its table is, counted from the plan, the elements of memory that a
# line takes, and how many complex numbers there are along the axes before and behind.
Axis = layout("Axis", n=i64, table=i64, room=i64, before=i64, behind=i64)
PLAN_WORDS: Final = 4
AXIS_WORDS: Final = 5
lines_type = signature(None, ptr, ptr, i64)

FEWEST_LANES: Final = 8
_MOST_LANES: Final = 64
_NEAR: Final = 2048  # elements side by side that stay in the nearest cache
_ROWS: Final = 16  # short transforms side by side
_SHORT: Final = 48  # ... to this length
_MEDIUM: Final = 256  # transforms of which a few are done side by side, unless one fills vectors
_FULL: Final = 64  # ... as those do whose length this divides
_GRAIN: Final = 1 << 12  # elements that are worth a thread
_BETWEEN_POLLS: Final = 1 << 18
_PAGE: Final = 4096
_ASIDE: Final = 1088

unit = Unit("fft", leads=True)


def is_alone(n: int, length: int) -> bool:
    """Whether a line of `n` elements is transformed alone however many there are."""
    return n > _MEDIUM or length % _FULL == 0  # also 0


def side_by_side(n: int, length: int, outer: int, inner: int) -> int:
    """How many lines of `n` elements at least are transformed side by side (`fft_axis`) where so
    many numbers stand before the axis (0: nobody knows) and behind it; 0 where nobody knows. They
    are made of complex transforms of a length, 0 for those that are convolutions."""
    if inner == 1:
        if n >= _SHORT and (outer < FEWEST_LANES or is_alone(n, length)):
            return 1 if outer or is_alone(n, length) else 0
        return min(outer, FEWEST_LANES)
    lanes = min(inner, min(max(_NEAR // n, FEWEST_LANES), _MOST_LANES))
    rest = inner % lanes
    return rest if rest > lanes // 2 else lanes


@unit.function
def fft_complex_lines(job: ptr, work: ptr, first: i64) -> None:
    """Complex lines, of which the first begins at an element of this number."""
    item = 2 * ITEM
    inner = Job(job).inner
    n = Job(job).n
    between = item if inner > 1 else n * item
    load_lines(work, Job(job).source + first * item, inner * item, between, n)
    fft_transform(work, Job(job).table, Job(job).inverse)
    store_lines(
        work,
        Job(job).target + first * item,
        inner * item,
        between,
        n,
        number(Job(job).scale),
    )


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
    Work(work).lanes = Job(job).outer - first if part_number == Job(job).parts - 1 else lanes
    if Job(job).real == 0:
        fft_complex_lines(job, work, first * Job(job).n)
    elif Table(Job(job).table).roots != 0:
        lines_type(Functions(Job(job).functions).halves, job, work, first)
    else:
        lines_type(Functions(Job(job).functions).whole, job, work, first)


@unit.function
def fft_parts(job: ptr, first: i64, last: i64) -> None:
    """Some parts of the lines along an axis, in memory of their own."""
    work = alloca(sizeof(Work))
    lanes = Job(job).lanes
    most_lanes = lanes + max(lanes // 2, min(lanes, FEWEST_LANES) - 1)
    size = (ITEM * Job(job).room * most_lanes + 63) & ~63
    # else the lines of a pass, which are powers of two apart, would fight for the same places of
    # the cache
    if size >= _PAGE:
        size = ((size + _PAGE - 1) & ~(_PAGE - 1)) + _ASIDE
    block = calque_alloc(4 * size)
    if block == NULL:
        stop(Job(job).run, NO_MEMORY)
        return
    Work(work).functions = Job(job).functions
    since = 0
    for part_number in range(first, last):
        Work(work).re = block
        Work(work).im = block + size
        Work(work).other_re = block + 2 * size
        Work(work).other_im = block + 3 * size
        some_lines(job, work, part_number)
        since += Job(job).room * lanes
        if since >= _BETWEEN_POLLS:
            since = 0
            if calque_poll(Job(job).run) != 0:
                break
    calque_free(block)


# ---------------------------------------------------------------- axes


@unit.function
def fft_axis(job: ptr) -> None:
    """Transform along one axis. A few lines that are left go with the last part: none is
    transformed twice, since an axis may be transformed in its place."""
    n = Job(job).n
    inner = Job(job).inner
    if inner > 1:
        lanes = min(inner, min(max(_NEAR // n, FEWEST_LANES), _MOST_LANES))
        Job(job).parts = inner // lanes + i64(inner % lanes > lanes // 2)
        parts = Job(job).outer * Job(job).parts
    else:
        table = Job(job).table
        lanes = 1
        if n < _SHORT:
            lanes = min(Job(job).outer, _ROWS)
        elif Job(job).outer >= FEWEST_LANES:
            is_sum = Table(table).longer == 0
            if n <= _MEDIUM and is_sum and Table(table).n % _FULL != 0:
                lanes = FEWEST_LANES
        parts = Job(job).outer // lanes + i64(Job(job).outer % lanes >= FEWEST_LANES)
        Job(job).parts = parts
    Job(job).lanes = lanes
    calque_parallel_for(fft_parts, job, 0, parts, max(_GRAIN // (n * lanes), 1))


@unit.helper
def axis_number(plan: ptr, k: i64) -> ptr:
    """The description of an axis."""
    return plan + 8 * (PLAN_WORDS + AXIS_WORDS * k)


@unit.helper
def along(job: ptr, axis: ptr, plan: ptr, outer: i64) -> None:
    """Describe the work along an axis."""
    Job(job).outer = outer * Axis(axis).before
    Job(job).n = Axis(axis).n
    Job(job).inner = Axis(axis).behind
    Job(job).table = plan + Axis(axis).table
    Job(job).room = Axis(axis).room


@unit.helper
def between(args: ptr) -> ptr:
    """Memory for what lies between the axes of transforms to real numbers, of two axes or more."""
    first = axis_number(Args(args).plan, 0)
    return calque_alloc(Args(args).outer * 2 * ITEM * Axis(first).n * Axis(first).behind)


@unit.function
def calque_fft(args: ptr, begin: i64, end: i64) -> None:
    """Transform along all axes: the last one first, or last when its lines become real."""
    job = alloca(sizeof(Job))
    plan = Args(args).plan
    rank = Plan(plan).rank
    to_real = Plan(plan).real == 2
    if Args(args).outer == 0:
        return
    Job(job).run = load_ptr(args, -8)
    Job(job).inverse = Plan(plan).inverse
    Job(job).source = Args(args).source
    Job(job).target = Args(args).target
    Job(job).functions = Args.at(args).functions
    middle: ptr = NULL
    if to_real and rank > 1:
        middle = between(args)
        if middle == NULL:
            stop(Job(job).run, NO_MEMORY)
            return
        Job(job).target = middle
    for i in range(rank):
        k = i if to_real else rank - 1 - i
        along(job, axis_number(plan, k), plan, Args(args).outer)
        Job(job).real = Plan(plan).real if k == rank - 1 else 0
        Job(job).scale = Plan(plan).scale if i == rank - 1 else 1.0
        if to_real and k == rank - 1:
            Job(job).target = Args(args).target
        fft_axis(job)
        Job(job).source = Job(job).target
        if calque_poll(Job(job).run) != 0:
            break
    calque_free(middle)


unit_single, _SINGLE = unit.over(SINGLE, SINGLE_ITEM, SINGLE_WORK)
calque_fft_single = _SINGLE["calque_fft"]
_NAMED: Final = (calque_fft, calque_fft_single, fft_convolve, fft_convolve_single, *REAL)
# What a program may name: the transforms, and the functions that they are given.
ROUTINES: Final[dict[str, Function]] = {
    **{f.name: f for f in _NAMED},
    **PASSES,
    **SINGLE_PASSES,
    **LINES,
    **SINGLE_LINES,
    **HALVES,
    **SINGLE_HALVES,
}
