"""Spans: pieces of work with a name, told to whoever records them. Without a recorder, which is
nearly always, one costs a call that returns."""

from __future__ import annotations

import threading
import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, NamedTuple, Protocol

from calque.machine.state import ProcessValue, process


class Span(NamedTuple):
    """What was done, when (in nanoseconds of the monotonic clock), by which thread."""

    kind: str
    name: str
    begin: int
    end: int
    thread: int
    details: dict[str, Any]


class Recorder(Protocol):
    """Whoever records spans."""

    def add(self, span: Span) -> None: ...


recorder_of_spans: Final[ProcessValue[Recorder | None]] = process.value("recorder of spans", None)
_NOTHING: Final = nullcontext()


class _Open:
    """A span that has begun."""

    __slots__ = ("begin", "details", "kind", "name", "recorder")

    def __init__(self, recorder: Recorder, kind: str, name: str, details: dict[str, Any]) -> None:
        self.recorder, self.kind, self.name, self.details = recorder, kind, name, details

    def __enter__(self) -> None:
        self.begin = now()

    def __exit__(self, *error: object) -> None:
        self.recorder.add(
            Span(self.kind, self.name, self.begin, now(), threading.get_ident(), self.details)
        )


def now() -> int:
    """The clock that machine code reads as well."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def span(
    kind: str, name: str, details: dict[str, Any] | None = None
) -> AbstractContextManager[None]:
    """A `with` block that is told to the recorder, if there is one."""
    recorder = recorder_of_spans.value
    return _NOTHING if recorder is None else _Open(recorder, kind, name, details or {})


def record_with(recorder: Recorder | None) -> Recorder | None:
    """From now on spans are told to this recorder, None: to nobody. The one before."""
    before, recorder_of_spans.value = recorder_of_spans.value, recorder
    return before


def recorded() -> bool:
    """Whether anybody records."""
    return recorder_of_spans.value is not None
