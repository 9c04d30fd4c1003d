"""Times of steps, kept while somebody profiles: what `STAMP` instructions do, which only the timed
form of a program has (`timed`).

A *record* belongs to one step of one program: how often it was done, for how long. Where there is a
*log*, every single time is written there as well, by any thread, until the log is full."""

from __future__ import annotations

import enum

from calque.machine.clock import nanoseconds_now
from calque.machine.lang.unit import (
    NULL,
    Unit,
    atomic_add,
    i64,
    layout,
    load_ptr,
    ptr,
    signature,
    store_i64,
)


class Stamp(enum.IntEnum):
    """What a stamp says."""

    BEGIN = 0  # a step begins
    END = 1  # it has ended
    ENTER = 2  # the program begins
    LEAVE = 3  # it has ended


# What one run has besides its frame. `thread` is the saved Python thread state while the GIL is
# released. `owner`: the system's thread that runs it while others help, else 0. `stopped`: the
# status with which a kernel has returned early. The last four are of stamps alone: the record of
# the step that is running and when it began, the same of the program.
Run = layout(
    "Run",
    thread=ptr,
    turns=i64,
    allowed=i64,
    looked=i64,
    outputs=ptr,
    args=ptr,
    owner=i64,
    stopped=i64,
    record=ptr,
    begun=i64,
    entered=i64,
    spare=i64,
)
# `kernel` is what a step over a range calls, `busy` the time that all threads spent there, `parts`
# in how many parts; `log` may be NULL, `number` is that of the record in it. `entered` of a
# program's record is called with its number when the program begins, unless it is NULL.
Record = layout(
    "Record", turns=i64, ns=i64, kernel=ptr, busy=i64, parts=i64, log=ptr, number=i64, entered=ptr
)
RECORD_WORDS = 8
# Then come the events, four words each: number of the record, thread, begin, end.
Log = layout("Log", capacity=i64, count=i64, unused=i64, reserved=i64)
LOG_WORDS = EVENT_WORDS = 4
PART = 1 << 32  # added to the number of a record: a part of its range

unit = Unit("interp")  # one with the interpreter, which uses it
_pthread_self = unit.extern("pthread_self", i64)
_kernel_type = signature(None, ptr, i64, i64)
_entered_type = signature(None, i64)


@unit.helper
def note(log: ptr, number: i64, begin: i64, end: i64) -> None:
    """An event in the log, if there is room for it; all are counted."""
    if log == NULL:
        return
    at = atomic_add(log, 8, 1)
    if at < Log(log).capacity:
        event = log + 8 * LOG_WORDS + 8 * EVENT_WORDS * at
        store_i64(event, 0, number)
        store_i64(event, 8, _pthread_self())
        store_i64(event, 16, begin)
        store_i64(event, 24, end)


@unit.helper
def done(record: ptr, begin: i64) -> None:
    """A step or a program has ended."""
    end = nanoseconds_now()
    atomic_add(record, 0, 1)
    atomic_add(record, 8, end - begin)
    note(Record(record).log, Record(record).number, begin, end)


@unit.function
def interp_stamp(run: ptr, record: ptr, what: i64) -> None:
    """One stamp of a run."""
    match what:
        case Stamp.BEGIN:
            Run(run).record = record
            Run(run).begun = nanoseconds_now()
        case Stamp.END:
            done(record, Run(run).begun)
        case Stamp.ENTER:
            if Record(record).entered != NULL:
                _entered_type(Record(record).entered, Record(record).number)
            Run(run).entered = nanoseconds_now()
        case _:
            done(record, Run(run).entered)


@unit.function
def interp_timed_part(args: ptr, begin: i64, end: i64) -> None:
    """Stands for the kernel of a step over a range: runs it on a part, on any thread, and takes the
    time."""
    record = Run(load_ptr(args, -8)).record
    began = nanoseconds_now()
    _kernel_type(Record(record).kernel, args, begin, end)
    ended = nanoseconds_now()
    atomic_add(record, 24, ended - began)
    atomic_add(record, 32, 1)
    note(Record(record).log, Record(record).number + PART, began, ended)
