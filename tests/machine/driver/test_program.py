"""A finished program: what is kept of it, what it holds alive, how it is run from Python."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from calque.machine import memory
from calque.machine.driver.builder import ProgramBuilder, ProgramError
from calque.machine.driver.interpreter import Op
from calque.machine.driver.program import Program, made


class Aval:
    """Stands for a core aval."""


def constant() -> tuple[Any, Program]:
    """A table, and a program that gives a copy of it."""
    table = np.arange(8, dtype=np.int64)
    builder = ProgramBuilder(1, [(Aval(), 64)])
    builder.copy(builder.output(0), builder.const(table), 64)
    return table, builder.build(keepalive=[table])


def test_what_is_read_from_it() -> None:
    avals = Aval(), Aval()
    b = ProgramBuilder(3, [(avals[0], 64), (avals[1], -1)])
    b.fill(b.arena(64, 200), 200)
    block = b.owned()
    b.alloc(block, b.arith(Op.ADD, 8, 8))
    b.give(1, block)
    program = b.build()
    assert (program.n_in, program.n_out, program.flags) == (3, 2, 0)
    assert program.outputs == ((avals[0], 64), (avals[1], -1))
    assert program.arena_bytes == b.arena_bytes >= 264
    header, template, places = program.words()
    assert header[:2] == [3, 2] and places == [64]
    assert set(template[program.first_immediate :]) == {0, 8, 200}  # the numbers of its steps
    assert repr(program) == f"<Program 3 -> 2, {len(program.code)} words>"
    assert program.text().startswith("program: 3 in, 2 out [64 B, ?]")


def test_nothing_of_it_can_be_written() -> None:
    _, program = constant()
    for array in (program.code, program._header, program._template, *program._arrays):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_constants_and_avals_live_as_long_as_it_does() -> None:
    class Table(np.ndarray):
        pass

    table = np.arange(8, dtype=np.int64).view(Table)
    aval = Aval()
    gone = [weakref.ref(table), weakref.ref(aval)]
    b = ProgramBuilder(0, [(aval, 64)])
    b.copy(b.output(0), b.const(table), 64)
    program = b.build()
    del table, aval, b
    gc.collect()
    out = np.zeros(8, np.int64)
    assert program.run([], [out.ctypes.data]) == [out.ctypes.data]
    assert out.tolist() == list(range(8))
    del program
    gc.collect()
    assert [reference() for reference in gone] == [None, None]


@pytest.mark.usefixtures("no_garbage")
def test_results_of_unknown_size_belong_to_the_caller() -> None:
    b = ProgramBuilder(1, [(Aval(), -1), (Aval(), -1)])
    block = b.owned()
    b.alloc(block, b.load(b.input(0), "i64"))
    b.fill(block, 24, 5, 8)
    b.give(1, block)
    program = b.build()
    before = memory.stats().live_blocks
    size = np.array([24])
    never, given = program.run([size.ctypes.data], [None, None])
    assert never == 0 and memory.stats().live_blocks == before + 1
    assert np.frombuffer(memory.view(given, 24), np.int64).tolist() == [5, 5, 5]
    memory.free(given)
    assert memory.stats().live_blocks == before


def test_wrong_numbers_of_pointers_are_refused() -> None:
    _, program = constant()
    with pytest.raises(ProgramError, match="takes 1 inputs and 1 outputs, got 0 and 1"):
        program.run([], [1])
    with pytest.raises(ProgramError, match="takes 1 inputs and 1 outputs, got 1 and 2"):
        program.run([1], [1, 1])
    for nothing in (0, None):
        with pytest.raises(ProgramError, match="output 0 of 64 bytes has no memory"):
            program.run([1], [nothing])
    empty = ProgramBuilder(0, [(Aval(), 0)]).build()
    assert empty.run([], [None]) == [0]  # needs none


def test_bad_words_are_refused_when_it_is_made() -> None:
    _, good = constant()
    code = good.code.copy()
    code[0] = 1 << 40
    with pytest.raises(ProgramError):
        Program(
            *(code, good.frame, good._template.copy(), good._offsets.copy(), 0),
            *(good.outputs, [], 0, good.text),
        )


def test_whoever_listens_is_told_of_each() -> None:
    told: list[Any] = []
    made.add(told.append)
    try:
        _, program = constant()
    finally:
        made.remove(told.append)
    constant()
    assert told == [program] and told[0].handle == program._header.ctypes.data
