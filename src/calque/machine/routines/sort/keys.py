"""Keys: unsigned integers in the order of what is sorted.

Bytes of any type have a table of 256 ranks. Wider integers are exclusive-ored with a
mask, which turns round the sign of signed ones, and all bits to sort in descending order. Of floats
-0 becomes 0 and every nan the same, the greatest, unless their total order is asked for; then
negative ones are turned round.
"""

from __future__ import annotations

import enum

from calque.machine.lang.unit import (
    Unit,
    atomic_store,
    i64,
    layout,
    load_i16,
    load_i32,
    load_i64,
    load_u8,
    load_u16,
    load_u32,
    lshr,
    ptr,
    store_i16,
    store_i32,
    store_i64,
)


class KeyKind(enum.IntEnum):
    """How elements become keys."""

    TABLE = 0
    PLAIN_2 = 1
    PLAIN_4 = 2
    PLAIN_8 = 3
    FLOAT_2 = 4
    FLOAT_4 = 5
    FLOAT_8 = 6
    TOTAL_2 = 7
    TOTAL_4 = 8
    TOTAL_8 = 9


WIDE = (KeyKind.PLAIN_8, KeyKind.FLOAT_8, KeyKind.TOTAL_8)  # whose keys have 8 bytes

# An operand that decides the order: where it is, the bytes of an element, where in an element the
# number stands, its kind, the mask, the bits of infinity, the table of ranks.
Key = layout("Key", data=ptr, item=i64, offset=i64, kind=i64, mask=i64, infinity=i64, table=ptr)
# The keys of one row of an operand, whose elements follow each other, and where they are written.
# `odd` is set to what is not 0 where a key does not tell the bits of its element.
Row = layout("Row", key=ptr, data=ptr, keys=ptr, odd=i64)

unit = Unit("sort_keys")


@unit.helper
def nan_of(infinity: i64) -> i64:
    """The bits of the quiet nan."""
    return infinity | lshr(infinity & (0 - infinity), 1)


@unit.helper
def sign_of(kind: i64) -> i64:
    """The bit of the sign."""
    match kind:
        case KeyKind.FLOAT_2 | KeyKind.TOTAL_2:
            return 1 << 15
        case KeyKind.FLOAT_4 | KeyKind.TOTAL_4:
            return 1 << 31
        case _:
            return -(1 << 63)


@unit.helper
def raw_of(kind: i64, place: ptr) -> i64:
    """The bits of an element; those of floats with their sign."""
    match kind:
        case KeyKind.TABLE:
            return load_u8(place, 0)
        case KeyKind.PLAIN_2:
            return load_u16(place, 0)
        case KeyKind.PLAIN_4:
            return load_u32(place, 0)
        case KeyKind.FLOAT_2 | KeyKind.TOTAL_2:
            return i64(load_i16(place, 0))
        case KeyKind.FLOAT_4 | KeyKind.TOTAL_4:
            return i64(load_i32(place, 0))
        case _:
            return load_i64(place, 0)


@unit.helper
def equal_of(kind: i64, raw: i64, infinity: i64, nan: i64) -> i64:
    """The bits that stand for all that are equal. Choices are written as masks: conditions in a
    loop may keep it from becoming vectors."""
    if kind in (KeyKind.FLOAT_2, KeyKind.FLOAT_4, KeyKind.FLOAT_8):
        magnitude = raw & (sign_of(kind) - 1)
        is_nan = 0 - i64(magnitude > infinity)
        some = raw & (0 - i64(magnitude != 0))
        return (some & ~is_nan) | (nan & is_nan)
    return raw


@unit.helper
def key_from(kind: i64, raw: i64, mask: i64, table: ptr) -> i64:
    """The key of an element."""
    match kind:
        case KeyKind.TABLE:
            return load_u8(table + raw, 0)
        case KeyKind.PLAIN_2 | KeyKind.PLAIN_4 | KeyKind.PLAIN_8:
            return raw ^ mask
        case _:
            return raw ^ ((raw >> 63) | sign_of(kind)) ^ mask


@unit.helper
def put_key(to: ptr, i: i64, key: i64, wide: i64) -> None:
    """Write a key to an array of keys."""
    if wide != 0:
        store_i64(to, 8 * i, key)
    else:
        store_i32(to, 4 * i, key)


@unit.helper
def load_some(row: ptr, kind: i64, size: i64, wide: i64, begin: i64, end: i64) -> None:
    """Keys of one kind."""
    mask = Key(Row(row).key).mask
    table = Key(Row(row).key).table
    infinity = Key(Row(row).key).infinity
    nan = nan_of(infinity)
    data = Row(row).data
    to = Row(row).keys
    odd = 0
    for i in range(begin, end):
        raw = raw_of(kind, data + i * size)
        some = equal_of(kind, raw, infinity, nan)
        put_key(to, i, key_from(kind, some, mask, table), wide)
        odd |= raw ^ some
    if odd != 0:
        atomic_store(Row.at(row).odd, 0, 1)


# A function for each kind of floats: loops in one function with others do not all become vectors.


@unit.function
def keys_load_float_2(row: ptr, begin: i64, end: i64) -> None:
    load_some(row, KeyKind.FLOAT_2, 2, 0, begin, end)


@unit.function
def keys_load_float_4(row: ptr, begin: i64, end: i64) -> None:
    load_some(row, KeyKind.FLOAT_4, 4, 0, begin, end)


@unit.function
def keys_load_float_8(row: ptr, begin: i64, end: i64) -> None:
    load_some(row, KeyKind.FLOAT_8, 8, 1, begin, end)


@unit.function
def keys_load(row: ptr, begin: i64, end: i64) -> None:
    """Write the keys of some elements of a row."""
    match Key(Row(row).key).kind:
        case KeyKind.TABLE:
            load_some(row, KeyKind.TABLE, 1, 0, begin, end)
        case KeyKind.PLAIN_2:
            load_some(row, KeyKind.PLAIN_2, 2, 0, begin, end)
        case KeyKind.PLAIN_4:
            load_some(row, KeyKind.PLAIN_4, 4, 0, begin, end)
        case KeyKind.PLAIN_8:
            load_some(row, KeyKind.PLAIN_8, 8, 1, begin, end)
        case KeyKind.FLOAT_2:
            keys_load_float_2(row, begin, end)
        case KeyKind.FLOAT_4:
            keys_load_float_4(row, begin, end)
        case KeyKind.FLOAT_8:
            keys_load_float_8(row, begin, end)
        case KeyKind.TOTAL_2:
            load_some(row, KeyKind.TOTAL_2, 2, 0, begin, end)
        case KeyKind.TOTAL_4:
            load_some(row, KeyKind.TOTAL_4, 4, 0, begin, end)
        case _:
            load_some(row, KeyKind.TOTAL_8, 8, 1, begin, end)


@unit.helper
def restore(place: ptr, keys: ptr, i: i64, kind: i64, mask: i64) -> None:
    """Write the element of a key."""
    key = (
        load_i64(keys, 8 * i)
        if kind in (KeyKind.PLAIN_8, KeyKind.FLOAT_8)
        else load_u32(keys, 4 * i)
    )
    raw = key ^ mask
    if kind in (KeyKind.FLOAT_2, KeyKind.FLOAT_4, KeyKind.FLOAT_8):
        sign = sign_of(kind)
        raw = key ^ (sign | (0 - i64(key & sign == 0)))
    match kind:
        case KeyKind.PLAIN_2 | KeyKind.FLOAT_2:
            store_i16(place, 0, raw)
        case KeyKind.PLAIN_4 | KeyKind.FLOAT_4:
            store_i32(place, 0, raw)
        case _:
            store_i64(place, 0, raw)


@unit.helper
def store_some(row: ptr, kind: i64, size: i64, begin: i64, end: i64) -> None:
    """Elements of one kind."""
    keys = Row(row).keys
    data = Row(row).data
    mask = Key(Row(row).key).mask
    for i in range(begin, end):
        restore(data + i * size, keys, i, kind, mask)


@unit.function
def keys_store(row: ptr, begin: i64, end: i64) -> None:
    """Write the elements that some keys stand for."""
    match Key(Row(row).key).kind:
        case KeyKind.PLAIN_2:
            store_some(row, KeyKind.PLAIN_2, 2, begin, end)
        case KeyKind.PLAIN_4:
            store_some(row, KeyKind.PLAIN_4, 4, begin, end)
        case KeyKind.PLAIN_8:
            store_some(row, KeyKind.PLAIN_8, 8, begin, end)
        case KeyKind.FLOAT_2:
            store_some(row, KeyKind.FLOAT_2, 2, begin, end)
        case KeyKind.FLOAT_4:
            store_some(row, KeyKind.FLOAT_4, 4, begin, end)
        case _:
            store_some(row, KeyKind.FLOAT_8, 8, begin, end)


@unit.function
def key_at(key: ptr, place: ptr) -> i64:
    """The key of the element at a place."""
    infinity = Key(key).infinity
    kind = Key(key).kind
    raw = equal_of(kind, raw_of(kind, place), infinity, nan_of(infinity))
    return key_from(kind, raw, Key(key).mask, Key(key).table)
