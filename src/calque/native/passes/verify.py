"""Does a pass leave a program whole? Asked after every pass, in tests and while debugging.

Equations are not asked for their shapes again: between passes some are in a form that only lowering
knows (`pow[exponent=1.5] x`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.dtypes import float0
from calque.core.jaxprs import ClosedJaxpr, DropVar, Jaxpr, Var, subjaxprs


class BrokenPass(ValueError):
    """A pass that made another program of one, or none at all."""


def verify_pass(name: str, before: ClosedJaxpr, after: ClosedJaxpr) -> None:
    """Raise ``BrokenPass`` unless the program after a pass takes and gives what it took and gave
    before, and every variable is defined once, before it is used."""
    for what, old, new in (
        ("takes", before.in_avals, after.in_avals),
        ("gives", before.out_avals, after.out_avals),
    ):
        if _in_memory(old) != _in_memory(new):
            raise BrokenPass(f"{name}: the program {what} {new}, not {old}\n{after}")
    try:
        check_defined(after.jaxpr)
    except ValueError as error:
        raise BrokenPass(f"{name}: {error}\n{after}") from error


def check_defined(jaxpr: Jaxpr) -> None:
    """Every variable is defined once, before it is used, in the programs inside as well."""
    defined: set[Var] = set()
    for v in (*jaxpr.constvars, *jaxpr.invars):
        _define(v, defined)
    for e in jaxpr.eqns:
        _need(e.invars, defined)
        for v in e.outvars:
            if not isinstance(v, DropVar):
                _define(v, defined)
        for inner in subjaxprs(e.params):
            check_defined(inner)
    _need(jaxpr.outvars, defined)


def _define(v: Var, defined: set[Var]) -> None:
    if v in defined:
        raise ValueError(f"variable {v} is bound twice")
    defined.add(v)


def _need(atoms: Iterable[object], defined: set[Var]) -> None:
    for a in atoms:
        if isinstance(a, Var) and a not in defined:
            raise ValueError(f"variable {a} is used before it is defined")


def _in_memory(avals: Sequence[ShapedArray]) -> list[tuple[Any, Any]]:
    """Shapes and dtypes; those without derivatives take no memory."""
    return [
        ((*a.shape, 0), np.dtype(bool)) if a.dtype == float0 else (a.shape, a.dtype) for a in avals
    ]
