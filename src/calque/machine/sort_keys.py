"""Keys: unsigned integers in the order of what is sorted.

The elements of a row follow each other at some distance in bytes. Bytes of any type have a table of 256 ranks. Wider integers are exclusive-ored with a
mask, which turns round the sign of signed ones, and all bits to sort in descending order. Of floats -0 becomes 0 and every nan the same, the greatest,
unless their total order is asked for; then negative ones are turned round.
"""

from __future__ import annotations

import enum

from calque.machine.lang import (
    Unit,
    atomic_store,
    i32,
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


class Kind(enum.IntEnum):
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


WIDE = (Kind.PLAIN_8, Kind.FLOAT_8, Kind.TOTAL_8)  # whose keys have 8 bytes

# An operand that decides the order: where it is, the bytes of an element, where in an element the number stands, its kind, the mask, the bits of infinity,
# the table of ranks.
Key = layout("Key", data=ptr, item=i64, offset=i64, kind=i64, mask=i64, infinity=i64, table=ptr)
# The keys of one row: of an operand, from a place on, in steps of so many bytes, to an array. `odd` is set to what is not 0 where a key does not tell
# the bits of its element.
Row = layout("Row", key=ptr, data=ptr, step=i64, keys=ptr, odd=i64)

_LEAST_4 = -(1 << 31)
_LEAST_8 = -(1 << 63)
_MOST_4 = (1 << 31) - 1
_MOST_8 = (1 << 63) - 1

unit = Unit("sort_keys")


@unit.helper
def nan_of(infinity: i64) -> i64:
    """The bits of the quiet nan."""
    return infinity | lshr(infinity & (0 - infinity), 1)


# Bits of floats, with their sign: as those of all their equals, and in the order of integers without sign, there and back. Those of 2 bytes as of 8.


@unit.helper
def equal_4(raw: i32, infinity: i32, nan: i32) -> i32:
    magnitude = raw & i32(_MOST_4)
    some = i32(0) if magnitude == i32(0) else raw
    return nan if magnitude > infinity else some


@unit.helper
def equal_8(raw: i64, infinity: i64, nan: i64, most: i64) -> i64:
    magnitude = raw & most
    some = 0 if magnitude == 0 else raw
    return nan if magnitude > infinity else some


@unit.helper
def ordered_4(raw: i32) -> i32:
    return raw ^ ((raw >> i32(31)) | i32(_LEAST_4))


@unit.helper
def ordered_8(raw: i64) -> i64:
    return raw ^ ((raw >> 63) | _LEAST_8)


@unit.helper
def ordered_2(raw: i64) -> i64:
    return raw ^ ((raw >> 63) | 0x8000)


@unit.helper
def restored_4(key: i32) -> i32:
    return key ^ (~(key >> i32(31)) | i32(_LEAST_4))


@unit.helper
def restored_8(key: i64) -> i64:
    return key ^ (~(key >> 63) | _LEAST_8)


@unit.helper
def restored_2(key: i64) -> i64:
    return key ^ 0x8000 if key & 0x8000 != 0 else ~key


@unit.helper
def element(key: ptr, kind: i64, place: ptr) -> i64:
    """The key of one element."""
    infinity = Key(key).infinity
    match kind:
        case Kind.TABLE:
            return load_u8(Key(key).table + load_u8(place, 0), 0)
        case Kind.PLAIN_2:
            return load_u16(place, 0) ^ Key(key).mask
        case Kind.PLAIN_4:
            return load_u32(place, 0) ^ Key(key).mask
        case Kind.PLAIN_8:
            return load_i64(place, 0) ^ Key(key).mask
        case Kind.FLOAT_2:
            return ordered_2(equal_8(i64(load_i16(place, 0)), infinity, nan_of(infinity), 0x7FFF))
        case Kind.FLOAT_4:
            return i64(ordered_4(equal_4(load_i32(place, 0), i32(infinity), i32(nan_of(infinity))))) & 0xFFFFFFFF
        case Kind.FLOAT_8:
            return ordered_8(equal_8(load_i64(place, 0), infinity, nan_of(infinity), _MOST_8))
        case Kind.TOTAL_2:
            return ordered_2(i64(load_i16(place, 0))) ^ Key(key).mask
        case Kind.TOTAL_4:
            return (i64(ordered_4(load_i32(place, 0))) & 0xFFFFFFFF) ^ Key(key).mask
        case _:
            return ordered_8(load_i64(place, 0)) ^ Key(key).mask


@unit.helper
def lost(key: ptr, kind: i64, place: ptr) -> i64:
    """Not 0 when the key of an element does not tell its bits: -0, and any nan but the usual one."""
    infinity = Key(key).infinity
    match kind:
        case Kind.FLOAT_2:
            raw = i64(load_i16(place, 0))
            return raw ^ equal_8(raw, infinity, nan_of(infinity), 0x7FFF)
        case Kind.FLOAT_4:
            short = load_i32(place, 0)
            return i64(short ^ equal_4(short, i32(infinity), i32(nan_of(infinity))))
        case Kind.FLOAT_8:
            raw = load_i64(place, 0)
            return raw ^ equal_8(raw, infinity, nan_of(infinity), _MOST_8)
        case _:
            return 0


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
    key = Row(row).key
    data = Row(row).data
    step = Row(row).step
    to = Row(row).keys
    odd = 0
    if step == size:
        for i in range(begin, end):
            place = data + i * size
            put_key(to, i, element(key, kind, place), wide)
            odd |= lost(key, kind, place)
    else:
        for i in range(begin, end):
            place = data + i * step
            put_key(to, i, element(key, kind, place), wide)
            odd |= lost(key, kind, place)
    if odd != 0:
        atomic_store(Row.at(row).odd, 0, 1)


@unit.function
def keys_load(row: ptr, begin: i64, end: i64) -> None:
    """Write the keys of some elements of a row."""
    match Key(Row(row).key).kind:
        case Kind.TABLE:
            load_some(row, Kind.TABLE, 1, 0, begin, end)
        case Kind.PLAIN_2:
            load_some(row, Kind.PLAIN_2, 2, 0, begin, end)
        case Kind.PLAIN_4:
            load_some(row, Kind.PLAIN_4, 4, 0, begin, end)
        case Kind.PLAIN_8:
            load_some(row, Kind.PLAIN_8, 8, 1, begin, end)
        case Kind.FLOAT_2:
            load_some(row, Kind.FLOAT_2, 2, 0, begin, end)
        case Kind.FLOAT_4:
            load_some(row, Kind.FLOAT_4, 4, 0, begin, end)
        case Kind.FLOAT_8:
            load_some(row, Kind.FLOAT_8, 8, 1, begin, end)
        case Kind.TOTAL_2:
            load_some(row, Kind.TOTAL_2, 2, 0, begin, end)
        case Kind.TOTAL_4:
            load_some(row, Kind.TOTAL_4, 4, 0, begin, end)
        case _:
            load_some(row, Kind.TOTAL_8, 8, 1, begin, end)


@unit.helper
def restore(place: ptr, keys: ptr, i: i64, kind: i64, mask: i64) -> None:
    """Write the element of a key."""
    match kind:
        case Kind.PLAIN_2:
            store_i16(place, 0, load_u32(keys, 4 * i) ^ mask)
        case Kind.PLAIN_4:
            store_i32(place, 0, load_u32(keys, 4 * i) ^ mask)
        case Kind.PLAIN_8:
            store_i64(place, 0, load_i64(keys, 8 * i) ^ mask)
        case Kind.FLOAT_2:
            store_i16(place, 0, restored_2(load_u32(keys, 4 * i)))
        case Kind.FLOAT_4:
            store_i32(place, 0, restored_4(load_i32(keys, 4 * i)))
        case _:
            store_i64(place, 0, restored_8(load_i64(keys, 8 * i)))


@unit.helper
def store_some(row: ptr, kind: i64, size: i64, begin: i64, end: i64) -> None:
    """Elements of one kind."""
    keys = Row(row).keys
    data = Row(row).data
    step = Row(row).step
    mask = Key(Row(row).key).mask
    if step == size:
        for i in range(begin, end):
            restore(data + i * size, keys, i, kind, mask)
    else:
        for i in range(begin, end):
            restore(data + i * step, keys, i, kind, mask)


@unit.function
def keys_store(row: ptr, begin: i64, end: i64) -> None:
    """Write the elements that some keys stand for."""
    match Key(Row(row).key).kind:
        case Kind.PLAIN_2:
            store_some(row, Kind.PLAIN_2, 2, begin, end)
        case Kind.PLAIN_4:
            store_some(row, Kind.PLAIN_4, 4, begin, end)
        case Kind.PLAIN_8:
            store_some(row, Kind.PLAIN_8, 8, begin, end)
        case Kind.FLOAT_2:
            store_some(row, Kind.FLOAT_2, 2, begin, end)
        case Kind.FLOAT_4:
            store_some(row, Kind.FLOAT_4, 4, begin, end)
        case _:
            store_some(row, Kind.FLOAT_8, 8, begin, end)


@unit.function
def key_at(key: ptr, place: ptr) -> i64:
    """The key of the element at a place."""
    return element(key, Key(key).kind, place)
