"""Target machines of LLVM's: each thread that compiles has some for itself, which others take when
it is done."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from calque.machine.code import target
from calque.machine.state import process

LEVELS: Final = 3  # of code that is generated where nothing else is asked for

# by level of code generation and how much LLVM had been told, eight at most; one for each thread
# that has compiled with the others
_idle: Final[dict[tuple[int, int], deque[Any]]] = process.container("LLVM's target machines", {})


@contextmanager
def one_for(opt: int) -> Iterator[Any]:
    """A `with` block that has a target machine of an optimisation level for itself; the linker owns
    another, since it takes the one it is given."""
    machine = take(opt)
    yield machine
    give_back(machine, opt)


def take(opt: int) -> Any:
    """A target machine that nobody uses."""
    if not target.is_foreign():
        with suppress(KeyError, IndexError):
            return _idle[opt, len(target.options)].pop()
    return target.create_machine(opt)


def give_back(machine: Any, opt: int) -> None:
    """Let others use it, unless it is for another processor."""
    if not target.is_foreign():
        _idle.setdefault((opt, len(target.options)), deque()).append(machine)


def take_all() -> list[Any]:
    """One of each level."""
    return [take(level) for level in range(LEVELS)]


def give_back_all(machines: Sequence[Any]) -> None:
    """Let others use them."""
    for level, machine in enumerate(machines):
        give_back(machine, level)
