"""Sorting records: unsigned integers of 4 or 8 bytes, by whatever is quickest for so many on this
processor.

Few are sorted by networks. More are split at pivots, a long array first into parts for the pool's
threads; or, where the processor cannot split quickly or pivots turn out badly, sorted by their
digits. What comes out does not depend on the way: equal records cannot be told apart.
"""

from __future__ import annotations

from typing import Any, Final

from calque.machine.code import target
from calque.machine.lang.unit import (
    NULL,
    Unit,
    atomic_store,
    i1,
    i64,
    load_i64,
    load_u32,
    ptr,
    store_i64,
    ult,
)
from calque.machine.memory import calque_alloc, calque_free
from calque.machine.routines.sort.network import PAD, can_split, network_sort, network_split
from calque.machine.routines.sort.quick import pivot_of, quick_sort
from calque.machine.routines.sort.radix import TABLES_BYTES, Records, bits_of, radix_sort
from calque.machine.threads import calque_parallel_for, threads_in_use

MOST_PARTS = 64
ROOM = (MOST_PARTS + 1) * PAD  # records more than there are for which `other` must have room
_BLOCK = 1 << 15  # records that are worth a thread
_FEW = 500
_SHORT: Final = {
    16: 500,
    32: 4000,
    64: 4000,
}  # up to here networks are quicker than digits, by the bytes of vectors
_SHORT_WIDE: Final = {16: 300, 32: 1500, 64: 1500}

PLACES_BYTES = 24 * MOST_PARTS

unit = Unit("sort_records")
_splits: Any = unit.cell("records_can_split", i64, lambda: int(can_split()))
_short: Any = unit.cell("records_short", i64, lambda: _SHORT[target.describe().vector_bytes])
_short_wide: Any = unit.cell(
    "records_short_wide", i64, lambda: _SHORT_WIDE[target.describe().vector_bytes]
)


@unit.helper
def record_at(records: ptr, i: i64, wide: i64) -> i64:
    """A record."""
    return load_i64(records, 8 * i) if wide != 0 else load_u32(records, 4 * i)


@unit.helper
def survey_some(job: ptr, place: ptr, begin: i64, end: i64, wide: i64) -> None:
    """The least and the greatest of some records, and whether one of them is less than the one
    before it."""
    records = Records(job).records
    least = record_at(records, begin, wide)
    greatest = least
    disorder = 0
    for i in range(max(begin, 1), end):
        r = record_at(records, i, wide)
        least = r if ult(r, least) else least
        greatest = r if ult(greatest, r) else greatest
        disorder |= i64(ult(r, record_at(records, i - 1, wide)))
    store_i64(place, 0, least)
    store_i64(place, 8, greatest)
    store_i64(place, 16, disorder)


@unit.function
def records_survey_blocks(job: ptr, first: i64, last: i64) -> None:
    """The survey of some blocks."""
    n = Records(job).n
    blocks = Records(job).blocks
    for block in range(first, last):
        place = Records(job).places + 24 * block
        if Records(job).wide != 0:
            survey_some(job, place, n * block // blocks, n * (block + 1) // blocks, 1)
        else:
            survey_some(job, place, n * block // blocks, n * (block + 1) // blocks, 0)


@unit.function
def records_survey(job: ptr) -> None:
    """Find the least and the greatest record, and whether they are in order."""
    blocks = max(min(Records(job).n // _BLOCK, MOST_PARTS), 1)
    Records(job).blocks = blocks
    calque_parallel_for(records_survey_blocks, job, 0, blocks, 1)
    least = -1
    greatest = 0
    disorder = 0
    for block in range(blocks):
        place = Records(job).places + 24 * block
        least = load_i64(place, 0) if ult(load_i64(place, 0), least) else least
        greatest = load_i64(place, 8) if ult(greatest, load_i64(place, 8)) else greatest
        disorder |= load_i64(place, 16)
    Records(job).least = least
    Records(job).greatest = greatest
    Records(job).disorder = disorder


@unit.helper
def largest(job: ptr, parts: i64) -> i64:
    """The number of the largest part."""
    best = 0
    for k in range(1, parts):
        if load_i64(Records(job).places, 24 * k + 8) > load_i64(Records(job).places, 24 * best + 8):
            best = k
    return best


@unit.helper
def parted(job: ptr) -> i64:
    """Split a long array into parts for several threads, and give their number."""
    places = Records(job).places
    wide = Records(job).wide
    store_i64(places, 0, 0)
    store_i64(places, 8, Records(job).n)
    parts = 1
    wanted = min(4 * threads_in_use(), MOST_PARTS) if threads_in_use() > 1 else 1
    left = 2 * wanted
    while parts < wanted and left > 0:
        left -= 1
        k = largest(job, parts)
        at = load_i64(places, 24 * k)
        n = load_i64(places, 24 * k + 8)
        if n < _BLOCK:
            break
        if at >= Records(job).kept:
            store_i64(places, 24 * k + 8, 0)
            continue
        data = Records(job).records + (at << (2 + wide))
        pivot = pivot_of(data, n, wide, Records(job).kept - at)
        low = network_split(data, Records(job).other, n, pivot, wide)
        if low == 0:
            if pivot == (-1 if wide != 0 else 0xFFFFFFFF):
                store_i64(places, 24 * k + 8, 0)
            else:
                low = network_split(data, Records(job).other, n, pivot + 1, wide)
                store_i64(places, 24 * k, at + low)
                store_i64(places, 24 * k + 8, n - low)
        else:
            store_i64(places, 24 * k + 8, low)
            store_i64(places, 24 * parts, at + low)
            store_i64(places, 24 * parts + 8, n - low)
            parts += 1
    return parts


@unit.helper
def parts_before(job: ptr, at: i64) -> i64:
    """How many parts lie before a place."""
    count = 0
    for k in range(Records(job).blocks):
        count += i64(load_i64(Records(job).places, 24 * k) < at)
    return count


@unit.function
def records_sort_parts(job: ptr, first: i64, last: i64) -> None:
    """Sort some of the parts."""
    wide = Records(job).wide
    shift = 2 + wide
    for k in range(first, last):
        at = load_i64(Records(job).places, 24 * k)
        n = load_i64(Records(job).places, 24 * k + 8)
        data = Records(job).records + (at << shift)
        other = Records(job).other + ((at + parts_before(job, at) * PAD) << shift)
        if (
            quick_sort(
                data, other, n, wide, Records(job).kept - at, 2 * bits_of(n) + 4, Records(job).run
            )
            == 0
        ):
            atomic_store(Records.at(job).failed, 0, 1)


@unit.helper
def sort_by_digits(job: ptr) -> i1:
    """Sort by digits; False when there is no memory."""
    tables = calque_alloc(TABLES_BYTES)
    if tables == NULL:
        return False
    records_survey(job)
    radix_sort(job, tables)
    calque_free(tables)
    return True


@unit.function
def sort_records(job: ptr) -> i64:
    """Sort, at least so far that the first `kept` are in their places. Gives 0 when there is no
    memory."""
    n = Records(job).n
    wide = Records(job).wide
    if n <= (_FEW if _splits != 0 else _short_wide if wide != 0 else _short):
        network_sort(Records(job).records, n, wide)
        return 1
    Records(job).failed = 1
    if _splits != 0:
        Records(job).failed = 0
        Records(job).blocks = parted(job)
        calque_parallel_for(records_sort_parts, job, 0, Records(job).blocks, 1)
    if Records(job).failed != 0:
        return i64(sort_by_digits(job))
    return 1
