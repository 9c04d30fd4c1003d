"""What the parts of the sorting kernel share: its arguments, the work on one row, the keys of a
row, its operands moved."""

from __future__ import annotations

from calque.machine.driver.stamps import Run
from calque.machine.lang.unit import (
    NULL,
    Unit,
    alloca,
    atomic_load,
    i1,
    i64,
    layout,
    ptr,
)
from calque.machine.routines.sort.keys import Key, KeyKind, Row, keys_load
from calque.machine.routines.sort.moves import GRAIN, MOVED_BYTES, Moved, sort_copy, sort_move_some
from calque.machine.routines.sort.radix import Records
from calque.machine.routines.sort.records import records_survey
from calque.machine.threads import calque_parallel_for

# The sizes before, along and behind the axis; how many elements of a sorted row are kept; how many
# keys and moves follow; whether the only operand is sorted as it is.
Args = layout("Args", outer=i64, n=i64, inner=i64, kept=i64, n_keys=i64, n_moves=i64, alone=i64)
# An operand that is moved: from where (NULL: the places themselves), to where, the bytes of an
# element.
Move = layout("Move", source=ptr, target=ptr, item=i64)

FEW = 500  # rows up to this length are sorted without a look at them first

# The work on one row, and whom to ask whether to go on; memory for keys, records and as many more;
# where a survey is written. The least key, the bits of keys that have no room in a record, whether
# keys have 8 bytes. While places are sorted by one key after the other: the places, room for as
# many, and which half of a key counts.
Work = layout(
    "Work",
    args=ptr,
    row=i64,
    run=ptr,
    keys=ptr,
    records=ptr,
    other=ptr,
    survey=ptr,
    least=i64,
    shift=i64,
    wide=i64,
    places=ptr,
    new=ptr,
    half=i64,
)
WORK_BYTES = 112
ROW_BYTES = 48
ARGS_BYTES = 56
KEY_BYTES = 56
MOVE_BYTES = 24

unit = Unit("sort_work")


@unit.helper
def key_number(args: ptr, k: i64) -> ptr:
    """The description of a key."""
    return args + ARGS_BYTES + k * KEY_BYTES


@unit.helper
def move_number(args: ptr, k: i64) -> ptr:
    """The description of a move."""
    return args + ARGS_BYTES + Args(args).n_keys * KEY_BYTES + k * MOVE_BYTES


@unit.helper
def first_element(args: ptr, row: i64, length: i64) -> i64:
    """The number of the first element of a row in an array whose axis has this length."""
    inner = Args(args).inner
    return row // inner * length * inner + row % inner


@unit.helper
def key_place(work: ptr, key: ptr) -> ptr:
    """Where the first element of the row of a key stands."""
    args = Work(work).args
    return (
        Key(key).data
        + first_element(args, Work(work).row, Args(args).n) * Key(key).item
        + Key(key).offset
    )


@unit.helper
def key_bytes(key: ptr) -> i64:
    """The bytes of what keys are made of."""
    match Key(key).kind:
        case KeyKind.TABLE:
            return 1
        case KeyKind.PLAIN_2 | KeyKind.FLOAT_2 | KeyKind.TOTAL_2:
            return 2
        case KeyKind.PLAIN_4 | KeyKind.FLOAT_4 | KeyKind.TOTAL_4:
            return 4
        case _:
            return 8


@unit.helper
def is_wide(key: ptr) -> i64:
    """1 for keys of 8 bytes."""
    kind = Key(key).kind
    return i64(kind in (KeyKind.PLAIN_8, KeyKind.FLOAT_8, KeyKind.TOTAL_8))


@unit.function
def sort_load(work: ptr, key: ptr, to: ptr) -> i64:
    """Write the keys of a row. Not 0 when they do not tell all bits of their elements."""
    args = Work(work).args
    n = Args(args).n
    row = alloca(ROW_BYTES)
    data = key_place(work, key)
    step = Args(args).inner * Key(key).item
    size = key_bytes(key)
    if step != size:
        sort_copy(data, step, Work(work).other, size, size, n)
        data = Work(work).other
    Row(row).key = key
    Row(row).data = data
    Row(row).keys = to
    Row(row).odd = 0
    calque_parallel_for(keys_load, row, 0, n, GRAIN)
    return Row(row).odd


@unit.function
def sort_move(work: ptr, move: ptr) -> None:
    """Move a row of an operand as the records say."""
    moved = alloca(MOVED_BYTES)
    args = Work(work).args
    item = Move(move).item
    kept = Args(args).kept
    source = Move(move).source
    if source != NULL:
        source = source + first_element(args, Work(work).row, Args(args).n) * item
    Moved(moved).source = source
    Moved(moved).target = Move(move).target + first_element(args, Work(work).row, kept) * item
    Moved(moved).item = item
    Moved(moved).step = Args(args).inner * item
    Moved(moved).to_step = Args(args).inner * item
    Moved(moved).records = Work(work).records
    calque_parallel_for(sort_move_some, moved, 0, kept, GRAIN)


@unit.helper
def job_of(work: ptr, records: ptr, wide: i64, kept: i64) -> ptr:
    """The records of a row, of which so many are wanted in their order."""
    job = Work(work).survey
    Records(job).records = records
    Records(job).other = Work(work).other
    Records(job).n = Args(Work(work).args).n
    Records(job).wide = wide
    Records(job).run = Work(work).run
    Records(job).kept = kept
    return job


@unit.helper
def in_order(job: ptr) -> i1:
    """Whether records are in order. Few are not looked at."""
    if Records(job).n <= FEW:
        return False
    records_survey(job)
    return Records(job).disorder == 0


@unit.helper
def is_stopped(work: ptr) -> i1:
    """Whether the run has been told to end. Then records may be in the middle of a move."""
    return atomic_load(Run.at(Work(work).run).stopped, 0) != 0
