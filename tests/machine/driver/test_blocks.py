"""Loops with a condition and choices: when they leave, what they jump to, what they write down."""

from __future__ import annotations

import numpy as np
import pytest

from calque.machine.driver.builder import ProgramBuilder, ProgramError
from calque.machine.driver.interpreter import Op
from calque.machine.driver.program import Program


def run(program: Program, *inputs: np.ndarray) -> None:
    program.run([array.ctypes.data for array in inputs], [])


def noting() -> tuple[ProgramBuilder, list[tuple[int, ...]]]:
    return ProgramBuilder(1, []), []


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_a_loop_leaves_at_the_first_zero_byte(turns: int) -> None:
    flags = np.array([7] * turns + [0, 1, 1], np.uint8)
    b, seen = noting()
    flag, at = b.slot(), b.reg()
    b.move(at, 0)
    with b.while_() as block:
        b.address(flag, b.input(0), at, 1)
        block.check(flag)
        b.host(lambda i: seen.append((i,)), [at])
        b.arith(Op.ADD, at, 1, at)
    run(b.build(), flags)
    assert seen == [(i,) for i in range(turns)]


def test_one_byte_is_checked_where_the_offset_says() -> None:
    b, seen = noting()
    flag = b.input(0)
    with b.while_() as block:
        block.check(flag, 3)
        b.host(lambda: seen.append(()))
        b.store(flag, 0, "i8", 3)  # the bytes around it stay what they are
    program = b.build()
    flags = np.array([1, 1, 0, 9, 1, 1], np.uint8)
    run(program, flags)
    assert seen == [()] and flags.tolist() == [1, 1, 0, 0, 1, 1]
    run(program, flags)
    assert len(seen) == 1 and "leave unless in0[3]" in program.text()


def test_any_of_several_checks_leaves() -> None:
    for zero, want in ((0, []), (1, ["first"])):
        b, seen = noting()
        with b.while_() as block:
            block.check(b.input(0))
            b.host(lambda seen=seen: seen.append("first"))
            block.check(b.input(0), 1)
            b.host(lambda seen=seen: seen.append("second"))
        flags = np.ones(2, np.uint8)
        flags[zero] = 0
        run(b.build(), flags)
        assert seen == want


def test_a_loop_within_a_loop_leaves_only_itself() -> None:
    b, seen = noting()
    outer, inner = b.arena(0, 1), b.arena(64, 1)
    rows, columns = b.reg(), b.reg()
    b.move(rows, 0)
    with b.while_() as around:
        b.store(outer, b.arith(Op.LT, rows, 3), "i8")
        around.check(outer)
        b.move(columns, 0)
        with b.while_() as block:
            b.store(inner, b.arith(Op.LT, columns, rows), "i8")
            block.check(inner)
            b.host(lambda *at: seen.append(at), [rows, columns])
            b.arith(Op.ADD, columns, 1, columns)
        b.arith(Op.ADD, rows, 1, rows)
    run(b.build(), np.zeros(1))
    assert seen == [(i, j) for i in range(3) for j in range(i)]


@pytest.mark.parametrize("count", [1, 2, 4])
def test_just_one_case_runs_and_then_what_follows(count: int) -> None:
    for index in range(-2, count + 2):
        b, seen = noting()
        with b.switch(b.arith(Op.ADD, index, 0)) as block:
            for k in range(count):
                with block.case():
                    b.host(lambda k: seen.append((k,)), [k])
        b.host(lambda: seen.append(("after",)))
        run(b.build(), np.zeros(1))
        assert seen == [(min(max(index, 0), count - 1),), ("after",)]


def test_cases_may_be_empty_or_choose_again() -> None:
    b, seen = noting()
    with b.loop(0, 3) as i, b.loop(0, 2) as j, b.switch(i) as block:
        with block.case():
            pass
        with block.case(), b.switch(j) as within:
            for k in range(2):
                with within.case():
                    b.host(lambda *at: seen.append(at), [i, j, 10 + k])
        with block.case():
            b.host(lambda *at: seen.append(at), [i, j])
    program = b.build()
    run(program, np.zeros(1))
    assert seen == [(1, 0, 10), (1, 1, 11), (2, 0), (2, 1)]
    assert [line.strip() for line in program.text().splitlines() if "case" in line] == [
        *("case 0:", "case 1:", "case 0:", "case 1:", "case 2:")
    ]


def test_blocks_that_cannot_end_are_refused() -> None:
    b = ProgramBuilder(0, [])
    with pytest.raises(ProgramError, match="never ends"), b.while_():
        pass
    with pytest.raises(ProgramError, match="without cases"), b.switch(b.reg()):
        pass


def test_conditions_of_other_programs_are_refused() -> None:
    b, other = ProgramBuilder(1, []), ProgramBuilder(3, [])
    with pytest.raises(ProgramError, match="not of this program"), b.while_() as block:
        block.check(other.input(2))
    with pytest.raises(ProgramError, match="neither a register"), b.while_() as block:
        block.check(b.input(0), 1.5)  # type: ignore[arg-type]
