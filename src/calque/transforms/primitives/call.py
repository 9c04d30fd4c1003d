"""Calls: the primitive `jit`, a program inside a program, and what all such primitives have in
common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from calque.core import reference, trace_state
from calque.core.jaxprs import ClosedJaxpr, DropVar, Eqn
from calque.core.primitives import UndefinedPrimal, Zero
from calque.core.trace import eval_jaxpr
from calque.transforms.engines.axes import Axis, AxisPrimitive
from calque.transforms.engines.batching import Dim, batch_jaxpr
from calque.transforms.engines.jvp import jvp_jaxpr
from calque.transforms.engines.linear import linearize_jaxpr
from calque.transforms.engines.slices import (
    dead_code_rules,
    dependence_rules,
    dependent_results,
    hoisted,
    used_inputs,
    without_dead_code,
)
from calque.transforms.engines.transpose import transpose_jaxpr
from calque.transforms.engines.zeros import nonzero, only_nonzero, with_zeros

Tangents = Sequence[Any]


def close_over_tracers(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """A traced program whose captured tracers have become leading arguments, and those tracers.

    Concrete arrays that it captured stay constants of the program."""
    return hoisted(closed)


class ProgramPrimitive(AxisPrimitive):
    """The program in the parameter `call`, with rules of its own; evaluated, it is the program
    itself."""

    __slots__ = ()

    def __init__(self, name: str, **rules: Any) -> None:
        super().__init__(
            name,
            meaning=lambda *args, call, **_: reference.run(call, *args),
            shape=lambda *avals, call, **_: call.out_avals,
            multiple_results=True,
            **rules,
        )

    def bind(self, *args: Any, **params: Any) -> Any:
        trace = trace_state.top_trace(args)
        if trace.level == 0:
            return eval_jaxpr(params["call"].jaxpr, params["call"].consts, *args)
        return trace.process(self, args, params)


class CallPrimitive(AxisPrimitive):
    """A primitive that runs the program in its parameter `jaxpr`. All rules transform that program.

    Args:
        name: Its name.
        adapt: Gives the parameters of the calls that come out of a transformation.
        **options: As of other primitives.

    >>> jax.make_jaxpr(jax.jit(jnp.sin))(1.0).eqns[0].primitive
    jit"""

    __slots__ = ("adapt",)

    def __init__(
        self,
        name: str,
        *,
        adapt: Callable[[dict[str, Any]], dict[str, Any]] = lambda params: params,
        **options: Any,
    ):
        super().__init__(
            name,
            meaning=lambda *args, jaxpr, **_: reference.run(jaxpr, *args),
            shape=lambda *avals, jaxpr, **_: jaxpr.out_avals,
            jvp=self.jvp_rule,
            linearize=self.linearize_rule,
            transpose=self.transpose_rule,
            batch=self.batch_rule,
            multiple_results=True,
            **options,
        )
        self.adapt = adapt

    def call(self, jaxpr: ClosedJaxpr, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """Binds the primitive; where the program does nothing, its results are given at once.

        Args:
            jaxpr: The program.
            args: The operands.
            params: The parameters.

        Returns:
            A list of results."""
        if not jaxpr.jaxpr.eqns and not jaxpr.jaxpr.constvars:
            return eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args)
        extra: list[Any]
        jaxpr, extra = hoisted(jaxpr)
        return self.bind(*extra, *args, jaxpr=jaxpr, **self.adapt(params))

    def jvp_rule(
        self, primals: Sequence[Any], tangents: Tangents, *, jaxpr: ClosedJaxpr, **params: Any
    ) -> Any:
        """Gives the results and their tangents.

        Args:
            primals: The operands.
            tangents: Their tangents, or Zero.
            jaxpr: The program.
            **params: Further parameters.

        Returns:
            A pair of lists."""
        both, mask = jvp_jaxpr(jaxpr, nonzero(tangents))
        outs = self.call(both, [*primals, *only_nonzero(tangents)], params)
        n = len(mask)
        return outs[:n], with_zeros(outs[n:], mask, jaxpr.out_avals)

    def linearize_rule(
        self, primals: Sequence[Any], tangents: Tangents, *, jaxpr: ClosedJaxpr, **params: Any
    ) -> Any:
        """Gives the results, and their tangents as linear functions of those of the operands.

        Args:
            primals: The operands.
            tangents: Their tangents, or Zero.
            jaxpr: The program.
            **params: Further parameters.

        Returns:
            A pair of lists."""
        lin = linearize_jaxpr(jaxpr, nonzero(tangents))
        n = len(lin.nonzeros)
        if not any(lin.nonzeros):
            outs = self.call(jaxpr, primals, params)
            return outs, with_zeros([], lin.nonzeros, jaxpr.out_avals)
        results = self.call(lin.primal, primals, params)
        outs = results[:n]
        residuals = lin.residuals(primals, outs, results[n:])
        out_tangents = self.call(lin.linear, [*residuals, *only_nonzero(tangents)], params)
        return outs, with_zeros(out_tangents, lin.nonzeros, jaxpr.out_avals)

    def transpose_rule(
        self, cts: Sequence[Any], *args: Any, jaxpr: ClosedJaxpr, **params: Any
    ) -> list[Any]:
        """Gives the cotangents of the linear operands.

        Args:
            cts: The cotangents of the results.
            *args: The operands, UndefinedPrimal for the linear ones.
            jaxpr: The program.
            **params: Further parameters.

        Returns:
            A list, with None for the other operands."""
        linear = tuple([type(x) is UndefinedPrimal for x in args])
        back, mask = transpose_jaxpr(jaxpr, linear, nonzero(cts), any_precision=True)
        known = [x for x in args if type(x) is not UndefinedPrimal]
        outs = iter(self.call(back, [*known, *only_nonzero(cts)], params))
        which = iter(mask)
        return [
            (next(outs) if next(which) else Zero(x.aval)) if lin else None
            for x, lin in zip(args, linear)
        ]

    def batch_rule(
        self,
        axis: Axis,
        args: Sequence[Any],
        dims: Sequence[Dim],
        *,
        jaxpr: ClosedJaxpr,
        **params: Any,
    ) -> Any:
        """Gives the results for a batch, and where their batch dimension is.

        Args:
            axis: The axis that is mapped.
            args: The operands.
            dims: Their batch dimensions, or None.
            jaxpr: The program.
            **params: Further parameters.

        Returns:
            A pair of lists."""
        batched, out_dims = batch_jaxpr(jaxpr, axis, tuple(dims))
        return self.call(batched, args, params), list(out_dims)


def dead_code_of_call(e: Eqn, used: Sequence[bool]) -> Eqn | None:
    """A call without the results that nobody uses, and without the operands that only those
    needed."""
    closed: ClosedJaxpr = e.params["jaxpr"]
    key = ("dead", tuple(used))
    if key not in closed.cache:
        jaxpr = without_dead_code(closed.jaxpr, used)
        reads = used_inputs(jaxpr)
        jaxpr = jaxpr.replace(invars=[v for v, r in zip(jaxpr.invars, reads) if r])
        closed.cache[key] = ClosedJaxpr(jaxpr, closed.consts), reads
    pruned, reads = closed.cache[key]
    return e.replace(
        invars=[a for a, r in zip(e.invars, reads) if r],
        outvars=[v for v, u in zip(e.outvars, used) if u],
        params={**e.params, "jaxpr": pruned, **_adapted(e.params, reads)},
    )


def _adapted(params: dict[str, Any], reads: Sequence[bool]) -> dict[str, Any]:
    """The parameters that say something of each operand, of those that are read."""
    said = {k: params[k] for k in ("donated_invars", "prevent_cse") if k in params}
    return {
        k: tuple([x for x, r in zip(each, reads, strict=True) if r])
        for k, each in said.items()
        if isinstance(each, tuple)
    }


# ---------------------------------------------------------------- jit

_DEFAULTS: Final[dict[str, Any]] = {"inline": False, "keep_unused": False, "donated_invars": None}


def _jit_hidden(params: dict[str, Any]) -> list[str]:
    """JAX prints the name, the program, and what is not as usual."""
    return [
        k
        for k, v in params.items()
        if k not in ("name", "jaxpr")
        and (
            k not in _DEFAULTS
            or v == _DEFAULTS[k]
            or not v
            or not any(v if isinstance(v, tuple) else (v,))
        )
    ]


def _not_donated(params: dict[str, Any]) -> dict[str, Any]:
    """What comes out of a transformation reads operands that others may need too: none of them is
    donated."""
    return {k: v for k, v in params.items() if k != "donated_invars"}


def _plain(params: dict[str, Any]) -> dict[str, Any]:
    """What comes out of a transformation is a call like others."""
    return {k: v for k, v in params.items() if k != "otherwise"}


class _JitPrimitive(CallPrimitive):
    __slots__ = ()

    def handed_to(
        self, trace: trace_state.Trace, args: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        """Traces of libraries are told what is as usual, too."""
        usual = {**_DEFAULTS, "donated_invars": (False,) * len(args)}
        return trace.process_primitive(self, args, {**usual, **params})


jit_p = _JitPrimitive("jit", adapt=_not_donated, hidden=_jit_hidden)
# `otherwise` is a program of the same operands that gives the first results by itself: it takes the
# place of the call where nobody reads the others
closed_call_p = CallPrimitive("closed_call", adapt=_plain, hidden=("otherwise",))
call_p = CallPrimitive("call")  # which libraries bind, and calque does not


def _dead_code_of_closed_call(e: Eqn, used: Sequence[bool]) -> Eqn | None:
    otherwise: ClosedJaxpr | None = e.params.get("otherwise")
    if otherwise is None:
        return dead_code_of_call(e, used)
    n = len(otherwise.out_avals)
    if any(used[n:]):
        outvars = [v if u else DropVar(v.aval) for v, u in zip(e.outvars, used)]
        return e.replace(outvars=outvars)
    alone = e.replace(outvars=e.outvars[:n], params={**_plain(e.params), "jaxpr": otherwise})
    return dead_code_of_call(alone, used[:n])


for _name in ("jit", "closed_call", "call"):
    dead_code_rules[_name] = dead_code_of_call
    dependence_rules[_name] = lambda e, unknown: dependent_results(
        e.params["jaxpr"], tuple(unknown)
    )
dead_code_rules["closed_call"] = _dead_code_of_closed_call


def inline_calls(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with its `jit` calls replaced by their equations, at every depth."""
    if not any(e.primitive is jit_p for e in closed.eqns):
        return closed
    if "inlined" not in closed.cache:
        closed.cache["inlined"] = _inlined(closed)
    return closed.cache["inlined"]


def _inlined(closed: ClosedJaxpr) -> ClosedJaxpr:
    consts = list(zip(closed.jaxpr.constvars, closed.consts))
    eqns: list[Eqn] = []
    names: dict[Any, Any] = {}
    # an explicit stack of (equations left, in reverse, and what to do once they are through)
    todo: list[Any] = list(reversed(closed.eqns))
    while todo:
        e = todo.pop()
        if callable(e):
            e()
            continue
        args = [names.get(a, a) for a in e.invars]
        if e.primitive is not jit_p:
            eqns.append(e if args == e.invars else e.replace(invars=args))
            continue
        todo += _opened(e, args, names, consts)
    jaxpr = closed.jaxpr.replace(
        constvars=[v for v, _ in consts],
        eqns=eqns,
        outvars=[names.get(a, a) for a in closed.jaxpr.outvars],
    )
    return ClosedJaxpr(jaxpr, [c for _, c in consts])


def _opened(e: Eqn, args: list[Any], names: dict[Any, Any], consts: list[Any]) -> list[Any]:
    """The equations of a call with fresh variables, last first, and what gives its results their
    names."""
    inner: ClosedJaxpr = e.params["jaxpr"]
    fresh: dict[Any, Any] = dict(zip(inner.jaxpr.invars, args))
    for v, c in zip(inner.jaxpr.constvars, inner.consts):
        fresh[v] = type(v)(v.aval)
        consts.append((fresh[v], c))
    body: list[Any] = []
    for q in inner.eqns:
        for v in q.outvars:
            fresh[v] = type(v)(v.aval)
        body.append(
            q.replace(
                invars=[fresh.get(a, a) for a in q.invars], outvars=[fresh[v] for v in q.outvars]
            )
        )

    def name_results() -> None:
        for v, a in zip(e.outvars, inner.jaxpr.outvars):
            a = fresh.get(a, a)
            names[v] = names.get(a, a)

    return [name_results, *reversed(body)]
