"""Programs with a batching rule of their own: the primitive `custom_vmap_call` with all its rules.

The equation holds a program and the rule. `vmap` asks the rule; forward mode differentiates the
program and the rule alike, so that `vmap` of `jvp` asks the rule's derivative; reverse mode takes
the values from the equation and the derivative from the program."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.core import reference, trace_state
from calque.core.avals import ShapedArray
from calque.core.jaxprs import ClosedJaxpr
from calque.core.trace import eval_jaxpr, typeof
from calque.ops.common import front
from calque.transforms.engines.axes import Axis, AxisPrimitive
from calque.transforms.engines.batching import Dim
from calque.transforms.engines.jvp import jvp, jvp_jaxpr
from calque.transforms.engines.linear import linearize_jaxpr
from calque.transforms.engines.trees import name_of
from calque.transforms.engines.zeros import (
    instantiate,
    nonzero,
    only_nonzero,
    value_has_tangent,
    with_zeros,
    zero_like,
)
from calque.transforms.primitives.custom_calls import call_transpose
from calque.transforms.primitives.lanes import together_rules

# (size of the axis, which operands are batched, operands) -> (results, which of them are batched);
# batch dimensions are first
FlatRule = Callable[[int, Sequence[bool], Sequence[Any]], tuple[list[Any], list[bool]]]


class _CustomVmapPrimitive(AxisPrimitive):
    """The program in the parameter `call`; evaluated, it is the program itself."""

    __slots__ = ()

    def bind(self, *args: Any, **params: Any) -> Any:
        trace = trace_state.top_trace(args)
        if trace.level == 0:
            return eval_jaxpr(params["call"].jaxpr, params["call"].consts, *args)
        return trace.process(self, args, params)


def _meaning(*args: np.ndarray, call: ClosedJaxpr, **_: Any) -> list[np.ndarray]:
    return reference.run(call, *args)


def _shape(*avals: ShapedArray, call: ClosedJaxpr, **_: Any) -> list[ShapedArray]:
    return call.out_avals


def _transpose(cts: Sequence[Any], *args: Any, call: ClosedJaxpr, **_: Any) -> list[Any]:
    return call_transpose(cts, *args, call_jaxpr=call)


def _batch(
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    *,
    call: ClosedJaxpr,
    rule: FlatRule,
    **_: Any,
) -> Any:
    batched = [d is not None for d in dims]
    rows = [x if d is None else front(x, d, axis.size) for x, d in zip(args, dims)]
    outs, out_batched = rule(axis.size, batched, rows)
    for i, (o, b, aval) in enumerate(zip(outs, out_batched, call.out_avals, strict=True)):
        expected = (axis.size, *aval.shape) if b else aval.shape
        if typeof(o).shape != expected:
            raise ValueError(
                f"the batching rule {name_of(rule)} must return a value of shape {expected} at"
                f" output {i} ({'batched' if b else 'not batched'}, for results of type"
                f" {aval.str_short()}), got {typeof(o).str_short()}"
            )
    return outs, [0 if b else None for b in out_batched]


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    call: ClosedJaxpr,
    in_tree: Any,
    out_tree: Any,
    rule: FlatRule,
) -> Any:
    mask = nonzero(tangents)
    both, out_mask = jvp_jaxpr(call, mask, True)
    outs = custom_vmap_call_p.bind(
        *primals,
        *only_nonzero(tangents),
        call=both,
        in_tree=in_tree,
        out_tree=out_tree,
        rule=_JvpRule(rule, mask),
    )
    n = len(out_mask)
    return outs[:n], with_zeros(outs[n:], out_mask, call.out_avals)


def _linearize(
    primals: Sequence[Any], tangents: Sequence[Any], *, call: ClosedJaxpr, **params: Any
) -> Any:
    outs = custom_vmap_call_p.bind(*primals, call=call, **params)
    lin = linearize_jaxpr(call, nonzero(tangents))
    if not any(lin.nonzeros):
        return outs, [zero_like(o) for o in outs]
    n = len(outs)
    results = eval_jaxpr(lin.primal.jaxpr, lin.primal.consts, *primals)
    residuals = lin.residuals(primals, results[:n], results[n:])
    found = eval_jaxpr(lin.linear.jaxpr, lin.linear.consts, *residuals, *only_nonzero(tangents))
    return outs, with_zeros(found, lin.nonzeros, call.out_avals)


class _JvpRule:
    """The derivative of a batching rule. A primal and its tangent are both batched, or neither
    is."""

    def __init__(self, rule: FlatRule, mask: tuple[bool, ...]):
        self.rule, self.mask = rule, mask
        self.__name__ = name_of(rule)

    def __call__(
        self, size: int, batched: Sequence[bool], args: Sequence[Any]
    ) -> tuple[list[Any], list[bool]]:
        n = len(self.mask)
        given = iter(zip(args[n:], batched[n:]))
        primals, tangents, flags = [], [], list[bool]()
        for x, b, m in zip(args[:n], batched[:n], self.mask):
            t, tb = next(given) if m else (None, False)
            flag = b or tb
            primals.append(front(x, None, size) if flag and not b else x)
            tangents.append(
                front(t, None, size)
                if flag and m and not tb
                else t
                if m
                else zero_like(primals[-1])
            )
            flags.append(flag)
        out_flags: list[bool] = []

        def flat(*xs: Any) -> list[Any]:
            outs, out_flags[:] = self.rule(size, flags, xs)
            return outs

        outs, out_tangents = jvp(flat, primals, tangents)
        kept = [i for i, o in enumerate(outs) if value_has_tangent(o)]
        return [*outs, *(instantiate(out_tangents[i]) for i in kept)], [
            *out_flags,
            *(out_flags[i] for i in kept),
        ]


custom_vmap_call_p = _CustomVmapPrimitive(
    "custom_vmap_call",
    meaning=_meaning,
    shape=_shape,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    linearize=_linearize,
    multiple_results=True,
)
together_rules["custom_vmap_call"] = lambda params: True
