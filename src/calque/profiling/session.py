"""Sessions: between start and stop, all that compiled programs do is timed, and spans of tracing
and compiling are kept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

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

EVENTS: Final = 1 << 20  # that a trace keeps, unless told otherwise: 32 MB


class Measured(NamedTuple):
    """One step of one program, or (without `facts`) a whole program: what it is, and its times."""

    function: str
    facts: Facts | None
    time: StepTime


class Sample(NamedTuple):
    """The memory of arrays at one moment."""

    at: int
    live: int
    idle: int


class Session:
    """`start`, `stop`, then `measured`. Of single times as many are kept as `events` says."""

    def __init__(self, events: int = 0) -> None:
        self.timing = Timing(events)
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
        self.overhead = overhead()
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

    def __enter__(self) -> Session:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def steps(self) -> list[StepTime]:
        """The times of all steps, without what taking them has cost."""
        seen, whole = self.overhead
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
        return (
            self.overhead.whole
            / 1e9
            * sum(t.turns for t in self.timing.steps() if t.number is not None)
        )

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
        whole = {id(t.program): t.turns for t in self.timing.steps() if t.number is None}
        for t in self.steps():
            key = id(t.program)
            if key not in found:
                description = described(known[key]) if key in known and whole[key] else None
                functions[key] = "" if description is None else description.name
                found[key] = _facts_by(t.program, description)
            function = functions[key] or "single operation"
            facts_of = found[key]
            if t.number is None:
                yield Measured(function, None, t)
            elif facts_of is not None:
                yield Measured(function, facts_of(t), t)
            else:
                yield Measured(function, _unknown(t, names), t)


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
    """A step of a program without a plan."""
    if t.kind == "call":
        return Facts(names.get(t.kernel, "routine"), "kernel" if t.kernel in names else "routine")
    return Facts(
        {"host": "host call"}.get(t.kind, t.kind), {"host": "host call"}.get(t.kind, t.kind)
    )
