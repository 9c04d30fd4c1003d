"""Forward-mode differentiation: a trace whose values carry a tangent beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from calque.core import leaks, pytrees, trace_state
from calque.core.jaxprs import ClosedJaxpr
from calque.core.primitives import Primitive, Zero
from calque.core.source import at_one_place
from calque.core.trace import check_alive, jaxpr_as_fun, leaked, placed_typeof, trace_to_jaxpr
from calque.core.trace_state import OwnTracer, Trace, Tracer
from calque.machine.state import Hook, process
from calque.transforms.engines.scopes import transformed
from calque.transforms.engines.zeros import (
    instantiate,
    nonzero,
    only_nonzero,
    tangent_aval,
    value_has_tangent,
    with_zeros,
    zero_like,
)


def _unmixed(
    level: int,
    primitive: Primitive,
    primals: Sequence[Any],
    tangents: list[Any],
    params: dict[str, Any],
) -> list[Any]:
    return tangents


# what happens to the tangents of operands of which only some vary along the axes of a `shard_map`
mixing: Final[Hook[Callable[..., list[Any]]]] = process.hook("mixed tangents", _unmixed)


class JVPTracer(OwnTracer):
    """A value with its tangent, which is never a Zero: values without one stay as they are."""

    __slots__ = ("primal", "tangent")

    primal: Any
    tangent: Any


class JVPTrace(Trace):
    """Applies the jvp rule of each primitive to the values it is asked about."""

    function = ""

    def tracer(self, primal: Any, tangent: Any) -> Any:
        if type(tangent) is Zero:
            return primal
        t = JVPTracer()
        t._trace, t.aval, t.primal, t.tangent = self, placed_typeof(primal), primal, tangent
        return t

    def split(self, x: Any) -> tuple[Any, Any]:
        """The value and its tangent."""
        if type(x) is JVPTracer and x._trace is self:
            return x.primal, x.tangent
        if isinstance(x, Tracer):
            check_alive(x)
        return x, zero_like(x)

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        primals, tangents = self.unzip(args)
        if len(args) > 1:
            tangents = mixing.call(self.level, primitive, primals, tangents, params)
        if type(primitive) is Primitive:  # one of calque: its rule is no code of the user
            outs, out_tangents = at_one_place(primitive.jvp, primals, tangents, **params)
        else:
            outs, out_tangents = primitive.jvp(primals, tangents, **params)
        if primitive.multiple_results:
            return [self.tracer(p, t) for p, t in zip(outs, out_tangents, strict=True)]
        return self.tracer(outs, out_tangents)

    def unzip(self, args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        if self.done:
            raise leaked(next((a for a in args if isinstance(a, Tracer)), None), self)
        primals, tangents = [], []
        for a in args:
            if type(a) is JVPTracer and a._trace is self:
                primals.append(a.primal)
                tangents.append(a.tangent)
            else:
                primals.append(a)
                tangents.append(zero_like(a))
        return primals, tangents


def jvp(
    fun: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Results of `fun`, a function of flat arguments with a flat list of results, and their
    tangents (some may be Zero)."""
    trace = JVPTrace()
    with trace_state.entered(trace), transformed("jvp"):
        outs = fun(*[trace.tracer(p, t) for p, t in zip(primals, tangents, strict=True)])
        pairs = [trace.split(o) for o in outs]
    del outs
    leaks.check([trace], auxiliary(fun))
    return [p for p, _ in pairs], [t for _, t in pairs]


def auxiliary(fun: Any) -> list[Any]:
    """The traced values of an auxiliary output, which are lowered later."""
    found = pytrees.leaves(getattr(fun, "aux", None))
    for x in found:  # grows meanwhile: what they hold
        if isinstance(x, JVPTracer):
            found += [x.primal, x.tangent]
    return found


def lowered(tree: Any) -> Any:
    """The values of a tree that left a differentiation by another door than its results (auxiliary
    outputs)."""

    def lower(x: Any) -> Any:
        while type(x) is JVPTracer and x._trace.done:
            x = x.primal
        return x

    return pytrees.tree_map(lower, tree)


def jvp_jaxpr(
    closed: ClosedJaxpr, nonzeros: tuple[bool, ...], instantiated: bool | tuple[bool, ...] = False
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """The program of (arguments, tangents that are not zero) -> (results, tangents that are not
    zero), and which these are.

    `instantiated` asks for tangents of results though they be zero; results without tangents
    (integers) never have any.
    """
    if isinstance(instantiated, tuple):
        found = jvp_jaxpr(closed, nonzeros)
        if all(n or not w for n, w in zip(found[1], instantiated, strict=True)):
            return found
    key = ("jvp", nonzeros, instantiated)
    if key not in closed.cache:
        closed.cache[key] = _jvp_jaxpr(closed, nonzeros, instantiated)
    return closed.cache[key]


def _jvp_jaxpr(
    closed: ClosedJaxpr, nonzeros: tuple[bool, ...], instantiated: bool | tuple[bool, ...]
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    avals = closed.in_avals
    mask: tuple[bool, ...] = ()
    wanted = (
        (instantiated,) * len(closed.jaxpr.outvars)
        if isinstance(instantiated, bool)
        else instantiated
    )

    def both(*args: Any) -> list[Any]:
        nonlocal mask
        primals = args[: len(avals)]
        outs, tangents = jvp(
            jaxpr_as_fun(closed), primals, with_zeros(args[len(avals) :], nonzeros, avals)
        )
        tangents = [
            instantiate(t) if w and value_has_tangent(o) else t
            for o, t, w in zip(outs, tangents, wanted, strict=True)
        ]
        mask = nonzero(tangents)
        return outs + only_nonzero(tangents)

    tangent_avals = [tangent_aval(a) for a, nz in zip(avals, nonzeros, strict=True) if nz]
    return trace_to_jaxpr(both, avals + tangent_avals, "jvp", lenient=True), mask
