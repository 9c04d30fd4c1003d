"""Calls of compiled programs from Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from calque.core.arrays import to_array
from calque.core.avals import ShapedArray, nbytes
from calque.core.backends import MemoryStats
from calque.machine import huge_pages
from calque.machine.call.functions import run_program
from calque.machine.driver.program import Program
from calque.machine.state import process

# Told of every program that is compiled, or found compiled: whoever profiles wants its plan.
compiled: Final = process.listeners("programs compiled")


class Callable(Protocol):
    """A program with the types of its arguments and results."""

    in_avals: Sequence[ShapedArray]
    out_avals: Sequence[ShapedArray]
    program: Program


def call_program(e: Callable, args: Sequence[Any]) -> list[Any]:
    """Run on arrays (or what can become arrays) of exactly the avals of the program; gives
    arrays."""
    arrays = [to_array(a) for a in args]
    for a, aval in zip(arrays, e.in_avals, strict=True):
        if a.aval.shape != aval.shape or a.aval.dtype != aval.dtype:
            raise TypeError(
                f"a program compiled for {aval.str_short()} was called with {a.aval.str_short()}"
            )
    if e.program.ran:
        return run_program(e.program, arrays)
    with huge_pages.FirstRun():
        out = run_program(e.program, arrays)
    e.program.ran = True
    return out


def memory_of(e: Callable, taken: Sequence[int]) -> MemoryStats:
    """What a program takes; `taken` are the results that take the memory of arguments."""
    return MemoryStats(
        sum(map(nbytes, e.in_avals)),
        sum(map(nbytes, e.out_avals)),
        int(e.program.arena_bytes),
        sum(nbytes(e.out_avals[k]) for k in taken),
    )
