"""Programs made from a pattern: other words, results and places, the same code."""

from __future__ import annotations

import ctypes
import gc

import numpy as np
import pytest

from calque.machine.call.functions import run_program
from calque.machine.driver.builder import ProgramBuilder, ProgramError, Varying
from calque.machine.driver.sizes import Pattern, SizedProgram
from calque.machine.objects.array_type import as_numpy, wrap_numpy


class Aval:
    """Stands for a core aval."""


def copying(temporary: bool = False) -> Pattern:
    """Copies its argument, by way of the arena or not; how much, and what is filled behind it,
    varies."""
    b = ProgramBuilder(1, [(Aval(), 16)])
    if temporary:
        other, place = b.arena(0, 64), b.arena(64, 64)
        b.fill(other, Varying(16, "bytes"), 7)
        b.copy(place, b.input(0), Varying(16, "bytes"))
        b.copy(b.output(0), place, Varying(16, "bytes"))
    else:
        b.copy(b.output(0), b.input(0), Varying(16, "bytes"))
    return Pattern(b.build(), [i for i, _ in b.varying()])


def run(program: SizedProgram, n: int) -> list[float]:
    x = wrap_numpy(Aval(), np.arange(n, dtype=np.float32))
    return as_numpy(run_program(program, [x])[0], np.dtype("f4"), (n,)).tolist()


@pytest.mark.parametrize("temporary", [False, True])
def test_sizes(temporary: bool) -> None:
    pattern = copying(temporary)
    programs = []
    for n in (1, 4, 5, 3000, 100_000):
        aval, room = Aval(), -(-4 * n // 64) * 64
        programs.append(
            pattern.program(
                [(aval, 4 * n)], [4 * n], None, [0, room] if temporary else None, 2 * room
            )
        )
        assert programs[-1].n_in == programs[-1].n_out == 1 and programs[-1].outputs[0][0] is aval
        assert programs[-1].arena_bytes == (2 * room if temporary else 0)
    gc.collect()
    for program, n in zip(programs, (1, 4, 5, 3000, 100_000)):
        assert run(program, n) == list(range(n))
    assert "copy" in programs[0].text()


def test_the_original_is_not_touched() -> None:
    pattern = copying()
    before = pattern.original.words()
    assert run(pattern.program([(Aval(), 40)], [40], True), 10) == list(range(10))
    assert pattern.original.words() == before
    assert (
        pattern.program([(Aval(), 40)], [40], True).flags
        != pattern.program([(Aval(), 40)], [40], False).flags
    )


def test_what_it_points_to_lives_as_long() -> None:
    pattern = copying()
    program = pattern.program([(Aval(), 8)], [8], keepalive=[ctypes.c_int(1)])
    del pattern
    gc.collect()
    assert run(program, 2) == [0, 1]


def test_another_number_of_results_is_refused() -> None:
    with pytest.raises(ProgramError, match="results"):
        copying().program([], [4])
