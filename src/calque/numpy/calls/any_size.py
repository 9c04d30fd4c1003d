"""Entries of library functions for arguments of any size: with the second shape of its arguments a
function is traced with free sizes.

Its steps are kernels and copies that serve every shape (`native.eager.sizes`), so nothing is
compiled; a new shape changes words only. What cannot be had so (a size that decides how much Python
does) stays with an entry for each shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from calque.core.avals import ShapedArray
from calque.core.jaxprs import ClosedJaxpr
from calque.core.lazy import LazyModule
from calque.core.trace import trace_to_jaxpr
from calque.transforms.engines.specialiser import (
    REMEMBERED,
    CallCounts,
    Families,
    GenericProgram,
    SizedCall,
    Specialiser,
    new_families,
)
from calque.transforms.jit.teaching import Lesson, result_of, teach

eager_sizes = LazyModule("calque.native.eager.sizes")

# calls with the same sizes after which they get an entry of their own: to trace a function takes as
# long
HOT_AFTER: Final = 20
# a function of arrays, and a cell for the structure of its result
Flat = Callable[[], tuple[Callable[..., list[Any]], list[Any]]]


class LibraryCall(SizedCall):
    """A call of a library function."""

    __slots__ = ("arguments", "flat", "function", "number")

    def __init__(
        self,
        families: Families,
        function: Any,
        flat: Flat,
        arguments: Any,
        key: Any,
    ) -> None:
        super().__init__(families.of(key_of(key)), arguments.avals, arguments.sizes)
        self.function, self.flat, self.arguments = function, flat, arguments
        self.number: int = key[0]  # the epoch


def traced(call: LibraryCall, program: GenericProgram) -> tuple[ClosedJaxpr, Any]:
    """The program, and how the call path builds the result."""
    program.symbols.pins = True
    fun, tree = call.flat()
    return trace_to_jaxpr(fun, program.avals(call.avals)), result_of(tree[0])


def compiled(call: LibraryCall, program: GenericProgram) -> Any:
    closed, _ = program.traced
    patient = len(call.family.seen) < REMEMBERED
    return eager_sizes.executable(closed, program.symbols, patient)


def learn(call: LibraryCall, program: GenericProgram, choose: Callable[..., Any]) -> None:
    _, result = program.traced
    descriptions, names = call.arguments.descriptions, tuple(call.arguments.kwargs)
    generic = program.executable.program
    lesson = Lesson(descriptions, generic, result, names, choose=choose)
    teach(call.function, lesson, call.number)


SPECIALISER: Final = Specialiser(traced, compiled, learn, tries_again=True)


class AnySize:
    """What a library function knows of the sizes that it was called with."""

    def __init__(self) -> None:
        self.families, self.counts = new_families(), CallCounts(HOT_AFTER)

    def is_hot(self, key: Sequence[Any], sizes: tuple[int, ...]) -> bool:
        """Whether an entry for all sizes served these ones so often that they shall have one of
        their own. It is asked once."""
        family = self.families.get(key_of(key))
        for program in () if family is None else family.programs:
            values = program.values(sizes)
            if values is not None and self.counts.is_hot(program, values):
                self.counts.count(program, values)
                return True
        return False

    def teach(self, call: LibraryCall) -> bool:
        """Add an entry for all sizes, if it is time for that and can be done."""
        found = SPECIALISER.program_for(call)
        if found is None:
            return False
        SPECIALISER.teach(call, found[0], self.counts)
        return True


def key_of(key: Sequence[Any]) -> Any:
    """The key of a call, without the sizes."""
    return tuple([x.kind if type(x) is ShapedArray else x for x in key])
