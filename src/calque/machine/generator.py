"""LLVM's functions that make an object of a module, one after the other in a single call.

A thread that compiles while another one runs Python waits for the interpreter's lock after each
call that has given it up, some 5 ms, and holds the other one up during each that has not: so one
call does all, without it; and where modules are written one after the other, one call makes the
objects of all that are there, and waits a while for others.

before: parse (with the lock); passes (without; wait); code (without; wait)
after:  parse, passes, code; parse, passes, code; ... (without; wait)"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from calque.machine.clock import nanoseconds_now
from calque.machine.code import generation
from calque.machine.lang.unit import (
    NULL,
    Unit,
    atomic_cas,
    atomic_load,
    atomic_release,
    i32,
    i64,
    load_i64,
    load_ptr,
    ptr,
    signature,
    store_ptr,
)
from calque.machine.once import once

# A queue, by bytes: how many modules there are, how many were begun, whether no more are to be;
# then a record of each: its text, the level of its code; its object, a message, and, when it is
# done, the time it took.
_ADDED, _BEGUN, _CLOSED, _RECORDS = 0, 8, 16, 64
_RECORD, _LEVEL, _OBJECT, _MESSAGE, _TOOK = 40, 8, 16, 24, 32
MOST: Final = 1024  # modules of a queue
_POLL_US = 50

unit = Unit("generator", leads=True)
_usleep = unit.extern("usleep", i32, i32)

_create_type = signature(ptr)
_parse_type = signature(ptr, ptr, ptr, ptr)
_verify_type = signature(i32, ptr, ptr)
_target_type = signature(None, ptr, ptr)
_passes_type = signature(None, ptr, ptr, ptr)
_emit_type = signature(ptr, ptr, ptr, i32, ptr)
_dispose_type = signature(None, ptr)
# The functions by their places in a table, in this order.
_TABLE: Final = (
    "LLVMPY_ContextCreate",
    "LLVMPY_ParseAssembly",
    "LLVMPY_VerifyModule",
    "LLVMPY_SetTarget",
    "LLVMPY_RunNewModulePassManager",
    "LLVMPY_TargetMachineEmitToMemory",
    "LLVMPY_DisposeModule",
    "LLVMPY_ContextDispose",
)


@unit.function
def calque_generate(
    table: ptr, text: ptr, triple: ptr, machine: ptr, passes: ptr, builder: ptr, message: ptr
) -> ptr:
    """The buffer that holds the object of a module; none where LLVM refuses it, perhaps with a
    message."""
    made = NULL
    context = _create_type(load_ptr(table, 0))
    module = _parse_type(load_ptr(table, 8), context, text, message)
    if module != NULL:
        if _verify_type(load_ptr(table, 16), module, message) == 0:
            _target_type(load_ptr(table, 24), module, triple)
            if passes != NULL:
                _passes_type(load_ptr(table, 32), passes, module, builder)
            made = _emit_type(load_ptr(table, 40), machine, module, 1, message)
        _dispose_type(load_ptr(table, 48), module)
    _dispose_type(load_ptr(table, 56), context)
    return made


@unit.helper
def begun(queue: ptr) -> i64:
    """The number of a module that nobody has begun, or -1."""
    while True:
        k = atomic_load(queue, _BEGUN)
        if k >= atomic_load(queue, _ADDED) or atomic_load(queue, _CLOSED) != 0:
            return -1
        if atomic_cas(queue, _BEGUN, k, k + 1):
            return k


@unit.function
def calque_generate_all(
    table: ptr, queue: ptr, triple: ptr, machines: ptr, leave: ptr, most: i64, patience: i64
) -> i64:
    """Make objects of the modules of a queue, with a machine for each level of code, until so many
    are made, the queue is closed, all are to leave, or no new module has come for some time: how
    many were made."""
    made = 0
    since = nanoseconds_now()
    while made < most and atomic_load(leave, 0) == 0 and atomic_load(queue, _CLOSED) == 0:
        k = begun(queue)
        if k >= 0:
            record = queue + (_RECORDS + _RECORD * k)
            start = nanoseconds_now()
            machine = load_ptr(machines, 8 * load_i64(record, _LEVEL))
            text = load_ptr(record, 0)
            store_ptr(
                record,
                _OBJECT,
                calque_generate(table, text, triple, machine, NULL, NULL, record + _MESSAGE),
            )
            since = nanoseconds_now()
            atomic_release(record, _TOOK, max(since - start, 1))
            made += 1
        elif nanoseconds_now() - since >= patience:
            return made
        else:
            _usleep(_POLL_US)
    return made


@unit.function
def calque_added(queue: ptr, count: i64) -> None:
    """So many modules are there: what stands in their records is seen by whoever sees that."""
    atomic_release(queue, _ADDED, count)


@unit.function
def calque_generated(record: ptr) -> None:
    """Wait until a module that was begun is done."""
    while atomic_load(record, _TOOK) == 0:
        _usleep(_POLL_US)


class Generated(NamedTuple):
    """The object of a module, or None where LLVM refuses it, and the time it took."""

    text: str
    object: bytes | None
    ns: int


class Queue:
    """Modules on their way to objects. One thread adds and collects them, any may `make` them."""

    def __init__(self, table: int, make_all: Any, added: Any, wait: Any) -> None:
        self._table, self._make_all, self._added, self._wait = table, make_all, added, wait
        self._words = (ctypes.c_int64 * ((_RECORDS + MOST * _RECORD) // 8))()
        self._texts: list[tuple[str, bytes]] = []
        self._collected = 0

    def add(self, text: str, level: int) -> bool:
        """One more module; False where there is no room for it."""
        k = len(self._texts)
        if k == MOST:
            return False
        self._texts.append((text, text.encode()))
        record = self._record(k)
        record[0] = _place(ctypes.c_char_p(self._texts[k][1])) or 0
        record[_LEVEL // 8] = level
        self._added(ctypes.addressof(self._words), k + 1)
        return True

    def make(
        self, triple: bytes, machines: Sequence[Any], leave: Any, most: int, patience: int
    ) -> int:
        """Make so many objects, with machines by the levels of their code, waiting so long for each
        module, unless all are to leave: how many were made."""
        table = (ctypes.c_void_p * len(machines))(*[_place(m._ptr) for m in machines])
        words, there, flag = (ctypes.addressof(x) for x in (self._words, table, leave))
        made = self._make_all(self._table, words, triple, there, flag, most, patience)
        return int(made)

    def close(self) -> None:
        """Let no module be begun."""
        self._words[_CLOSED // 8] = 1

    def collect(self, wait: bool) -> Iterator[Generated]:
        """What is done of the modules that were begun, in order; all of them if it is to wait."""
        while self._collected < self._words[_BEGUN // 8]:
            record = self._record(self._collected)
            if not record[_TOOK // 8] and not wait:
                return
            self._wait(ctypes.addressof(record))  # also for what it is seen with
            text = self._texts[self._collected][0]
            self._collected += 1
            made = generation.taken(record[_OBJECT // 8], record[_MESSAGE // 8])
            yield Generated(text, made, record[_TOOK // 8])

    def _record(self, k: int) -> ctypes.Array[ctypes.c_int64]:
        at = ctypes.addressof(self._words) + _RECORDS + _RECORD * k
        return (ctypes.c_int64 * (_RECORD // 8)).from_address(at)

    def __del__(self) -> None:
        for _ in self.collect(wait=False):  # objects that nobody wants
            pass


def _place(pointer: Any) -> int | None:
    return ctypes.cast(pointer, ctypes.c_void_p).value


@once
def get_ready() -> None:
    """Let objects be made by one call from now on, if LLVM's library is the one that we know."""
    addresses = generation.addresses(_TABLE)
    if addresses is None:
        return
    table = (ctypes.c_void_p * len(addresses))(*addresses)
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    call = ctypes.CFUNCTYPE(pointer, pointer, text, text, pointer, pointer, pointer, pointer)(
        unit.address("calque_generate")
    )

    def generate(*args: Any) -> Any:
        return call(ctypes.addressof(table), *args)

    generation.at_once.append(generate)
    number = ctypes.c_int64
    make_all = ctypes.CFUNCTYPE(number, *[pointer] * 2, text, *[pointer] * 2, number, number)(
        unit.address("calque_generate_all")
    )
    added = ctypes.CFUNCTYPE(None, pointer, number)(unit.address("calque_added"))
    wait = ctypes.CFUNCTYPE(None, pointer)(unit.address("calque_generated"))
    generation.queues.append(partial(Queue, ctypes.addressof(table), make_all, added, wait))
