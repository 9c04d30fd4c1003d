"""Programs recorded and pruned."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from calque.core.jaxprs import ClosedJaxpr, Eqn, Jaxpr
from calque.core.trace import JaxprTrace, JaxprTracer, trace_to_jaxpr, typeof
from calque.core.trace_state import Tracer, entered
from calque.machine.state import process
from calque.transforms.engines.slices import used_inputs, without_dead_code

DynamicJaxprTracer = JaxprTracer

# Rules by which JAX separates what is known of an equation, or prunes it. calque separates programs
# by jvp and transposition, and prunes whole equations; what libraries enter here is kept for those
# that read it.
custom_partial_eval_rules: Final[dict[Any, Callable[..., Any]]] = process.container(
    "rules of partial evaluation", {}
)
partial_eval_jaxpr_custom_rules: Final[dict[Any, Callable[..., Any]]] = process.container(
    "rules of partial evaluation of programs", {}
)
dce_rules: Final[dict[Any, Callable[..., Any]]] = process.container(
    "rules of dead code of users", {}
)


class PartialVal(tuple[Any, Any]):
    """A value that is known, or of which only the type is: (type or None, constant or None)."""

    @classmethod
    def known(cls, const: Any) -> "PartialVal":
        """A value that is known."""
        return cls((None, const))

    @classmethod
    def unknown(cls, aval: Any) -> "PartialVal":
        """A value of which only the type is known."""
        return cls((aval, None))

    def is_known(self) -> bool:
        """Whether the value is known."""
        return self[0] is None

    def get_known(self) -> Any:
        """The value, or None."""
        return self[1] if self.is_known() else None

    def get_aval(self) -> Any:
        """The type, or None for a known value."""
        return self[0]


def _wanted(what: bool | Sequence[bool], n: int) -> list[bool]:
    return [what] * n if isinstance(what, bool) else list(what)


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: bool | Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool]]:
    """The program with only the results that are used and what these need; and which arguments that
    are.

    >>> from calque.interpreters import partial_eval as pe
    >>> pe.dce_jaxpr(calque.make_jaxpr(lambda x, y: (x, y + 1))(1.0, 2.0).jaxpr, [True, False])[1]
    [True, False]"""
    pruned = without_dead_code(jaxpr, _wanted(used_outputs, len(jaxpr.outvars)))
    kept = _wanted(instantiate, len(jaxpr.invars))
    used = [u or k for u, k in zip(used_inputs(pruned), kept, strict=True)]
    return pruned.replace(invars=[v for v, u in zip(pruned.invars, used) if u]), used


def dce_jaxpr_consts(
    jaxpr: Jaxpr, used_outputs: bool | Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[bool], list[bool]]:
    """As `dce_jaxpr`, also without the constants that nobody reads; which constants and which
    arguments are used."""
    n = len(jaxpr.constvars)
    opened = jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])
    kept = [False] * n + _wanted(instantiate, len(jaxpr.invars))
    pruned, used = dce_jaxpr(opened, used_outputs, kept)
    count = sum(used[:n])
    return (
        pruned.replace(constvars=pruned.invars[:count], invars=pruned.invars[count:]),
        used[:n],
        used[n:],
    )


def _dce_call(
    used_outputs: Sequence[bool], eqn: Eqn, closed: bool
) -> tuple[list[bool], Eqn | None]:
    body = eqn.params["call_jaxpr"]
    if not any(used_outputs) and not body.effects:
        return [False] * len(eqn.invars), None
    inner = body.jaxpr if closed else body
    pruned, used = dce_jaxpr(inner, list(used_outputs))
    new = ClosedJaxpr(pruned, body.consts) if closed else pruned
    invars = [v for v, u in zip(eqn.invars, used) if u]
    outvars = [v for v, u in zip(eqn.outvars, used_outputs) if u]
    return used, eqn.replace(
        invars=invars, outvars=outvars, params={**eqn.params, "call_jaxpr": new}
    )


def dce_jaxpr_call_rule(used_outputs: Sequence[bool], eqn: Eqn) -> tuple[list[bool], Eqn | None]:
    """A call pruned, whose parameter `call_jaxpr` is a program without constants."""
    return _dce_call(used_outputs, eqn, False)


def dce_jaxpr_closed_call_rule(
    used_outputs: Sequence[bool], eqn: Eqn
) -> tuple[list[bool], Eqn | None]:
    """A call pruned, whose parameter `call_jaxpr` is a program with its constants."""
    return _dce_call(used_outputs, eqn, True)


def trace_to_jaxpr_dynamic(
    fun: Any,
    in_avals: Sequence[Any],
    *,
    keep_inputs: Sequence[bool] | None = None,
    lower: bool = False,
    auto_dce: bool = False,
) -> tuple[Jaxpr, list[Any], list[Any]]:
    """Record a function of flat arguments that returns a flat list: the program, the types of its
    results, its constants."""
    if lower:
        raise NotImplementedError("trace_to_jaxpr_dynamic: lower=True is not supported")
    call = getattr(fun, "call_wrapped", fun)
    kept = [True] * len(in_avals) if keep_inputs is None else list(keep_inputs)

    def chosen(args: Any) -> Any:
        return call(*[x for x, k in zip(args, kept, strict=True) if k])

    closed = trace_to_jaxpr(lambda *args: chosen(args), in_avals, getattr(fun, "__name__", ""))
    jaxpr = without_dead_code(closed.jaxpr) if auto_dce else closed.jaxpr
    return jaxpr, closed.out_avals, closed.consts


def trace_to_jaxpr_nounits(
    fun: Any, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """Run a function of flat arguments that returns a flat list, of which some arguments are known:
    what depends on these alone is computed, the rest is recorded.

    Returns the program of the rest, from the unknown arguments to the unknown results; all results,
    each known or a type; the constants of the program. Results marked by `instantiate` belong to
    the program though they are known."""
    call = getattr(fun, "call_wrapped", fun)
    trace = JaxprTrace(getattr(fun, "__name__", ""))
    with entered(trace):
        args = [p.get_known() if p.is_known() else trace.new_argument(p.get_aval()) for p in pvals]
        outs = list(call(*args))
        recorded = [isinstance(o, Tracer) and o._trace is trace for o in outs]
        kept = [r or w for r, w in zip(recorded, _wanted(instantiate, len(outs)), strict=True)]
        closed = trace.finish([o for o, k in zip(outs, kept) if k])
    found = [
        PartialVal.unknown(typeof(o)) if k else PartialVal.known(o) for o, k in zip(outs, kept)
    ]
    return closed.jaxpr, found, closed.consts
