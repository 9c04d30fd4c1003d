"""Arrays of which all elements are one: a block of memory and its bytes repeated, without a
program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from calque.machine.lang.unit import (
    NULL,
    Unit,
    i64,
    load_i64,
    load_ptr,
    load_u8,
    memcpy,
    memset,
    ptr,
)
from calque.machine.objects.array_type import (
    Array,
    array_type,
    deleted_mark,
    fresh_array,
    refuse,
    refuse_deleted,
)
from calque.machine.objects.pyapi import (
    PyErr_Occurred,
    PyObject,
    make_builtin,
    type_error,
    value_error,
)

unit = Unit("calque_filling")

PyLong_AsSsize_t = unit.extern("PyLong_AsSsize_t", i64, ptr)
BLOCK = 16 << 10  # bytes that the cache holds: longer runs are copies of it


@unit.function
def calque_repeat(target: ptr, nbytes: i64, source: ptr, width: i64) -> None:
    """Fill `nbytes` with copies of `width` bytes (1, or a power of 2 below a block)."""
    if nbytes <= 0:
        return
    if width == 1 or (width == 8 and load_i64(source, 0) == 0):
        memset(target, load_u8(source, 0), nbytes)
        return
    done = min(width, nbytes)
    memcpy(target, source, done)
    while done < nbytes:
        more = min(min(done, BLOCK), nbytes - done)
        memcpy(target + done, target, more)
        done += more


@unit.function
def _filled(self: ptr, args: ptr, count: i64) -> ptr:
    """filled(aval, nbytes, scalar, width): an Array of `nbytes` that repeats the `width` bytes of
    the Array `scalar`."""
    if count != 4 or PyObject(load_ptr(args, 16)).type != array_type:
        return refuse(
            type_error, "filled takes an aval, a number of bytes, an Array and its number of bytes"
        )
    nbytes, width = PyLong_AsSsize_t(load_ptr(args, 8)), PyLong_AsSsize_t(load_ptr(args, 24))
    if PyErr_Occurred():
        return NULL
    if nbytes < 0 or width < 1 or width > BLOCK:
        return refuse(value_error, "a number of bytes that cannot be")
    scalar = load_ptr(args, 16)
    if Array(scalar).extra == deleted_mark:
        return refuse_deleted(scalar)
    array = fresh_array(load_ptr(args, 0), nbytes)
    if array:
        calque_repeat(Array(array).data, nbytes, Array(scalar).data, width)
    return array


filled: Callable[[Any, int, Any, int], Any] = make_builtin(_filled)
