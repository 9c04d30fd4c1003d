"""The native backend: a program in, machine code for this CPU out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from calque.core.avals import ShapedArray
from calque.core.backends import MemoryStats, Options
from calque.core.config import config
from calque.core.jaxprs import ClosedJaxpr
from calque.core.lazy import LazyModule
from calque.machine.driver.program import Program
from calque.native import stored
from calque.native.calls import call_program, compiled, memory_of
from calque.native.passes.pipeline import run as run_passes

if TYPE_CHECKING:
    from calque.native.executable import NativeExecutable

# what plans is imported by the first program that nobody has planned yet
executable = LazyModule("calque.native.executable")


class Found:
    """A compiled program that was planned before, with other numbers or by another process: it is
    planned here when somebody asks how it works. Some of its kernels were made in haste if it is
    `hasty`."""

    # what executables of other engines tell, and this one without a plan
    chosen: Sequence[Any] = ()
    copies = False

    def __init__(
        self, closed: ClosedJaxpr, options: Options, program: Program, key: stored.Key, hasty: bool
    ) -> None:
        self.closed, self.options, self.program = closed, options, program
        self.key, self.hasty = key, hasty
        self.in_avals: Sequence[ShapedArray] = closed.in_avals
        self.out_avals: Sequence[ShapedArray] = closed.out_avals
        self._planned: NativeExecutable | None = None

    @property
    def planned(self) -> NativeExecutable:
        if self._planned is None:
            self._planned = planned(self.closed, self.options)
            self._planned.key = self.key
        return self._planned

    def improved(self) -> NativeExecutable | Found:
        """The same with kernels made with care, which the first of its form may have by now."""
        return find(self.closed, self.options, self.key, hasty=False) or self.planned.improved()

    def __getattr__(self, name: str) -> Any:
        """What only a plan knows: its steps, kernels, homes."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.planned, name)

    def call(self, args: Sequence[Any]) -> list[Any]:
        return call_program(self, args)

    def as_text(self, stage: str | None = None) -> str:
        return self.planned.as_text(stage)

    def cost_analysis(self) -> dict[str, float]:
        return self.planned.cost_analysis()

    def memory_analysis(self) -> MemoryStats:
        taken = [k for _, k, _ in self.program.donated if k >= 0]
        return memory_of(self, taken)


def compile(closed: ClosedJaxpr, options: Options | None = None) -> NativeExecutable | Found:
    """The public entry."""
    options = options or Options()
    simplified = run_passes(closed)
    key = None if config.verify_kernels else stored.key_of(simplified, options)
    if key is None:
        return planned(closed, options)
    found = find(closed, options, key, options.hasty)
    if found is not None:
        return found
    made = planned(closed, options)
    made.keep(key)
    return made


def find(closed: ClosedJaxpr, options: Options, key: stored.Key, hasty: bool) -> Found | None:
    """A program that was planned before; one with kernels made in haste only for who is `hasty`."""
    made: list[Found] = []
    text = lambda: made[0].planned.program.text()  # noqa: E731
    found = stored.find(key, run_passes(closed), closed.out_avals, text)
    if found is None or (found.hasty and not hasty):
        return None
    made.append(Found(closed, options, found.program, key, found.hasty))
    compiled.tell(made[0])
    return made[0]


def planned(closed: ClosedJaxpr, options: Options) -> NativeExecutable:
    """A program that is planned in this process."""
    made: NativeExecutable = executable.NativeExecutable(closed, options)
    return made
