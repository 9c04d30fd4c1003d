"""Programs whose found sizes are known, because they run equation by equation: the sizes become numbers, in nested programs too."""

from __future__ import annotations

from typing import Any

from calque.core.avals import ShapedArray
from calque.core.dims import Dim
from calque.core.jaxprs import ClosedJaxpr, DropVar, Eqn, Jaxpr, Literal, Var


def resolved(x: Any) -> Any:
    """A parameter, a type or a program with the settled sizes in it as numbers."""
    if type(x) is Dim:
        value = x.symbols.value(x.poly) if x.symbols.is_found(x.poly) else None
        return x if value is None else value
    if type(x) in (tuple, list):
        return type(x)(resolved(v) for v in x)
    if type(x) is dict:
        return {k: resolved(v) for k, v in x.items()}
    if type(x) is ShapedArray:
        return ShapedArray(resolved(x.shape), x.dtype, x.weak_type)
    if type(x) is ClosedJaxpr:
        return ClosedJaxpr(_program(x.jaxpr), x.consts)
    return _program(x) if type(x) is Jaxpr else x


def _program(jaxpr: Jaxpr) -> Jaxpr:
    """A program inside a program: sizes that it finds itself stay open."""
    new: dict[Var, Var] = {}

    def var(v: Any) -> Any:
        if isinstance(v, Literal):
            return v
        if v not in new:
            aval = resolved(v.aval)
            new[v] = v if aval is v.aval else type(v)(aval) if isinstance(v, DropVar) else Var(aval)
        return new[v]

    many = lambda vs: [var(v) for v in vs]
    eqns = [Eqn(e.primitive, many(e.invars), many(e.outvars), resolved(e.params), e.source) for e in jaxpr.eqns]
    return Jaxpr(many(jaxpr.constvars), many(jaxpr.invars), many(jaxpr.outvars), eqns, jaxpr.debug_names)
