"""What a program needs to run without a process of Python: the interpreter, the memory, and the
routines that it calls, as images to be put into a library."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from calque.machine import memory, threads
from calque.machine.code import image
from calque.machine.code.shared_object import Table
from calque.machine.driver import stamps, standalone
from calque.machine.lang.reach import reachable
from calque.machine.lang.types import Cell, Function, Var
from calque.machine.lang.unit import Unit
from calque.machine.routines import scratch
from calque.machine.routines.sort import network
from calque.native import routines

_MOST: Final = 1 << 46  # bytes in one block
_IDLE: Final = 1 << 28  # bytes that are kept for later calls
_PIECES: Final = "library_network"
# words that tell a process of Python what it has
_VALUES: Final[dict[str, int | str]] = {
    "memory_limit": _MOST,
    "memory_idle_limit": _IDLE,
    "network_pieces": _PIECES,
}
# what the host of a library stands for
_REPLACED: Final = (stamps.unit, threads.unit)
# functions that every process has, and those of C's mathematical library that LLVM calls for
# processors without an instruction for them
_C: Final = "memcpy memmove memset posix_memalign free mmap munmap madvise sched_yield pthread_self"
_ROUNDING: Final = "fma floor ceil trunc rint nearbyint roundeven fmod sqrt"
MATH: Final = dict.fromkeys(
    [f"{name}{kind}" for name in _ROUNDING.split() for kind in ("", "f")], "libm.so.6"
)
SYSTEM: Final = frozenset((*_C.split(), *MATH))


class Runtime(NamedTuple):
    """Images, tables, and the words with which their data begin."""

    images: list[bytes]
    tables: list[Table]
    values: dict[str, int | str]


def runtime(names: Iterable[str]) -> Runtime:
    """All that a program that calls these routines needs beside its kernels."""
    found = units([routines.function(name).unit for name in names])
    made = Runtime([as_image(u.code()) for u in found], [], {})
    for u in found:
        for g in u.globals:
            if isinstance(g, Cell):
                made.values[g.name] = _value(g)
    if network.unit in found:
        code, pieces = network.pieces()
        made.images.append(as_image(code))
        places = [(8 * k, name, 0) for k, name in enumerate(pieces) if name is not None]
        made.tables.append(Table(_PIECES, bytes(8 * len(pieces)), places))
    return made


def units(first: Iterable[Unit]) -> list[Unit]:
    """The units that run programs, and these, with all whose functions or data they use."""
    found: list[Unit] = []
    todo = [*first, memory.unit, scratch.unit, standalone.host, standalone.unit]
    while todo:
        unit = todo.pop()
        if unit in found or unit in _REPLACED:
            continue
        found.append(unit)
        todo += [item.unit for item in reachable(unit.functions) if _is_linked(item)]
    return found


def _is_linked(item: Any) -> bool:
    """Whether this stands in the code of its own unit alone."""
    return isinstance(item, (Var, Cell)) or (isinstance(item, Function) and item.exported)


def _value(cell: Cell) -> int | str:
    known = _VALUES.get(cell.name)
    if known is not None:
        return known
    return int(cell.value() if callable(cell.value) else cell.value)


def as_image(code: bytes) -> bytes:
    """Code as it is placed in memory; also where the process itself links with LLVM."""
    made = code if image.is_image(code) else image.image_of(code)
    if made is None:
        raise NotImplementedError(
            "export_library: LLVM gave an object that calque cannot place itself; please report it"
        )
    return made
