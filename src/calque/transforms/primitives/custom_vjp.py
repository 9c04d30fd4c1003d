"""Calls with a reverse-mode rule of their own: the primitives `custom_vjp_call` and `custom_lin`.

Under differentiation the forward rule is called at once. What it leaves for the backward rule goes
on the tape as one equation, `custom_lin`, whose transpose is the backward rule. Away from a tape,
in forward mode, that equation is the transpose of the backward rule: so one definition serves both
modes."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from calque.core import pytrees, trace_state
from calque.core.arrays import to_numpy
from calque.core.avals import ShapedArray
from calque.core.jaxprs import ClosedJaxpr, Var
from calque.core.primitives import NotApplicable, Primitive, UndefinedPrimal, Zero, do
from calque.core.trace import JaxprTrace, trace_to_jaxpr, typeof
from calque.ops.common import front, instantiate
from calque.transforms.engines.axes import Axis
from calque.transforms.engines.batching import Dim, batch, placed
from calque.transforms.engines.slices import dead_code_rules
from calque.transforms.engines.transpose import backward_pass, of_precision
from calque.transforms.engines.trees import name_of
from calque.transforms.engines.wrapped import WrappedFun
from calque.transforms.engines.zeros import (
    as_meant,
    as_seen,
    has_tangent,
    nonzero,
    only_nonzero,
    tangent_aval,
    with_zeros,
    zero_like,
)
from calque.transforms.primitives.call import close_over_tracers, closed_call_p
from calque.transforms.primitives.custom_calls import (
    CustomCallPrimitive,
    FlatCall,
    as_function,
    batched_call,
    call_meaning,
    call_shape,
    call_transpose,
    dead_code_of_custom_call,
    refuse_closures,
    wrapped,
)
from calque.transforms.primitives.flow import split


class ForwardResult(NamedTuple):
    """What a forward rule gives: results, residuals, and the backward rule (residuals, cotangents)
    -> cotangents of arguments."""

    outs: list[Any]
    residuals: list[Any]
    backward: "Backward"


Backward = Callable[[Sequence[Any], Sequence[Any]], list[Any]]


# ---------------------------------------------------------------- custom_lin: the linear map whose


class _LinearPrimitive(Primitive):
    """Recorded as it is where programs are to be transposed; anywhere else it is worked out at
    once."""

    __slots__ = ()

    def bind(self, *args: Any, **params: Any) -> Any:
        trace = trace_state.top_trace(args)
        if isinstance(trace, JaxprTrace) and trace.transposable:
            return trace.process(self, args, params)
        return _forward(args, **params)


def _forward(
    args: Sequence[Any],
    *,
    backward: Backward,
    num_res: int,
    active: Sequence[bool],
    in_avals: Any,
    out_avals: Any,
    name: str,
) -> list[Any]:
    """The tangents of the results: the backward rule, transposed."""
    residuals, tangents = split(args, num_res)
    wanted = [a for a in out_avals if has_tangent(a)]
    of_user = getattr(backward, "forward", None)
    if of_user is not None:
        given = with_zeros(tangents, active, in_avals)
        found = [o for o, a in zip(of_user(residuals, given), out_avals) if has_tangent(a)]
        return [instantiate(of_precision(o, a)) for o, a in zip(found, wanted, strict=True)]

    def rule(*cts: Any) -> list[Any]:
        found = backward(residuals, with_zeros(cts, [has_tangent(a) for a in out_avals], out_avals))
        return [instantiate(ct) for ct, a in zip(found, active) if a]

    try:
        closed = trace_to_jaxpr(rule, [tangent_aval(a) for a in wanted], name)
        outs = backward_pass(
            closed.jaxpr, closed.consts, [UndefinedPrimal(a) for a in closed.in_avals], tangents
        )
    except NotImplementedError as e:
        raise TypeError(
            f"can't apply forward-mode autodiff (jvp) to the custom_vjp function {name}: its bwd"
            f" rule cannot be transposed ({e}). Write the rule with operations that are linear in"
            " the cotangent, or use custom_jvp."
        ) from e
    return [instantiate(of_precision(o, a)) for o, a in zip(outs, wanted, strict=True)]


def _lin_meaning(*args: np.ndarray, **params: Any) -> list[np.ndarray]:
    with trace_state.evaluating():
        return [to_numpy(o) for o in _forward(args, **params)]


def _lin_shape(
    *avals: ShapedArray, out_avals: Sequence[ShapedArray], **_: Any
) -> list[ShapedArray]:
    return [tangent_aval(a) for a in out_avals if has_tangent(a)]


def _lin_transpose(
    cts: Sequence[Any],
    *args: Any,
    backward: Backward,
    num_res: int,
    active: Sequence[bool],
    in_avals: Any,
    out_avals: Any,
    name: str,
) -> list[Any]:
    given = iter(cts)
    full = [next(given) if has_tangent(a) else Zero(tangent_aval(a)) for a in out_avals]
    found = [ct for ct, a in zip(backward(args[:num_res], full), active) if a]
    return [None] * num_res + [
        ct if type(x) is UndefinedPrimal else None for x, ct in zip(args[num_res:], found)
    ]


_ON_TAPE = NotApplicable(
    "custom_lin is worked out where something is differentiated or batched: it is not bound there"
)

custom_lin_p = _LinearPrimitive(
    "custom_lin",
    meaning=_lin_meaning,
    shape=_lin_shape,
    jvp=_ON_TAPE,
    transpose=_lin_transpose,
    batch=_ON_TAPE,
    multiple_results=True,
    hidden=("active", "in_avals", "out_avals", "name"),
)
custom_lin_p.program = lambda *args, **params: _forward(args, **params)


# ---------------------------------------------------------------- custom_vjp_call


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    call_jaxpr: Any,
    fwd: Any,
    bwd: Any,
    num_consts: int,
    name: str,
    symbolic_zeros: bool,
) -> Any:
    if not any(nonzero(tangents)):
        params = {
            "fwd": fwd,
            "bwd": bwd,
            "num_consts": num_consts,
            "name": name,
            "symbolic_zeros": symbolic_zeros,
        }
        outs = custom_vjp_call_p.bind(*primals, call_jaxpr=call_jaxpr, **params)
        return outs, [zero_like(o) for o in outs]
    refuse_closures(name, tangents[:num_consts], "custom_vjp")
    operands, primals, tangents = primals, primals[num_consts:], tangents[num_consts:]
    active = nonzero(tangents)
    forward: ForwardResult = (
        _replaceable(fwd, call_jaxpr, operands, num_consts, active)
        if optimizes_remat(fwd) and type(trace_state.top_trace(operands)) is JaxprTrace
        else fwd(primals, active)
    )
    out_avals = tuple([typeof(o) for o in forward.outs])
    found = iter(
        custom_lin_p.bind(
            *forward.residuals,
            *only_nonzero(tangents),
            backward=forward.backward,
            num_res=len(forward.residuals),
            active=active,
            in_avals=tuple([typeof(x) for x in primals]),
            out_avals=out_avals,
            name=name,
        )
    )
    return forward.outs, [
        next(found) if has_tangent(a) else Zero(tangent_aval(a)) for a in out_avals
    ]


def optimizes_remat(fwd: Any) -> bool:
    """Whether the function runs in place of its forward rule where nobody reads residuals."""
    return getattr(fwd, "optimize_remat", False)


def _replaceable(
    fwd: Any, call: Any, operands: Sequence[Any], num_consts: int, active: Sequence[bool]
) -> ForwardResult:
    """What the forward rule gives, as one equation that knows the function: rematerialisation,
    which computes residuals again, then runs the function alone in the first computation."""
    inner: list[ForwardResult] = []

    def forward(*args: Any) -> list[Any]:
        found = fwd(args[num_consts:], active)
        inner[:] = [found]
        return [*found.outs, *found.residuals]

    avals = [typeof(x) for x in operands]
    rule, captured = close_over_tracers(trace_to_jaxpr(forward, avals, name_of(fwd)))
    primal = call if isinstance(call, ClosedJaxpr) else trace_to_jaxpr(call, avals, name_of(fwd))
    primal, captured_too = close_over_tracers(primal)
    unread, unread_too = ([Var(typeof(x)) for x in xs] for xs in (captured, captured_too))
    n = len(captured)
    outs = closed_call_p.bind(
        *(*captured, *captured_too, *operands),
        jaxpr=_taking(rule, [*rule.jaxpr.invars[:n], *unread_too, *rule.jaxpr.invars[n:]]),
        otherwise=_taking(primal, [*unread, *primal.jaxpr.invars]),
    )
    m = len(inner[0].outs)
    return ForwardResult(outs[:m], outs[m:], inner[0].backward)


def _taking(closed: ClosedJaxpr, invars: Sequence[Var]) -> ClosedJaxpr:
    return ClosedJaxpr(closed.jaxpr.replace(invars=list(invars)), closed.consts)


def _batch(
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    *,
    call_jaxpr: ClosedJaxpr | FlatCall,
    fwd: Any,
    bwd: Any,
    num_consts: int,
    name: str,
    symbolic_zeros: bool,
) -> Any:
    outs = custom_vjp_call_p.bind(
        *args,
        call_jaxpr=batched_call(axis, call_jaxpr, dims),
        fwd=_BatchedForward(axis, fwd, tuple(dims[num_consts:])),
        bwd=bwd,
        num_consts=num_consts,
        name=name,
        symbolic_zeros=symbolic_zeros,
    )
    return outs, [0] * len(outs)


class _BatchedForward:
    """A forward rule over whole batches."""

    def __init__(self, axis: Axis, rule: Any, dims: tuple[Dim, ...]):
        self.axis, self.rule, self.dims = axis, rule, dims
        self.__name__, self.optimize_remat = name_of(rule), optimizes_remat(rule)

    def __call__(self, primals: Sequence[Any], active: Sequence[bool]) -> ForwardResult:
        inner: list[ForwardResult] = []

        def flat(*args: Any) -> list[Any]:
            found = self.rule(args, active)
            inner[:] = [found]
            return [*found.outs, *found.residuals]

        found, dims = batch(flat, self.axis, primals, self.dims)
        n = len(inner[0].outs)
        outs = [front(o, d, self.axis.size) for o, d in zip(found[:n], dims)]
        backward = _BatchedBackward(self.axis, inner[0].backward, tuple(dims[n:]), self.dims)
        return ForwardResult(outs, found[n:], backward)


class _BatchedBackward:
    """A backward rule over whole batches: cotangents of arguments that all lanes share are
    summed."""

    def __init__(
        self, axis: Axis, rule: Backward, res_dims: tuple[Dim, ...], arg_dims: tuple[Dim, ...]
    ):
        self.axis, self.rule, self.res_dims, self.arg_dims = axis, rule, res_dims, arg_dims

    def __call__(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        n, mask, zeros = len(residuals), nonzero(cts), list[Any]()
        lane = [
            Zero(ShapedArray(ct.aval.shape[1:], ct.aval.dtype)) if type(ct) is Zero else None
            for ct in cts
        ]

        def flat(*args: Any) -> list[Any]:
            given = iter(args[n:])
            found = self.rule(args[:n], [next(given) if m else z for m, z in zip(mask, lane)])
            zeros[:] = [ct if type(ct) is Zero else None for ct in found]
            return only_nonzero(found)

        dims = [*self.res_dims, *(0 for m in mask if m)]
        found, found_dims = batch(flat, self.axis, [*residuals, *only_nonzero(cts)], dims)
        rest = iter(zip(found, found_dims))
        return [self.given_back(z, d, rest) for z, d in zip(zeros, self.arg_dims, strict=True)]

    def given_back(self, zero: Any, dim: Dim, rest: Any) -> Any:
        size = self.axis.size
        if zero is not None:
            shape = zero.aval.shape
            full = shape if dim is None else (*shape[:dim], size, *shape[dim:])
            return Zero(ShapedArray(full, zero.aval.dtype))
        x, d = next(rest)
        if dim is not None:
            return placed(x, d, dim, size)
        return do.reduce_sum(front(x, d, size), axes=(0,))


class _UsedForward:
    """A forward rule that gives the used results alone."""

    def __init__(self, rule: Any, used: tuple[bool, ...]):
        self.rule, self.used = rule, used
        self.__name__, self.optimize_remat = name_of(rule), optimizes_remat(rule)

    def __call__(self, primals: Sequence[Any], active: Sequence[bool]) -> ForwardResult:
        found: ForwardResult = self.rule(primals, active)
        unused = [tangent_aval(typeof(o)) for o in found.outs]

        def backward(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            given = iter(cts)
            full = [next(given) if u else Zero(a) for u, a in zip(self.used, unused)]
            return found.backward(residuals, full)

        outs = [o for o, u in zip(found.outs, self.used, strict=True) if u]
        return ForwardResult(outs, found.residuals, backward)


# ---------------------------------------------------------------- the form of traces of libraries


class _FlatRules:
    """The forward and the backward rule as functions of leaves. Forward takes each argument with
    whether it is differentiated, and gives residuals before results; backward takes residuals and
    cotangents; `out_trees` says, once forward was called, how many residuals there are."""

    def __init__(self, fwd: Any, num_consts: int, symbolic_zeros: bool):
        self.fwd, self.num_consts, self.symbolic_zeros = fwd, num_consts, symbolic_zeros
        self.found: ForwardResult | None = None

    def forward(self, *pairs: Any) -> list[Any]:
        n = self.num_consts
        self.found = self.fwd(pairs[0::2][n:], tuple(map(bool, pairs[1::2][n:])))
        return [*self.found.residuals, *self.found.outs]

    def called(self) -> ForwardResult:
        if self.found is None:
            raise RuntimeError("the forward rule must be called first")
        return self.found

    def backward(self, *given: Any) -> list[Any]:
        residuals, cts = split(given, len(self.called().residuals))
        found = self.called().backward(residuals, [as_meant(ct) for ct in cts])
        return [None] * self.num_consts + found

    def out_trees(self) -> tuple[Any, Any, list[None]]:
        found = self.called()
        trees = [pytrees.structure(list(xs)) for xs in (found.outs, found.residuals)]
        return trees[0], trees[1], [None] * len(found.residuals)


class _ForeignForward:
    """A forward rule, with its backward rule, that the trace of a library made."""

    def __init__(self, fwd: WrappedFun, bwd: WrappedFun, out_trees: Any, symbolic_zeros: bool):
        self.fwd, self.bwd, self.out_trees = fwd, bwd, out_trees
        self.symbolic_zeros, self.__name__ = symbolic_zeros, fwd.__name__

    def __call__(self, primals: Sequence[Any], active: Sequence[bool]) -> ForwardResult:
        found = self.fwd.call_wrapped(*[x for pair in zip(primals, active) for x in pair])
        _, res_tree, forwarded = self.out_trees()
        count = res_tree.num_leaves - sum(i is not None for i in forwarded)
        given, outs = split(found, count)
        rest = iter(given)
        residuals = [next(rest) if i is None else primals[i] for i in forwarded]
        avals = [typeof(x) for x in primals]

        def backward(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            seen = [as_seen(ct, self.symbolic_zeros) for ct in cts]
            back = self.bwd.call_wrapped(*residuals, *seen)
            return [
                as_meant(ct) if ct is not None and has_tangent(a) else Zero(tangent_aval(a))
                for ct, a in zip(back, avals, strict=True)
            ]

        return ForwardResult(list(outs), residuals, backward)


class _CustomVJPCall(CustomCallPrimitive):
    __slots__ = ()

    def handed_to(
        self, trace: trace_state.Trace, args: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        name, zeros = params["name"], params["symbolic_zeros"]
        rules = _FlatRules(params["fwd"], params["num_consts"], zeros)
        return trace.process_custom_vjp_call(
            self,
            wrapped(as_function(params["call_jaxpr"]), name),
            wrapped(rules.forward, name),
            wrapped(rules.backward, name),
            args,
            out_trees=rules.out_trees,
            symbolic_zeros=zeros,
        )

    def rules_from(self, rules: Sequence[WrappedFun], params: dict[str, Any]) -> dict[str, Any]:
        fwd, bwd = rules
        forward = _ForeignForward(fwd, bwd, params["out_trees"], params["symbolic_zeros"])
        return {"fwd": forward, "bwd": bwd}


custom_vjp_call_p = _CustomVJPCall(
    "custom_vjp_call",
    meaning=call_meaning,
    shape=call_shape,
    jvp=_jvp,
    transpose=call_transpose,
    batch=_batch,
    multiple_results=True,
    hidden=("num_consts",),
)
dead_code_rules["custom_vjp_call"] = lambda e, used: dead_code_of_custom_call(
    e, used, {"fwd": _UsedForward}
)
