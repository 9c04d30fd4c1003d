"""Primitives that are compiled for their operands: after a few shapes one program serves all
sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from calque.core.avals import ShapedArray
from calque.core.backends import Options
from calque.core.config import config
from calque.core.jaxprs import ClosedJaxpr
from calque.core.trace import trace_to_jaxpr
from calque.machine.driver.sizes import SizedProgram
from calque.native.symbolic import SymbolicExecutable
from calque.transforms.engines.specialiser import (
    REMEMBERED,
    Family,
    GenericProgram,
    SizedCall,
    Specialiser,
    new_families,
)

_families: Final = new_families()


class PrimitiveCall(SizedCall):
    """A primitive on operands of some sizes."""

    __slots__ = ("equation", "name")

    def __init__(
        self,
        family: Family,
        name: str,
        equation: Callable[..., list[Any]],
        avals: Sequence[ShapedArray],
    ) -> None:
        super().__init__(family, avals, tuple([n for a in avals for n in a.shape]))
        self.name, self.equation = name, equation


def traced(call: PrimitiveCall, program: GenericProgram) -> ClosedJaxpr:
    return trace_to_jaxpr(call.equation, program.avals(call.avals))


def compiled(call: PrimitiveCall, program: GenericProgram) -> SymbolicExecutable:
    return SymbolicExecutable(program.traced, Options(call.name, config.exact), program.symbols)


SPECIALISER: Final = Specialiser(traced, compiled, patience=REMEMBERED)


def program_of_any_size(
    name: str, key: Any, equation: Callable[..., list[Any]], avals: Sequence[ShapedArray]
) -> SizedProgram | None:
    """The program of a primitive at these sizes, made from one for all sizes; None as long as that
    is not worth it, or impossible.

    `key` tells primitives and parameters apart."""
    family = _families.of((key, config.exact, *[a.kind for a in avals]))
    found = SPECIALISER.program_for(PrimitiveCall(family, name, equation, avals))
    if found is None:
        return None
    program, values = found
    sized: SizedProgram = program.at(values).program
    return sized
