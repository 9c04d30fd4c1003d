"""Values of the type float0, of which there is one, become arrays without elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.dtypes import float0
from calque.core.jaxprs import Atom, ClosedJaxpr, DropVar, Eqn, Literal, Var, subjaxprs
from calque.core.primitives import REGISTRY

BOOL = np.dtype(bool)
_NO, _YES = [Literal(np.asarray(b), ShapedArray((), BOOL)) for b in (False, True)]


def is_float0(v: Any) -> bool:
    return v.aval.dtype == float0


def physical(aval: ShapedArray) -> ShapedArray:
    return ShapedArray((*aval.shape, 0), BOOL)


def without_float0(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Give each float0 value one more dimension, of size 0, so that it is an array like others that
    takes no memory.

    before: { lambda a:float0[2]; b:f32[]. let c:float0[2] = reshape a in (b, c) }
    after:  { lambda a:bool[2,0]; b:f32[]. let c:bool[2,0] = broadcast_in_dim False in (b, c) }

    Runs when calls have become their bodies: what remains that has float0 results are loops,
    branches, and moves of such values. They are compared as well: each equals every other.
    """
    j = closed.jaxpr
    if not any([is_float0(v) for v in (*j.invars, *j.constvars, *j.outvars)]) and not any(
        [is_float0(v) for e in j.eqns for v in e.outvars]
    ):
        return closed
    env: dict[Atom, Var] = {}

    def renamed(v: Any) -> Any:
        if isinstance(v, DropVar):
            return DropVar(physical(v.aval)) if is_float0(v) else v
        if v not in env and is_float0(v):
            env[v] = Var(physical(v.aval))
        return env.get(v, v)

    def equation(e: Eqn) -> list[Eqn]:
        outvars = [renamed(v) for v in e.outvars]
        if e.primitive.name in ("eq", "ne") and is_float0(e.invars[0]):
            return [_filled(outvars[0], e, _YES if e.primitive.name == "eq" else _NO)]
        if not any(map(is_float0, e.outvars)) or any(True for _ in subjaxprs(e.params)):
            return [e.replace(invars=[renamed(a) for a in e.invars], outvars=outvars)]
        return [_filled(v, e, _NO) for v in outvars]

    consts = [
        np.zeros((*v.aval.shape, 0), bool) if is_float0(v) else c
        for v, c in zip(j.constvars, closed.consts)
    ]
    constvars, invars, outvars = (
        [renamed(v) for v in vs] for vs in (j.constvars, j.invars, j.outvars)
    )
    eqns = [q for e in j.eqns for q in equation(e)]
    program = j.replace(constvars=constvars, invars=invars, eqns=eqns, outvars=outvars)
    return ClosedJaxpr(program, consts)


def _filled(v: Var, e: Eqn, value: Literal) -> Eqn:
    params = {"shape": v.aval.shape, "broadcast_dimensions": (), "sharding": None}
    return Eqn(REGISTRY["broadcast_in_dim"], [value], [v], params, e.source)
