"""Taking the times of steps, without a word in the programs that nobody times.

The timed form of a program is its code with `STAMP` instructions around each step; all else is the
program's own. While a `Timing` is on, the header of every program leads to that code: machine code
that calls the program runs it. Afterwards one word of the header is as it was."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from calque.machine.driver.builder import ProgramBuilder
from calque.machine.driver.interpreter import Header, Op
from calque.machine.driver.program import Program, made
from calque.machine.driver.sizes import Pattern, SizedProgram
from calque.machine.driver.stamps import (
    EVENT_WORDS,
    LOG_WORDS,
    PART,
    RECORD_WORDS,
    Stamp,
    interp_timed_part,
)
from calque.machine.driver.verify import instructions
from calque.machine.frozen import all_objects
from calque.machine.state import ProcessValue, process

TIMED: Final = (Op.CALL, Op.CALL_RANGE, Op.COPY, Op.FILL, Op.HOST)
_CODE: Final = Header.offset("code")
# words of a record
_TURNS, _NS, _KERNEL, _BUSY, _PARTS, _LOG, _NUMBER, _ENTERED = range(8)
_Entered: Final = ctypes.CFUNCTYPE(None, ctypes.c_int64)


class StepTime(NamedTuple):
    """How often a step was done, for how long in all, on how many threads' time, in how many parts.
    The step of a whole program has `number` None; others count the steps of one kind in the
    order of the code: calls of machine code, copies, fills, host calls."""

    program: Program
    kind: str
    number: int | None
    kernel: int  # the address of what is called
    turns: int
    ns: int
    busy: int
    parts: int


class Event(NamedTuple):
    """One time that a step, or a part of its range, was done."""

    step: int
    is_part: bool
    thread: int
    begin: int
    end: int


class Timed:
    """The timed form of a program: code, a record for the program and for each step."""

    def __init__(self, program: Program) -> None:
        found = list(instructions(program.code.tolist()))
        self.steps: list[tuple[str, int | None, int]] = [("program", None, 0)]
        steps = [(at, op) for at, op, _ in found if op in TIMED]
        self.records = np.zeros((1 + len(steps), RECORD_WORDS), np.int64)
        self.log: np.ndarray | None = None
        self.code = self._code(program.code.tolist(), found)
        self.address = self.code.ctypes.data

    def _code(self, words: list[int], found: Sequence[tuple[int, Op, Any]]) -> np.ndarray:
        code = [Op.STAMP, self._record(0), Stamp.ENTER]
        places: dict[int, int] = {}
        targets: list[int] = []
        counts: dict[str, int] = {}
        for (at, op, operands), end in zip(found, [*[f[0] for f in found[1:]], len(words)]):
            places[8 * at] = 8 * len(code)
            own = words[at:end]
            record = None
            if op in TIMED:
                record = self._record(len(self.steps))
                self._add(op, own, counts)
                code += [Op.STAMP, record, Stamp.BEGIN]
            elif op == Op.END:
                code += [Op.STAMP, self._record(0), Stamp.LEAVE]
            targets += [
                len(code) + 1 + k for k, (letter, _) in enumerate(operands) if letter == "t"
            ]
            code += own
            if record is not None:
                code += [Op.STAMP, record, Stamp.END]
        for k in targets:
            code[k] = places[code[k]]
        return np.array(code, np.int64)

    def _add(self, op: Op, words: list[int], counts: dict[str, int]) -> None:
        """A step; that over a range calls what stands for its kernel."""
        kind = "call" if op in (Op.CALL, Op.CALL_RANGE) else op.name.lower()
        index = counts.get(kind, 0)
        counts[kind] = index + 1
        kernel = words[1] if kind == "call" else 0
        if op == Op.CALL_RANGE:
            self.records[len(self.steps), _KERNEL] = kernel
            words[1] = interp_timed_part.address
        self.steps.append((kind, index, kernel))

    def _record(self, k: int) -> int:
        return int(self.records.ctypes.data) + 8 * RECORD_WORDS * k

    def begin(self, log: np.ndarray | None, first: int, entered: int = 0) -> None:
        """Start anew; events are numbered from `first`. `entered` is the address of what is called
        with that number when the program begins."""
        self.log = log
        self.records[:, [_TURNS, _NS, _BUSY, _PARTS]] = 0
        self.records[:, _LOG] = 0 if log is None else log.ctypes.data
        self.records[:, _NUMBER] = np.arange(first, first + len(self.records))
        self.records[0, _ENTERED] = entered

    def end(self) -> None:
        """Runs that have begun with stamps write no events any more."""
        self.records[:, [_LOG, _ENTERED]] = 0
        self.log = None


class Timing:
    """The times of all that compiled programs do between `start` and `stop`. With `events` every
    single time is kept, up to so many. `entered` is called whenever a program begins, with the
    number of that program among the steps, in the thread that runs it."""

    def __init__(self, events: int = 0, entered: Callable[[int], None] | None = None) -> None:
        self._entered = None if entered is None else _Entered(entered)
        self.log: np.ndarray | None = None
        if events:
            self.log = np.empty(LOG_WORDS + EVENT_WORDS * events, np.int64)
            self.log.fill(0)  # its pages are there before they are written to
            self.log[0] = events
        self.programs: list[Program] = []
        self._steps = 0
        self._known: set[int] = set()
        self._taken: list[StepTime] | None = None

    def start(self) -> None:
        """Time every program, those that are made from now on too."""
        if _on.value is not None:
            raise RuntimeError("a profile is being taken already: stop it before the next")
        _on.value = self
        made.add(self._time)
        programs, others = _all_programs()
        for program in programs:
            self._time(program)
        codes = {p.code.ctypes.data: p.timed.address for p in self.programs}
        _redirect(others, codes)

    def _time(self, program: Program) -> None:
        if id(program) in self._known:
            return
        self._known.add(id(program))
        if program.timed is None:
            program.timed = Timed(program)
        program.timed.begin(self.log, self._steps, _address(self._entered))
        self._steps += len(program.timed.steps)
        self.programs.append(program)
        _word(program.handle + _CODE).value = program.timed.address

    def stop(self) -> None:
        """Let programs be what they were."""
        made.remove(self._time)
        _on.value = None
        for program in self.programs:
            _word(program.handle + _CODE).value = program.code.ctypes.data
        codes = {p.timed.address: p.code.ctypes.data for p in self.programs}
        _redirect(_all_programs()[1], codes)
        self._taken = self._times()  # the records are those of the next profile soon
        for program in self.programs:
            program.timed.end()
        _last.value = (self.log, self._entered)  # for what threads are about to write and call

    def steps(self) -> list[StepTime]:
        """The steps of all programs, in the order of their numbers: as they are now, or were when
        it was stopped."""
        return self._times() if self._taken is None else self._taken

    def _times(self) -> list[StepTime]:
        out = []
        for program in self.programs:
            for (kind, index, kernel), r in zip(
                program.timed.steps, program.timed.records.tolist()
            ):
                out.append(
                    StepTime(program, kind, index, kernel, r[_TURNS], r[_NS], r[_BUSY], r[_PARTS])
                )
        return out

    def events(self) -> Iterator[Event]:
        """What the log holds, in the order in which it ended."""
        if self.log is None:
            return
        count = min(int(self.log[1]), int(self.log[0]))
        rows = self.log[LOG_WORDS : LOG_WORDS + EVENT_WORDS * count].reshape(count, EVENT_WORDS)
        for number, thread, begin, end in rows.tolist():
            if end:  # else it is being written
                yield Event(number % PART, number >= PART, thread, begin, end)

    @property
    def lost(self) -> int:
        """Events for which the log had no room."""
        return 0 if self.log is None else max(int(self.log[1]) - int(self.log[0]), 0)


class Overhead(NamedTuple):
    """Nanoseconds that taking the time of one step costs: what is measured of a step that does
    nothing, and all of it."""

    seen: float
    whole: float
    entry: float = 0.0  # of telling `entered` that a program begins


def overhead(entered: Callable[[int], None] | None = None) -> Overhead:
    """That of this machine, as it is now: the least of a few measurements."""
    seen, whole = _overhead_of_steps()
    return Overhead(seen, whole, 0.0 if entered is None else _overhead_of_entries(entered))


def _overhead_of_entries(entered: Callable[[int], None]) -> float:
    turns, callback = 100, _Entered(entered)
    program = ProgramBuilder(0, []).build()
    timed = program.timed = Timed(program)
    _word(program.handle + _CODE).value = timed.address
    found = []
    for address in (_address(callback), 0):
        for _ in range(3):
            timed.begin(None, 0, address)
            begun = time.perf_counter_ns()
            for _ in range(turns):
                program.run([], [])
            found.append((time.perf_counter_ns() - begun) / turns)
    return max(min(found[:3]) - min(found[3:]), 0.0)


def _overhead_of_steps() -> tuple[float, float]:
    turns = 500
    b = ProgramBuilder(0, [])
    place = b.arena(0, 8)
    with b.loop(0, turns):
        b.fill(place, 0)
    program = b.build()
    timed = program.timed = Timed(program)
    log = np.zeros(LOG_WORDS + EVENT_WORDS * 2 * turns, np.int64)
    log[0] = 2 * turns
    found = []
    for address in (timed.address, program.code.ctypes.data):
        _word(program.handle + _CODE).value = address
        for _ in range(5):
            timed.begin(log, 0)
            log[1] = 0
            begun = time.perf_counter_ns()
            program.run([], [])
            whole = time.perf_counter_ns() - begun
            found.append((int(timed.records[1, _NS]) / turns, whole / turns))
    plain = min(whole for _, whole in found[5:])
    seen, whole_of_timed = min(found[:5])
    return seen, max(whole_of_timed - plain, seen)


_last: Final[ProcessValue[Any]] = process.value("log and callback of the last profile", None)
_on: Final[ProcessValue[Timing | None]] = process.value("the profile that is being taken", None)


def _address(callback: Any) -> int:
    return 0 if callback is None else ctypes.cast(callback, ctypes.c_void_p).value or 0


def _word(address: int) -> ctypes.c_int64:
    return ctypes.c_int64.from_address(address)


def _all_programs() -> tuple[list[Program], list[Pattern | SizedProgram]]:
    """Every program that there is, and what is like one but for its sizes. They stand in no list,
    which is why making one costs so little: the collector of garbage knows them."""
    programs: list[Program] = []
    others: list[Pattern | SizedProgram] = []
    for o in all_objects():
        kind = type(o)
        if kind is Program:
            programs.append(o)
        elif kind is Pattern or kind is SizedProgram:
            others.append(o)
    return programs, others


def _redirect(others: Sequence[Pattern | SizedProgram], codes: dict[int, int]) -> None:
    """What leads to one code leads to another from now on."""
    for o in others:
        o.redirect(codes)
