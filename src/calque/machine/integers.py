"""Integers in memory of any width, and whether their products fit: what the interpreter does with
sizes."""

from __future__ import annotations

import enum

from calque.machine.lang.unit import (
    Unit,
    i1,
    i64,
    likely,
    load_i8,
    load_i16,
    load_i32,
    load_i64,
    load_u8,
    load_u16,
    load_u32,
    ptr,
    store_i8,
    store_i16,
    store_i32,
    store_i64,
    ult,
)

unit = Unit("integers")


class IntegerType(enum.IntEnum):
    """Integers in memory."""

    I8 = 0
    U8 = 1
    I16 = 2
    U16 = 3
    I32 = 4
    U32 = 5
    I64 = 6


@unit.helper
def load_integer(place: ptr, kind: i64) -> i64:
    """An integer from memory."""
    match kind:
        case IntegerType.I8:
            return i64(load_i8(place, 0))
        case IntegerType.U8:
            return load_u8(place, 0)
        case IntegerType.I16:
            return i64(load_i16(place, 0))
        case IntegerType.U16:
            return load_u16(place, 0)
        case IntegerType.I32:
            return i64(load_i32(place, 0))
        case IntegerType.U32:
            return load_u32(place, 0)
        case _:
            return load_i64(place, 0)


@unit.helper
def store_integer(place: ptr, number: i64, kind: i64) -> None:
    """An integer to memory, cut to its width."""
    match kind:
        case IntegerType.I8 | IntegerType.U8:
            store_i8(place, 0, number)
        case IntegerType.I16 | IntegerType.U16:
            store_i16(place, 0, number)
        case IntegerType.I32 | IntegerType.U32:
            store_i32(place, 0, number)
        case _:
            store_i64(place, 0, number)


@unit.helper
def product_fits(a: i64, b: i64) -> i1:
    """Whether a product fits in 64 bits (sizes do, unless something went wrong: then nothing must
    be allocated by it)."""
    if likely(ult(a + (1 << 31), 1 << 32) and ult(b + (1 << 31), 1 << 32)):
        return True
    if a == 0 or b == 0:
        return True
    if a == -1 or b == -1:
        return (a if b == -1 else b) != -(1 << 63)
    return a * b // b == a
