"""Which trace receives the next operation. Traces have levels; the highest among the arguments'
traces wins, and never one below the innermost trace that records a whole program."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Callable, Iterator, Sequence
from types import GenericAlias
from typing import TYPE_CHECKING, Any, ClassVar, Final

from calque.core.avals import ShapedArray
from calque.core.pause import resume
from calque.core.symbols import Symbols
from calque.machine.once import Turns
from calque.machine.state import Hook, Inside, PerThread, ProcessValue, process


class Trace:
    """Receives operations. `level` orders traces by nesting; `done` is set when its transformation
    has ended; `has_lanes` where what runs once stands for several lanes.

    A library derives traces of its own. They define `process_primitive`, and what else is processed
    that their programs need, and are made current by `extend.core.set_current_trace`."""

    has_lanes: bool = False
    level: int = 0
    done: bool = False
    requires_low = True  # values above arrays are opened before operations get here
    __class_getitem__: ClassVar[Any] = classmethod(
        GenericAlias
    )  # libraries name the class of its values

    @property
    def main(self) -> Any:
        """What tells this trace from others: its tag, if a library gave it one, or itself."""
        return getattr(self, "tag", self)

    def process(self, primitive: Any, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Hands an operation to the trace of a library. What that does in turn runs at once, or
        goes where its values belong."""
        if self.done:
            raise ended.call(args, self)
        with evaluating():
            return primitive.handed_to(self, args, params)

    def process_primitive(self, primitive: Any, tracers: Any, params: dict[str, Any], /) -> Any:
        raise NotImplementedError(_LACKING.format(type(self), "process_primitive", "primitives"))

    def process_call(self, primitive: Any, f: Any, tracers: Any, params: Any, /) -> Any:
        raise NotImplementedError(
            _LACKING.format(type(self), "process_call", "call-like primitives")
        )

    def process_custom_jvp_call(
        self, primitive: Any, fun: Any, jvp: Any, tracers: Any, /, *, symbolic_zeros: bool
    ) -> Any:
        raise NotImplementedError(
            _LACKING.format(type(self), "process_custom_jvp_call", "custom_jvp primitives")
        )

    def process_custom_vjp_call(
        self,
        primitive: Any,
        fun: Any,
        fwd: Any,
        bwd: Any,
        tracers: Any,
        /,
        *,
        out_trees: Any,
        symbolic_zeros: bool,
    ) -> Any:
        raise NotImplementedError(
            _LACKING.format(type(self), "process_custom_vjp_call", "custom_vjp primitives")
        )

    def stage_value(self, val: Any) -> Any:
        """The value as one of this trace."""
        return val

    def full_raise(self, x: Any) -> Any:
        return x

    def invalidate(self) -> None:
        """Says that its transformation has ended."""
        self.done = True

    def is_valid(self) -> bool:
        return not self.done


_LACKING: Final = "{} must override {} to handle {}"
ended: Final[Hook[Callable[..., Exception]]] = process.hook(
    "error of a trace that has ended", lambda *_: RuntimeError("this trace has ended")
)


def is_foreign(trace: Trace) -> bool:
    """Whether a trace is one of a library."""
    return type(trace).process is Trace.process


class Tracer:
    """A value of a trace. It knows its abstract value; array methods are attached by the
    library."""

    __slots__ = ("__weakref__", "_trace", "aval")
    __class_getitem__: ClassVar[Any] = classmethod(
        GenericAlias
    )  # libraries name the class of its trace

    _trace: Trace
    aval: ShapedArray

    def __init__(self, trace: Trace, aval: ShapedArray) -> None:
        self._trace, self.aval = trace, aval

    def full_lower(self) -> Any:
        """The value inside, where a library's trace says that there is one."""
        return self

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


class OwnTracer(Tracer):
    """A value of a trace of calque. They are many: whoever makes one sets its attributes."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __init__(self) -> None: ...

    else:
        __init__ = object.__init__


class _State(PerThread, name="trace of operations"):
    dynamic: Trace
    depth: int = 0
    lanes: int = 0
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


def lanes() -> int:
    """How many of the open levels run a function for several lanes at once."""
    return _state.lanes


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
    _state.lanes += trace.has_lanes
    trace.level = _state.depth
    try:
        _state.innermost = trace
        yield
    finally:
        _state.depth -= 1
        _state.lanes -= trace.has_lanes
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


@contextlib.contextmanager
def current(trace: Trace) -> Iterator[None]:
    """Operations on plain arrays go to this trace. One of a library is above all that are open,
    until the outermost block for it ends."""
    if not is_foreign(trace) or trace in _state.recordings:
        with _state.inside(dynamic=trace):
            yield
        return
    trace.done = False
    with recording(trace):
        yield


def _tell() -> None:
    """Say whether any thread records, if that has changed. What an interrupt leaves unsaid is said
    by the next one. Traces of libraries may live for long: garbage is collected meanwhile."""
    with _turns.taken():
        now = bool(_active)
        if now == _told.value:
            return
        # other threads begin and end meanwhile: a copy is made at once
        if now and not all(map(is_foreign, tuple(_active))):
            _pause_collection()
        elif not now:
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
        resume()
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
