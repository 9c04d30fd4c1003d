"""Sorting unsigned integers by splitting them at pivots until networks are quicker: where the
processor packs the lanes of vectors.

The pivot is the median of a sample. A part whose least element is the pivot is split once more,
just above it: so equal elements cost nothing further. After more splits than a good sample would
need, the rest is left to passes over digits."""

from __future__ import annotations

from calque.machine.driver.interpreter import calque_poll
from calque.machine.lang.unit import (
    Unit,
    alloca,
    i64,
    load_i64,
    load_u32,
    memcpy,
    ptr,
    store_i32,
    store_i64,
)
from calque.machine.routines.sort.network import network_sort, network_split

SMALL = 1500
SMALL_WIDE = 600
_SAMPLE = 31
_MANY = 10_000  # more deserve a larger sample
_STACK = 64
_BETWEEN_POLLS = 1 << 20

unit = Unit("sort_quick")


@unit.helper
def pivot_of(records: ptr, n: i64, wide: i64, kept: i64) -> i64:
    """The median of a sample; a small element of it when few records are kept."""
    sample = alloca(2560)
    count = _SAMPLE if n > _MANY else _SAMPLE // 2
    step = n // count
    at = step >> 1
    for k in range(count):
        if wide != 0:
            store_i64(sample, 8 * k, load_i64(records, 8 * at))
        else:
            store_i32(sample, 4 * k, load_u32(records, 4 * at))
        at += step
    network_sort(sample, count, wide)
    middle = count >> (3 if 8 * kept < n else 1)
    return load_i64(sample, 8 * middle) if wide != 0 else load_u32(sample, 4 * middle)


@unit.helper
def sort_small(records: ptr, other: ptr, n: i64, wide: i64) -> None:
    """Sort by a network, elsewhere: it writes behind the end."""
    memcpy(other, records, n * (4 << wide))
    network_sort(other, n, wide)
    memcpy(records, other, n * (4 << wide))


@unit.function
def quick_sort(records: ptr, other: ptr, n: i64, wide: i64, kept: i64, depth: i64, run: ptr) -> i64:
    """Sort n records, or only so many that the first `kept` are in their places. Gives 0 when more
    splits were needed than `depth`."""
    stack = alloca(24 * _STACK)
    small = SMALL_WIDE if wide != 0 else SMALL
    size = 4 << wide
    waiting = 0
    at = 0
    while True:
        while n > small and at < kept:
            if depth == 0:
                return 0
            if n > _BETWEEN_POLLS and calque_poll(run) != 0:
                return 1
            depth -= 1
            pivot = pivot_of(records + at * size, n, wide, kept - at)
            low = network_split(records + at * size, other, n, pivot, wide)
            if low == 0:  # the pivot is the least: what equals it is in its place
                if pivot == (-1 if wide != 0 else 0xFFFFFFFF):
                    n = 0
                else:
                    low = network_split(records + at * size, other, n, pivot + 1, wide)
                    at += low
                    n -= low
            else:
                first = at if 2 * low > n else at + low
                some = max(low, n - low)
                store_i64(stack, 24 * waiting, first)
                store_i64(stack, 24 * waiting + 8, some)
                store_i64(stack, 24 * waiting + 16, depth)
                waiting += 1
                at = at + low if 2 * low > n else at
                n -= some
        if n > 1 and at < kept:
            sort_small(records + at * size, other, n, wide)
        if waiting == 0:
            return 1
        waiting -= 1
        at = load_i64(stack, 24 * waiting)
        n = load_i64(stack, 24 * waiting + 8)
        depth = load_i64(stack, 24 * waiting + 16)
