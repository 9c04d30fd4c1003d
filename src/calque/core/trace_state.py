"""Which trace receives the next operation. Traces have levels; the highest among the arguments'
traces wins, and never one below the innermost trace that records a whole program."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from calque.core.avals import ShapedArray
from calque.core.symbols import Symbols
from calque.machine.once import Turns
from calque.machine.state import Inside, PerThread, ProcessValue, process


class Trace:
    """Receives operations. `level` orders traces by nesting; `done` is set when its transformation
    has ended."""

    level: int = 0
    done: bool = False

    @property
    def main(self) -> Trace:
        """What tells this trace from others: itself."""
        return self

    def process(self, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        raise AssertionError("abstract")


class Tracer:
    """A value of a trace. It knows its abstract value; array methods are attached by the
    library."""

    __slots__ = ("__weakref__", "_trace", "aval")

    _trace: Trace
    aval: ShapedArray

    def __init__(self, *given: Any) -> None:
        """For classes of users, which give the trace and the abstract value. Those of calque set
        what they hold themselves, and are made by the thousand: `quickly_made`."""
        self._trace, self.aval = given

    def __copy__(self) -> Tracer:
        """The value itself, which nothing changes."""
        return self

    def __deepcopy__(self, memo: Any) -> Tracer:
        return self

    @property
    def sharding(self) -> Any:
        raise AttributeError(
            f"{type(self).__name__} has no sharding: a traced value is nowhere yet. What its type"
            " says of where it will be is calque.typeof(x).sharding"
        )


_Kind = TypeVar("_Kind", bound=type["Tracer"])


def quickly_made(kind: _Kind) -> _Kind:
    """A class of traced values that are made empty, without a call of Python."""
    kind.__init__ = object.__init__  # type: ignore[assignment, misc]
    return kind


class _State(PerThread, name="trace of operations"):
    dynamic: Trace
    depth: int = 0
    innermost: Trace | None = None  # the one entered last, if it has not ended
    tracing: int = 0
    recordings: tuple[Trace, ...] = ()  # those of this thread that are active
    symbols: Symbols | None = None


_state = _State()
_listeners: Final = process.listeners("recording begins or ends")
_active: Final[set[Trace]] = process.container("programs that are being recorded", set())
_told: Final[ProcessValue[bool]] = process.value("whether recording was told of", False)
_collecting: Final[ProcessValue[bool]] = process.value(
    "collection of garbage before recording", False
)
_turns = Turns()


def set_base(trace: Trace) -> None:
    """The trace at the bottom: evaluation."""
    _State.dynamic = trace


def base_trace() -> Trace:
    """The trace at the bottom: evaluation."""
    return _State.dynamic


def top_trace(args: Sequence[Any]) -> Trace:
    top = _state.dynamic
    for a in args:
        if isinstance(a, Tracer) and a._trace.level > top.level:
            top = a._trace
    return top


def dynamic_trace() -> Trace:
    return _state.dynamic


def depth() -> int:
    """How many levels are open."""
    return _state.depth


def where() -> tuple[Trace, Trace | None]:
    """What the code of the user runs in: where operations on plain arrays go, and the innermost
    level, whose values they may be of."""
    return _state.dynamic, _state.innermost


def is_evaluating() -> bool:
    """True when operations on plain arrays run at once."""
    return _state.dynamic.level == 0


def any_recording() -> bool:
    """Whether any thread records a program."""
    return bool(_active)


def on_tracing(listener: Callable[[bool], None]) -> None:
    """`listener(True)` when any thread begins to record a program, `listener(False)` when none does
    any more."""
    _listeners.add(listener)


@contextlib.contextmanager
def entered(trace: Trace) -> Iterator[None]:
    """A new innermost level for `trace`, which does not catch operations on foreign values."""
    before = _state.innermost
    _state.depth += 1
    trace.level = _state.depth
    try:
        _state.innermost = trace
        yield
    finally:
        _state.depth -= 1
        _state.innermost = before
        trace.done = True


@contextlib.contextmanager
def recording(trace: Trace) -> Iterator[None]:
    """As `entered`, and every operation inside belongs to `trace` unless a higher trace takes
    it."""
    with entered(trace):
        before, symbols, recordings = _state.dynamic, _state.symbols, _state.recordings
        try:  # before anything is changed: an interrupt may come at any moment
            _state.recordings = (*recordings, trace)
            _active.add(trace)
            _tell()
            _state.dynamic = trace
            yield
        finally:
            _state.dynamic = before
            _state.recordings = recordings
            _active.discard(trace)
            _state.symbols = symbols if before.level == 0 else _state.symbols
            _tell()


def _tell() -> None:
    """Say whether any thread records, if that has changed. What an interrupt leaves unsaid is said
    by the next one."""
    with _turns.taken():
        now = bool(_active)
        if now == _told.value:
            return
        if now:
            _pause_collection()
        else:
            _resume_collection()
        _listeners.tell(now)
        _told.value = now


def with_symbols(symbols: Symbols) -> Inside[_State]:
    """What is recorded inside has these free sizes."""
    return _state.inside(symbols=symbols)


def symbols_of_recording() -> Symbols | None:
    """The free sizes of the outermost program that is being recorded; found sizes are theirs,
    too."""
    if is_evaluating():
        return None
    if _state.symbols is None:
        _state.symbols = Symbols(())
    return _state.symbols


def _pause_collection() -> None:
    """Equations are many small objects that live until the program is done: searching them for
    garbage doubles the time."""
    if gc.isenabled():
        _collecting.value = True
        gc.disable()


def _resume_collection() -> None:
    if _collecting.value:
        gc.enable()
        _collecting.value = False


def evaluating() -> Inside[_State]:
    """Operations on plain arrays run at once, also while a program is being recorded."""
    return _state.inside(dynamic=_State.dynamic)


def _after_fork_in_child() -> None:
    """The other threads that were recording do not exist here."""
    _active.intersection_update(_state.recordings)
    _tell()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
