"""Calls in plain Python: every call asks, programs are run through ctypes."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from calque.machine import memory
from calque.machine.call import plain as calls
from calque.machine.call.functions import (
    Jitted,
)
from calque.machine.driver.builder import ProgramBuilder
from calque.machine.objects import plain

NBYTES = 12


class Sized:
    """Stands for a core aval."""

    shape, dtype = (3,), np.dtype("float32")


def numbers(*given: float) -> Any:
    return plain.wrap_numpy(Sized(), np.array(given or (0, 1, 2), np.float32))


def listed(x: Any) -> list[float]:
    return plain.as_numpy(x, np.dtype("f4"), (3,)).tolist()


def copying(count: int = 1) -> Any:
    b = ProgramBuilder(count, [(Sized(), NBYTES)] * count)
    for k in range(count):
        b.copy(b.output(k), b.input(k), NBYTES)
    return b.build()


def donating(n_in: int, *donated: tuple[int, int | None]) -> Any:
    """Writes a nan into the middle of what it is given, and copies it to the results."""
    b = ProgramBuilder(n_in, [(Sized(), NBYTES)])
    for j, k in donated:
        b.donate(j, k, NBYTES)
        b.store(b.input(j), -1, "i32", 4)
    if all(k is None for _, k in donated):
        b.copy(b.output(0), b.input(0), NBYTES)
    return b.build()


def test_every_call_asks() -> None:
    seen: list[Any] = []
    f = calls.Jitted(lambda args, kwargs: seen.append((args, kwargs)))
    f(1, self=2)
    assert seen == [((1,), {"self": 2})]

    class Holder:
        method = f

    holder = Holder()
    holder.method(3)
    assert seen[1] == ((holder, 3), {}) and Holder.method is f
    assert holder.method.__self__ is holder
    assert calls.OpFunction(lambda args, kwargs: (args, kwargs))() == ((), {})
    for make in (calls.Jitted, calls.OpFunction):
        with pytest.raises(TypeError, match="callable"):
            make(3)
    assert calls.Jitted.__name__ == Jitted.__name__


def test_there_are_no_entries() -> None:
    f = calls.Jitted(print)
    with pytest.raises(NotImplementedError, match="no call path by machine code"):
        calls.Entry([], (), copying(), ("out", 0), 1)
    with pytest.raises(NotImplementedError, match="no call path by machine code"):
        calls.add_entry(f, None)
    calls.clear_entries(f)
    calls.drop_entries(f, copying())
    assert calls.entry_count(f) == calls.calls_served() == 0
    before = calls.epoch()
    calls.set_epoch(5)
    assert calls.epoch() == 5
    calls.set_epoch(before)


def test_runs() -> None:
    x, y = numbers(), numbers(5, 6, 7)
    program = copying(2)
    outs = calls.run_program(program, (x, y))
    assert [listed(out) for out in outs] == [[0, 1, 2], [5, 6, 7]]
    assert len({a._ptr for a in (x, y, *outs)}) == 4
    assert [out.aval for out in outs] == [aval for aval, _ in program.outputs]
    assert calls.run_program(ProgramBuilder(0, []).build(), []) == []
    for wrong in (x, [x], [x, y, x], [x, np.ones(3)], {0: x, 1: y}):
        with pytest.raises(TypeError):
            calls.run_program(program, wrong)
    plain.delete_array(y)
    with pytest.raises(RuntimeError, match=r"deleted with shape=float32\[3\]"):
        calls.run_program(program, [x, y])


@pytest.mark.usefixtures("no_garbage")
def test_errors_of_a_program_are_its_own() -> None:
    b = ProgramBuilder(1, [(Sized(), NBYTES)])
    b.fail(LookupError, "on purpose")
    before = memory.stats().live_blocks
    with pytest.raises(LookupError, match="on purpose"):
        calls.run_program(b.build(), [numbers()])
    assert memory.stats().live_blocks == before


@pytest.mark.usefixtures("no_garbage")
def test_blocks_that_a_program_gives_belong_to_the_results() -> None:
    b = ProgramBuilder(1, [(Sized(), -1), (Sized(), -1)])
    block = b.owned()
    b.alloc(block, NBYTES)
    b.copy(block, b.input(0), NBYTES)
    b.give(0, block)
    program = b.build()
    before = memory.stats().live_blocks
    given, never = calls.run_program(program, [numbers(7, 8, 9)])
    assert memory.stats().live_blocks == before + 1 and never._ptr == 0
    other = plain.share(given, Sized())
    del given
    assert listed(other) == [7, 8, 9]
    del other
    gc.collect()
    assert memory.stats().live_blocks == before


def test_arguments_that_are_given_away() -> None:
    source = np.array([1, 2, 3], np.float32)
    x, y = plain.wrap_numpy(Sized(), source), numbers(4, 5, 6)
    for target in (0, None):
        x = plain.wrap_numpy(Sized(), source)
        (out,) = calls.run_program(donating(2, (0, target)), [x, y])
        got = listed(out)
        assert got[::2] == [1, 3] and got[1] != got[1]  # a nan
        assert source.tolist() == [1, 2, 3] and listed(y) == [4, 5, 6]
        with pytest.raises(RuntimeError, match="deleted"):
            listed(x)
    assert calls.donations(donating(2, (1, 0), (0, None))) == [(1, 0, 12), (0, -1, 12)]
    assert calls.donations(copying()) == []


def test_what_is_given_away_cannot_be_used_twice() -> None:
    x = numbers()
    with pytest.raises(RuntimeError, match="donate the same buffer twice"):
        calls.run_program(donating(2, (0, None), (1, None)), [x, x])
    with pytest.raises(RuntimeError, match="was donated in the same call"):
        calls.run_program(donating(2, (0, None)), [x, x])
    assert listed(x) == [0, 1, 2]  # nothing has happened to it
