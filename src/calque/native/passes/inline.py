"""Calls become their bodies."""

from __future__ import annotations

from collections.abc import Container
from typing import Any, Final

from calque.core.jaxprs import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var
from calque.core.primitives import REGISTRY
from calque.core.trace import trace_to_jaxpr

# Calls whose body may stand in their place: name of the primitive -> name of the parameter that
# holds the body.
CALLS: Final = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "jaxpr",
    "call": "jaxpr",
    "composite": "jaxpr",
    "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vmap_call": "call",
    "custom_partitioning": "call",
    "remat2": "jaxpr",
    "checkpoint": "jaxpr",
    "custom_lin": "call_jaxpr",
    "while_back": "jaxpr",
}
# those whose equations run one by one in eager calls
IN_STEPS: Final = frozenset(("custom_jvp_call", "custom_vjp_call", "custom_linear_solve"))
_CHOSEN = ("cond", "custom_linear_solve")  # one of the bodies may stand in the place of these


class _Frame:
    """A body being copied: where we are, what its variables are called outside, and where its
    results go."""

    __slots__ = ("at", "env", "eqns", "outs", "results")

    def __init__(
        self, eqns: list[Eqn], env: dict[Var, Atom], results: list[Atom], outs: list[Var]
    ) -> None:
        self.eqns, self.env, self.results, self.outs, self.at = eqns, env, results, outs, 0


def body_of(e: Eqn, invars: list[Atom]) -> tuple[Jaxpr | ClosedJaxpr | None, list[Atom]]:
    """The body of a call that may be inlined, and its operands. A branch whose index is known is
    such a call, and a linear solve is its solver: the other functions are there for derivatives,
    which have been taken."""
    if e.primitive.name == "cond" and isinstance(invars[0], Literal):
        branches = e.params["branches"]
        return branches[min(max(int(invars[0].val), 0), len(branches) - 1)], invars[1:]
    if e.primitive.name == "custom_linear_solve":
        matvec, vecmat, solve, _ = lengths = e.params["const_lengths"]
        first = matvec + vecmat
        return e.params["jaxprs"].solve, invars[first : first + solve] + invars[sum(lengths) :]
    if e.primitive.program is not None:
        return program_of(e), invars
    name = CALLS.get(e.primitive.name)
    body = e.params.get(name) if name is not None else None
    return (body if isinstance(body, (Jaxpr, ClosedJaxpr)) else None), invars


def program_of(e: Eqn) -> ClosedJaxpr:
    """What a primitive of the user is computed by, for operands of these types."""
    program, several = e.primitive.program, e.primitive.multiple_results

    def flat(*args: Any) -> list[Any]:
        out = program(*args, **e.params)  # type: ignore[misc]
        return list(out) if several else [out]

    return trace_to_jaxpr(flat, [a.aval for a in e.invars], e.primitive.name)


def inline_calls(closed: ClosedJaxpr, only: Container[str] | None = None) -> ClosedJaxpr:
    """Put the body of every call in its place, at any depth, with fresh variables; or of some
    primitives `only`.

    before: y = jit[jaxpr={ lambda ; a. let b = sin a in (b,) }] x
    after:  y = sin x

    Runs before all rewriting: rules should see through calls. Constants of inner programs become
    constants of the outer one.
    """

    def may_go(e: Eqn) -> bool:
        name = e.primitive.name
        if only is not None:
            return name in only
        return name in CALLS or name in _CHOSEN or e.primitive.program is not None

    if not any(map(may_go, closed.jaxpr.eqns)):
        return closed
    consts = dict(zip(closed.jaxpr.constvars, closed.consts))
    top: dict[Var, Atom] = {}
    out: list[Eqn] = []
    stack = [_Frame(closed.jaxpr.eqns, top, [], [])]
    while stack:
        f = stack[-1]
        if f.at == len(f.eqns):
            stack.pop()
            if stack:
                up = stack[-1].env
                for v, a in zip(f.outs, f.results):
                    up[v] = f.env.get(a, a) if isinstance(a, Var) else a
            continue
        e = f.eqns[f.at]
        f.at += 1
        env = f.env
        invars = [env.get(a, a) if a.__class__ is not Literal else a for a in e.invars]  # type: ignore[arg-type]
        body, operands = body_of(e, invars) if may_go(e) else (None, invars)
        if body is not None:
            if e.primitive.name == "remat2" and e.params["differentiated"]:
                operands = _kept_apart(e, operands, out)
            stack.append(_enter(body, operands, e.outvars, consts))
        elif f.env is top:
            out.append(Eqn(e.primitive, invars, e.outvars, e.params, e.source))
        else:
            out.append(_renamed(e, invars, env))
    outvars = [top.get(a, a) if isinstance(a, Var) else a for a in closed.jaxpr.outvars]
    jaxpr = closed.jaxpr.replace(constvars=list(consts), eqns=out, outvars=outvars)
    return ClosedJaxpr(jaxpr, list(consts.values()))


def _kept_apart(e: Eqn, operands: list[Atom], out: list[Eqn]) -> list[Atom]:
    """The operands of a second computation, behind a barrier where it says so: what is computed
    again from them is not found to be the same as what was computed before.

    before: a = sin x; b = remat2[jaxpr={ lambda ; c. let d = sin c in (d,) }] x
    after:  a = sin x; y = optimization_barrier x; b = sin y
    """
    apart = e.params["prevent_cse"]
    each = apart if isinstance(apart, tuple) else (apart,) * len(operands)
    hidden = dict.fromkeys([a for a, k in zip(operands, each) if k and isinstance(a, Var)])
    if not hidden:
        return operands
    behind = {a: Var(a.aval) for a in hidden}
    barrier = REGISTRY["optimization_barrier"]
    out.append(Eqn(barrier, list(hidden), list(behind.values()), {}, e.source))
    return [behind[a] if k and isinstance(a, Var) else a for a, k in zip(operands, each)]


def _enter(
    body: Jaxpr | ClosedJaxpr, invars: list[Atom], outs: list[Var], consts: dict[Var, object]
) -> _Frame:
    if isinstance(body, ClosedJaxpr):
        inner = body.jaxpr
        env: dict[Var, Atom] = {}
        for v, c in zip(inner.constvars, body.consts):
            if consts.setdefault(v, c) is not c:  # the same body closed over other values
                env[v] = fresh = Var(v.aval)
                consts[fresh] = c
    else:
        inner, env = body, {}
        if inner.constvars:  # an open jaxpr takes its constants first
            env.update(zip(inner.constvars, invars))
            invars = invars[len(inner.constvars) :]
    env.update(zip(inner.invars, map(_given, invars)))
    return _Frame(inner.eqns, env, inner.outvars, outs)


def _given(a: Atom) -> Atom:
    """An operand of a call: to the body, a number is an array whose value is known."""
    return Literal(a.val, a.aval, written=False) if isinstance(a, Literal) and a.written else a


def _renamed(e: Eqn, invars: list[Atom], env: dict[Var, Atom]) -> Eqn:
    """A copy with fresh results: the same body may be inlined many times."""
    fresh = [Var(v.aval) for v in e.outvars]
    env.update(zip(e.outvars, fresh))
    return Eqn(e.primitive, invars, fresh, e.params, e.source)
