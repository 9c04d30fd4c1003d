"""Elements of matrices, and matrices turned round, for all routines of linear algebra."""

from __future__ import annotations

from calque.machine.lang.unit import (
    Unit,
    i64,
    memcpy,
    ptr,
    store_f32,
    store_f64,
    store_i32,
    store_i64,
)
from calque.machine.routines.linalg.small import ElementType

_BLOCK = 16
_ROWS = 4  # of a block that are turned at once
_NAN_32 = 0x7FC00000
_NAN_64 = 0x7FF8000000000000

unit = Unit("linalg_elements", plain=True)


@unit.helper
def item_of(kind: i64) -> i64:
    """The bytes of an element."""
    match kind:
        case ElementType.F32:
            return 4
        case ElementType.F64 | ElementType.C64:
            return 8
        case _:
            return 16


@unit.helper
def write_nan(kind: i64, to: ptr) -> None:
    """Let the real part of an element be NaN."""
    if kind in (ElementType.F32, ElementType.C64):
        store_i32(to, 0, _NAN_32)
    else:
        store_i64(to, 0, _NAN_64)


@unit.helper
def write_one(kind: i64, to: ptr) -> None:
    """Write the number one."""
    match kind:
        case ElementType.F32:
            store_f32(to, 0, 1.0)
        case ElementType.F64:
            store_f64(to, 0, 1.0)
        case ElementType.C64:
            store_f32(to, 0, 1.0)
            store_f32(to, 4, 0.0)
        case _:
            store_f64(to, 0, 1.0)
            store_f64(to, 8, 0.0)


@unit.helper
def move(item: i64, to: ptr, source: ptr) -> None:
    """Copy one element."""
    memcpy(to, source, item)


@unit.helper
def turn_block(item: i64, to: ptr, source: ptr, m: i64, n: i64, top: i64, left: i64) -> None:
    """Transpose one block of a matrix of `m` rows, four of its rows at a time, of which the last
    ones may have been turned already: addresses stand here as they are to be, so that no pass of
    LLVM has to look for them."""
    bottom = min(top + _BLOCK, m)
    row, column = n * item, m * item
    width = min(_BLOCK, n - left)
    i = top
    while i < bottom:
        first = min(i, m - _ROWS)
        a, b = source + (first * n + left) * item, to + (left * m + first) * item
        for _ in range(width):
            move(item, b, a)
            move(item, b + item, a + row)
            move(item, b + 2 * item, a + 2 * row)
            move(item, b + 3 * item, a + 3 * row)
            a, b = a + item, b + column
        i += _ROWS


@unit.function
def turn(item: i64, to: ptr, source: ptr, m: i64, n: i64) -> None:
    """Transpose a matrix of `m` rows, block by block, to another place."""
    if m < _ROWS:
        for k in range(m * n):
            move(item, to + (k % n * m + k // n) * item, source + k * item)
        return
    for i in range(0, m, _BLOCK):
        for j in range(0, n, _BLOCK):
            match item:
                case 4:
                    turn_block(4, to, source, m, n, i, j)
                case 8:
                    turn_block(8, to, source, m, n, i, j)
                case _:
                    turn_block(16, to, source, m, n, i, j)
