"""The program as rows, each with the place in the source that made it and the variable of the user
that it became."""

from __future__ import annotations

import dis
import types
from collections.abc import Iterator
from typing import NamedTuple

from calque.core.jaxprs import Eqn, Jaxpr, Var, subjaxprs
from calque.core.printing import Names, atom, binders, print_eqn
from calque.core.source import Source

_STORES = (
    *("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF", "STORE_ATTR"),
    *("STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST"),  # two in one from 3.13 on: the first is it
)


class EquationRow(NamedTuple):
    """One line: how deep it stands, the text, the source, what the user calls the result."""

    depth: int
    text: str
    source: Source | None
    variable: str


def equation_rows(jaxpr: Jaxpr) -> list[EquationRow]:
    """A program with those in it, in JAX's form, a line for each equation."""
    names = Names()
    head = " ".join(filter(None, (binders(jaxpr.constvars, names), binders(jaxpr.invars, names))))
    rows = [EquationRow(0, f"inputs {head}", None, "")] if head else []
    rows += _rows(jaxpr, names, 0, {})
    outs = ", ".join(atom(a, names) for a in jaxpr.outvars)
    return [*rows, EquationRow(0, f"results {outs}", None, "")]


Variables = dict[types.CodeType, dict[int, str]]


def _rows(jaxpr: Jaxpr, names: Names, depth: int, variables: Variables) -> Iterator[EquationRow]:
    used = {a for e in jaxpr.eqns for a in e.invars if isinstance(a, Var)}
    used |= {a for a in jaxpr.outvars if isinstance(a, Var)}
    for e, after in zip(jaxpr.eqns, [*jaxpr.eqns[1:], None]):
        last = after is None or after.source is None or not _same_place(e.source, after.source)
        variable = assigned(e.source, variables) if last and e.source is not None else ""
        inner = list(subjaxprs(e.params))
        if not inner:
            yield EquationRow(depth, print_eqn(e, names, used), e.source, variable)
            continue
        yield EquationRow(depth, _head(e, names, used), e.source, variable)
        for j in inner:
            given = " ".join(filter(None, (binders(j.constvars, names), binders(j.invars, names))))
            yield EquationRow(depth + 1, f"lambda {given}:", e.source, "")
            yield from _rows(j, names, depth + 2, variables)
            outs = ", ".join(atom(a, names) for a in j.outvars)
            yield EquationRow(depth + 2, f"in ({outs})", None, "")


def _head(e: Eqn, names: Names, used: set[Var]) -> str:
    """An equation that holds programs, without them."""
    outs = " ".join(f"{names[v] if v in used else '_'}:{v.aval.str_short()}" for v in e.outvars)
    if e.primitive.name == "jit":
        names.enter_call(e)
    ins = " ".join(atom(a, names) for a in e.invars)
    name = e.params.get("name")
    called = f"[{name}]" if isinstance(name, str) and name else ""
    lead = f"{outs} = " if outs else ""
    return f"{lead}{e.primitive.name}{called} {ins}:"


def _same_place(a: Source | None, b: Source) -> bool:
    return a is not None and a.code is b.code and a.lasti == b.lasti


def assigned(source: Source, known: Variables) -> str:
    """The variable that the result of the instruction at a place is assigned to, or nothing;
    `known` keeps what was found of a function."""
    found = known.get(source.code)
    if found is None:
        found = known[source.code] = dict(_assignments(source.code))
    return found.get(source.lasti, "")


def _assignments(code: types.CodeType) -> Iterator[tuple[int, str]]:
    """(place, variable) for each place whose result is assigned at once: all those of an
    instruction, and in Python 3.11 of both that are a call."""
    instructions = [
        i for i in dis.get_instructions(code) if i.opname not in ("COPY", "EXTENDED_ARG")
    ]
    for k, i in enumerate(instructions[1:], 1):
        if i.opname in _STORES:
            first = k - 1
            if instructions[first].opname == "CALL" and instructions[first - 1].opname == "PRECALL":
                first -= 1
            for place in range(instructions[first].offset, i.offset):
                yield place, str(i.argval[0] if isinstance(i.argval, tuple) else i.argval)
