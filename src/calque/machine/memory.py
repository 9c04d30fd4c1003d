"""Blocks of memory for arrays: aligned to 64 bytes, recycled, taken and given back in about 10 ns
from any thread.

A program called again asks for the same sizes again. A fresh megabyte costs 250 page faults, some
200 µs; so blocks given back are kept in lists by size class, four classes to a doubling. Blocks
above a megabyte are mapped with huge pages, which makes even their first use 6 times cheaper, but
for those of first runs where huge pages are dear (``huge_pages``). What lies idle is bounded (a
sixteenth of the memory unless told otherwise, ``CALQUE_MEMORY_IDLE``); blocks up to 8 KiB are cut
from slabs and stay.

A list is locked by putting a mark in the place of its head, for the few instructions that taking or
putting a block takes. Sixteen bytes before each block stand the mapping it belongs to and its
class, masked so that a foreign pointer is recognised and left alone.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from calque.machine import variables
from calque.machine.lang.unit import (
    NULL,
    Unit,
    alloca,
    atomic_add,
    atomic_load,
    atomic_release,
    atomic_xchg,
    bits_i64,
    f64,
    i32,
    i64,
    load_i64,
    load_ptr,
    pause,
    ptr,
    signature,
    store_i64,
    store_ptr,
    ult,
    unlikely,
)

ALIGNMENT = 64

_SMALL_LIMIT = 8192
_SMALL_CLASSES = 24
_LARGE_CLASS = 52
_CLASSES = 160
_ENTRY = 32
_LOCKED = 1
_MAGIC = 0x63616C71756500
_HEADER = 16
_SLAB = 256 << 10
_HUGE = 2 << 20
_PAGE = 4096
_MAP_FLAGS = 0x22 if sys.platform.startswith("linux") else 0x1002  # private and anonymous
_MADV_HUGEPAGE = 14 if sys.platform.startswith("linux") else 0
_LATE = 4  # uses without huge pages; how many are left to a block stands beside its mapping
_USES = 7  # the bits of that
_MOST_BEGUN = 64
_READ_WRITE = 3
_MAX_BLOCK = 1 << 46

unit = Unit("memory")
_posix_memalign = unit.extern("posix_memalign", i32, ptr, i64, i64)
_free = unit.extern("free", None, ptr)
_mmap = unit.extern("mmap", ptr, ptr, i64, i32, i32, i32, i64)
_munmap = unit.extern("munmap", i32, ptr, i64)
_madvise = unit.extern("madvise", i32, ptr, i64, i32)
_sched_yield = unit.extern("sched_yield", i32)
_bring_type = signature(i64, i64)

# One entry per class: head of the list of idle blocks (or the mark), blocks in use, idle blocks,
# blocks ever handed out.
_table: Any = unit.var("memory_table", i64, _CLASSES * _ENTRY // 8)
# The rest of the slab: the place of the next header, end, lock.
_slab: Any = unit.var("memory_slab", i64, 3)
# Bytes above the small classes: idle, and obtained from the system in all.
_idle: Any = unit.var("memory_idle", i64)
_obtained: Any = unit.var("memory_obtained", i64)
# How many programs run for the first time, where new blocks have small pages meanwhile.
_first_runs: Any = unit.var("memory_first_runs", i64)
# How many blocks with small pages they got, and which the first of them are.
_begun: Any = unit.var("memory_begun", i64, 1 + _MOST_BEGUN)
# What brings huge pages to a block, if anything does, and whether it did begin to.
_bring: Any = unit.var("memory_bring", i64)
# The bytes of the last request that could not be served, for messages: of any thread.
_refused: Any = unit.var("memory_refused", i64)


def physical_memory() -> int:
    """The bytes of memory this process may use: the machine's, or what its control group allows."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        total = 1 << 40
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path) as file:
                text = file.read().strip()
        except OSError:
            continue
        if text.isdigit():
            total = min(total, int(text))
    return min(total, _MAX_BLOCK)


def _default_idle_limit() -> int:
    return variables.size("CALQUE_MEMORY_IDLE", max(64 << 20, physical_memory() // 16))


_limit: Any = unit.cell("memory_limit", i64, physical_memory)
_idle_limit: Any = unit.cell("memory_idle_limit", i64, _default_idle_limit)


@unit.helper
def class_of(nbytes: i64) -> i64:
    """The class that holds this many bytes: the exponent and two bits of the mantissa of the float
    just below."""
    if nbytes <= 512:
        return (nbytes + 63 >> 6) - 1
    return (bits_i64(f64(nbytes - 1)) >> 50) - (1023 + 9) * 4 + 8


@unit.helper
def class_bytes(index: i64) -> i64:
    """The bytes of a block of a class, with its header when it is a small one."""
    if index < 8:
        return (index + 1) << 6
    step = index - 8
    return ((step & 3) + 5) << ((step >> 2) + 7)


@unit.helper
def wait_for(word: ptr) -> None:
    """Wait until the mark is gone; it stays a few instructions long, unless its thread was put to
    sleep."""
    turns = 0
    while atomic_load(word, 0) == _LOCKED:
        turns += 1
        if turns < 100:
            pause()
        else:
            _sched_yield()


@unit.helper
def lock(word: ptr) -> i64:
    """Put the mark in a word and give what was there."""
    old = atomic_xchg(word, 0, _LOCKED)
    while unlikely(old == _LOCKED):
        wait_for(word)
        old = atomic_xchg(word, 0, _LOCKED)
    return old


@unit.helper
def cut_from_slab(nbytes: i64) -> ptr:
    """The next bytes of the slab, from a new slab when it is used up."""
    lock(_slab + 16)
    place = load_ptr(_slab, 0)
    if load_i64(_slab, 8) - i64(place) < nbytes:
        cell = alloca(8)
        if _posix_memalign(cell, ALIGNMENT, _SLAB) != 0:
            atomic_release(_slab + 16, 0, 0)
            return NULL
        place = load_ptr(cell, 0) + (
            ALIGNMENT - _HEADER
        )  # headers stand here, so that what follows them is aligned
        store_i64(_slab, 8, i64(place) + (_SLAB - ALIGNMENT + _HEADER))
    store_ptr(_slab, 0, place + nbytes)
    atomic_release(_slab + 16, 0, 0)
    return place + _HEADER


@unit.helper
def huge_block(entry: i64) -> ptr:
    """The block of an entry, which is its address with its class in the lower bits."""
    return ptr(entry & ~(_HUGE - 1))


@unit.helper
def huge_class(entry: i64) -> i64:
    """The class of the block of an entry."""
    return entry & (_HUGE - 1)


@unit.helper
def map_huge(index: i64, nbytes: i64) -> ptr:
    """A mapping whose data begin at a huge page, the header in the page before. Its pages are huge,
    unless these are to come later."""
    base = _mmap(NULL, nbytes + _HUGE + _PAGE, _READ_WRITE, _MAP_FLAGS, -1, 0)
    if i64(base) == -1:
        return NULL
    block = ptr((i64(base) + _PAGE + _HUGE - 1) & ~(_HUGE - 1))
    if _MADV_HUGEPAGE:
        if atomic_load(_first_runs, 0) > 0:
            base += _LATE
            k = atomic_add(_begun, 0, 1)
            if k < _MOST_BEGUN:
                store_ptr(_begun, 8 + 8 * k, block + index)
        else:
            _madvise(block, nbytes, _MADV_HUGEPAGE)
    store_ptr(block, -_HEADER, base)
    return block


@unit.function
def memory_used_again(block: ptr, index: i64) -> None:
    """Count a use of a block with small pages; after some of them it is to get huge ones."""
    uses = load_i64(block, -_HEADER) & _USES
    if uses == 1:
        bring = load_ptr(_bring, 0)
        if bring == NULL or _bring_type(bring, i64(block) + index) == 0:
            return
    store_i64(block, -_HEADER, load_i64(block, -_HEADER) - 1)


@unit.helper
def from_system(index: i64, nbytes: i64) -> ptr:
    """A block that was never used."""
    if index >= _LARGE_CLASS:
        return map_huge(index, nbytes)
    cell = alloca(8)
    if _posix_memalign(cell, ALIGNMENT, nbytes + ALIGNMENT) != 0:
        return NULL
    base = load_ptr(cell, 0)
    store_ptr(base + ALIGNMENT, -_HEADER, base)
    return base + ALIGNMENT


@unit.helper
def to_system(block: ptr, index: i64) -> None:
    """Give a block back for good."""
    nbytes = class_bytes(index)
    base = ptr(load_i64(block, -_HEADER) & ~_USES)
    atomic_add(_obtained, 0, -nbytes)
    if index >= _LARGE_CLASS:
        _munmap(base, nbytes + _HUGE + _PAGE)
    else:
        _free(base)


@unit.function
def calque_trim(bytes_kept: i64) -> None:
    """Give idle blocks back to the system, the largest first, until no more than this many bytes
    lie idle (small blocks not counted)."""
    index = _CLASSES - 1
    while index >= _SMALL_CLASSES and atomic_load(_idle, 0) > bytes_kept:
        entry = _table + index * _ENTRY
        if atomic_load(entry, 0) == 0:
            index -= 1
            continue
        block = ptr(lock(entry))
        if block == NULL:
            atomic_release(entry, 0, 0)
            continue
        store_i64(entry, 16, load_i64(entry, 16) - 1)
        atomic_release(entry, 0, load_i64(block, 0))
        atomic_add(_idle, 0, -class_bytes(index))
        to_system(block, index)


@unit.function
def memory_fresh(index: i64) -> ptr:
    """A new block of a class, or NULL when memory is short."""
    nbytes = class_bytes(index)
    if index < _SMALL_CLASSES:
        block = cut_from_slab(nbytes)
    else:
        if atomic_add(_obtained, 0, nbytes) + nbytes > _limit:
            calque_trim(0)
            if atomic_load(_obtained, 0) > _limit:
                atomic_add(_obtained, 0, -nbytes)
                store_i64(_refused, 0, nbytes)
                return NULL
        block = from_system(index, nbytes)
        if block == NULL:  # perhaps what lies idle is what is missing
            calque_trim(0)
            block = from_system(index, nbytes)
        if block == NULL:
            atomic_add(_obtained, 0, -nbytes)
            store_i64(_refused, 0, nbytes)
    if block != NULL:
        store_i64(block, -8, _MAGIC + index)
        entry = _table + index * _ENTRY
        head = lock(entry)
        store_i64(entry, 8, load_i64(entry, 8) + 1)
        store_i64(entry, 24, load_i64(entry, 24) + 1)
        atomic_release(entry, 0, head)
    return block


@unit.function
def calque_alloc(nbytes: i64) -> ptr:
    """A block of at least this many bytes, aligned to 64, its content undefined; NULL when there is
    no such memory."""
    if unlikely(ult(_limit, nbytes)):  # unsigned: negative sizes are too large as well
        store_i64(_refused, 0, nbytes)
        return NULL
    # The header of a small block lies in the block, that of a larger one before it.
    index = class_of(nbytes + _HEADER if nbytes <= _SMALL_LIMIT - _HEADER else nbytes)
    if index < _SMALL_CLASSES and nbytes > _SMALL_LIMIT - _HEADER:
        index = _SMALL_CLASSES
    entry = _table + index * _ENTRY
    block = ptr(lock(entry))
    if unlikely(block == NULL):
        atomic_release(entry, 0, 0)
        return memory_fresh(index)
    store_i64(entry, 8, load_i64(entry, 8) + 1)
    store_i64(entry, 16, load_i64(entry, 16) - 1)
    store_i64(entry, 24, load_i64(entry, 24) + 1)
    atomic_release(entry, 0, load_i64(block, 0))
    if index >= _SMALL_CLASSES:
        atomic_add(_idle, 0, -class_bytes(index))
        if unlikely(load_i64(block, -_HEADER) & _USES != 0):
            memory_used_again(block, index)
    return block


@unit.helper
def bytes_refused() -> i64:
    """What the last request asked for that could not be served."""
    return load_i64(_refused, 0)


@unit.function
def calque_free(block: ptr) -> None:
    """Give a block back; NULL is let pass."""
    if unlikely(block == NULL):
        return
    index = load_i64(block, -8) - _MAGIC
    if unlikely(not ult(index, _CLASSES)):
        return
    entry = _table + index * _ENTRY
    head = lock(entry)
    store_i64(entry, 8, load_i64(entry, 8) - 1)
    store_i64(entry, 16, load_i64(entry, 16) + 1)
    store_i64(block, 0, head)
    atomic_release(entry, 0, i64(block))
    if index >= _SMALL_CLASSES:
        nbytes = class_bytes(index)
        if unlikely(atomic_add(_idle, 0, nbytes) + nbytes > _idle_limit):
            calque_trim(_idle_limit)


@unit.function
def memory_first_run(by: i64) -> None:
    """One program more, or one less, runs for the first time. What the last one leaves may get huge
    pages from the system, some every few seconds."""
    if atomic_add(_first_runs, 0, by) + by != 0:
        return
    count = min(atomic_xchg(_begun, 0, 0), _MOST_BEGUN)
    for k in range(count):
        entry = load_i64(_begun, 8 + 8 * k)
        _madvise(huge_block(entry), class_bytes(huge_class(entry)), _MADV_HUGEPAGE)


@unit.function
def memory_after_fork() -> None:
    """In a forked child: a list that another thread was changing is given up, every lock is
    open."""
    for index in range(_CLASSES):
        if load_i64(_table + index * _ENTRY, 0) == _LOCKED:
            store_i64(_table + index * _ENTRY, 0, 0)
            store_i64(_table + index * _ENTRY, 16, 0)
    store_i64(_slab, 16, 0)
    store_i64(_first_runs, 0, 0)


class MemoryUse(NamedTuple):
    """Bytes in use, bytes kept idle, blocks in use, and blocks handed out since the start."""

    live_bytes: int
    idle_bytes: int
    live_blocks: int
    allocations: int


def stats() -> MemoryUse:
    """What the allocator holds now; exact when no other thread is allocating."""
    live_bytes = idle_bytes = live_blocks = allocations = 0
    for index in range(_CLASSES):
        _, live, idle, handed_out = (_table.read(4 * index + word) for word in range(4))
        nbytes = (index + 1) << 6 if index < 8 else ((index - 8 & 3) + 5) << ((index - 8 >> 2) + 7)
        live_bytes += live * nbytes
        idle_bytes += idle * nbytes
        live_blocks += live
        allocations += handed_out
    return MemoryUse(live_bytes, idle_bytes, live_blocks, allocations)


def allocate(nbytes: int) -> int:
    """The address of a new block; MemoryError when there is no such memory."""
    address = calque_alloc(nbytes) if 0 <= nbytes <= _MAX_BLOCK else None
    if not address:
        raise MemoryError(f"cannot allocate {nbytes:,} bytes")
    return int(address)


def free(address: int) -> None:
    """Give back a block got from ``allocate``."""
    calque_free(address)


def trim(bytes_kept: int = 0) -> None:
    """Give idle blocks back to the system until no more than this many bytes lie idle."""
    calque_trim(bytes_kept)


def set_idle_limit(nbytes: int) -> None:
    """Bound the bytes that are kept for later use."""
    unit.compile()
    _idle_limit.write(nbytes)
    calque_trim(nbytes)


def set_limit(nbytes: int) -> None:
    """Bound the bytes in all, in use and idle."""
    unit.compile()
    _limit.write(min(nbytes, _MAX_BLOCK))


_from_memory: Callable[[int, int, int], memoryview] = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int
)(("PyMemoryView_FromMemory", ctypes.pythonapi))


def view(address: int, nbytes: int, writable: bool = True) -> memoryview:
    """The bytes at an address as a memoryview, which keeps nothing alive."""
    return _from_memory(address, nbytes, 0x200 if writable else 0x100)


def _after_fork_in_child() -> None:
    if unit._addresses is not None:
        memory_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
