"""Elements of a row that are copied, in the order in which they stand or in that of records."""

from __future__ import annotations

from calque.machine.lang.unit import (
    NULL,
    Unit,
    alloca,
    i64,
    layout,
    load_i8,
    load_i16,
    load_i32,
    load_i64,
    load_u32,
    memcpy,
    ptr,
    store_i8,
    store_i16,
    store_i32,
    store_i64,
)
from calque.machine.threads import calque_parallel_for

GRAIN = 1 << 14  # elements that are worth a thread

# Elements that are moved: from where, to where, their bytes, the steps, and the records that say
# which comes where.
Moved = layout("Moved", source=ptr, target=ptr, item=i64, step=i64, to_step=i64, records=ptr)
MOVED_BYTES = 48

unit = Unit("sort_moves")


@unit.helper
def copy_element(to: ptr, source: ptr, item: i64) -> None:
    """Copy one element."""
    match item:
        case 1:
            store_i8(to, 0, load_i8(source, 0))
        case 2:
            store_i16(to, 0, load_i16(source, 0))
        case 4:
            store_i32(to, 0, load_i32(source, 0))
        case 8:
            store_i64(to, 0, load_i64(source, 0))
        case _:
            memcpy(to, source, item)


@unit.helper
def move_elements(moved: ptr, item: i64, begin: i64, end: i64) -> None:
    """Move elements of so many bytes to where their records are."""
    source = Moved(moved).source
    to = Moved(moved).target
    step = Moved(moved).step
    to_step = Moved(moved).to_step
    records = Moved(moved).records
    for i in range(begin, end):
        copy_element(to + i * to_step, source + load_u32(records, 8 * i) * step, item)


@unit.helper
def write_places(moved: ptr, begin: i64, end: i64) -> None:
    """Write the places in records as integers of 4 or 8 bytes."""
    to = Moved(moved).target
    to_step = Moved(moved).to_step
    records = Moved(moved).records
    if Moved(moved).item == 8:
        for i in range(begin, end):
            store_i64(to, i * to_step, load_u32(records, 8 * i))
    else:
        for i in range(begin, end):
            store_i32(to, i * to_step, load_u32(records, 8 * i))


@unit.function
def sort_move_some(moved: ptr, begin: i64, end: i64) -> None:
    """Move some elements, or write their places."""
    item = Moved(moved).item
    if Moved(moved).source == NULL:
        write_places(moved, begin, end)
        return
    match item:
        case 1:
            move_elements(moved, 1, begin, end)
        case 2:
            move_elements(moved, 2, begin, end)
        case 4:
            move_elements(moved, 4, begin, end)
        case 8:
            move_elements(moved, 8, begin, end)
        case _:
            move_elements(moved, item, begin, end)


@unit.helper
def copy_some(moved: ptr, item: i64, begin: i64, end: i64) -> None:
    """Copy elements of so many bytes."""
    source = Moved(moved).source
    to = Moved(moved).target
    step = Moved(moved).step
    to_step = Moved(moved).to_step
    if step == item and to_step == item:
        memcpy(to + begin * item, source + begin * item, (end - begin) * item)
        return
    for i in range(begin, end):
        copy_element(to + i * to_step, source + i * step, item)


@unit.function
def sort_copy_some(moved: ptr, begin: i64, end: i64) -> None:
    """Copy some elements in the order in which they stand."""
    item = Moved(moved).item
    match item:
        case 1:
            copy_some(moved, 1, begin, end)
        case 2:
            copy_some(moved, 2, begin, end)
        case 4:
            copy_some(moved, 4, begin, end)
        case 8:
            copy_some(moved, 8, begin, end)
        case _:
            copy_some(moved, item, begin, end)


@unit.function
def sort_copy(source: ptr, step: i64, to: ptr, to_step: i64, item: i64, n: i64) -> None:
    """Copy a row."""
    moved = alloca(MOVED_BYTES)
    Moved(moved).source = source
    Moved(moved).target = to
    Moved(moved).item = item
    Moved(moved).step = step
    Moved(moved).to_step = to_step
    calque_parallel_for(sort_copy_some, moved, 0, n, GRAIN)
