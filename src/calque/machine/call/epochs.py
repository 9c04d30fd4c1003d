"""Which entries of the call path are valid: those made for the epoch of the configuration that
holds in the thread that calls. Threads inside `with` blocks that set flags have epochs of their
own."""

from __future__ import annotations

from typing import Final

from calque.machine.call.layout import THREADS
from calque.machine.lang.unit import (
    NULL,
    Unit,
    i64,
    likely,
    load_i64,
    load_ptr,
    ptr,
    store_i64,
    unlikely,
)
from calque.machine.objects.active_runs import pthread_self
from calque.machine.objects.array_type import refuse
from calque.machine.objects.pyapi import PyErr_Occurred, new_reference, none, type_error

PAIR: Final = 16  # bytes: a thread, its epoch

unit = Unit("calque_epochs")

PyLong_AsVoidPtr = unit.extern("PyLong_AsVoidPtr", ptr, ptr)

epoch_now = unit.var("calque_epoch", i64)  # 0: no entry may be used, in no thread
own_count = unit.var("calque_own_epochs_count", i64)
own = unit.var("calque_own_epochs", i64, THREADS * PAIR // 8)


@unit.helper
def epoch_here() -> i64:
    """The epoch that entries must have been made for; 0: none may be used."""
    now = load_i64(epoch_now, 0)
    if likely(load_i64(own_count, 0) == 0):
        return now
    return epoch_among(now)


@unit.function
def epoch_among(now: i64) -> i64:
    """The epoch of this thread: its own, or that of all that have none."""
    thread = pthread_self()
    for i in range(load_i64(own_count, 0)):
        if load_i64(own, PAIR * i) == thread:
            return load_i64(own, PAIR * i + 8)
    return now


@unit.function
def _set_epoch(self: ptr, args: ptr, count: i64) -> ptr:
    """set_epoch(number, *pairs): entries made for another epoch do not match; with 0 none does. Of
    `pairs`, each thread and number in turn, are the threads that have an epoch of their own; there
    are at most 64."""
    if count % 2 == 0 or count > 1 + 2 * THREADS:
        return refuse(type_error, "set_epoch takes a number, and at most 64 pairs of numbers")
    for i in range(count):  # before anything is stored
        if unlikely(PyLong_AsVoidPtr(load_ptr(args, 8 * i)) == NULL and PyErr_Occurred()):
            return NULL
    store_i64(epoch_now, 0, i64(PyLong_AsVoidPtr(load_ptr(args, 0))))
    for i in range(1, count):
        store_i64(own, 8 * (i - 1), i64(PyLong_AsVoidPtr(load_ptr(args, 8 * i))))
    store_i64(own_count, 0, (count - 1) // 2)
    return new_reference(none)
