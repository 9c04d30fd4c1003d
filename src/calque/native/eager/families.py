"""Primitives that are compiled for their operands: after a few shapes one program serves all
sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from calque.core.avals import ShapedArray
from calque.core.backends import Options
from calque.core.config import config
from calque.core.trace import trace_to_jaxpr
from calque.machine.driver.sizes import SizedProgram
from calque.native.symbolic import SymbolicExecutable
from calque.transforms.jit.dynamic import MET, Entry, Family, free_avals

MOST_FAMILIES: Final = 1000
_families: dict[Any, Family] = {}


def program_of_any_size(
    name: str, key: Any, equation: Callable[..., list[Any]], avals: Sequence[ShapedArray]
) -> SizedProgram | None:
    """The program of a primitive at these sizes, made from one for all sizes; None as long as that
    is not worth it, or impossible.

    `key` tells primitives and parameters apart."""
    full = (key, config.exact, *[a.kind for a in avals])
    family = _families.get(full)
    if family is None:
        if len(_families) >= MOST_FAMILIES:
            _families.clear()
        family = _families[full] = Family()
    sizes = tuple([n for a in avals for n in a.shape])
    entry = next((e for e in family.entries if e.values(sizes) is not None), None)
    if entry is None:
        plan = family.next(sizes, frozenset())
        family.remember(sizes)
        entry = (
            made(name, equation, avals, family, plan)
            if plan is not None and len(family.met) >= MET
            else None
        )
    values = None if entry is None else entry.values(sizes)
    return None if entry is None or values is None else entry.program(values).program


def made(
    name: str,
    equation: Callable[..., list[Any]],
    avals: Sequence[ShapedArray],
    family: Family,
    plan: Any,
) -> Entry | None:
    """A program with free sizes."""
    entry, free = Entry(*plan), {i for g in plan[0] for i in g}
    try:
        closed = trace_to_jaxpr(equation, free_avals(entry, avals))
        entry.symbols.lenient = True
        entry.executable = SymbolicExecutable(closed, Options(name, config.exact), entry.symbols)
    except (TypeError, ValueError, NotImplementedError, ArithmeticError, LookupError):
        family.static |= free  # for good: nothing of this sort will do
        return None
    family.static |= entry.pinned()
    if entry.pinned() >= free:
        return None
    entry.close()
    family.entries.append(entry)
    return entry
