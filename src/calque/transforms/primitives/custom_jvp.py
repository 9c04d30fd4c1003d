"""The primitive `custom_jvp_call`: a call with a forward-mode rule of its own."""

from collections.abc import Callable, Sequence
from typing import Any

from calque.core import trace_state
from calque.core.primitives import Zero
from calque.ops.common import front
from calque.transforms.engines.axes import Axis
from calque.transforms.engines.batching import Dim, batch
from calque.transforms.engines.slices import dead_code_rules
from calque.transforms.engines.trees import name_of
from calque.transforms.engines.wrapped import WrappedFun
from calque.transforms.engines.zeros import (
    as_meant,
    as_seen,
    nonzero,
    only_nonzero,
    value_has_tangent,
    zero_like,
)
from calque.transforms.primitives.custom_calls import (
    CustomCallPrimitive,
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


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    call_jaxpr: Any,
    jvp: Any,
    num_consts: int,
    name: str,
    symbolic_zeros: bool,
) -> Any:
    if not any(nonzero(tangents)):
        params = {
            "jvp": jvp,
            "num_consts": num_consts,
            "name": name,
            "symbolic_zeros": symbolic_zeros,
        }
        outs = custom_jvp_call_p.bind(*primals, call_jaxpr=call_jaxpr, **params)
        return outs, [zero_like(o) for o in outs]
    refuse_closures(name, tangents[:num_consts], "custom_jvp")
    return jvp(primals[num_consts:], tangents[num_consts:])


def _batch(
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    *,
    call_jaxpr: Any,
    jvp: Any,
    num_consts: int,
    name: str,
    symbolic_zeros: bool,
) -> Any:
    outs = custom_jvp_call_p.bind(
        *args,
        call_jaxpr=batched_call(axis, call_jaxpr, dims),
        jvp=_BatchedRule(axis, jvp, tuple(dims[num_consts:])),
        num_consts=num_consts,
        name=name,
        symbolic_zeros=symbolic_zeros,
    )
    return outs, [0] * len(outs)


class _BatchedRule:
    """A jvp rule over whole batches."""

    def __init__(self, axis: Axis, rule: Any, dims: tuple[Dim, ...]):
        self.axis, self.rule, self.dims = axis, rule, dims
        self.__name__ = name_of(rule)

    def __call__(
        self, primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        n, size = len(primals), self.axis.size
        mask = nonzero(tangents)
        zeros: list[Any] = []

        def both(*args: Any) -> list[Any]:
            given = iter(args[n:])
            ts = [next(given) if m else zero_like(x) for m, x in zip(mask, args)]
            outs, out_tangents = self.rule(args[:n], ts)
            zeros[:] = [type(t) is Zero for t in out_tangents]
            return [*outs, *only_nonzero(out_tangents)]

        dims = [*self.dims, *(d for d, m in zip(self.dims, mask) if m)]
        found, found_dims = batch(both, self.axis, [*primals, *only_nonzero(tangents)], dims)
        found = [front(x, d, size) for x, d in zip(found, found_dims)]
        outs, rest = split(found, len(zeros))
        ts = iter(rest)
        return outs, [zero_like(o) if z else next(ts) for o, z in zip(outs, zeros)]


class _UsedRule:
    """A jvp rule that gives the used results alone."""

    def __init__(self, rule: Any, used: tuple[bool, ...]):
        self.rule, self.used = rule, used
        self.__name__ = name_of(rule)

    def __call__(
        self, primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        outs, found = self.rule(primals, tangents)
        kept = [(o, t) for o, t, u in zip(outs, found, self.used, strict=True) if u]
        return [o for o, _ in kept], [t for _, t in kept]


# ---------------------------------------------------------------- the form of traces of libraries


def _of_leaves(rule: Any, num_consts: int, symbolic_zeros: bool) -> Callable[..., list[Any]]:
    """A jvp rule as a function of primals and tangents, one after the other."""

    def flat(*both: Any) -> list[Any]:
        primals, tangents = split(both, len(both) // 2)
        outs, ts = rule(primals[num_consts:], [as_meant(t) for t in tangents[num_consts:]])
        return [*outs, *[as_seen(t, symbolic_zeros) for t in ts]]

    return flat


class _ForeignRule:
    """A jvp rule that the trace of a library made."""

    def __init__(self, rule: WrappedFun, symbolic_zeros: bool):
        self.rule, self.symbolic_zeros = rule, symbolic_zeros
        self.__name__ = rule.__name__

    def __call__(
        self, primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        seen = [as_seen(t, self.symbolic_zeros) for t in tangents]
        found = list(self.rule.call_wrapped(*primals, *seen))
        outs, ts = split(found, len(found) // 2)
        return outs, [
            as_meant(t) if value_has_tangent(o) else zero_like(o) for o, t in zip(outs, ts)
        ]


class _CustomJVPCall(CustomCallPrimitive):
    __slots__ = ()

    def handed_to(
        self, trace: trace_state.Trace, args: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        name, zeros = params["name"], params["symbolic_zeros"]
        return trace.process_custom_jvp_call(
            self,
            wrapped(as_function(params["call_jaxpr"]), name),
            wrapped(_of_leaves(params["jvp"], params["num_consts"], zeros), name),
            args,
            symbolic_zeros=zeros,
        )

    def rules_from(self, rules: Sequence[WrappedFun], params: dict[str, Any]) -> dict[str, Any]:
        (rule,) = rules
        return {"jvp": _ForeignRule(rule, params["symbolic_zeros"])}


custom_jvp_call_p = _CustomJVPCall(
    "custom_jvp_call",
    meaning=call_meaning,
    shape=call_shape,
    jvp=_jvp,
    transpose=call_transpose,
    batch=_batch,
    multiple_results=True,
    hidden=("num_consts",),
)
dead_code_rules["custom_jvp_call"] = lambda e, used: dead_code_of_custom_call(
    e, used, {"jvp": _UsedRule}
)
