"""Selecting the least few of a row of keys, in order: one look at each key, which nearly none of
them passes.

    before: keys 5 1 4 1 7 0, three of them wanted      after: records (0, place 5) (1, 1) (1, 3)

The records of the least so far are kept sorted; a block of keys none of which is less than the last
of them is passed over. Where keys come so that many get in, sorting is as quick, and is told to."""

from __future__ import annotations

from calque.machine.lang.unit import (
    Unit,
    i64,
    load_i64,
    load_u32,
    lshr,
    ptr,
    store_i64,
    ult,
)

MOST = 64  # records that are selected at a time
SHARE = 8  # they are one part in so many of all, at most
_BLOCK = 64  # keys that are passed over together
_MOVES = 16  # for each key, from which on it is given up

unit = Unit("sort_select")


@unit.helper
def least_of(keys: ptr, begin: i64, end: i64) -> i64:
    """The least of some keys."""
    least = 0xFFFFFFFF
    for i in range(begin, end):
        key = load_u32(keys, 4 * i)
        least = key if ult(key, least) else least
    return least


@unit.helper
def put_in(records: ptr, last: i64, record: i64) -> i64:
    """Put a record among those sorted before place `last`, whose own is lost. Gives how many had to
    move."""
    k = last
    while k > 0 and ult(record, load_i64(records, 8 * k - 8)):
        store_i64(records, 8 * k, load_i64(records, 8 * k - 8))
        k -= 1
    store_i64(records, 8 * k, record)
    return last - k


@unit.function
def select_records(keys: ptr, records: ptr, n: i64, kept: i64) -> i64:
    """Let the first records be those of the `kept` least of n keys of 4 bytes. Gives 0 when they
    came so that sorting is quicker."""
    for i in range(kept):
        put_in(records, i, (load_u32(keys, 4 * i) << 32) | i)
    moved = 0
    at = kept
    while at < n:
        end = min(at + _BLOCK, n)
        last = lshr(load_i64(records, 8 * kept - 8), 32)
        if ult(least_of(keys, at, end), last):
            for i in range(at, end):
                key = load_u32(keys, 4 * i)
                if ult(key, last):
                    moved += put_in(records, kept - 1, (key << 32) | i)
                    last = lshr(load_i64(records, 8 * kept - 8), 32)
            if moved > _MOVES * n:
                return 0
        at = end
    return 1
