"""Programs run without Python, and what takes the place of threads, signals and host calls."""

import ctypes

import numpy as np
import pytest

from calque.machine import memory
from calque.machine.driver import standalone
from calque.machine.driver.builder import Op, ProgramBuilder
from calque.machine.driver.interpreter import DIVIDED_BY_ZERO, OK

TASK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
SHARE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int64] * 3
)


def run(program, inputs, outputs, places=0, values=0, arena=None):
    given, results = (
        (ctypes.c_void_p * max(len(arrays), 1))(*[a.ctypes.data for a in arrays])
        for arrays in (inputs, outputs)
    )
    arena = program.arena_bytes if arena is None else arena
    return standalone.library_run(
        program.handle, ctypes.addressof(given), ctypes.addressof(results), places, values, arena
    )


@pytest.mark.parametrize("nbytes", [80, 80_000])
def test_a_program_runs_with_an_arena_near_and_far(nbytes):
    b = ProgramBuilder(1, [(None, nbytes)])
    place = b.arena(0, nbytes)
    b.copy(place, b.input(0), nbytes)
    b.copy(b.output(0), place, nbytes)
    x = np.arange(nbytes, dtype=np.uint8)
    y = np.zeros_like(x)
    assert run(b.build(), [x], [y]) == OK
    assert (x == y).all()


def test_words_that_depend_on_sizes_are_put_into_the_frame():
    b = ProgramBuilder(1, [(None, 8)])
    first, second = b.arena(0, 8), b.arena(64, 8)
    b.copy(first, b.input(0), 8)
    b.fill(second, 8, 1234, 8)
    b.copy(b.output(0), second, 8)
    program = b.build()
    at = program.words()[1].index(1234) + program.frame.starts["own"]
    places = np.array([1, 8 * at], np.int64)
    values = np.array([64, 0, 77], np.int64)  # the places of the arena are exchanged
    x, y = np.array([5]), np.array([0])
    assert run(program, [x], [y], places.ctypes.data, values.ctypes.data, 128) == OK
    assert y[0] == 77
    assert run(program, [x], [y]) == OK
    assert y[0] == 1234


@pytest.mark.usefixtures("no_garbage")
def test_a_failure_is_a_status_and_blocks_are_given_back():
    b = ProgramBuilder(1, [(None, 8)])
    block = b.owned()
    b.alloc(block, 5000)
    zero = b.load(b.input(0), "i64")
    b.store(b.output(0), b.arith(Op.FLOORDIV, 7, zero), "i64")
    program, x, y = b.build(), np.array([0]), np.array([0])
    before = memory.stats().live_blocks
    assert run(program, [x], [y]) == DIVIDED_BY_ZERO
    assert memory.stats().live_blocks == before
    x[0] = 2
    assert run(program, [x], [y]) == OK
    assert y[0] == 3


def test_loops_run_without_looking_at_a_clock():
    """For many times as long as a loop in a process of Python runs before it looks at signals, for
    which it would give up the GIL."""
    turns = 30_000_000
    b = ProgramBuilder(1, [(None, 8)])
    total = b.load(b.input(0), "i64")
    with b.loop(0, turns) as i:
        b.arith(Op.ADD, total, i, dst=total)
    b.store(b.output(0), total, "i64")
    y = np.array([0])
    assert run(b.build(), [np.array([1])], [y]) == OK
    assert y[0] == 1 + turns * (turns - 1) // 2


@pytest.fixture
def shared():
    """Parts of ranges, as the host was asked to share them."""
    asked = []

    def share(context, task, args, begin, end, grain):
        asked.append((context, begin, end, grain))
        TASK(task)(args, begin, begin + grain)
        TASK(task)(args, begin + grain, end)

    kept = SHARE(share)
    standalone.library_share(ctypes.cast(kept, ctypes.c_void_p).value, 42, 2)
    yield asked
    standalone.library_share(None, None, 1)


def parts_of(begin, end, grain):
    parts = []
    task = TASK(lambda _, first, last: parts.append((first, last)))
    address = ctypes.cast(task, ctypes.c_void_p).value
    standalone.calque_parallel_for(address, 0, begin, end, grain)
    return parts


def test_the_host_shares_long_ranges(shared):
    assert parts_of(0, 100, 10) == [(0, 10), (10, 100)]
    assert shared == [(42, 0, 100, 10)]
    assert standalone._threads.read() == 2
    assert parts_of(0, 19, 10) == [(0, 19)]
    assert parts_of(0, 100, 0) == [(0, 100)]
    assert parts_of(5, 5, 1) == []
    assert len(shared) == 1


def test_without_a_host_the_caller_does_all():
    assert parts_of(0, 100, 10) == [(0, 100)]
    assert standalone._threads.read() == 1


def test_a_task_that_shares_again_does_it_all(shared):
    inner = []
    task = TASK(lambda *_: inner.append(parts_of(0, 100, 10)))
    standalone.calque_parallel_for(ctypes.cast(task, ctypes.c_void_p).value, 0, 0, 4, 1)
    assert inner == [[(0, 100)], [(0, 100)]]
    assert len(shared) == 1


def test_fills_are_those_of_the_interpreter():
    room = np.zeros(10, np.int32)
    standalone.interp_fill(room.ctypes.data, 36, 7, 4)
    assert room.tolist() == [7] * 9 + [0]
