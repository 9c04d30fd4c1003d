"""Checks that raise leave loops: a loop remembers that one failed, and is run again with its checks
only then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from calque.core import backends
from calque.core.arrays import to_array
from calque.core.at_sizes import free_in, program_at
from calque.core.avals import ShapedArray
from calque.core.dims import Dim
from calque.core.jaxprs import Atom, ClosedJaxpr, Eqn, Jaxpr, Literal, Var, subjaxprs
from calque.core.polynomials import Poly
from calque.core.symbols import Symbols
from calque.core.trace import trace_to_jaxpr
from calque.native.passes.inline import inline_calls
from calque.transforms.functions.checks import raise_when
from calque.transforms.primitives.callbacks import Fail

FLAG = ShapedArray((), np.dtype(bool))
INDEX = ShapedArray((), np.dtype("int32"))
KEPT = "checks stay"  # mark of a program whose loops keep their checks


class CheckedLoop:
    """What `scan` and `while` have in common: where the carry stands among the operands, and the
    program of a round."""

    __slots__ = ("before", "body", "carries", "own")

    def __init__(self, before: int, own: int, carries: int, body: ClosedJaxpr) -> None:
        self.before = before  # constants, also those of a condition
        self.own = own  # constants of a round
        self.carries, self.body = carries, body


def loop_of(e: Eqn) -> CheckedLoop | None:
    p = e.params
    if e.primitive.name == "scan":
        return CheckedLoop(p["num_consts"], p["num_consts"], p["num_carry"], p["jaxpr"])
    if e.primitive.name == "while":
        before = p["cond_nconsts"] + p["body_nconsts"]
        return CheckedLoop(before, p["body_nconsts"], len(e.invars) - before, p["body_jaxpr"])
    return None


def hoisted_checks(closed: ClosedJaxpr) -> ClosedJaxpr:
    """before: scan[body: c, x -> cond[branches=(nothing, raise)] bad x; ...] c xs
    after:  failed, ... = scan[body: failed, c, x -> or failed bad; ...] False c xs;
    cond[branches=(nothing, run the scan as it was)] failed

    A `while` ends at the first failure. Loops with other effects, and scans around loops that might
    then never end, keep their checks. Runs once calls are inlined: a check that stands in a
    function is seen."""
    if not any(loop_of(e) is not None for e in closed.jaxpr.eqns):
        return closed
    eqns: list[Eqn] = []
    kept = closed.cache.get(KEPT, False)
    for e in closed.jaxpr.eqns:
        eqns += [e] if kept else without_checks(e)
    if len(eqns) == len(closed.jaxpr.eqns) and all(a is b for a, b in zip(eqns, closed.jaxpr.eqns)):
        return closed
    return ClosedJaxpr(closed.jaxpr.replace(eqns=eqns), closed.consts)


def is_check(e: Eqn) -> bool:
    """Whether the equation raises, or does nothing."""
    if e.primitive.name != "cond" or e.outvars or len(e.params["branches"]) != 2:
        return False
    nothing, fails = (b.jaxpr.eqns for b in e.params["branches"])
    return (
        not nothing
        and len(fails) == 1
        and isinstance(getattr(fails[0].params.get("callback"), "callback", None), Fail)
    )


def has_effects(eqns: Sequence[Eqn]) -> bool:
    return any(
        e.primitive.effect or any(has_effects(j.eqns) for j in subjaxprs(e.params)) for e in eqns
    )


def may_not_end(eqns: Sequence[Eqn]) -> bool:
    return any(
        e.primitive.name == "while" or any(may_not_end(j.eqns) for j in subjaxprs(e.params))
        for e in eqns
    )


def has_lanes(e: Eqn) -> bool:
    """Whether each lane of a `while` ends by itself."""
    return e.primitive.name == "while" and bool(e.params["cond_jaxpr"].out_avals[0].ndim)


def without_checks(e: Eqn) -> list[Eqn]:
    """A loop without the checks in its body, and what raises after it; or the equation itself."""
    loop = loop_of(e)
    if loop is None or not has_effects(loop.body.eqns):
        return [e]
    body = hoisted_checks(inline_calls(loop.body))
    checks = [q for q in body.jaxpr.eqns if is_check(q)]
    rest = [q for q in body.jaxpr.eqns if not is_check(q)]
    operands = list(dict.fromkeys(a for a in e.invars if isinstance(a, Var)))
    if (
        not checks
        or has_effects(rest)
        or (e.primitive.name == "scan" and may_not_end(rest))
        or has_lanes(e)
        or not all(isinstance(a.aval.dtype, np.dtype) for a in operands)
        or not sizes_in(free_in([e.params, [a.aval for a in operands]]))
        <= sizes_alone(free_in([a.aval for a in operands]))
    ):
        return [e]
    failed = Var(FLAG)
    return [
        with_flag(
            e, loop, ClosedJaxpr(counted(body.jaxpr, loop.own, checks, rest), body.consts), failed
        ),
        *raising(e, failed, operands),
    ]


def counted(body: Jaxpr, consts: int, checks: Sequence[Eqn], rest: Sequence[Eqn]) -> Jaxpr:
    """A round that takes, and gives, whether a check has failed: in front of the carry."""
    flag: Var = Var(FLAG)

    def any_failed(before: Any, *which: Any) -> list[Any]:
        for i in which:
            before = (i != np.int32(0)) | before
        return [before]

    tail = trace_to_jaxpr(any_failed, [FLAG, *[INDEX] * len(checks)])
    eqns, (out,) = joined(tail, [flag, *[q.invars[0] for q in checks]])
    return body.replace(
        invars=[*body.invars[:consts], flag, *body.invars[consts:]],
        eqns=[*rest, *eqns],
        outvars=[out, *body.outvars],
    )


def joined(program: ClosedJaxpr, args: Sequence[Atom]) -> tuple[list[Eqn], list[Atom]]:
    """The equations of a small program on these atoms, and its results."""
    names: dict[Any, Atom] = dict(zip(program.jaxpr.invars, args))

    def name(a: Atom) -> Atom:
        return a if isinstance(a, Literal) else names.get(a, a)

    eqns = [q.replace(invars=[name(a) for a in q.invars]) for q in program.jaxpr.eqns]
    return eqns, [name(a) for a in program.jaxpr.outvars]


def with_flag(e: Eqn, loop: CheckedLoop, body: ClosedJaxpr, failed: Var) -> Eqn:
    """The loop with one more carry, in front."""
    start = Literal(np.zeros((), bool), FLAG)
    invars = [*e.invars[: loop.before], start, *e.invars[loop.before :]]
    if e.primitive.name == "scan":
        params = {**e.params, "jaxpr": body, "num_carry": loop.carries + 1}
    else:
        params = {
            **e.params,
            "body_jaxpr": body,
            "cond_jaxpr": ends_early(e.params["cond_jaxpr"], e.params["cond_nconsts"]),
        }
    return e.replace(invars=invars, outvars=[failed, *e.outvars], params=params)


def ends_early(cond: ClosedJaxpr, consts: int) -> ClosedJaxpr:
    """Go on only while nothing has failed."""
    flag = Var(FLAG)
    tail = trace_to_jaxpr(lambda go, failed: [go & ~failed], [FLAG, FLAG])
    eqns, outs = joined(tail, [cond.jaxpr.outvars[0], flag])
    invars = [*cond.jaxpr.invars[:consts], flag, *cond.jaxpr.invars[consts:]]
    return ClosedJaxpr(
        cond.jaxpr.replace(invars=invars, eqns=[*cond.jaxpr.eqns, *eqns], outvars=outs), cond.consts
    )


def sizes_in(dims: Iterable[Dim]) -> set[int]:
    """The numbers of the free sizes in these expressions."""
    return {i for d in dims for i in sizes_of(d.symbols, d.poly)}


def sizes_of(symbols: Symbols, poly: Poly) -> Iterator[int]:
    for monomial, _ in poly:
        for i in monomial:
            op, a, b = symbols.atoms[i]
            if op == "size":
                yield a
            else:
                yield from sizes_of(symbols, a)
                yield from sizes_of(symbols, b)


def alone(d: Dim) -> int | None:
    """The number of the free size that an expression is."""
    return next((i for i, own in enumerate(d.symbols.sizes()) if own.poly == d.poly), None)


def sizes_alone(dims: Iterable[Dim]) -> set[int]:
    """The free sizes that can be read off shapes with these dimensions."""
    return {i for d in dims if (i := alone(d)) is not None}


def at_shapes(closed: ClosedJaxpr, shapes: Sequence[Sequence[int]]) -> ClosedJaxpr:
    """A program at the sizes that operands of these shapes have."""
    dims = list(free_in(closed))
    if not dims:
        return closed
    symbols = dims[0].symbols
    values = list(symbols.hints)
    for aval, shape in zip(closed.in_avals, shapes):
        for d, n in zip(aval.shape, shape):
            for i in sizes_alone(free_in([d])):
                values[i] = n
    return program_at(closed, symbols, values)


def raising(e: Eqn, failed: Var, operands: Sequence[Var]) -> list[Eqn]:
    """If a check has failed the loop is run as it was written: it raises where it did."""
    outs = [Var(v.aval) for v in e.outvars]
    original = ClosedJaxpr(Jaxpr([], list(operands), outs, [e.replace(outvars=outs)]))

    def run_again(*values: np.ndarray) -> Exception:
        program = at_shapes(original, [v.shape for v in values])
        program.cache[KEPT] = True
        backends.compile_program(program, backends.Options("checked", False, ())).call(
            [to_array(v) for v in values]
        )
        return RuntimeError("a check failed in a loop, but not when the loop was run again")

    def check(flag: Any, *xs: Any) -> list[Any]:
        raise_when(flag, Fail(run_again), xs)
        return []

    tail = trace_to_jaxpr(check, [FLAG, *[v.aval for v in operands]])
    return joined(tail, [failed, *operands])[0]
