"""Huge pages that come late, where they are dear.

The host of a virtual machine may take free memory back, which is done in huge pages: the next use
of each costs it some 10 ms, while small pages come from what it leaves. There the first run of a
program, much of whose memory is new, takes small pages, and a thread brings huge ones to the blocks
that are used again and again: the kernel copies them, one huge page after the other.

first run       2nd to 5th           then
small pages     the same             huge pages; where results are kept, from the system in time"""

from __future__ import annotations

import os
import sys
from typing import Any

from calque.machine import memory
from calque.machine.lang.unit import (
    NULL,
    Unit,
    alloca,
    atomic_load,
    atomic_release,
    atomic_xchg,
    i32,
    i64,
    load_ptr,
    ptr,
    store_i64,
)
from calque.machine.memory import class_bytes, huge_block, huge_class, memory_first_run
from calque.machine.once import once

_HUGE = 2 << 20
_MADV_HUGEPAGE = 14
_MADV_COLLAPSE = 25
_SIG_SETMASK = 3 if sys.platform == "darwin" else 2
_BALLOONS = "/sys/bus/virtio/drivers/virtio_balloon"
_REPORTING = 5  # place among the features

unit = Unit("huge_pages")
_madvise = unit.extern("madvise", i32, ptr, i64, i32)
_pthread_create = unit.extern("pthread_create", i32, ptr, ptr, ptr, ptr)
_pthread_detach = unit.extern("pthread_detach", i32, ptr)
_pthread_sigmask = unit.extern("pthread_sigmask", i32, i32, ptr, ptr)
_sigfillset = unit.extern("sigfillset", i32, ptr)
# Whether there is a thread that brings huge pages.
_bringing: Any = unit.var("huge_pages_bringing", i64)


@unit.function
def huge_pages_thread(argument: ptr) -> ptr:
    """The life of the thread that brings a block huge pages; that the block may be given back, or
    be another's meanwhile, changes nothing but memory's pages."""
    block = huge_block(i64(argument))
    end = i64(block) + class_bytes(huge_class(i64(argument)))
    while i64(block) + _HUGE <= end and atomic_load(_bringing, 0) == 1:
        _madvise(block, _HUGE, _MADV_COLLAPSE)  # refused by kernels before 6.1: theirs comes later
        block += _HUGE
    atomic_release(_bringing, 0, 0)
    return NULL


@unit.function
def huge_pages_bring(entry: i64) -> i64:
    """Have a thread bring huge pages to a block: 1, or 0 where another one gets them."""
    if atomic_xchg(_bringing, 0, 1) != 0:
        return 0
    _madvise(huge_block(entry), class_bytes(huge_class(entry)), _MADV_HUGEPAGE)
    mask, old, thread = alloca(128), alloca(128), alloca(8)
    _sigfillset(mask)
    _pthread_sigmask(_SIG_SETMASK, mask, old)  # signals are for Python's main thread
    if _pthread_create(thread, NULL, huge_pages_thread, ptr(entry)) == 0:
        _pthread_detach(load_ptr(thread, 0))
    else:
        atomic_release(_bringing, 0, 0)
    _pthread_sigmask(_SIG_SETMASK, old, NULL)
    return 1


@unit.function
def huge_pages_after_fork() -> None:
    """In a forked child, which has no such thread."""
    store_i64(_bringing, 0, 0)


@once
def host_takes_back() -> bool:
    """Whether this is a virtual machine that hands free memory back to its host, which it does in
    huge pages (the feature "reporting" of its balloon)."""
    try:
        for device in os.listdir(_BALLOONS):
            if device.startswith("virtio"):
                with open(f"{_BALLOONS}/{device}/features") as file:
                    if file.read()[_REPORTING] == "1":
                        return True
    except (OSError, IndexError):
        pass
    return False


class FirstRun:
    """What lasts while a program runs for the first time."""

    def __enter__(self) -> None:
        self.begins_small = host_takes_back()
        if self.begins_small:
            _get_ready()
            memory_first_run(1)

    def __exit__(self, *_: object) -> None:
        if self.begins_small:
            memory_first_run(-1)


@once
def _get_ready() -> None:
    memory._bring.write(unit.address("huge_pages_bring"))


def _after_fork_in_child() -> None:
    if unit._addresses is not None:
        huge_pages_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
