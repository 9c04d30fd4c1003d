"""Which equations of a checkpointed program run again, and which values are kept, also inside of
its loops and branches.

What the policy keeps of a scan is stacked by the scan that runs first, and read by the one that
runs again; what it keeps of a branch is a further result of the `cond`, zeros where another branch
runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.devices import Space
from calque.core.dtypes import is_extended
from calque.core.jaxprs import Atom, ClosedJaxpr, Eqn, Literal, Var
from calque.core.primitives import REGISTRY
from calque.ops.common import scalar_of
from calque.ops.found_sizes import let_size_p
from calque.transforms.engines.slices import dead_code_rules
from calque.transforms.primitives.call import inline_calls
from calque.transforms.primitives.remat_policies import Offloadable, Policy


class RematParts(NamedTuple):
    """The equations of a program that run first, those that run again, and the values that are
    kept between."""

    first: list[Eqn]
    again: list[Eqn]
    saved: list[Var]


class _Divided(NamedTuple):
    """A loop or a branch in two."""

    first: Eqn  # with what is kept as further results
    again: Eqn | None  # reads what is kept
    saved: list[Var]


def parts(
    eqns: Sequence[Eqn], residuals: Sequence[Any], policy: Policy, sized: bool = False
) -> RematParts:
    """What has to run again for the residuals, if the policy says what may be kept. `sized`: the
    types of what follows speak of sizes, though no residual may."""
    live = {a for a in residuals if isinstance(a, Var)}
    first: list[Eqn] = []
    again: list[Eqn] = []
    saved: list[Var] = []
    for e in reversed(eqns):
        used = [v in live for v in e.outvars]
        kept: Eqn | None = None
        if e.primitive is let_size_p and (again or sized):  # sizes in the types of what follows
            kept = e
        elif any(used) and (answer := policy(e.primitive, *(a.aval for a in e.invars), **e.params)):
            kept_here = [v for v, u in zip(e.outvars, used) if u and v not in saved]
            if isinstance(answer, Offloadable) and _can_be_kept(kept_here):
                moves = [_moved(v, answer, e) for v in kept_here]
                first += [out for out, _ in moves]
                again += [back for _, back in moves]
                kept_here = [out.outvars[0] for out, _ in moves]
            saved += kept_here
        elif any(used):
            divided = _divided(e, used, policy)
            if divided is None:
                kept = _only(e, used)
            else:
                e, kept = divided.first, divided.again
                saved += [v for v in divided.saved if v not in saved]
        first.append(e)
        if kept is not None:
            again.append(kept)
            live.update(a for a in kept.invars if isinstance(a, Var))
    for es in (first, again, saved):
        es.reverse()
    return RematParts(first, again, saved)


def _moved(v: Var, move: Offloadable, e: Eqn) -> tuple[Eqn, Eqn]:
    """The equations that bring a value into another memory, and back from there."""
    away = Var(v.aval)
    spaces = [Space.Device if kind == "device" else Space.Host for kind in (move.dst, move.src)]
    out, back = ({"space": space} for space in spaces)
    return (
        Eqn(REGISTRY["device_put"], [v], [away], out, e.source),
        Eqn(REGISTRY["device_put"], [away], [v], back, e.source),
    )


def _only(e: Eqn, used: Sequence[bool]) -> Eqn:
    """A call without the results that nobody uses."""
    rule = dead_code_rules.get(e.primitive.name)
    if rule is None or all(used):
        return e
    return rule(e, used) or e


def _divided(e: Eqn, used: Sequence[bool], policy: Policy) -> _Divided | None:
    """A scan or a cond in two; None where the policy keeps nothing inside."""
    if e.primitive.name == "scan" and not e.params.get("counted"):
        return _divided_scan(e, used, policy)
    return _divided_cond(e, used, policy) if e.primitive.name == "cond" else None


def _can_be_kept(saved: Sequence[Var]) -> bool:
    return not any(is_extended(v.aval.dtype) for v in saved)


# ---------------------------------------------------------------- scan


def _divided_scan(e: Eqn, used: Sequence[bool], policy: Policy) -> _Divided | None:
    body = inline_calls(e.params["jaxpr"])
    j, m, n = body.jaxpr, e.params["num_carry"], e.params["num_consts"]
    carried = {v: i for i, v in enumerate(j.invars[n : n + m])}
    needed = {i for i in range(m) if used[i]}
    ys = [i for i in range(m, len(used)) if used[i]]
    while True:  # which carried values the rounds that run again read
        targets = [j.outvars[i] for i in (*sorted(needed), *ys)]
        inner = parts(j.eqns, targets, policy)
        kept = {v for v in targets if v in inner.saved}
        read = {a for q in inner.again for a in q.invars} | {a for a in targets if a not in kept}
        more = {carried[a] for a in read if a in carried} - needed
        if not more:
            break
        needed |= more
    if not inner.saved or not _can_be_kept(inner.saved):
        return None
    own = {j.outvars[i]: e.outvars[i] for i in range(m, len(used))}  # stacked in any case
    new = [v for v in inner.saved if v not in own]
    stacked = [Var(_stacked(v.aval, e.params["length"])) for v in new]
    first = e.replace(
        outvars=[*e.outvars, *stacked],
        params={
            **e.params,
            "jaxpr": ClosedJaxpr(
                j.replace(eqns=inner.first, outvars=[*j.outvars, *new]), body.consts
            ),
        },
    )
    places = {v: own[v] for v in inner.saved if v in own} | dict(zip(new, stacked))
    again = _scan_again(e, body, inner, (needed, ys), places)
    direct = [e.outvars[i] for i in ys if j.outvars[i] in inner.saved]
    extra = [places[v] for v in inner.saved if v not in {j.outvars[i] for i in ys}]
    return _Divided(first, again, [*direct, *(v for v in extra if v not in direct)])


def _stacked(aval: ShapedArray, length: Any) -> ShapedArray:
    return ShapedArray((length, *aval.shape), aval.dtype, aval.weak_type)


def _scan_again(
    e: Eqn,
    body: ClosedJaxpr,
    inner: RematParts,
    wanted: tuple[set[int], list[int]],
    places: dict[Var, Var],
) -> Eqn | None:
    """The rounds that run again: they read what was stacked."""
    j, m, n = body.jaxpr, e.params["num_carry"], e.params["num_consts"]
    needed, ys = wanted
    rest = [i for i in ys if j.outvars[i] not in inner.saved]
    fresh = {v: Var(v.aval) for v in inner.saved}

    def read(a: Atom) -> Atom:
        return fresh.get(a, a)  # type: ignore[arg-type]

    carry = [read(j.outvars[i]) if i in needed else j.invars[n + i] for i in range(m)]
    jaxpr = j.replace(
        invars=[*j.invars, *fresh.values()],
        outvars=[*carry, *(read(j.outvars[i]) for i in rest)],
        eqns=[q.replace(invars=list(map(read, q.invars))) for q in inner.again],
    )
    again = e.replace(
        invars=[*e.invars, *(places[v] for v in inner.saved)],
        outvars=[*e.outvars[:m], *(e.outvars[i] for i in rest)],
        params={**e.params, "jaxpr": ClosedJaxpr(jaxpr, body.consts)},
    )
    used = [i in needed for i in range(m)] + [True] * len(rest)
    return _only(again, used) if any(used[:m]) or rest else None


# ---------------------------------------------------------------- cond


def _divided_cond(e: Eqn, used: Sequence[bool], policy: Policy) -> _Divided | None:
    branches = [inline_calls(b) for b in e.params["branches"]]
    found = [parts(b.eqns, [a for a, u in zip(b.outvars, used) if u], policy) for b in branches]
    saved = [v for p in found for v in p.saved]
    if not saved or not _can_be_kept(saved):
        return None
    direct = [u and _is_kept(branches, found, i) for i, u in enumerate(used)]
    rest = [u and not d for u, d in zip(used, direct)]
    kept = [e.outvars[i] for i, d in enumerate(direct) if d]
    if not any(rest):
        return _Divided(e, None, kept)
    slots = [Var(v.aval.strip_weak_type()) for v in saved]
    first = e.replace(
        outvars=[*e.outvars, *slots],
        params={
            **e.params,
            "branches": tuple(
                _branch_first(b, p, saved) for b, p in zip(branches, found, strict=True)
            ),
        },
    )
    again = e.replace(
        invars=[*e.invars, *slots],
        outvars=[v for v, r in zip(e.outvars, rest) if r],
        params={
            **e.params,
            "branches": tuple(
                _branch_again(b, p, saved, rest) for b, p in zip(branches, found, strict=True)
            ),
        },
    )
    return _Divided(first, _only(again, [True] * sum(rest)), [*kept, *slots])


def _is_kept(branches: Sequence[ClosedJaxpr], found: Sequence[RematParts], i: int) -> bool:
    """Whether the i-th result of every branch is kept or known."""
    atoms = [b.outvars[i] for b in branches]
    ready = [
        isinstance(a, Literal) or a in p.saved or a in b.invars
        for a, b, p in zip(atoms, branches, found)
    ]
    return all(ready) and any(a in p.saved for a, p in zip(atoms, found))


def _branch_first(b: ClosedJaxpr, p: RematParts, saved: Sequence[Var]) -> ClosedJaxpr:
    """The branch with what it keeps, and zeros for what the others keep."""
    eqns = list(p.first)
    results: list[Atom] = [*b.outvars]
    for v in saved:
        if v in p.saved:
            results.append(v)
            continue
        zero = Literal(np.asarray(scalar_of(v.aval.dtype, 0)), ShapedArray((), v.aval.dtype))
        made = Var(v.aval.strip_weak_type())
        params = {"shape": v.aval.shape, "broadcast_dimensions": (), "sharding": None}
        eqns.append(Eqn(REGISTRY["broadcast_in_dim"], [zero], [made], params))
        results.append(made)
    return ClosedJaxpr(b.jaxpr.replace(eqns=eqns, outvars=results), b.consts)


def _branch_again(
    b: ClosedJaxpr, p: RematParts, saved: Sequence[Var], rest: Sequence[bool]
) -> ClosedJaxpr:
    """The part of the branch that runs again, which reads what was kept."""
    given = [Var(v.aval.strip_weak_type()) for v in saved]
    known: dict[Any, Any] = {v: g for v, g in zip(saved, given) if v in p.saved}
    eqns = [q.replace(invars=[known.get(a, a) for a in q.invars]) for q in p.again]
    outvars = [known.get(a, a) for a, r in zip(b.outvars, rest) if r]
    jaxpr = b.jaxpr.replace(invars=[*b.invars, *given], eqns=eqns, outvars=outvars)
    return ClosedJaxpr(jaxpr, b.consts)
