"""Arrays made without a program: of one element everywhere, and of the bytes of a NumPy array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calque.machine.lang.unit import (
    NULL,
    Unit,
    alloca,
    i64,
    load_i64,
    load_ptr,
    load_u8,
    memcpy,
    memset,
    ptr,
    store_ptr,
)
from calque.machine.objects.array_type import (
    Array,
    array_type,
    fresh_array,
    has_memory,
    is_plain_ndarray,
    refuse,
)
from calque.machine.objects.pyapi import (
    NdArray,
    PyErr_Occurred,
    PyObject,
    make_builtin,
    type_error,
    value_error,
)
from calque.machine.threads import calque_parallel_for

unit = Unit("calque_filling")

PyLong_AsSsize_t = unit.extern("PyLong_AsSsize_t", i64, ptr)
BLOCK = 16 << 10  # bytes that the cache holds: longer runs are copies of it
GRAIN = 1 << 20  # bytes that are worth the way to another thread


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
    if not has_memory(scalar):
        return NULL
    array = fresh_array(load_ptr(args, 0), nbytes)
    if array:
        calque_repeat(Array(array).data, nbytes, Array(scalar).data, width)
    return array


@unit.function
def calque_copy_part(ends: ptr, begin: i64, end: i64) -> None:
    """Copy the bytes in this range; `ends` holds where to and where from."""
    memcpy(load_ptr(ends, 0) + begin, load_ptr(ends, 8) + begin, end - begin)


@unit.function
def _copied(self: ptr, args: ptr, count: i64) -> ptr:
    """copied(aval, nbytes, ndarray): an Array with the bytes of a C-ordered, aligned, native
    ndarray in memory of its own."""
    if count != 3:
        return refuse(type_error, "copied takes an aval, a number of bytes and an ndarray")
    source = load_ptr(args, 16)
    if not is_plain_ndarray(source):
        return refuse(
            type_error, "copied takes a C-contiguous, aligned numpy.ndarray in native byte order"
        )
    nbytes = PyLong_AsSsize_t(load_ptr(args, 8))
    if nbytes < 0:
        return NULL if PyErr_Occurred() else refuse(value_error, "a negative number of bytes")
    array = fresh_array(load_ptr(args, 0), nbytes)
    if array:
        ends = alloca(16)
        store_ptr(ends, 0, Array(array).data)
        store_ptr(ends, 8, NdArray(source).data)
        calque_parallel_for(calque_copy_part, ends, 0, nbytes, GRAIN)
    return array


filled: Callable[[Any, int, Any, int], Any] = make_builtin(_filled)
copied: Callable[[Any, int, np.ndarray[Any, Any]], Any] = make_builtin(_copied)
