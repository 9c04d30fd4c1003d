"""Machine code that programs call and that no kernel is: the machine's own routines, and functions
of LAPACK and BLAS. Each has a name, by which another process finds its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from calque.core.lazy import LazyModule
from calque.machine.driver.program import External
from calque.machine.lang.types import Function
from calque.machine.lang.unit import begin_together

beside, sort, fft, factors, spectral, tridiagonal, lapack = (
    LazyModule("calque.machine.routines.beside"),
    LazyModule("calque.machine.routines.sort.rows"),
    LazyModule("calque.machine.routines.fft.transforms"),
    LazyModule("calque.machine.routines.linalg.factors"),
    LazyModule("calque.machine.routines.linalg.spectral"),
    LazyModule("calque.machine.routines.linalg.tridiagonal"),
    LazyModule("calque.machine.routines.linalg.lapack"),
)
_ROOMS: Final[dict[str, Callable[[str], Function]]] = {
    "beside": lambda name: getattr(beside, name),
    "sort": lambda name: getattr(sort, name),
    "fft": lambda name: fft.ROUTINES[name],
    "factors": lambda name: getattr(factors, name),
    "spectral": lambda name: getattr(spectral, name),
    "tridiagonal": lambda name: getattr(tridiagonal, name),
}
_LAPACK: Final = "lapack"


def routine(room: str, name: str) -> External:
    """A routine of the machine."""
    return External(_ROOMS[room](name).address, f"{room} {name}")


class Begun(str):
    """The name of a routine of the machine that may still be compiled by other threads: a program
    asks for its address when its words are written, and is planned meanwhile."""

    def found(self) -> External:
        """The routine, once it is there."""
        return routine(*self.split())


def begun(room: str, names: Sequence[str]) -> list[Begun]:
    """Routines of the machine; those that nobody has compiled yet are compiled side by side."""
    begin_together([_ROOMS[room](name).unit for name in names])
    return [Begun(f"{room} {name}") for name in names]


def is_library_function(text: str) -> bool:
    """Whether this is the name of a function of LAPACK or BLAS."""
    return text.partition(" ")[0] == _LAPACK


def function(text: str) -> Any:
    """The routine of the machine that has this name, as a function of its language."""
    room, _, name = text.partition(" ")
    return _ROOMS[room](name)


def library_function(name: str) -> External | int:
    """A function of LAPACK or BLAS by its whole name; 0 when it cannot be had."""
    address = lapack.function(name)
    return External(address, f"{_LAPACK} {name}") if address else 0


def by_name(text: str) -> int | None:
    """The address in this process of what has this name; None for what is no such name, or cannot
    be had."""
    room, _, name = text.partition(" ")
    if room == _LAPACK:
        return int(library_function(name)) or None
    return int(routine(room, name)) if room in _ROOMS else None
