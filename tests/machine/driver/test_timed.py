"""Times of steps: the timed form of a program does what the program does, and leaves no trace."""

from __future__ import annotations

import numpy as np
import pytest

from calque.machine import threads
from calque.machine.call.functions import run_program
from calque.machine.driver.builder import ProgramBuilder, Varying
from calque.machine.driver.interpreter import Op
from calque.machine.driver.program import Program
from calque.machine.driver.sizes import Pattern
from calque.machine.driver.stamps import PART
from calque.machine.driver.timed import Timed, Timing
from calque.machine.driver.verify import ProgramError, verify
from calque.machine.lang.unit import Unit, i64, load_i64, load_ptr, ptr, store_i64
from calque.machine.objects.array_type import as_numpy, wrap_numpy

unit = Unit("test_timed")


@unit.function
def add_to(args: ptr, begin: i64, end: i64) -> None:
    """``args[0][k] += args[1]``."""
    data = load_ptr(args, 0)
    for k in range(begin, end):
        store_i64(data, 8 * k, load_i64(data, 8 * k) + load_i64(args, 8))


class Aval:
    """Stands for a core aval."""


def structured() -> Program:
    """A copy, then three rounds of a loop with a switch, each with a call over a range."""
    b = ProgramBuilder(1, [(Aval(), 800)])
    b.copy(b.output(0), b.input(0), 800)
    with b.loop(0, 3) as turn, b.switch(turn) as block:
        with block.case():
            b.call(add_to.address, [b.output(0), 1])
        with block.case():
            b.call(add_to.address, [b.output(0), 10], 0, 100, 10)
    b.host(lambda: None)
    return b.build()


def result(program: Program) -> list[int]:
    x = wrap_numpy(Aval(), np.arange(100))
    return as_numpy(run_program(program, [x])[0], np.dtype(np.int64), (100,)).tolist()


def test_what_is_timed_gives_the_same() -> None:
    program = structured()
    want, code = result(program), program.words()
    assert want[:3] == [21, 21, 22]
    timing = Timing(1000)
    timing.start()
    try:
        assert [result(program) for _ in range(4)] == 4 * [want]
        assert program.words() != code
    finally:
        timing.stop()
    assert program.words() == code and result(program) == want
    steps = [s for s in timing.steps() if s.program is program]
    assert [(s.kind, s.number, s.turns) for s in steps] == [
        ("program", None, 4),
        ("copy", 0, 4),
        ("call", 0, 4),
        ("call", 1, 8),
        ("host", 0, 4),
    ]
    assert steps[2].kernel == steps[3].kernel == add_to.address
    assert steps[0].ns >= sum(s.ns for s in steps[1:]) > 0
    assert steps[3].parts >= 8 and steps[3].busy > 0 and steps[2].parts == 0


def test_events_say_when_and_on_which_thread() -> None:
    program, timing, before = structured(), Timing(1000), threads.get_num_threads()
    threads.set_num_threads(2)
    timing.start()
    try:
        result(program)
    finally:
        timing.stop()
        threads.set_num_threads(before)
    numbers = [i for i, s in enumerate(timing.steps()) if s.program is program]
    events = [e for e in timing.events() if e.step in numbers]
    parts = [e for e in events if e.is_part]
    (whole,) = [e for e in events if e.step == numbers[0]]
    assert len(events) - len(parts) == 1 + 1 + 1 + 2 + 1
    assert len(parts) == sum(s.parts for s in timing.steps() if s.program is program) >= 2
    assert all(whole.begin <= e.begin <= e.end <= whole.end for e in events)
    assert timing.lost == 0 and len(timing.steps()) < PART


def test_a_log_that_is_full_counts_what_it_loses() -> None:
    program, timing = structured(), Timing(3)
    timing.start()
    result(program)
    timing.stop()
    assert len(list(timing.events())) == 3 and timing.lost > 3


def test_programs_made_meanwhile_and_for_other_sizes() -> None:
    def pattern() -> Pattern:
        b = ProgramBuilder(1, [(Aval(), 800)])
        b.copy(b.output(0), b.input(0), Varying(800, "bytes"))
        return Pattern(b.build(), [i for i, _ in b.varying()])

    earlier = pattern()
    sized = earlier.program([(Aval(), 800)], [800])
    timing = Timing()
    timing.start()
    later = pattern()
    during = later.program([(Aval(), 800)], [800]), earlier.program([(Aval(), 800)], [800])
    for p in (sized, *during):
        assert result(p) == list(range(100))
    timing.stop()
    turns = {id(s.program): s.turns for s in timing.steps() if s.number is None}
    assert turns[id(earlier.original)] == 2 and turns[id(later.original)] == 1
    for p in (sized, *during, later.program([(Aval(), 800)], [800])):
        assert result(p) == list(range(100))
    assert {id(s.program): s.turns for s in timing.steps() if s.number is None} == turns


def test_programs_keep_no_log() -> None:
    program, timing = structured(), Timing(1000)
    timing.start()
    result(program)
    timing.stop()
    events = len(list(timing.events()))
    assert events and program.timed.log is None and not program.timed.records[:, 5].any()
    result(program)
    assert len(list(timing.events())) == events


def test_what_was_taken_stays_as_it_was() -> None:
    program = structured()
    profiles = []
    for count in (3, 1):
        profiles.append(Timing(1000))
        profiles[-1].start()
        for _ in range(count):
            result(program)
        profiles[-1].stop()
    turns = [[s.turns for s in p.steps() if s.program is program] for p in profiles]
    assert turns == [[3, 3, 3, 6, 3], [1, 1, 1, 2, 1]]
    assert len(list(profiles[0].events())) > len(list(profiles[1].events()))


def test_one_at_a_time() -> None:
    timing = Timing()
    timing.start()
    try:
        with pytest.raises(RuntimeError, match="already"):
            Timing().start()
    finally:
        timing.stop()


def test_code_with_stamps_is_no_program_for_the_verifier() -> None:
    program = structured()
    timed = Timed(program)
    assert Op.STAMP in timed.code.tolist()
    with pytest.raises(ProgramError, match="unknown operation"):
        verify(timed.code, program.frame, program.n_out)


def test_who_runs_a_program_is_told_before_it_runs() -> None:
    program, told = structured(), []
    want = result(program)
    timing = Timing(0, told.append)
    timing.start()
    try:
        assert [result(program) for _ in range(3)] == 3 * [want]
    finally:
        timing.stop()
    places = {t.program: k for k, t in enumerate(timing.steps()) if t.number is None}
    assert told.count(places[program]) == 3
    before = len(told)
    assert result(program) == want and len(told) == before
