"""Programs as plain data, and back: what another process can use, that calls code by name and reads
arrays that it is given anew."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

import numpy as np

from calque.machine.driver.program import Places, Program
from calque.machine.driver.verify import Frame

Named = tuple[int, object]  # the address of code, and the object that keeps it in memory

_OWN_BYTES: Final = 1 << 20  # of arrays that a program was planned with, tables of transforms


def as_data(
    program: Program, arrays: Sequence[np.ndarray], numbers: Sequence[Hashable] = ()
) -> tuple[Any, ...] | None:
    """A program in numbers, bytes and texts; None where it means something in this process only,
    or reads many bytes beside these arrays, which are given to it anew. So are these numbers."""
    places = program.places
    if places is None:
        return None
    which = {id(a): k for k, a in enumerate(arrays)}
    own = [a for a in places.arrays if a is not None and id(a) not in which]
    if sum([a.nbytes for a in own]) > _OWN_BYTES or any(a.dtype.kind not in "biuf" for a in own):
        return None
    constants = [
        which[id(a)] if id(a) in which else (a.dtype.str, a.shape, a.tobytes())
        for a in places.arrays
        if a is not None
    ]
    frame, code = program.frame, program.code.copy()
    template = np.array(program.words()[1], np.int64)
    code[[at for at, _ in places.calls]] = 0  # addresses mean nothing elsewhere
    first = _first_constant(frame)
    template[first : first + len(constants)] = 0
    template[_immediates(frame, places.externals)] = 0
    which_number = {number: k for k, number in enumerate(numbers)}
    if any([number not in which_number for _, number in places.numbers]):
        return None
    template[_immediates(frame, places.numbers)] = 0
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
        places.externals,
        tuple([(i, which_number[number]) for i, number in places.numbers]),
    )


def _immediates(frame: Frame, externals: Sequence[tuple[int, Any]]) -> list[int]:
    """Where these immediates stand in the template."""
    return [frame.starts["imm"] - frame.starts["own"] + i for i, _ in externals]


def _first_constant(frame: Frame) -> int:
    """Where the addresses of arrays begin in the template."""
    return frame.starts["const"] - frame.starts["own"]


def from_data(
    data: tuple[Any, ...],
    outputs: Sequence[tuple[Any, int]],
    arrays: Sequence[np.ndarray],
    code_of: Callable[[str], Named | None],
    text: Callable[[], str],
    numbers: Sequence[tuple[Hashable, int]] = (),
) -> Program | None:
    """The program that was `as_data`, verified, with these numbers and their words; None where code
    is missing that it calls."""
    code_bytes, (starts, words, args), template_bytes, offsets, arena, flags, donated = data[:7]
    calls, constants, externals, open_numbers = data[7:]
    code = np.frombuffer(code_bytes, np.int64).copy()
    template = np.frombuffer(template_bytes, np.int64).copy()
    frame = Frame(dict(starts), words, args)
    owners: dict[str, Named] = {}
    for name in {name for _, name in (*calls, *externals)}:
        named = code_of(name)
        if named is None:
            return None
        owners[name] = named
    for at, name in calls:
        code[at] = owners[name][0]
    for at, (_, name) in zip(_immediates(frame, externals), externals, strict=True):
        template[at] = owners[name][0]
    for at, (_, k) in zip(_immediates(frame, open_numbers), open_numbers, strict=True):
        template[at] = numbers[k][1]
    given = [arrays[k] if isinstance(k, int) else _array(*k) for k in constants]
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
        Places(
            tuple(calls),
            tuple(given),
            tuple(externals),
            tuple([(i, numbers[k][0]) for i, k in open_numbers]),
        ),
    )


def _array(dtype: str, shape: tuple[int, ...], data: bytes) -> np.ndarray:
    return np.frombuffer(data, dtype).reshape(shape).copy()
