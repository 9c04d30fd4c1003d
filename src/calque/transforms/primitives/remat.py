"""Rematerialisation: of a call `remat2` little is kept for the backward pass, the rest is computed
again.

When it is linearised, the known part runs in place and keeps what the policy allows; the tape gets
one equation that holds the recomputation and the linear program together."""

import logging
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from calque.core import source, trace_state
from calque.core.dims import Dim
from calque.core.jaxprs import ClosedJaxpr, Eqn, Jaxpr, all_equations, subjaxprs
from calque.core.primitives import Primitive, UndefinedPrimal, Zero
from calque.core.trace import JaxprTrace, eval_jaxpr
from calque.core.trace_state import Tracer
from calque.transforms.engines.linear import SplitProgram, linearize_jaxpr
from calque.transforms.engines.slices import (
    dead_code_rules,
    dependence_rules,
    dependent_results,
    hoisted,
    used_inputs,
    without_dead_code,
)
from calque.transforms.engines.zeros import nonzero, only_nonzero, with_zeros
from calque.transforms.primitives.call import CallPrimitive, inline_calls
from calque.transforms.primitives.callbacks import io_callback_p
from calque.transforms.primitives.flow import split
from calque.transforms.primitives.remat_parts import parts
from calque.transforms.primitives.remat_policies import Policy, nothing_saveable


def _name_jvp(primals: Sequence[Any], tangents: Sequence[Any], *, name: str) -> Any:
    (t,) = tangents
    return name_p.bind(*primals, name=name), (t if type(t) is Zero else name_p.bind(t, name=name))


name_p: Primitive = Primitive(
    "name",
    meaning=lambda x, *, name: x,
    shape=lambda x, *, name: x,
    jvp=_name_jvp,
    transpose=lambda ct, x, *, name: [ct],
    batch=lambda args, dims, *, name: (name_p.bind(args[0], name=name), dims[0]),
)


# ---------------------------------------------------------------- the call


class _Split(NamedTuple):
    """A function split for rematerialisation."""

    known: ClosedJaxpr  # arguments -> results, saved values
    again: ClosedJaxpr  # the arguments and saved values in `reads`, tangents -> tangents of results
    reads: tuple[bool, ...]
    nonzeros: tuple[bool, ...]


def _linearize(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    policy: Policy | None,
    **params: Any,
) -> Any:
    _refuse_effects(jaxpr)
    parts = _split(jaxpr, nonzero(tangents), policy)
    if _LOG.isEnabledFor(logging.DEBUG):
        _log_kept(parts)
    params = {**params, "policy": policy}
    again = {**params, "differentiated": True, "prevent_cse": _read_apart(params, parts.reads)}
    if any(
        isinstance(x, Tracer) for x in primals
    ):  # a derivative of this derivative shall keep as little
        found = remat_p.call(parts.known, primals, params)
    else:
        found = eval_jaxpr(parts.known.jaxpr, parts.known.consts, *primals)
    outs, saved = split(found, len(parts.nonzeros))
    with source.scope("rematted_computation"):  # by which profiles know it
        again_tangents = _tangents_again(remat_p, parts, [*primals, *saved], tangents, jaxpr, again)
    return outs, again_tangents


def _refuse_effects(closed: ClosedJaxpr) -> None:
    """What a Python function does outside of the program happens as often as the program says,
    which a second computation would double."""
    if "without effects" in closed.cache:
        return
    found = _io_callback(closed.jaxpr)
    if found is not None:
        raise NotImplementedError(
            "Effects not supported in partial-eval of `checkpoint`/`remat`: the backward pass may"
            f" compute the io_callback at {found.source} again, and its effect would happen twice."
            " Take it out of the rematerialised function, or use pure_callback."
        )
    closed.cache["without effects"] = True


def _io_callback(jaxpr: Jaxpr) -> Eqn | None:
    """The first equation, also in programs within, that calls a function with side effects."""
    for e in jaxpr.eqns:
        if e.primitive is io_callback_p:
            return e
        for inner in subjaxprs(e.params):
            if (found := _io_callback(inner)) is not None:
                return found
    return None


_LOG: Final = logging.getLogger("calque")


def _log_kept(parts: _Split) -> None:
    """Says what is kept for the second computation: operands, and results of operations."""
    known = parts.known.jaxpr
    makers = {v: e for e in known.eqns for v in e.outvars}
    kept = dict.fromkeys(known.outvars[len(parts.nonzeros) :])
    read = {v for v, r in zip((*known.invars, *kept), parts.reads) if r}
    inputs = [f"  {v.aval.str_short()}" for v in known.invars if v in read]
    made = [f"  {v.aval.str_short()} {_made_by(v, makers)}" for v in kept if v in makers]
    said = ["remat-decorated function saving inputs with shapes:", *inputs] if inputs else []
    if made:
        beginning = "and" if inputs else "remat-decorated function"
        said += [f"{beginning} saving these intermediates:", *made]
    if said:
        _LOG.debug("\n".join(said))


def _made_by(v: Any, makers: dict[Any, Eqn]) -> str:
    """The operation that made a value, those that made its operands, and the user's line."""
    e = makers[v]
    before = dict.fromkeys(makers[a].primitive.name for a in e.invars if a in makers)
    of = f" of {' and '.join(before)}" if before else ""
    return f"output of {e.primitive.name}{of} from {e.source}"


def _read_apart(params: dict[str, Any], reads: Sequence[bool]) -> bool | tuple[bool, ...]:
    """What is kept apart of the operands and saved values that the second computation reads."""
    apart: bool | tuple[bool, ...] = params["prevent_cse"]
    if not isinstance(apart, tuple):
        return apart
    saved = len(reads) - len(apart)
    return tuple([a for a, r in zip((*apart, *(True,) * saved), reads) if r])


def recomputed_tangents(
    primitive: CallPrimitive, primals: Sequence[Any], tangents: Sequence[Any], jaxpr: ClosedJaxpr
) -> list[Any]:
    """Tangents of the results of a call, by a call of this primitive that reads its operands alone
    and computes the rest again."""
    return _tangents_again(
        primitive, _split(jaxpr, nonzero(tangents), None), primals, tangents, jaxpr, {}
    )


def _tangents_again(
    primitive: CallPrimitive,
    parts: _Split,
    known: Sequence[Any],
    tangents: Sequence[Any],
    jaxpr: ClosedJaxpr,
    params: dict[str, Any],
) -> list[Any]:
    if not any(parts.nonzeros):
        return with_zeros([], parts.nonzeros, jaxpr.out_avals)
    given = [x for x, r in zip(known, parts.reads, strict=True) if r]
    found = primitive.call(parts.again, [*given, *only_nonzero(tangents)], params)
    return with_zeros(found, parts.nonzeros, jaxpr.out_avals)


def _split(closed: ClosedJaxpr, active: tuple[bool, ...], policy: Policy | None) -> _Split:
    key = ("remat", active, policy)
    if key not in closed.cache:
        closed.cache[key] = _splitted(closed, active, policy or nothing_saveable)
    return closed.cache[key]


def _splitted(closed: ClosedJaxpr, active: tuple[bool, ...], policy: Policy) -> _Split:
    lin = linearize_jaxpr(inline_calls(closed), active)
    n = len(lin.nonzeros)
    primal = inline_calls(lin.primal)
    j = primal.jaxpr
    places: dict[str, Sequence[Any]] = {"in": j.invars, "out": j.outvars, "new": j.outvars[n:]}
    residuals = [places[kind][i] for kind, i in lin.sources]
    first, eqns, saved = parts(j.eqns, residuals, policy, _speaks_of_sizes(lin.linear.jaxpr))
    known = ClosedJaxpr(
        without_dead_code(j.replace(eqns=first, outvars=[*j.outvars[:n], *saved])), primal.consts
    )
    again = j.replace(invars=[*j.invars, *saved], eqns=eqns, outvars=residuals)
    body = _with_recomputation(ClosedJaxpr(again, primal.consts), lin)
    n_first = len(again.invars)
    reads = used_inputs(body.jaxpr)[:n_first]
    kept = [v for v, r in zip(body.jaxpr.invars, reads) if r] + body.jaxpr.invars[n_first:]
    return _Split(
        known, ClosedJaxpr(body.jaxpr.replace(invars=kept), body.consts), tuple(reads), lin.nonzeros
    )


def _speaks_of_sizes(jaxpr: Jaxpr) -> bool:
    """Whether types within a program hold sizes that are no numbers."""
    made = (v.aval for e in all_equations(jaxpr) for v in e.outvars)
    return any(type(d) is Dim for aval in made for d in getattr(aval, "shape", ()))


def _with_recomputation(again: ClosedJaxpr, lin: SplitProgram) -> ClosedJaxpr:
    n = len(again.jaxpr.invars)

    def body(*args: Any) -> list[Any]:
        residuals = eval_jaxpr(again.jaxpr, again.consts, *args[:n])
        return eval_jaxpr(lin.linear.jaxpr, lin.linear.consts, *residuals, *args[n:])

    tangents = lin.linear.in_avals[len(lin.sources) :]
    trace = JaxprTrace("remat")
    trace.transposable = True
    with trace_state.recording(trace):
        return trace.finish(body(*[trace.new_argument(a) for a in (*again.in_avals, *tangents)]))


class RematPrimitive(CallPrimitive):
    """A call whose parameter `prevent_cse` may say of each operand whether it is kept apart.

    >>> f = jax.checkpoint(lambda w, x: w @ x, prevent_cse=(False, True))
    >>> jax.make_jaxpr(f)(jnp.ones((2, 2)), jnp.ones(2)).eqns[0].params["prevent_cse"]
    (False, True)"""

    __slots__ = ()

    def call(self, jaxpr: ClosedJaxpr, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """Binds the primitive. What a transformation reads besides, tangents and cotangents, is
        kept apart; what programs capture is not."""
        jaxpr, captured = hoisted(jaxpr)
        apart = params["prevent_cse"]
        if isinstance(apart, tuple):
            further = (True,) * (len(args) - len(apart))
            apart = (*(False,) * len(captured), *apart, *further)
        return super().call(jaxpr, [*captured, *args], {**params, "prevent_cse": apart})

    def transpose_rule(
        self, cts: Sequence[Any], *args: Any, jaxpr: ClosedJaxpr, **params: Any
    ) -> list[Any]:
        apart = params["prevent_cse"]
        if isinstance(apart, tuple):
            known = [type(x) is not UndefinedPrimal for x in args]
            params["prevent_cse"] = tuple([a for a, k in zip(apart, known, strict=True) if k])
        return super().transpose_rule(cts, *args, jaxpr=jaxpr, **params)


remat_p = RematPrimitive("remat2")
remat_p.linearize = _linearize
dead_code_rules["remat2"] = dead_code_rules["jit"]
dependence_rules["remat2"] = lambda e, unknown: dependent_results(e.params["jaxpr"], tuple(unknown))
