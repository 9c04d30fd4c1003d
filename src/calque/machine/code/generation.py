"""LLVM's slow work by several threads at the same time.

llvmlite lets one thread at a time into LLVM, whatever it does there. LLVM itself asks only that no
two threads share a context or a target machine, and here each module has a context of its own and
each compilation a machine for itself. So what takes long, passes and the generation of code, is
called through handles of our own on llvmlite's library. What is short keeps the lock of the
interpreter meanwhile: to get it back may take a thread longer than the work does. Where the library
is not the one that we know, llvmlite's own functions take its place.
"""

from __future__ import annotations

import _thread
import ctypes
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from calque.machine.lazy import LazyModule
from calque.machine.once import once
from calque.machine.state import process

llvm: Any = LazyModule("llvmlite.binding")

_POINTER, _TEXT = ctypes.c_void_p, ctypes.c_char_p
_MESSAGE: Final = ctypes.POINTER(ctypes.c_char_p)
# The result and the arguments of what is called; llvmlite declares as many, where it does.
_SHORT: Final[dict[str, tuple[Any, ...]]] = {
    "LLVMPY_ContextCreate": (_POINTER,),
    "LLVMPY_ContextDispose": (None, _POINTER),
    "LLVMPY_ParseAssembly": (_POINTER, _POINTER, _TEXT, _MESSAGE),
    "LLVMPY_VerifyModule": (ctypes.c_bool, _POINTER, _MESSAGE),
    "LLVMPY_SetTarget": (None, _POINTER, _TEXT),
    "LLVMPY_DisposeModule": (None, _POINTER),
    "LLVMPY_DisposeString": (None, _TEXT),
    "LLVMPY_GetBufferStart": (_POINTER, _POINTER),
    "LLVMPY_GetBufferSize": (ctypes.c_size_t, _POINTER),
    "LLVMPY_DisposeMemoryBuffer": (None, _POINTER),
}
_LONG: Final[dict[str, tuple[Any, ...]]] = {
    "LLVMPY_RunNewModulePassManager": (None, _POINTER, _POINTER, _POINTER),
    "LLVMPY_TargetMachineEmitToMemory": (_POINTER, _POINTER, _POINTER, ctypes.c_int, _MESSAGE),
}

Passes = tuple[Any, Any]  # llvmlite's manager of passes and its builder
# what makes an object by a single call, as soon as there is one
at_once: Final[list[Callable[..., Any]]] = process.container("calls that generate code", [])
# what makes queues of modules whose objects one call makes
queues: Final[list[Callable[[], Any]]] = process.container("queues of modules", [])


class Gate:
    """Where threads compile. A fork, and the end of the process, wait until all have left, and let
    nobody in but the thread that asked."""

    def __init__(self) -> None:
        self._renew_lock()
        self._inside = 0
        self._owner: int | None = None
        self.leave = ctypes.c_int64(0)  # whether those who stay inside for long are to leave

    def _renew_lock(self) -> None:
        # taken itself: what a signal's handler raises may come as the condition has just taken it
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """A `with` block that compiles."""
        inside = False
        try:
            with self._lock:
                self._changed.wait_for(self._is_open)
                self._inside, inside = self._inside + 1, True
            yield
        finally:
            if inside:
                with self._lock:
                    self._inside -= 1
                    self._changed.notify_all()

    def _is_open(self) -> bool:
        return self._owner is None or self._owner == threading.get_ident()

    @property
    def is_closed(self) -> bool:
        """Whether only one thread may compile."""
        return self._owner is not None

    def close(self, timeout: float | None = None) -> None:
        """Let nobody else in, and wait, not for ever, until all are out."""
        with self._lock:
            self._changed.wait_for(self._is_open, timeout)
            self._owner, self.leave.value = threading.get_ident(), 1
            self._changed.wait_for(lambda: self._inside == 0, timeout)

    def open(self) -> None:
        """Let all in again."""
        with self._lock:
            self._owner, self.leave.value = None, 0
            self._changed.notify_all()

    def renew(self) -> None:
        """Forget the threads that a forked child does not have."""
        self._renew_lock()
        self._inside, self._owner, self.leave.value = 0, None, 0


class Work:
    """Functions that are called by a few threads, and by whoever wants their results."""

    def __init__(self, helpers: int) -> None:
        self._helpers, self._running = helpers, 0
        self._lock = threading.RLock()  # taken itself, as in a `Gate`
        self._changed = threading.Condition(self._lock)
        self._waiting: deque[tuple[int, Callable[[], bytes]]] = deque()
        self._done: dict[int, bytes | BaseException] = {}
        self._count = 0

    def add(self, function: Callable[[], bytes]) -> None:
        """A thread will call it, if one more can be had; else it waits for `results`."""
        with self._lock:
            self._waiting.append((self._count, function))
            self._count += 1
            if self._running >= self._helpers:
                return
        try:
            # Not `threading.Thread`, whose `start` turns what a signal's handler raises in it into
            # a KeyError of its own.
            _thread.start_new_thread(self._help, ())
        except RuntimeError:  # no more threads, or the process ends
            self._helpers = 0

    def _help(self) -> None:
        # The thread counts itself: whoever started it may have been stopped on the way.
        with self._lock:
            if self._running >= self._helpers:
                return
            self._running += 1
        while self._next():
            pass
        with self._lock:
            self._running -= 1

    def _next(self) -> bool:
        """Call the function that has waited longest; False when there is none."""
        with self._lock:
            if not self._waiting:
                return False
            number, function = self._waiting.popleft()
        made: bytes | BaseException
        try:
            made = function()
        except BaseException as error:  # told to whoever wants the result
            made = error
        with self._lock:
            self._done[number] = made
            self._changed.notify_all()
        return True

    def drop(self) -> None:
        """Call none of those that still wait."""
        with self._lock:
            self._waiting.clear()

    def results(self) -> list[bytes]:
        """What the functions give, in the order in which they came."""
        while self._next():
            pass
        with self._lock:
            self._changed.wait_for(lambda: len(self._done) == self._count)
            made = [self._done[k] for k in range(self._count)]
        for each in made:
            if isinstance(each, BaseException):
                raise each
        return [each for each in made if isinstance(each, bytes)]


def prepare() -> None:
    """Look for the functions, which happens once, under a lock."""
    _functions()


def make_object(text: str, triple: str, machine: Any, passes: Passes | None) -> bytes | None:
    """A module as an object; None where LLVM refuses it, or the library is unknown."""
    f = _functions()
    if f is None:
        return None
    make = _made_at_once if at_once else _made_step_by_step
    return taken(make(f, text.encode(), triple.encode(), machine, passes))


def taken(made: Any, message: int = 0) -> bytes | None:
    """The bytes of an object, whose buffer is given back, and a message with it; None of none."""
    f = _functions()
    if f is None:
        return None
    if message:
        f["LLVMPY_DisposeString"](ctypes.cast(message, _TEXT))
    if not made:
        return None
    obj = ctypes.string_at(f["LLVMPY_GetBufferStart"](made), f["LLVMPY_GetBufferSize"](made))
    f["LLVMPY_DisposeMemoryBuffer"](made)
    return obj


def _made_at_once(
    f: dict[str, Any], text: bytes, triple: bytes, machine: Any, passes: Passes | None
) -> Any:
    """The buffer with the object, from one call that needs no lock of the interpreter."""
    message = ctypes.c_char_p(None)
    made = at_once[0](text, triple, machine, *(passes or (None, None)), ctypes.byref(message))
    _forget(f, message)
    return made


def _made_step_by_step(
    f: dict[str, Any], text: bytes, triple: bytes, machine: Any, passes: Passes | None
) -> Any:
    """The buffer with the object, from one call after the other."""
    context = f["LLVMPY_ContextCreate"]()
    module = None
    try:
        module = _said(f, "LLVMPY_ParseAssembly", context, text)
        if not module or _said(f, "LLVMPY_VerifyModule", module):
            return None
        f["LLVMPY_SetTarget"](module, triple)
        if passes is not None:
            f["LLVMPY_RunNewModulePassManager"](passes[0], module, passes[1])
        return _said(f, "LLVMPY_TargetMachineEmitToMemory", machine, module, 1)
    finally:
        if module:
            f["LLVMPY_DisposeModule"](module)
        f["LLVMPY_ContextDispose"](context)


def _said(f: dict[str, Any], name: str, *args: Any) -> Any:
    """The result of a function that may leave a message, which whoever asks again is told."""
    message = ctypes.c_char_p(None)
    made = f[name](*args, ctypes.byref(message))
    _forget(f, message)
    return made


def _forget(f: dict[str, Any], message: Any) -> None:
    if message.value is not None:
        f["LLVMPY_DisposeString"](message)


def addresses(names: Sequence[str]) -> list[int] | None:
    """Where functions of llvmlite's library are, if it is the one that we know."""
    f = _functions()
    if f is None:
        return None
    return [ctypes.cast(f[name], _POINTER).value or 0 for name in names]


@once
def _functions() -> dict[str, Any] | None:
    """The functions of llvmlite's library; None where they are not those that we know."""
    try:
        path = llvm.ffi.lib._name
        for name, types in {**_SHORT, **_LONG}.items():
            declared = getattr(llvm.ffi.lib, name).argtypes
            if declared is not None and len(declared) != len(types) - 1:
                return None
        found = {}
        for library, functions in ((ctypes.PyDLL(path), _SHORT), (ctypes.CDLL(path), _LONG)):
            for name, (result, *arguments) in functions.items():
                function = getattr(library, name)
                function.restype, function.argtypes = result, arguments
                found[name] = function
    except (AttributeError, OSError, TypeError):
        return None
    return found


gate: Final = Gate()
