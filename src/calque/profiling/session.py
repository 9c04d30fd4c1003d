"""Sessions: between start and stop, all that compiled programs do is timed, and spans of tracing
and compiling are kept."""

from __future__ import annotations

import bisect
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from calque.core.source import Source, user_frame
from calque.machine import memory
from calque.machine.driver.program import Program
from calque.machine.driver.timed import Overhead, StepTime, Timing, overhead
from calque.machine.spans import Span, now, record_with
from calque.native.calls import compiled
from calque.profiling.steps import (
    Described,
    Facts,
    described,
    executables,
    kernel_names,
    programs_of,
)

SINGLE: Final = "single operation"
_SAID: Final = re.compile(r"^ *(?:\S+ = )?(call|host) ([^(\n]+)\(", re.MULTILINE)
EVENTS: Final = 1 << 20  # that a trace keeps, unless told otherwise: 32 MB


class Caller(NamedTuple):
    """A line of the user that has called a program, and how often."""

    source: Source
    turns: int


class Measured(NamedTuple):
    """One step of one program, or (without `facts`) a whole program: what it is, and its times."""

    function: str
    facts: Facts | None
    time: StepTime
    callers: tuple[Caller, ...] = ()  # of a single operation: its own lines are calque's


class Sample(NamedTuple):
    """The memory of arrays at one moment."""

    at: int
    live: int
    idle: int


class Calls:
    """Who has called which program: by its number among the steps, and for the first calls when, up
    to `most`."""

    def __init__(self, most: int) -> None:
        self.most, self._noted = most, 0
        self._counts: dict[int, dict[tuple[int, int], Caller]] = {}
        self._at: dict[tuple[int, int], tuple[list[int], list[Source]]] = {}

    def add(self, number: int, source: Source) -> None:
        """A call from there, now, by this thread."""
        counts = self._counts.setdefault(number, {})
        place = (id(source.code), source.lasti)
        before = counts.get(place)
        counts[place] = Caller(source, 1 if before is None else before.turns + 1)
        if self._noted < self.most:
            self._noted += 1
            times, sources = self._at.setdefault((number, threading.get_ident()), ([], []))
            times.append(now())
            sources.append(source)

    def of(self, number: int) -> tuple[Caller, ...]:
        """All lines that have called this program."""
        return tuple(self._counts.get(number, {}).values())

    def at(self, number: int, thread: int, moment: int) -> Source | None:
        """The line whose call of this program was running on a thread at that moment."""
        times, sources = self._at.get((number, thread), ([], []))
        k = bisect.bisect_right(times, moment)
        return sources[k - 1] if k else None


class Session:
    """`start`, `stop`, then `measured`. Of single times as many are kept as `events` says."""

    def __init__(self, events: int = 0) -> None:
        self.timing = Timing(events, self._entered)
        self.calls = Calls(events)
        self.spans: list[Span] = []
        self.samples: list[Sample] = []
        self.threads: dict[int, str] = {}
        self._compiled: list[Any] = []
        self.begun = self.ended = 0
        self._described: list[Measured] | None = None
        self.overhead = Overhead(0.0, 0.0)

    def add(self, span: Span) -> None:
        """What spans call."""
        self.spans.append(span)
        self.threads.setdefault(span.thread, threading.current_thread().name)
        if span.kind in ("annotation", "step"):
            self.sample()

    def sample(self) -> None:
        """Note how much memory arrays have."""
        s = memory.stats()
        self.samples.append(Sample(now(), s.live_bytes, s.idle_bytes))

    def start(self) -> None:
        """From now on; RuntimeError where another session has not been stopped."""
        self.overhead = overhead(self._entered)
        self.calls = Calls(self.calls.most)
        self.timing.start()
        record_with(self)
        compiled.add(self._compiled.append)
        self.sample()
        self.begun = now()

    def stop(self) -> None:
        """Up to now; programs are what they were."""
        self.ended = now()
        self.sample()
        compiled.remove(self._compiled.append)
        record_with(None)
        self.timing.stop()
        for t in threading.enumerate():
            self.threads.setdefault(t.ident or 0, t.name)

    def _entered(self, number: int) -> None:
        frame = user_frame()
        if frame is not None:
            self.calls.add(number, Source(frame.f_code, frame.f_lasti))

    def __enter__(self) -> Session:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def steps(self) -> list[StepTime]:
        """The times of all steps, without what taking them has cost."""
        seen, whole, _ = self.overhead
        out: list[StepTime] = []
        inside: dict[int, int] = {}
        for t in self.timing.steps():
            if t.number is not None:
                inside[id(t.program)] = inside.get(id(t.program), 0) + t.turns
        for t in self.timing.steps():
            cost = seen * t.turns if t.number is not None else whole * inside.get(id(t.program), 0)
            out.append(t._replace(ns=max(int(t.ns - cost), t.turns)))
        return out

    @property
    def cost(self) -> float:
        """Seconds that taking times has cost."""
        times = self.timing.steps()
        steps = sum(t.turns for t in times if t.number is not None)
        entries = sum(t.turns for t in times if t.number is None)
        return (self.overhead.whole * steps + self.overhead.entry * entries) / 1e9

    def measured(self) -> list[Measured]:
        """Every step of every program that there was, in the order of their numbers in the log."""
        if self._described is None:
            self._described = list(self._measured())
        return self._described

    def _measured(self) -> Iterator[Measured]:
        known = programs_of([*executables(), *self._compiled])
        names = kernel_names()
        found: dict[int, Callable[[StepTime], Facts] | None] = {}
        functions: dict[int, str] = {}
        callers: tuple[Caller, ...] = ()
        whole = {id(t.program): t.turns for t in self.timing.steps() if t.number is None}
        for number, t in enumerate(self.steps()):
            key = id(t.program)
            if key not in found:
                description = described(known[key]) if key in known and whole[key] else None
                single = description is None or description.single
                functions[key] = SINGLE if description is None or single else description.name
                found[key] = _facts_by(t.program, description)
            if t.number is None:
                callers = self.calls.of(number) if functions[key] == SINGLE else ()
            facts_of = found[key]
            facts = None
            if t.number is not None:
                facts = _unknown(t, names) if facts_of is None else facts_of(t)
            yield Measured(functions[key], facts, t, callers)


def _facts_by(
    program: Program, description: Described | None
) -> Callable[[StepTime], Facts] | None:
    """How to find what a step is, if the plan has as many steps as the program."""
    if description is None:
        return None
    planned = set(description.steps)
    written = {(k, i) for k, i, _ in program.timed.steps if i is not None and k != "fill"}
    if planned != written:
        return None
    fill = Facts("fill", "fill")
    return lambda t: description.steps.get((t.kind, t.number or 0), fill)


def _unknown(t: StepTime, names: dict[int, str]) -> Facts:
    """A step of a program without a plan: what its text calls it."""
    if t.kind == "call" and t.kernel in names:
        return Facts(names[t.kernel], "kernel")
    kind = {"call": "routine", "host": "host call"}.get(t.kind, t.kind)
    said = [name for what, name in _SAID.findall(t.program.text()) if what == t.kind]
    known = t.number is not None and t.number < len(said)
    return Facts(said[t.number or 0] if known else kind, kind)
