"""Drop what nobody reads."""

from __future__ import annotations

from calque.core.jaxprs import Atom, Eqn, Jaxpr, has_effects, subjaxprs
from calque.transforms.engines.slices import without_dead_code


def dead_code(jaxpr: Jaxpr) -> Jaxpr:
    """Keep an equation when one of its results is read later, or when it has an effect.

    before: a = mul x x; b = sin x; in (a,)
    after:  a = mul x x; in (a,)

    Runs first, so that no later pass works for nothing, and last, to sweep up what the others left
    behind.
    """
    live: set[Atom] = set(jaxpr.outvars)
    kept: list[Eqn] = []
    for e in reversed(jaxpr.eqns):
        if not live.isdisjoint(e.outvars) or e.primitive.effect or (e.params and has_effect(e)):
            kept.append(e)
            live.update(e.invars)
    if len(kept) == len(jaxpr.eqns):
        return jaxpr
    return jaxpr.replace(eqns=kept[::-1])


def dead_parts(jaxpr: Jaxpr) -> Jaxpr:
    """Take out of loops, choices and calls what they carry, give and read for nothing.

    before: a, _ = scan[a', b' = f(a), g(b)] a0 b0; in (a,)
    after:  a = scan[a' = f(a)] a0; in (a,)

    Runs second, while calls are whole and share their bodies: a reverse loop reads little of what
    the loop before it might keep.
    """
    found = without_dead_code(jaxpr)
    same = len(found.eqns) == len(jaxpr.eqns) and all(
        a is b for a, b in zip(found.eqns, jaxpr.eqns)
    )
    return jaxpr if same else found


def has_effect(e: Eqn) -> bool:
    """Whether running the equation does more than give its results."""
    return e.primitive.effect or (
        bool(e.params) and any(has_effects(j) for j in subjaxprs(e.params))
    )
