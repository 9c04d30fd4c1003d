"""Linearisation: results now, and the derivative at this point as a linear program (the tape).

Operations on values run where they would have run; operations that touch a tangent are recorded on
the tape, which belongs to a higher level. So nothing needs to be separated afterwards: what the
tape reads from outside are the residuals.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from calque.core import leaks, source, trace_state
from calque.core.arrays import ArrayImpl
from calque.core.avals import ShapedArray
from calque.core.jaxprs import ClosedJaxpr, Literal, Var
from calque.core.primitives import REGISTRY, Primitive, Zero
from calque.core.trace import (
    JaxprTrace,
    JaxprTracer,
    jaxpr_as_fun,
    literal_value,
    placed_typeof,
    typeof,
)
from calque.core.trace_state import Tracer
from calque.ops.common import zero_of
from calque.transforms.engines.jvp import JVPTrace, auxiliary
from calque.transforms.engines.scopes import transformed
from calque.transforms.engines.slices import dependence_rules, pruned, split_equation
from calque.transforms.engines.zeros import has_tangent, nonzero, only_nonzero


class Tape(JaxprTrace):
    """Records what happens to tangents."""

    lenient = transposable = True

    def atom(self, x: Any) -> Var | Literal:
        """A number that was computed is a residual too, not part of the program: the programs at
        other points are the same."""
        if type(x) is ArrayImpl and not x.aval.shape:
            return self.constant_variable(x)
        return super().atom(x)

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Results of a call over values and tangents that depend on values alone are known now:
        they leave the tape."""
        recorded = super().process(primitive, args, params)
        if primitive.name not in dependence_rules:
            return recorded
        e = self.eqns[-1]
        known, rest = split_equation(e, [isinstance(a, Tracer) and a._trace is self for a in args])
        if known is None:
            return recorded
        if rest is None:
            self.eqns.pop()
        values = dict(zip(e.invars, args))
        outs = known.primitive.bind(
            *[literal_value(a) if isinstance(a, Literal) else values[a] for a in known.invars],
            **known.params,
        )
        found = dict(zip(known.outvars, outs))
        return [found.get(v, t) for v, t in zip(e.outvars, recorded)]

    def zeros(self, aval: ShapedArray) -> Any:
        """Zeros that are made on the tape: no residual."""
        zero = zero_of(aval)
        if not aval.shape:
            return zero
        params = {"shape": aval.shape, "broadcast_dimensions": (), "sharding": None}
        return self.process(REGISTRY["broadcast_in_dim"], [zero], params)


class LinearizeTrace(JVPTrace):
    """As JVPTrace; higher-order primitives say how they split into what is known now and what goes
    on the tape."""

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        rule = primitive.linearize
        if rule is None:
            return super().process(primitive, args, params)
        primals, tangents = self.unzip(args)
        outs, out_tangents = rule(primals, tangents, **params)
        if primitive.multiple_results:
            return [self.tracer(p, t) for p, t in zip(outs, out_tangents, strict=True)]
        return self.tracer(outs, out_tangents)


class Linear(NamedTuple):
    """Results, which of their tangents are not zero, and the program from tangents to those
    tangents."""

    outs: list[Any]
    nonzeros: tuple[bool, ...]
    tape: ClosedJaxpr


def linearize(
    fun: Callable[..., Sequence[Any]],
    primals: Sequence[Any],
    active: Sequence[bool],
    instantiated: Sequence[bool] = (),
) -> Linear:
    """Linearise a function of flat arguments at `primals` in the arguments that are `active` (and
    not integers).

    The results in `instantiated` have a tangent on the tape though it be zero."""
    trace, tape, around = LinearizeTrace(), Tape(), source.scopes()
    with trace_state.entered(trace), trace_state.entered(tape), transformed("jvp"):
        outs = fun(
            *[
                trace.tracer(p, tape.new_argument(placed_typeof(p))) if a else p
                for p, a in zip(primals, active, strict=True)
            ]
        )
        pairs = [trace.split(o) for o in outs]
        tangents = [t for _, t in pairs]
        for i, wanted in enumerate(instantiated):
            if wanted and type(tangents[i]) is Zero and has_tangent(typeof(pairs[i][0])):
                tangents[i] = tape.zeros(tangents[i].aval)
        closed = tape.finish(only_nonzero(tangents))
    if around:  # the tape is transposed elsewhere
        for e in closed.eqns:
            e.source = source.since(around, e.source)
    values, nonzeros = [p for p, _ in pairs], nonzero(tangents)
    del outs, pairs, tangents
    leaks.check([trace, tape], auxiliary(fun))
    return Linear(values, nonzeros, pruned(closed))


# ---------------------------------------------------------------- programs


class SplitProgram(NamedTuple):
    """A program split in two.

    primal   arguments -> results, new residuals
    linear   residuals, tangents of the active arguments -> tangents of the results in `nonzeros`
    sources  where each residual comes from: ("in", i) an argument, ("out", i) a result, ("new", i)
    a new residual
    """

    primal: ClosedJaxpr
    linear: ClosedJaxpr
    nonzeros: tuple[bool, ...]
    sources: tuple[tuple[str, int], ...]

    def residuals(self, args: Sequence[Any], outs: Sequence[Any], new: Sequence[Any]) -> list[Any]:
        places = {"in": args, "out": outs, "new": new}
        return [places[kind][i] for kind, i in self.sources]


def linearize_jaxpr(
    closed: ClosedJaxpr, active: tuple[bool, ...], instantiated: tuple[bool, ...] = ()
) -> SplitProgram:
    """Split a program at its tangents; `active` says which arguments have tangents.

    The results in `instantiated` have a tangent though it be zero."""
    if any(instantiated):
        found = linearize_jaxpr(closed, active)
        if all(n or not w for n, w in zip(found.nonzeros, instantiated, strict=True)):
            return found
    else:
        instantiated = ()
    key = ("linearize", active, instantiated)
    if key not in closed.cache:
        closed.cache[key] = _linearize_jaxpr(closed, active, instantiated)
    return closed.cache[key]


def _linearize_jaxpr(
    closed: ClosedJaxpr, active: tuple[bool, ...], instantiated: tuple[bool, ...]
) -> SplitProgram:
    record = JaxprTrace("linearize")
    record.lenient = True
    with trace_state.recording(record):
        args = [record.new_argument(a) for a in closed.in_avals]
        outs, nonzeros, tape = linearize(jaxpr_as_fun(closed), args, active, instantiated)
        out_atoms = [record.atom(o) for o in outs]
        linear, values = split_constants(tape, record)
        sources, new = _sources(values, record.invars, out_atoms)
        primal = pruned(record.finish([*outs, *new]))
    return SplitProgram(primal, linear, nonzeros, sources)


def split_constants(tape: ClosedJaxpr, record: JaxprTrace) -> tuple[ClosedJaxpr, list[JaxprTracer]]:
    """Constants of the tape that are values of `record` become leading arguments; the others
    stay."""
    own = [isinstance(c, JaxprTracer) and c._trace is record for c in tape.consts]
    jaxpr = tape.jaxpr
    moved = [v for v, o in zip(jaxpr.constvars, own) if o]
    kept = [v for v, o in zip(jaxpr.constvars, own) if not o]
    linear = ClosedJaxpr(
        jaxpr.replace(constvars=kept, invars=moved + jaxpr.invars),
        [c for c, o in zip(tape.consts, own) if not o],
    )
    return linear, [c for c, o in zip(tape.consts, own) if o]


def _sources(
    values: Sequence[JaxprTracer], invars: Sequence[Var], outs: Sequence[Any]
) -> tuple[tuple[tuple[str, int], ...], list[JaxprTracer]]:
    places: dict[Any, tuple[str, int]] = {v: ("out", i) for i, v in enumerate(outs)}
    places.update((v, ("in", i)) for i, v in enumerate(invars))
    new: list[JaxprTracer] = []
    sources = []
    for t in values:
        if t._var not in places:
            places[t._var] = ("new", len(new))
            new.append(t)
        sources.append(places[t._var])
    return tuple(sources), new
