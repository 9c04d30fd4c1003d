"""The words that look like functions: memory of every width, atomics, bits, hints."""

from __future__ import annotations

import ctypes
import math
import struct
import threading
from typing import Any

import numpy as np
import pytest

from calque.machine.lang.intrinsics import INTRINSICS
from calque.machine.lang.unit import (
    LangError,
    Unit,
    address,
    alloca,
    atomic_add,
    atomic_add_i32,
    atomic_cas,
    atomic_load_i32,
    atomic_release,
    atomic_store_i32,
    atomic_xchg_i32,
    bits_f32,
    bits_f64,
    bits_i32,
    bits_i64,
    f64,
    fence,
    i8,
    i32,
    i64,
    layout,
    likely,
    load_f32,
    load_f64,
    load_i8,
    load_i16,
    load_i32,
    load_i64,
    load_ptr,
    load_u8,
    load_u16,
    load_u32,
    lshr,
    memcpy,
    memmove,
    memset,
    pause,
    ptr,
    sdiv,
    sizeof,
    sqrt,
    srem,
    store_f32,
    store_f64,
    store_i8,
    store_i16,
    store_i32,
    store_i64,
    store_ptr,
    udiv,
    ule,
    ult,
    unlikely,
    urem,
)

unit = Unit("test_intrinsics")
word = unit.cell("word", i64, 5)
Struct = layout("Struct", a=i64, b=i32)


@unit.function
def read(p: ptr, at: i64, how: i64) -> i64:
    match how:
        case 0:
            return load_i8(p, at)
        case 1:
            return load_u8(p, at)
        case 2:
            return load_i16(p, at)
        case 3:
            return load_u16(p, at)
        case 4:
            return load_i32(p, at)
        case 5:
            return load_u32(p, at)
        case 6:
            return load_i64(p, at)
        case _:
            return i64(load_ptr(p, at))


@unit.function
def write(p: ptr, at: i64, value: i64, size: i64) -> None:
    match size:
        case 1:
            store_i8(p, at, value)
        case 2:
            store_i16(p, at, value)
        case 4:
            store_i32(p, at, value)
        case _:
            store_i64(p, at, value)


FORMATS = "bBhHiIqQ"


@pytest.mark.parametrize("at", [0, 1, 3, 7])
def test_reads_of_every_width_at_any_place(at: int) -> None:
    """With a sign and without, aligned or not."""
    data = bytes((37 * k + 200) % 256 for k in range(32))
    buffer = ctypes.create_string_buffer(data, 32)
    for how, form in enumerate(FORMATS):
        (want,) = struct.unpack_from("<" + form.replace("Q", "q"), data, at)
        assert read(ctypes.addressof(buffer), at, how) == want, form


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_writes_cut_the_value_and_touch_nothing_else(size: int) -> None:
    for value in (-1, 0, 1, 2**62 + 12345, -(2**63)):
        buffer = ctypes.create_string_buffer(b"\xaa" * 24, 24)
        write(ctypes.addressof(buffer), 5, value, size)
        want = (value % 2**64).to_bytes(8, "little")[:size]
        assert buffer.raw == b"\xaa" * 5 + want + b"\xaa" * (19 - size)


@unit.function
def floats(p: ptr, x: f64) -> f64:
    store_f64(p, 3, x)
    store_f32(p, 16, load_f32(p, 20))
    store_ptr(p, 32, p)
    return sqrt(load_f64(p, 3)) + f64(load_f32(p, 16))


def test_floats_and_pointers() -> None:
    buffer = ctypes.create_string_buffer(48)
    p = ctypes.addressof(buffer)
    struct.pack_into("<f", buffer, 20, 0.1)
    assert floats(p, 2.0) == math.sqrt(2) + np.float32(0.1)
    assert read(p, 32, 7) == p


@unit.function
def moved(p: ptr, n: i64) -> i64:
    near = alloca(64)
    memset(near, 7, 64)
    memcpy(near, p, n)
    memmove(near + 1, near, n)
    memcpy(p, near, 16)
    return i64(near) & 15


def test_blocks_of_memory() -> None:
    """Overlapping moves are right, and memory of the function is aligned."""
    buffer = ctypes.create_string_buffer(bytes(range(16)), 16)
    assert moved(ctypes.addressof(buffer), 5) == 0
    assert list(buffer.raw) == [0, 0, 1, 2, 3, 4, *[7] * 10]


@unit.function
def unsigned(op: i64, a: i64, b: i64) -> i64:
    match op:
        case 0:
            return udiv(a, b)
        case 1:
            return urem(a, b)
        case 2:
            return sdiv(a, b)
        case 3:
            return srem(a, b)
        case 4:
            return lshr(a, b & 63)
        case 5:
            return i64(ult(a, b))
        case _:
            return i64(ule(a, b))


def test_the_machines_own_arithmetic() -> None:
    values = [1, -1, 7, -7, 2**62, -(2**63), 3]
    for a in values:
        for b in (1, 7, -7, -1, 2**62):
            x, y = a % 2**64, b % 2**64
            quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
            want = [x // y, x % y, quotient, a - b * quotient, x >> (b & 63), x < y, x <= y]
            for op, w in enumerate(want):
                if op in (2, 3) and b == -1 and a == -(2**63):
                    continue  # the machine traps
                assert unsigned(op, a, b) == ctypes.c_int64(int(w)).value, (op, a, b)


@unit.function
def patterns(x: f64, n: i64) -> i64:
    back = bits_f64(bits_i64(x))
    half = bits_f32(bits_i32(load_f32(address(word), 0)))
    store_f32(address(word), 0, half)
    return bits_i64(back) + i64(likely(n > 0)) + 2 * i64(unlikely(n > 0))


def test_bits_pass_unharmed() -> None:
    for x in (1.5, -0.0, math.inf, 5e-324):
        bits = struct.unpack("<q", struct.pack("<d", x))[0]
        assert patterns(x, 0) == bits and patterns(x, 1) == ctypes.c_int64(bits + 3).value
    assert word.read() == 5


@unit.function
def count_up(p: ptr, n: i64) -> i64:
    """Each thread adds one so many times, by each of the ways that are atomic."""
    for _ in range(n):
        atomic_add(p, 0, 1)
        atomic_add_i32(p, 8, i32(1))
        while not atomic_cas(p, 16, 0, 1):
            pause()
        store_i64(p, 24, load_i64(p, 24) + 1)
        fence()
        atomic_release(p, 16, 0)
    return n


def test_threads_count_together() -> None:
    words = (ctypes.c_int64 * 4)()
    release = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(count_up.address)
    threads = [
        threading.Thread(target=release, args=(ctypes.addressof(words), 5000)) for _ in range(4)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert list(words) == [20000, 20000, 0, 20000]


@unit.function
def narrow(p: ptr) -> i64:
    old = atomic_xchg_i32(p, 4, i32(-2))
    atomic_store_i32(p, 0, i32(9))
    return i64(old) * 100 + atomic_load_i32(p, 4) + sizeof(Struct) + sizeof(i8)


def test_words_of_32_bits() -> None:
    words = (ctypes.c_int32 * 4)(1, 3, 5, 7)
    assert narrow(ctypes.addressof(words)) == 300 - 2 + 16 + 1
    assert list(words) == [9, -2, 5, 7]


def bad_alloca(n: i64) -> None:
    alloca(n)


def bad_count(p: ptr) -> i64:
    return load_i64(p)


def bad_sizeof(n: i64) -> i64:
    return sizeof(n)


def bad_address(n: i64) -> i64:
    return i64(address(n))


def bad_store(p: ptr, x: f64) -> None:
    store_i64(p, 0, x)


@pytest.mark.parametrize(
    "function, message",
    [
        (bad_alloca, "positive constant number of bytes"),
        (bad_count, "expected 2 arguments, got 1"),
        (bad_sizeof, "sizeof takes a layout or a type"),
        (bad_address, "address takes a global"),
        (bad_store, "expected i64, got f64"),
    ],
)
def test_what_is_refused(function: Any, message: str) -> None:
    fresh = Unit("test_intrinsics_bad")
    fresh.function(function)
    with pytest.raises(LangError, match=message):
        fresh.ir()


def test_every_word_is_exported_by_the_language() -> None:
    from calque.machine.lang import unit as module

    assert all(hasattr(module, name) for name in INTRINSICS)
