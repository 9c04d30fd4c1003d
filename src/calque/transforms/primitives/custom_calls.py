"""Calls with rules of the user: what `custom_jvp_call` and `custom_vjp_call` have in common.

While a program is recorded the function becomes an equation that holds its program and the Python
rule. Otherwise the function (or its rule) is simply called, so that Python control flow on concrete
values works inside it."""

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from calque.core import pytrees, reference, trace_state
from calque.core.avals import ShapedArray
from calque.core.errors import CustomVJPException, UnexpectedTracerError
from calque.core.jaxprs import ClosedJaxpr, Eqn
from calque.core.primitives import UndefinedPrimal, Zero
from calque.core.trace import JaxprTrace, eval_jaxpr, trace_to_jaxpr, typeof
from calque.core.trace_state import Tracer
from calque.ops.common import front
from calque.transforms.engines.axes import Axis, AxisPrimitive
from calque.transforms.engines.batching import BatchTrace, BatchTracer, Dim, batch
from calque.transforms.engines.jvp import JVPTracer
from calque.transforms.engines.slices import without_dead_code
from calque.transforms.engines.transpose import transpose_jaxpr
from calque.transforms.engines.trees import name_of
from calque.transforms.engines.wrapped import WrappedFun, wrap_init
from calque.transforms.engines.zeros import nonzero, only_nonzero
from calque.transforms.primitives.call import close_over_tracers

FlatCall = Callable[..., list[Any]]


class _Called:
    """A function, to be called as libraries do."""

    __slots__ = ("call_wrapped",)

    def __init__(self, call: Callable[..., Any]):
        self.call_wrapped = call


class CustomCallPrimitive(AxisPrimitive):
    """A call whose parameter `call_jaxpr` is a program, or a Python function as long as nothing
    records it."""

    __slots__ = ()

    def handed_to(
        self, trace: trace_state.Trace, args: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        """What the trace of a library makes of this call."""
        raise AssertionError("abstract")

    def rules_from(self, rules: Sequence[WrappedFun], params: dict[str, Any]) -> dict[str, Any]:
        """The parameters that say the rules, from the form in which traces of libraries have
        them."""
        raise AssertionError("abstract")

    def get_bind_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """The parameters, and beside them the function and its rules, which libraries call."""
        rules = [_Called(params[n]) for n in ("jvp", "fwd", "bwd") if n in params]
        return {**params, "subfuns": (_Called(as_function(params["call_jaxpr"])), *rules)}

    def bind(
        self,
        *args: Any,
        call_jaxpr: ClosedJaxpr | FlatCall | None = None,
        subfuns: Sequence[Any] = (),
        **params: Any,
    ) -> Any:
        """The results. `subfuns` are what `get_bind_params` added, and say the same as the other
        parameters; without these, they are the function and its rules as traces of libraries have
        them."""
        if call_jaxpr is None:
            fun, *rules = subfuns
            call_jaxpr = _leaves_of(fun)
            params = {
                "num_consts": 0,
                "name": fun.__name__,
                "symbolic_zeros": params["symbolic_zeros"],
                **self.rules_from(rules, params),
            }
        trace = trace_state.top_trace(args)
        if isinstance(trace, JaxprTrace) and not isinstance(call_jaxpr, ClosedJaxpr):
            call_jaxpr, consts = close_over_tracers(
                trace_to_jaxpr(call_jaxpr, [typeof(a) for a in args], params["name"])
            )
            params = {**params, "num_consts": params["num_consts"] + len(consts)}
            args = (*consts, *args)
            trace = trace_state.top_trace(args)  # what it captured may be of a higher level
        if trace.level == 0:
            outs = run_call(call_jaxpr, args)
        else:
            outs = trace.process(self, args, {"call_jaxpr": call_jaxpr, **params})
            if trace.level < trace_state.depth():
                outs = [_outermost_first(o) for o in outs]
        if any(_differentiates_captured(o, trace.level) for o in outs):
            _refuse_closure(params["name"], self.name.removesuffix("_call"))
        return outs


def _leaves_of(fun: WrappedFun) -> FlatCall:
    return lambda *args: list(fun.call_wrapped(*args))


def wrapped(call: Callable[..., Any], name: str) -> WrappedFun:
    """A function of leaves as traces of libraries are handed it."""

    def named(*args: Any) -> Any:
        return call(*args)

    named.__name__ = name
    return wrap_init(named)


def _outermost_first(x: Any) -> Any:
    """A result as a value of the innermost `vmap` among those that it comes from: where a rule
    captured a value of a `vmap` inside the transformation that called it, that one is outside."""
    if type(x) is JVPTracer:
        parts = [_outermost_first(p) for p in (x.primal, x.tangent)]
    elif type(x) is BatchTracer and type(x._trace) is BatchTrace:
        parts = [_outermost_first(x.val)]
    else:
        return x
    inner = [p._trace for p in parts if type(p) is BatchTracer and type(p._trace) is BatchTrace]
    trace = max(inner, key=lambda t: t.level, default=None)
    outer: Any = x._trace
    if trace is None or trace.level <= outer.level:
        return x
    if type(x) is JVPTracer:
        pairs = [trace.split(p) for p in parts]
        whole = [front(p, d, trace.axis.size) for p, d in pairs]
        return trace.tracer(_outermost_first(outer.tracer(*whole)), 0)
    (captured,) = parts
    val: Any = captured.val
    dim: Any = captured.dim
    own = x.dim if x.dim < dim else x.dim + 1
    lanes = dim if dim < own else dim - 1
    return trace.tracer(_outermost_first(outer.tracer(val, own)), lanes)


def run_call(call: ClosedJaxpr | FlatCall, args: Sequence[Any]) -> list[Any]:
    return (
        eval_jaxpr(call.jaxpr, call.consts, *args)
        if isinstance(call, ClosedJaxpr)
        else list(call(*args))
    )


def run_as_given(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], kind: str
) -> Any:
    """The results of a custom function that runs at once."""
    out = fun(*args, **kwargs)
    if any([isinstance(x, Tracer) and _differentiates_captured(x, 0) for x in pytrees.leaves(out)]):
        _refuse_closure(name_of(fun), kind)
    return out


def as_function(call: ClosedJaxpr | FlatCall) -> FlatCall:
    return lambda *args: run_call(call, args)


def call_meaning(*args: Any, call_jaxpr: ClosedJaxpr, **_: Any) -> list[Any]:
    return reference.run(call_jaxpr, *args)


def call_shape(*avals: ShapedArray, call_jaxpr: ClosedJaxpr, **_: Any) -> list[ShapedArray]:
    return call_jaxpr.out_avals


def call_transpose(cts: Sequence[Any], *args: Any, call_jaxpr: ClosedJaxpr, **_: Any) -> list[Any]:
    """A custom rule says nothing of transposes: that of the program itself."""
    linear = tuple([type(x) is UndefinedPrimal for x in args])
    back, mask = transpose_jaxpr(call_jaxpr, linear, nonzero(cts), any_precision=True)
    known = [x for x in args if type(x) is not UndefinedPrimal]
    outs = iter(eval_jaxpr(back.jaxpr, back.consts, *known, *only_nonzero(cts)))
    which = iter(mask)
    return [
        (next(outs) if next(which) else Zero(x.aval)) if lin else None
        for x, lin in zip(args, linear)
    ]


def batched_call(axis: Axis, call: ClosedJaxpr | FlatCall, dims: Sequence[Dim]) -> FlatCall:
    """The call over whole batches, with the batch dimension of every result first."""

    def batched(*args: Any) -> list[Any]:
        outs, found = batch(as_function(call), axis, args, dims)
        return [front(o, d, axis.size) for o, d in zip(outs, found)]

    return batched


def _differentiates_captured(x: Any, level: int) -> bool:
    """Whether a result of a call at this level has a tangent that comes from no operand."""
    while type(x) is BatchTracer and x._trace.level > level:
        x = x.val
    if type(x) is not JVPTracer or x._trace.level < level:
        return False
    return x._trace.level > level or any(
        type(part) is JVPTracer and part._trace is x._trace for part in (x.primal, x.tangent)
    )


def refuse_closures(name: str, tangents: Sequence[Any], kind: str) -> None:
    if any(type(t) is not Zero for t in tangents):
        _refuse_closure(name, kind)


def _refuse_closure(name: str, kind: str) -> NoReturn:
    error = CustomVJPException if kind == "custom_vjp" else UnexpectedTracerError
    raise error(
        f"Detected differentiation of the {kind} function {name} with respect to a closed-over"
        " value, which its rule says nothing of. Pass the value as an argument, or use"
        " closure_convert."
    )


def dead_code_of_custom_call(
    e: Eqn, used: Sequence[bool], rules: dict[str, Callable[..., Any]]
) -> Eqn | None:
    """The call without the results that nobody uses. Its operands stay, as its rule takes them;
    `rules` make, of each rule among the parameters, one that gives the used results alone."""
    closed: ClosedJaxpr = e.params["call_jaxpr"]
    if all(used):
        return e
    pruned = ClosedJaxpr(without_dead_code(closed.jaxpr, used), closed.consts)
    return e.replace(
        outvars=[v for v, u in zip(e.outvars, used) if u],
        params={
            **e.params,
            "call_jaxpr": pruned,
            **{name: made(e.params[name], tuple(used)) for name, made in rules.items()},
        },
    )
