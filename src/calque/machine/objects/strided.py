"""Copying between strided arrays of any rank and element size: what eager layout operations are
made of.

A kernel of the driver's form, `calque_strided_copy(args, begin, end)`: `args` are words:
destination, source, element size, byte offset in the destination, byte offset in the source, rank,
then for each axis its extent, destination stride and source stride in bytes. Axes of size 1 and
axes that run on are better merged before (see `merged`)."""

from __future__ import annotations

from collections.abc import Sequence

from calque.machine.lang.unit import (
    Unit,
    alloca,
    i64,
    load_i8,
    load_i16,
    load_i32,
    load_i64,
    load_ptr,
    memcpy,
    ptr,
    store_i8,
    store_i16,
    store_i32,
    store_i64,
)

MAX_RANK = 32
unit = Unit("calque_strided")

_AXES = 48  # byte offset of the first axis in the arguments
_AXIS = 24


@unit.helper
def copy_row(to: ptr, source: ptr, n: i64, to_step: i64, from_step: i64, size: i64) -> None:
    """One axis: n elements."""
    if to_step == size and from_step == size:
        memcpy(to, source, n * size)
        return
    i = 0
    if size == 4:
        while i < n:
            store_i32(to, i * to_step, load_i32(source, i * from_step))
            i += 1
    elif size == 8:
        while i < n:
            store_i64(to, i * to_step, load_i64(source, i * from_step))
            i += 1
    elif size == 1:
        while i < n:
            store_i8(to, i * to_step, load_i8(source, i * from_step))
            i += 1
    elif size == 2:
        while i < n:
            store_i16(to, i * to_step, load_i16(source, i * from_step))
            i += 1
    else:
        while i < n:
            store_i64(to, i * to_step, load_i64(source, i * from_step))
            store_i64(to, i * to_step + 8, load_i64(source, i * from_step + 8))
            i += 1


@unit.function
def calque_strided_copy(args: ptr, begin: i64, end: i64) -> None:
    to = load_ptr(args, 0) + load_i64(args, 24)
    source = load_ptr(args, 8) + load_i64(args, 32)
    size = load_i64(args, 16)
    rank = load_i64(args, 40)
    axes = args + _AXES
    if rank == 0:
        memcpy(to, source, size)
        return
    k = 0
    counts = alloca(256)
    while k < rank:
        if load_i64(axes, k * _AXIS) == 0:
            return
        store_i64(counts, k * 8, 0)
        k += 1
    last = axes + (rank - 1) * _AXIS
    while True:
        copy_row(to, source, load_i64(last, 0), load_i64(last, 8), load_i64(last, 16), size)
        k = rank - 2
        while k >= 0:
            axis = axes + k * _AXIS
            n = load_i64(counts, k * 8) + 1
            to = to + load_i64(axis, 8)
            source = source + load_i64(axis, 16)
            if n < load_i64(axis, 0):
                store_i64(counts, k * 8, n)
                break
            store_i64(counts, k * 8, 0)
            to = to - n * load_i64(axis, 8)
            source = source - n * load_i64(axis, 16)
            k -= 1
        if k < 0:
            return


Axis = tuple[int, int, int]  # extent, destination stride, source stride


def merged(axes: Sequence[Axis]) -> list[Axis]:
    """The same copy with fewer axes: those of size 1 dropped, neighbours that run on joined."""
    out: list[Axis] = []
    for n, to, source in axes:
        if n == 1:
            continue
        if out and out[-1][1] == n * to and out[-1][2] == n * source:
            out[-1] = (out[-1][0] * n, to, source)
        else:
            out.append((n, to, source))
    return out
