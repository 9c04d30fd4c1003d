"""Programs as plain data, and back: what another process can use, that calls code by name and reads
arrays that it is given anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.machine.driver.program import Places, Program
from calque.machine.driver.verify import Frame

Named = tuple[int, object]  # the address of code, and the object that keeps it in memory


def as_data(program: Program, arrays: Sequence[np.ndarray]) -> tuple[Any, ...] | None:
    """A program in numbers, bytes and texts; None where it means something in this process only,
    or reads other arrays than these."""
    places = program.places
    if places is None:
        return None
    which = {id(a): k for k, a in enumerate(arrays)}
    constants = [which.get(id(a)) for a in places.arrays]
    if None in constants:
        return None
    frame, code = program.frame, program.code.copy()
    template = np.array(program.words()[1], np.int64)
    code[[at for at, _ in places.calls]] = 0  # addresses mean nothing elsewhere
    first = _first_constant(frame)
    template[first : first + len(constants)] = 0
    return (
        code.tobytes(),
        (tuple(frame.starts.items()), frame.words, frame.args),
        template.tobytes(),
        np.array(program.words()[2], np.int64).tobytes(),
        program.arena_bytes,
        program.flags,
        tuple(map(tuple, program.donated)),
        places.calls,
        tuple(constants),
    )


def _first_constant(frame: Frame) -> int:
    """Where the addresses of arrays begin in the template."""
    return frame.starts["const"] - frame.starts["own"]


def from_data(
    data: tuple[Any, ...],
    outputs: Sequence[tuple[Any, int]],
    arrays: Sequence[np.ndarray],
    code_of: Callable[[str], Named | None],
    text: Callable[[], str],
) -> Program | None:
    """The program that was `as_data`, verified; None where code is missing that it calls."""
    code_bytes, (starts, words, args), template_bytes, offsets, arena, flags, donated = data[:7]
    calls, constants = data[7:]
    code = np.frombuffer(code_bytes, np.int64).copy()
    template = np.frombuffer(template_bytes, np.int64).copy()
    frame = Frame(dict(starts), words, args)
    owners: dict[str, Named] = {}
    for at, name in calls:
        named = owners.get(name)
        if named is None:
            named = code_of(name)
            if named is None:
                return None
            owners[name] = named
        code[at] = named[0]
    given = [arrays[k] for k in constants]
    first = _first_constant(frame)
    template[first : first + len(given)] = [a.ctypes.data for a in given]
    return Program(
        code,
        frame,
        template,
        np.frombuffer(offsets, np.int64).copy(),
        arena,
        outputs,
        [*(owner for _, owner in owners.values()), *given],
        flags,
        text,
        donated,
        Places(tuple(calls), tuple(given)),
    )
