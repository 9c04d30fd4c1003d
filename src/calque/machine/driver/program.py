"""A driver program as it runs: its words, its frame, and the header that the interpreter and the
dispatcher read."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

import numpy as np

from calque.machine.driver import interpreter as interp
from calque.machine.driver.verify import Frame, ProgramError, verify
from calque.machine.state import process

# Told of every program that is made. `timed` listens while somebody profiles.
made: Final = process.listeners("programs of the driver")


class External(int):
    """An integer of the template that means something in this process only, the address of a
    function from outside: another process finds its own by the name."""

    name: str

    def __new__(cls, value: int, name: str) -> External:
        self = super().__new__(cls, value)
        self.name = name
        return self


class Places:
    """Where addresses stand in a program that another process can use: of code by its name, at
    these words; of arrays, in the order of its constants; of functions by their names, at these
    immediates. And where words stand that vary, each known by a key."""

    __slots__ = ("arrays", "calls", "externals", "numbers")

    def __init__(
        self,
        calls: tuple[tuple[int, str], ...],
        arrays: tuple[np.ndarray | None, ...],
        externals: tuple[tuple[int, str], ...] = (),
        numbers: tuple[tuple[int, Hashable], ...] = (),
    ) -> None:
        self.calls, self.arrays, self.externals = calls, arrays, externals
        self.numbers = numbers


class Program:
    """An immutable program; any number of threads may run it at once. ``handle`` is the address
    that the dispatcher and ``calque_run`` take."""

    timed: Any = None  # its timed form, once somebody has profiled it
    ran: bool = False  # whether it has its memory

    def __init__(
        self,
        code: np.ndarray,
        frame: Frame,
        template: np.ndarray,
        arena_offsets: np.ndarray,
        arena_bytes: int,
        outputs: Sequence[tuple[Any, int]],
        keepalive: Sequence[object],
        flags: int,
        text: Callable[[], str],
        donated: Sequence[tuple[int, int, int]] = (),
        places: Places | None = None,
    ) -> None:
        self.donated, self.places = tuple(donated), places
        self.code = _frozen(code)
        self.n_in = frame.starts["out"] - frame.starts["in"]
        self.outputs = tuple(outputs)
        self.arena_bytes = arena_bytes
        self.flags = flags
        self.frame = frame
        self._text = text
        self._keepalive: tuple[Any, ...] = (tuple(keepalive), tuple(aval for aval, _ in outputs))
        verify(self.code, frame, len(self.outputs))
        nbytes = _frozen(np.array([size for _, size in outputs], np.int64))
        avals = _frozen(np.array([id(aval) for aval, _ in outputs], np.int64))
        self._arrays: tuple[np.ndarray, ...] = (nbytes, avals, _frozen(arena_offsets))
        self._template, self._offsets = _frozen(template), arena_offsets
        taken = _frozen(
            np.array([len(donated), *(word for triple in donated for word in triple)], np.int64)
        )
        self._arrays += (template, taken)
        owned = frame.starts["reg"] - frame.starts["own"]
        header = [self.n_in, len(self.outputs), nbytes.ctypes.data, avals.ctypes.data, flags]
        header += [
            self.code.ctypes.data,
            8 * frame.words,
            template.ctypes.data,
            8 * frame.starts["own"],
            template.nbytes,
            owned,
        ]
        header += [
            arena_bytes,
            arena_offsets.ctypes.data,
            8 * frame.starts["arena"],
            len(arena_offsets),
            8 * frame.args,
            taken.ctypes.data,
        ]
        self._header = _frozen(np.array(header, np.int64))
        self.handle: int = self._header.ctypes.data
        made.tell(self)

    @property
    def n_out(self) -> int:
        """The number of results."""
        return len(self.outputs)

    @property
    def first_immediate(self) -> int:
        return self.frame.starts["imm"] - self.frame.starts["own"]

    def words(self) -> tuple[list[int], list[int], list[int]]:
        """The header, the template and the places in the arena, as numbers."""
        return self._header.tolist(), self._template.tolist(), self._offsets.tolist()

    def run(self, inputs: Sequence[int], outputs: Sequence[int | None]) -> list[int]:
        """Run on the addresses of inputs and results; gives the addresses of the results.

        The block of a result of unknown size (-1 bytes) is allocated by the program and belongs to
        the caller afterwards, who frees it with ``memory.free``.
        """
        if len(inputs) != self.n_in or len(outputs) != self.n_out:
            raise ProgramError(
                f"the program takes {self.n_in} inputs and {self.n_out} outputs, got {len(inputs)}"
                f" and {len(outputs)}"
            )
        for k, (address, (_, size)) in enumerate(zip(outputs, self.outputs)):
            if not address and size > 0:
                raise ProgramError(f"output {k} of {size} bytes has no memory")
        given = (ctypes.c_void_p * max(self.n_in, 1))(*inputs)
        results = (ctypes.c_void_p * max(self.n_out, 1))(*outputs)
        interp.calque_run(self.handle, ctypes.addressof(given), ctypes.addressof(results))
        return [address or 0 for address in results[: self.n_out]]

    def text(self) -> str:
        """The program, for people."""
        return self._text()

    def __repr__(self) -> str:
        return f"<Program {self.n_in} -> {self.n_out}, {len(self.code)} words>"


def _frozen(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array
