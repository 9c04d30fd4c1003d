"""Parts of programs: the equations that some results need, those that do not depend on some
arguments, constants as arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from calque.core.jaxprs import Atom, ClosedJaxpr, DropVar, Eqn, Jaxpr, subjaxprs
from calque.core.trace_state import Tracer
from calque.machine.caches import WeakTable
from calque.machine.state import process
from calque.ops.found_sizes import let_size_p

_effects: Final[WeakTable[Jaxpr, bool]] = WeakTable("programs that have effects")

# primitive name -> rule(equation, which results are used) -> equation or None, for calls whose
# inside can be pruned
DeadCodeRule = Callable[[Eqn, Sequence[bool]], Eqn | None]
dead_code_rules: Final[dict[str, DeadCodeRule]] = process.container("rules of dead code", {})


def has_effect(e: Eqn) -> bool:
    """Whether the equation, or anything inside it, has an effect. To say what a size is counts as
    none."""
    if e.primitive.effect and e.primitive is not let_size_p:
        return True
    return bool(e.params) and any([jaxpr_has_effect(j) for j in subjaxprs(e.params)])


def jaxpr_has_effect(jaxpr: Jaxpr) -> bool:
    known = _effects.find(jaxpr)
    if known is None:
        known = _effects[jaxpr] = any(has_effect(e) for e in jaxpr.eqns)
    return known


def without_dead_code(jaxpr: Jaxpr, used: Sequence[bool] | None = None) -> Jaxpr:
    """The program with only the results in `used` (all by default) and only the equations that
    these need."""
    outvars = (
        jaxpr.outvars
        if used is None
        else [v for v, u in zip(jaxpr.outvars, used, strict=True) if u]
    )
    live: set[Atom] = set(outvars)
    eqns: list[Eqn] = []
    for e in reversed(jaxpr.eqns):
        kept: Eqn | None = e
        if live.isdisjoint(e.outvars):
            if not has_effect(e) and not (eqns and e.primitive is let_size_p):
                continue
        if e.primitive.name in dead_code_rules:
            uses = [v in live for v in e.outvars]
            if not (all(uses) and _reads_all(e)):
                kept = dead_code_rules[e.primitive.name](e, uses)
        if kept is not None:
            eqns.append(kept)
            live.update(kept.invars)
    eqns.reverse()
    return jaxpr.replace(eqns=eqns, outvars=outvars)


def _reads_all(e: Eqn) -> bool:
    """Whether a call needs all its operands for its results; what else it holds that is dead does
    no harm."""
    first, *others = [
        c
        for p in e.params.values()
        for c in (p if isinstance(p, tuple) else (p,))
        if type(c) is ClosedJaxpr
    ]
    key = ("reads all", e.primitive.name, *others)
    if key not in first.cache:
        kept = dead_code_rules[e.primitive.name](e, [True] * len(e.outvars))
        first.cache[key] = kept is not None and len(kept.invars) == len(e.invars)
    return first.cache[key]


def silent(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program without what only shows values (effects without results), at any depth: for
    running it once more."""
    if not jaxpr_has_effect(closed.jaxpr):
        return closed
    if "silent" not in closed.cache:
        eqns = [
            _silent_eqn(e)
            for e in closed.jaxpr.eqns
            if e.outvars or not e.primitive.effect or e.primitive is let_size_p
        ]
        closed.cache["silent"] = ClosedJaxpr(closed.jaxpr.replace(eqns=eqns), closed.consts)
    return closed.cache["silent"]


def _silent_eqn(e: Eqn) -> Eqn:
    if not has_effect(e):
        return e

    def quiet(v: Any) -> Any:
        return silent(v) if isinstance(v, ClosedJaxpr) else v

    params = {
        k: tuple(map(quiet, v)) if isinstance(v, tuple) else quiet(v) for k, v in e.params.items()
    }
    return e.replace(params=params)


def used_inputs(jaxpr: Jaxpr) -> list[bool]:
    """Which arguments any equation or result reads."""
    read = {a for e in jaxpr.eqns for a in e.invars} | set(jaxpr.outvars)
    return [v in read for v in jaxpr.invars]


def pruned(closed: ClosedJaxpr, used: Sequence[bool] | None = None) -> ClosedJaxpr:
    """`without_dead_code`, also without the constants that nobody reads."""
    jaxpr = without_dead_code(closed.jaxpr, used)
    read = {a for e in jaxpr.eqns for a in e.invars} | set(jaxpr.outvars)
    kept = [(v, c) for v, c in zip(jaxpr.constvars, closed.consts, strict=True) if v in read]
    return ClosedJaxpr(jaxpr.replace(constvars=[v for v, _ in kept]), [c for _, c in kept])


def hoisted(
    closed: ClosedJaxpr, which: Callable[[Any], bool] = lambda c: isinstance(c, Tracer)
) -> tuple[ClosedJaxpr, list[Any]]:
    """The program with its constants (those that are tracers, or `which`) as leading arguments, and
    their values."""
    if not any(which(c) for c in closed.consts):
        return closed, []
    pairs = list(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    moved, kept = [p for p in pairs if which(p[1])], [p for p in pairs if not which(p[1])]
    jaxpr = closed.jaxpr.replace(
        constvars=[v for v, _ in kept], invars=[v for v, _ in moved] + closed.jaxpr.invars
    )
    return ClosedJaxpr(jaxpr, [c for _, c in kept]), [c for _, c in moved]


def hoist_all(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """The program with all its constants as leading arguments, and their values."""
    return hoisted(closed, lambda c: True)


# primitive name -> rule(equation, which operands are unknown) -> which results depend on them
dependence_rules: Final[dict[str, Callable[[Eqn, Sequence[bool]], Sequence[bool]]]] = (
    process.container("rules of dependence", {})
)


def dependent_results(closed: ClosedJaxpr, unknown: tuple[bool, ...]) -> tuple[bool, ...]:
    """Which results depend on the arguments in `unknown`."""
    key = ("dependent", unknown)
    if key not in closed.cache:
        _, _, reached = dependents(closed.jaxpr, unknown)
        closed.cache[key] = tuple([a in reached for a in closed.jaxpr.outvars])
    return closed.cache[key]


def split_equation(e: Eqn, unknown: Sequence[bool]) -> tuple[Eqn | None, Eqn | None]:
    """The part of an equation that does not depend on the operands in `unknown`, and the part that
    does.

    A call may have results of both kinds (a loop over values and tangents): then it is run twice.
    """
    rule = dependence_rules.get(e.primitive.name)
    if rule is None:  # one result, or all alike
        return None, e
    depends = rule(e, unknown)
    if all(depends) or has_effect(e):
        return None, e
    known = dead_code_rules[e.primitive.name](e, [not d for d in depends])
    reached = {a for a, u in zip(e.invars, unknown) if u}
    if known is None or any(a in reached for a in known.invars):
        return None, e
    if not any(depends):
        return known, None
    return known, e.replace(
        outvars=[v if d else DropVar(v.aval) for v, d in zip(e.outvars, depends)]
    )


def dependents(
    jaxpr: Jaxpr, unknown: Sequence[bool], effects: bool = False
) -> tuple[list[Eqn], list[Eqn], set[Any]]:
    """Equations that do not depend on the arguments in `unknown`, those that do, and the variables
    that do.

    With `effects`, equations with an effect count as dependent."""
    reached: set[Any] = {v for v, u in zip(jaxpr.invars, unknown, strict=True) if u}
    known_eqns, unknown_eqns = [], []
    for e in jaxpr.eqns:
        mask = [a in reached for a in e.invars]
        if any(mask):
            known, rest = split_equation(e, mask)
        else:
            known, rest = (None, e) if effects and has_effect(e) else (e, None)
        if known is not None:
            known_eqns.append(known)
        if rest is not None:
            unknown_eqns.append(rest)
            reached.update(rest.outvars)
    return known_eqns, unknown_eqns, reached
