"""What a foreign function may ask of who calls it: errors, types, states, memory, tasks, futures.

All of it is answered by functions of Python that C can call, in one table (`api`). They raise
nothing: what goes wrong is an error of the interface, a number that stands for code and message."""

from __future__ import annotations

import ctypes
import itertools
import threading
import weakref
from collections.abc import Callable
from ctypes import CFUNCTYPE, POINTER, c_void_p
from typing import Any, Final

from calque.machine.foreign import structs
from calque.machine.once import once
from calque.machine.state import process

CODES: Final = (
    "OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
    "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED",
    "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
)  # fmt: skip
_INSTANTIATE: Final = structs.STAGES.index("instantiate")
_PAGE: Final = 4096

_numbers: Final = process.value("numbers of foreign things", itertools.count(1))
_errors: Final[dict[int, tuple[int, Any]]] = process.container("errors of foreign functions", {})
_calls: Final[dict[int, Call]] = process.container("calls of foreign functions", {})
_types: Final[dict[bytes, int]] = process.container("types of foreign functions", {})
_deleters: Final[dict[int, int]] = process.container("ends of foreign states", {})
_futures: Final[dict[int, Future]] = process.container("futures of foreign functions", {})


class States:
    """What a foreign function keeps between stages: of each stage one value, with its type."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[int, int]] = {}
        self.end: Callable[[], None] = weakref.finalize(self, _ended, self._kept)

    def find(self, stage: int) -> tuple[int, int] | None:
        return self._kept.get(stage)

    def keep(self, stage: int, type_id: int, value: int) -> bool:
        return self._kept.setdefault(stage, (type_id, value)) == (type_id, value)


def _ended(kept: dict[int, tuple[int, int]]) -> None:
    """Give everything back, by the functions that its types have for that."""
    while kept:
        type_id, value = kept.popitem()[1]
        if _deleters.get(type_id):
            CFUNCTYPE(None, c_void_p)(_deleters[type_id])(value)


class Call:
    """One call that is going on."""

    def __init__(self, instance: States) -> None:
        self.number = next(_numbers.value)
        self.instance, self.own = instance, States()
        self.memory: dict[int, Any] = {}

    def states(self, stage: int) -> States:
        return self.instance if stage == _INSTANTIATE else self.own

    def __enter__(self) -> Call:
        _calls[self.number] = self
        return self

    def __exit__(self, *_: Any) -> None:
        del _calls[self.number]
        self.own.end()


class Future:
    """The end of a call that goes on after its function has returned."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.error: int | None = None

    def end(self, error: int | None) -> None:
        self.error = error
        self.done.set()


def new_error(code: str, message: str) -> int:
    """An error of the interface."""
    number = next(_numbers.value)
    _errors[number] = CODES.index(code), ctypes.create_string_buffer(message.encode())
    return number


def taken_error(number: int | None) -> str | None:
    """The text of an error that a function gave, which is forgotten; None where there is none."""
    if not number:
        return None
    code, message = _errors.pop(number)
    return f"{CODES[code]}: {message.value.decode(errors='replace')}"


def awaited(number: int | None) -> int | None:
    """The error of a call whose end is a future, if it has one, when it is done."""
    if not number:
        return None
    future = _futures[number]
    future.done.wait()
    del _futures[number]
    return future.error


def register_type(name: bytes, type_id: Any, deleter: int | None) -> str | None:
    """Give a type its number, in the memory that `type_id` points to; what is wrong, if anything.
    A type that has a number already keeps it."""
    given = type_id[0]
    known = _types.get(name)
    if known is not None and given not in (0, known):
        return f"type {name.decode()!r} has the number {known} already, and not {given}"
    type_id[0] = _types[name] = given or known or next(_numbers.value)
    if deleter:
        _deleters[type_id[0]] = deleter
    return None


# ---------------------------------------------------------------- answers


def _error_create(a: Any) -> int:
    number = next(_numbers.value)
    text = ctypes.string_at(a.message) if a.message else b""
    code = a.code if 0 < a.code < len(CODES) else CODES.index("UNKNOWN")
    _errors[number] = code, ctypes.create_string_buffer(text)
    return number


def _error_message(a: Any) -> None:
    a.message = ctypes.addressof(_errors[a.error][1]) if a.error in _errors else None


def _error_destroy(a: Any) -> None:
    _errors.pop(a.error, None)


def _handler_register(_: Any) -> int:
    said = "foreign functions are made known from Python, by jax.ffi.register_ffi_target"
    return new_error("UNIMPLEMENTED", said)


def _stream(_: Any) -> int:
    return new_error("UNIMPLEMENTED", "the CPU has no streams")


def _type_register(a: Any) -> int | None:
    deleter = a.type_info[0].deleter if a.type_info else None
    said = register_type(ctypes.string_at(a.name.ptr, a.name.len), a.type_id, deleter)
    return None if said is None else new_error("INVALID_ARGUMENT", said)


def _context_get(a: Any) -> int:
    return new_error("NOT_FOUND", f"the call has no data of type {a.type_id[0]}")


def _state(a: Any) -> Any:
    """The record that a library has sent, as its size says; and the stage that it speaks of."""
    if a.struct_size >= ctypes.sizeof(structs.State):
        return a, a.stage
    older = ctypes.cast(ctypes.pointer(a), POINTER(structs.StateWithoutStage))[0]
    return older, _INSTANTIATE


def _state_set(a: Any) -> int | None:
    record, stage = _state(a)
    if _calls[a.ctx].states(stage).keep(stage, record.type_id[0], record.state or 0):
        return None
    return new_error("FAILED_PRECONDITION", f"the {structs.STAGES[stage]} stage has a state")


def _state_get(a: Any) -> int | None:
    record, stage = _state(a)
    found = _calls[a.ctx].states(stage).find(stage)
    if found is None:
        return new_error("NOT_FOUND", f"the {structs.STAGES[stage]} stage has left no state")
    if found[0] != record.type_id[0]:
        said = f"the state is of type {found[0]}, not of type {record.type_id[0]}"
        return new_error("INVALID_ARGUMENT", said)
    record.state = found[1]
    return None


def _memory_allocate(a: Any) -> int | None:
    aligned = max(a.alignment, 1)
    if aligned > _PAGE:
        return new_error("INVALID_ARGUMENT", f"memory is aligned to {_PAGE} bytes at most")
    try:
        block = ctypes.create_string_buffer(a.size + aligned)
    except (MemoryError, OverflowError, ValueError):
        return new_error("RESOURCE_EXHAUSTED", f"there is no memory for {a.size} bytes")
    a.data = (ctypes.addressof(block) + aligned - 1) // aligned * aligned
    _calls[a.ctx].memory[a.data] = block
    return None


def _memory_free(a: Any) -> None:
    _calls[a.ctx].memory.pop(a.data, None)


def _schedule(a: Any) -> None:
    """The interface leaves open where a task runs: here at once, by who asks for it."""
    CFUNCTYPE(None, c_void_p)(a.task)(a.data)


def _threads(a: Any) -> None:
    ctypes.cast(a.word, POINTER(ctypes.c_int64))[0] = 1


def _future_create(a: Any) -> None:
    a.future = next(_numbers.value)
    _futures[a.future] = Future()


def _future_available(a: Any) -> None:
    _futures[a.future].end(None)


def _future_error(a: Any) -> None:
    _futures[a.future].end(a.error)


def _run_id(a: Any) -> None:
    a.word = a.ctx


def _ordinal(a: Any) -> None:
    a.ordinal = 0


_ANSWERS: Final[dict[str, tuple[Any, Callable[[Any], Any]]]] = {
    "error_create": (structs.ErrorCreate, _error_create),
    "error_message": (structs.ErrorMessage, _error_message),
    "error_destroy": (structs.ErrorDestroy, _error_destroy),
    "handler_register": (structs.Extension, _handler_register),
    "stream": (structs.OfContext, _stream),
    "type_register": (structs.TypeRegister, _type_register),
    "context_get": (structs.ContextGet, _context_get),
    "state_set": (structs.State, _state_set),
    "state_get": (structs.State, _state_get),
    "memory_allocate": (structs.Memory, _memory_allocate),
    "memory_free": (structs.MemoryFree, _memory_free),
    "schedule": (structs.Schedule, _schedule),
    "threads": (structs.OfContext, _threads),
    "future_create": (structs.FutureOf, _future_create),
    "future_available": (structs.FutureOf, _future_available),
    "future_error": (structs.FutureOf, _future_error),
    "run_id": (structs.OfContext, _run_id),
    "ordinal": (structs.Ordinal, _ordinal),
}


def _callable(record: Any, answer: Callable[[Any], Any]) -> Any:
    """An answer as a function of C, of a pointer to a record; gives an error or nothing."""

    def answered(pointer: Any) -> int | None:
        try:
            found: int | None = answer(pointer[0])
            return found
        except Exception as e:  # of a record that no library should send
            return new_error("INTERNAL", f"{type(e).__name__}: {e}")

    return CFUNCTYPE(c_void_p, POINTER(record))(answered)


@once
def api() -> tuple[int, Any]:
    """The address of the table, and what keeps it alive."""
    functions = {name: _callable(*_ANSWERS[name]) for name in structs.FUNCTIONS}
    major, minor = structs.VERSION
    table = structs.made(
        structs.Api,
        version=structs.made(structs.ApiVersion, major=major, minor=minor),
        **{name: ctypes.cast(f, c_void_p).value for name, f in functions.items()},
    )
    return ctypes.addressof(table), (table, functions)
