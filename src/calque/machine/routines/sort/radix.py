"""Sorting records by the digits of their keys, the least significant first; a pass keeps the order
of equal digits.

A record is an unsigned integer of 4 bytes, or of 8, of which the high half may be a key and the low
half its place. What all records have in common is taken off first, so that small numbers need few
passes. A long array is cut into blocks that the pool's threads count and move at the same time;
where a record goes depends on what stands before it only, so the result is the same for any number
of threads.
"""

from __future__ import annotations

from calque.machine.driver.interpreter import calque_poll
from calque.machine.lang.unit import (
    Unit,
    alloca,
    i1,
    i64,
    layout,
    load_i64,
    load_u32,
    lshr,
    memcpy,
    memset,
    ptr,
    store_i32,
    store_i64,
    ult,
)
from calque.machine.threads import calque_parallel_for, threads_in_use

_SOME = 1 << 14  # records that are worth a thread
_BETWEEN_POLLS = 1 << 20
_MOST_BITS = 11
_ROUGH = (
    33  # of keys with more bits these are sorted by first, which nearly always leaves little to do
)
_TABLE = 4 << _MOST_BITS
MOST_BLOCKS = 64
TABLES_BYTES = MOST_BLOCKS * _TABLE

# Records to be sorted, room for more, their number, whether they have 8 bytes, whom to ask whether
# to go on, how many of the sorted ones are wanted. What a survey found: the least, the greatest,
# whether one is less than the one before it. Then the parts into which a long array is split: their
# number, whether pivots were bad, and where they are (place, number, and a word more for the
# survey).
Records = layout(
    "Records",
    records=ptr,
    other=ptr,
    n=i64,
    wide=i64,
    run=ptr,
    kept=i64,
    least=i64,
    greatest=i64,
    disorder=i64,
    blocks=i64,
    failed=i64,
    places=ptr,
)
RECORDS_BYTES = 112

# The same while it is sorted by digits: also tables of counts, the number of blocks, what is taken
# off, and the digit of a pass.
Job = layout(
    "Job",
    records=ptr,
    other=ptr,
    n=i64,
    wide=i64,
    tables=ptr,
    run=ptr,
    blocks=i64,
    base=i64,
    shift=i64,
    mask=i64,
)

JOB_BYTES = 96

unit = Unit("sort_radix")


@unit.helper
def record(records: ptr, i: i64, wide: i64) -> i64:
    """A record."""
    return load_i64(records, 8 * i) if wide != 0 else load_u32(records, 4 * i)


@unit.helper
def block_begin(job: ptr, block: i64) -> i64:
    """Where a block begins."""
    return Job(job).n * block // Job(job).blocks


@unit.helper
def count_some(job: ptr, table: ptr, begin: i64, end: i64, wide: i64) -> None:
    """Count the digits of some records."""
    records = Job(job).records
    base = Job(job).base
    shift = Job(job).shift
    mask = Job(job).mask
    for i in range(begin, end):
        digit = lshr(record(records, i, wide) - base, shift) & mask
        store_i32(table, 4 * digit, load_u32(table, 4 * digit) + 1)


@unit.helper
def move_some(job: ptr, table: ptr, begin: i64, end: i64, wide: i64) -> None:
    """Move some records to the places that the table gives for their digits."""
    records = Job(job).records
    other = Job(job).other
    base = Job(job).base
    shift = Job(job).shift
    mask = Job(job).mask
    for i in range(begin, end):
        r = record(records, i, wide)
        digit = lshr(r - base, shift) & mask
        to = load_u32(table, 4 * digit)
        store_i32(table, 4 * digit, to + 1)
        if wide != 0:
            store_i64(other, 8 * to, r)
        else:
            store_i32(other, 4 * to, r)


@unit.function
def radix_count(job: ptr, first: i64, last: i64) -> None:
    """Count the digits of some blocks."""
    for block in range(first, last):
        table = Job(job).tables + block * _TABLE
        memset(table, 0, 4 * (Job(job).mask + 1))
        i = block_begin(job, block)
        end = block_begin(job, block + 1)
        while i < end:
            stop = min(i + _BETWEEN_POLLS, end)
            if Job(job).wide != 0:
                count_some(job, table, i, stop, 1)
            else:
                count_some(job, table, i, stop, 0)
            i = stop
            if i < end and calque_poll(Job(job).run) != 0:
                return


@unit.function
def radix_move(job: ptr, first: i64, last: i64) -> None:
    """Move the records of some blocks."""
    for block in range(first, last):
        table = Job(job).tables + block * _TABLE
        i = block_begin(job, block)
        end = block_begin(job, block + 1)
        while i < end:
            stop = min(i + _BETWEEN_POLLS, end)
            if Job(job).wide != 0:
                move_some(job, table, i, stop, 1)
            else:
                move_some(job, table, i, stop, 0)
            i = stop
            if i < end and calque_poll(Job(job).run) != 0:
                return


@unit.helper
def places_from_counts(job: ptr) -> i1:
    """The tables of counts become tables of places. Whether all records have the same digit: then
    there is nothing to do."""
    tables = Job(job).tables
    blocks = Job(job).blocks
    total = 0
    for digit in range(Job(job).mask + 1):
        before = total
        table = tables + 4 * digit
        for _block in range(blocks):
            some = load_u32(table, 0)
            store_i32(table, 0, total)
            total += some
            table = table + _TABLE
        if total - before == Job(job).n:
            return True
    return False


@unit.helper
def bits_of(number: i64) -> i64:
    """The length of an unsigned number."""
    bits = 0
    while number != 0:
        number = lshr(number, 1)
        bits += 1
    return bits


@unit.helper
def one_pass(job: ptr, shift: i64, bits: i64) -> None:
    """Order the records by one digit. They change places with the other array."""
    Job(job).shift = shift
    Job(job).mask = (1 << bits) - 1
    calque_parallel_for(radix_count, job, 0, Job(job).blocks, 1)
    if places_from_counts(job):
        return
    calque_parallel_for(radix_move, job, 0, Job(job).blocks, 1)
    records = Job(job).records
    Job(job).records = Job(job).other
    Job(job).other = records


@unit.helper
def passes(job: ptr, first: i64, bits: i64) -> None:
    """All passes over so many bits from the first on, in digits of about the same size."""
    most = _MOST_BITS if Job(job).n > 3000 else 8
    count = (bits + most - 1) // most
    done = 0
    for k in range(count):
        until = bits * (k + 1) // count
        one_pass(job, first + done, until - done)
        done = until
        if calque_poll(Job(job).run) != 0:
            return


@unit.helper
def tidied(records: ptr, n: i64) -> i1:
    """Sort wide records that are nearly in order, one after the other; whether it was little
    work."""
    left = 4 * n
    for i in range(1, n):
        r = load_i64(records, 8 * i)
        k = i
        while k > 0 and ult(r, load_i64(records, 8 * k - 8)):
            store_i64(records, 8 * k, load_i64(records, 8 * k - 8))
            k -= 1
        store_i64(records, 8 * k, r)
        left -= i - k
        if left < 0:
            return False
    return True


@unit.function
def radix_sort(of: ptr, tables: ptr) -> None:
    """Sort records that have been surveyed."""
    job = alloca(JOB_BYTES)
    n = Records(of).n
    Job(job).records = Records(of).records
    Job(job).other = Records(of).other
    Job(job).n = n
    Job(job).wide = Records(of).wide
    Job(job).tables = tables
    Job(job).run = Records(of).run
    Job(job).blocks = max(min(min(2 * threads_in_use(), MOST_BLOCKS), n // _SOME), 1)
    Job(job).base = Records(of).least
    bits = bits_of(Records(of).greatest - Records(of).least)
    rough = max(bits - _ROUGH, 0) if bits > _ROUGH + _MOST_BITS else 0
    passes(job, rough, bits - rough)
    if rough != 0 and not tidied(Job(job).records, n):
        passes(job, 0, bits)
    if Job(job).records != Records(of).records:
        memcpy(Records(of).records, Job(job).records, n << (2 + Job(job).wide))
