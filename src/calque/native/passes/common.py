"""Equations that say the same thing are written once."""

from __future__ import annotations

from typing import Any

from calque.core.jaxprs import Atom, DropVar, Eqn, Jaxpr, Literal, Var


def common_subexpressions(jaxpr: Jaxpr) -> Jaxpr:
    """Replace an equation by an earlier one with the same primitive, parameters and operands.

    before: a = sin x; b = sin x; c = mul a b      after: a = sin x; c = mul a a

    What stands behind a barrier stays as it is: each barrier gives values of its own. Runs after
    rewriting, which makes more things equal."""
    env: dict[Var, Atom] = {}
    seen: dict[Any, int] = {}  # where the first of its kind stands in `out`
    out: list[Eqn] = []
    for e in jaxpr.eqns:
        invars = e.invars
        if env:
            invars = [env.get(a, a) if a.__class__ is not Literal else a for a in invars]  # type: ignore[arg-type]
            if invars != e.invars:
                e = Eqn(e.primitive, invars, e.outvars, e.params, e.source)
        key = _key(e)
        place = seen.get(key) if key is not None else None
        if place is not None:
            first = out[place] = _naming_what_both_name(out[place], e)
            env.update((v, w) for v, w in zip(e.outvars, first.outvars) if v is not w)
            continue
        if key is not None:
            seen[key] = len(out)
        out.append(e)
    if len(out) == len(jaxpr.eqns):
        return jaxpr
    return jaxpr.replace(
        eqns=out, outvars=[env.get(a, a) if isinstance(a, Var) else a for a in jaxpr.outvars]
    )


def _naming_what_both_name(first: Eqn, e: Eqn) -> Eqn:
    """The first equation, with names for results that only the other one uses."""
    pairs = list(zip(first.outvars, e.outvars))
    if not any(isinstance(v, DropVar) and not isinstance(w, DropVar) for v, w in pairs):
        return first
    outvars = [w if isinstance(v, DropVar) else v for v, w in pairs]
    return Eqn(first.primitive, first.invars, outvars, first.params, first.source)


def _key(e: Eqn) -> Any:
    """What makes two equations the same; None when that cannot be said."""
    if e.primitive.effect or e.primitive.name == "optimization_barrier":
        return None
    operands = tuple([(a.aval, a.val.tobytes()) if a.__class__ is Literal else a for a in e.invars])  # type: ignore[union-attr]
    # Results of different weak type are different types to JAX; here only the memory matters, which
    # the dtype decides.
    if not e.params:
        return e.primitive, operands
    key = (e.primitive, operands, tuple(e.params.items()))
    try:
        hash(key)
    except TypeError:
        return None
    return key
