"""Programs with a batching rule of their own: the primitive `custom_vmap_call` with all its rules.

The equation holds a program and the rule. `vmap` asks the rule; forward mode differentiates the
program and the rule alike, so that `vmap` of `jvp` asks the rule's derivative; reverse mode takes
the values from the equation and the derivative from the program."""

from collections.abc import Callable, Sequence
from typing import Any

from calque.core.jaxprs import ClosedJaxpr
from calque.core.trace import eval_jaxpr, typeof
from calque.ops.common import front
from calque.transforms.engines.axes import Axis
from calque.transforms.engines.batching import Dim, batch
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
from calque.transforms.primitives.call import ProgramPrimitive
from calque.transforms.primitives.custom_calls import call_transpose
from calque.transforms.primitives.lanes import together_rules

# (size of the axis, which operands are batched, operands) -> (results, which of them are batched);
# batch dimensions are first
FlatRule = Callable[[int, Sequence[bool], Sequence[Any]], tuple[list[Any], list[bool]]]


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
        shape, expected = typeof(o).shape, (axis.size, *aval.shape) if b else aval.shape
        # of the shape of a lane the rule decides, as in JAX
        if shape[:1] != (axis.size,) if b else shape != expected:
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
    """The derivative of a batching rule.

    Where a primal is batched and its tangent is not, or the other way round, in all operands, the
    rule is asked for operands that are not batched, once for all lanes. Where only some are so,
    they are repeated: a primal and its tangent are both batched then, or neither is."""

    def __init__(self, rule: FlatRule, mask: tuple[bool, ...]):
        self.rule, self.mask = rule, mask
        self.__name__ = name_of(rule)

    def __call__(
        self, size: int, batched: Sequence[bool], args: Sequence[Any]
    ) -> tuple[list[Any], list[bool]]:
        n = len(self.mask)
        given = iter(batched[n:])
        pairs = [(b, next(given) if m else b) for b, m in zip(batched, self.mask)]
        if any(b != t for b, t in pairs) and not any(b and t for b, t in pairs):
            return self.by_lanes(size, batched, args)
        flags = [b or t for b, t in pairs]
        own = [*flags, *(f for f, m in zip(flags, self.mask) if m)]
        rows = [front(x, None, size) if f and not b else x for x, f, b in zip(args, own, batched)]
        outs, out_flags = self.derivative(size, flags, rows)
        k = len(out_flags)
        return outs, [*out_flags, *(f for o, f in zip(outs[:k], out_flags) if value_has_tangent(o))]

    def by_lanes(
        self, size: int, batched: Sequence[bool], args: Sequence[Any]
    ) -> tuple[list[Any], list[bool]]:
        """The rule asked in a lane, for operands that are not batched."""

        def lane(*xs: Any) -> list[Any]:
            outs, out_flags = self.derivative(size, [False] * len(self.mask), xs)
            if any(out_flags):
                raise ValueError(
                    f"the batching rule {self.__name__} says that results are batched where no"
                    " operand is"
                )
            return outs

        axis = Axis(None, size)
        outs, dims = batch(lane, axis, args, [0 if b else None for b in batched])
        return [front(o, d, size) if d is not None else o for o, d in zip(outs, dims)], [
            d is not None for d in dims
        ]

    def derivative(
        self, size: int, flags: Sequence[bool], args: Sequence[Any]
    ) -> tuple[list[Any], list[bool]]:
        """Results of the rule and the tangents of those that have one, and which of the results are
        batched."""
        n, given = len(self.mask), iter(args[len(self.mask) :])
        tangents = [next(given) if m else zero_like(x) for x, m in zip(args, self.mask)]
        out_flags: list[bool] = []

        def flat(*xs: Any) -> list[Any]:
            outs, out_flags[:] = self.rule(size, flags, xs)
            return outs

        outs, found = jvp(flat, args[:n], tangents)
        kept = [instantiate(t) for o, t in zip(outs, found) if value_has_tangent(o)]
        return [*outs, *kept], out_flags


custom_vmap_call_p = ProgramPrimitive(
    "custom_vmap_call",
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    linearize=_linearize,
)
together_rules["custom_vmap_call"] = lambda params: True
