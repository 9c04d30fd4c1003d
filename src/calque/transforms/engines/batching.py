"""Batching: a trace whose values carry a batch dimension that the function does not see."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from calque.core import leaks, trace_state
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.jaxprs import ClosedJaxpr
from calque.core.primitives import Primitive, do
from calque.core.trace import (
    check_alive,
    jaxpr_as_fun,
    leaked,
    placed_typeof,
    trace_to_jaxpr,
    typeof,
    typing,
)
from calque.core.trace_state import OwnTracer, Trace, Tracer
from calque.ops.common import front, move, repeated
from calque.transforms.engines import axes
from calque.transforms.engines.axes import Axis, AxisPrimitive, Collective, PlacingPrimitive
from calque.transforms.engines.scopes import transformed

Dim = int | None


class BatchTracer(OwnTracer):
    """A value with a batch dimension, which its aval does not show."""

    __slots__ = ("dim", "kind", "val")

    val: Any
    dim: Dim
    kind: str  # along a checked axis: varying, unreduced or reduced


class BatchTrace(Trace):
    """Applies the batching rule of each primitive to the values it is asked about."""

    function = ""
    has_lanes = True

    def __init__(self, axis: Axis):
        self.axis = axis

    def tracer(self, val: Any, dim: Dim) -> Any:
        if dim is None:
            return val
        t = BatchTracer()
        t._trace, t.val, t.dim = self, val, dim
        aval = placed_typeof(val)
        if aval.place is None:
            t.aval = ShapedArray(
                aval.shape[:dim] + aval.shape[dim + 1 :], aval.dtype, aval.weak_type
            )
        else:
            t.aval = typing.value.without(aval, dim)
        return t

    def split(self, x: Any) -> tuple[Any, Dim]:
        """The value and its batch dimension."""
        if type(x) is BatchTracer and x._trace is self:
            return x.val, x.dim
        if isinstance(x, Tracer):
            check_alive(x)
        return x, None

    def whole(self, x: Any) -> tuple[Any, Dim]:
        """The value as a result of the whole trace."""
        return self.split(x)

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        if self.done:
            raise leaked(next((a for a in args if isinstance(a, Tracer)), None), self)
        vals: list[Any] = []
        dims: list[Dim] = []
        for a in args:
            if type(a) is BatchTracer and a._trace is self:
                vals.append(a.val)
                dims.append(a.dim)
            else:
                vals.append(a)
                dims.append(None)
        if isinstance(primitive, AxisPrimitive):
            outs, out_dims = primitive.batch(self.axis, vals, dims, **params)
            if primitive.multiple_results:
                if any([type(o) is BatchTracer and o._trace is self for o in outs]):
                    outs, out_dims = self.with_captured(outs, out_dims)
        elif isinstance(primitive, PlacingPrimitive):
            outs, out_dims = primitive.batch(vals, dims, spmd=self.axis.spmd, **params)
        else:
            outs, out_dims = primitive.batch(vals, dims, **params)
        if primitive.multiple_results:
            return [self.tracer(o, d) for o, d in zip(outs, out_dims, strict=True)]
        return self.tracer(outs, out_dims)

    def with_captured(
        self, outs: Sequence[Any], dims: Sequence[Dim]
    ) -> tuple[list[Any], list[Dim]]:
        """The results of a call whose function or rule captured values of this trace: each lane of
        the call met all lanes of what it captured, and its own is the one that counts."""
        pairs = [
            self._own_lanes(o, d) if type(o) is BatchTracer and o._trace is self else (o, d)
            for o, d in zip(outs, dims, strict=True)
        ]
        return [x for x, _ in pairs], [d for _, d in pairs]

    def _own_lanes(self, captured: BatchTracer, dim: Dim) -> tuple[Any, Dim]:
        size = self.axis.size
        x = front(captured.val, captured.dim, size)
        if dim is None:
            return x, 0
        x = move(x, dim + 1, 1)
        shape = typeof(x).shape[2:]
        flat = do.reshape(x, new_sizes=(size * size, *shape))
        ends = (size * size, *shape)
        strides = (size + 1,) + (1,) * len(shape)
        return do.slice(
            flat, start_indices=(0,) * len(ends), limit_indices=ends, strides=strides
        ), 0


class CheckedBatchTrace(BatchTrace):
    """Along a checked axis, values may vary without a batch dimension: members then hold equal
    values by chance, as after `all_gather`. Their tracers have the dimension None."""

    def tracer(self, val: Any, dim: Dim) -> Any:
        return val if dim is None else self.marked(val, dim, "varying")

    def kind(self, x: Any) -> str | None:
        """How a value relates to the axis; None if it is the same for all members."""
        return x.kind if type(x) is BatchTracer and x._trace is self else None

    def marked(self, val: Any, dim: Dim, kind: str) -> Any:
        """A value that relates in this way to the axis."""
        t = BatchTracer()
        t._trace, t.val, t.dim, t.kind = self, val, dim, kind
        aval = typeof(val)
        t.aval = typing.value.of_member(
            aval if dim is None else typing.value.without(aval, dim), self.axis, kind
        )
        return t

    def whole(self, x: Any) -> tuple[Any, Dim]:
        """The value and its batch dimension, which it has if it varies."""
        val, dim = self.split(x)
        return (
            (front(val, None, self.axis.size), 0)
            if dim is None and self.kind(x) == "varying"
            else (val, dim)
        )

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        if self.done:
            raise leaked(next((a for a in args if isinstance(a, Tracer)), None), self)
        precise = (
            primitive.precise
            if isinstance(primitive, Collective)
            else isinstance(primitive, AxisPrimitive)
        )
        if not config.auto_pcast:
            typing.value.operands(primitive, args, params)  # refuses what it would have to cast
        pairs = [self.whole(a) if precise else self.split(a) for a in args]
        vals, dims = [v for v, _ in pairs], [d for _, d in pairs]
        kinds = [self.kind(a) for a in args]
        kind = "varying" if any(kinds) else None
        if isinstance(primitive, Collective):
            outs, out_dims = primitive.batch(self.axis, vals, dims, **params)
            kind = kinds[0] if kinds else None
            if self.axis.name in primitive.axes_of(params):
                kind = primitive.kind_after(params)
        elif isinstance(
            primitive, AxisPrimitive
        ):  # what its programs do below this level is outside the map
            with axes.without(self):
                outs, out_dims = primitive.batch(self.axis, vals, dims, **params)
            kind = None
        elif all([d is None for d in dims]):
            outs = primitive.bind(*vals, **params)
            out_dims = [None] * len(outs) if primitive.multiple_results else None
        else:
            outs, out_dims = primitive.batch(vals, dims, **params)
        if kind is not None and not isinstance(primitive, AxisPrimitive) and self.others(kinds):
            constant = [not isinstance(a, Tracer) for a in args]
            kind = typing.value.kind(primitive, kinds, constant)
        if primitive.multiple_results:
            return [self.result(o, d, kind) for o, d in zip(outs, out_dims, strict=True)]
        return self.result(outs, out_dims, kind)

    def others(self, kinds: Sequence[str | None]) -> bool:
        """Whether any operand does more than vary."""
        return any([k is not None and k != "varying" for k in kinds])

    def result(self, val: Any, dim: Dim, kind: str | None) -> Any:
        return self.tracer(val, dim) if kind is None else self.marked(val, dim, kind)


def batch(
    fun: Callable[..., Sequence[Any]],
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    kinds: Sequence[str | None] = (),
) -> tuple[list[Any], list[Dim]]:
    """Results of `fun`, a function of flat arguments with a flat list of results, and their batch
    dimensions. `kinds` are those of arguments along a checked axis, where they do not follow from
    the dimensions."""
    trace = CheckedBatchTrace(axis) if axis.checked else BatchTrace(axis)
    with trace_state.entered(trace), axes.bound([axis], trace), transformed("vmap"):
        if kinds and isinstance(trace, CheckedBatchTrace):
            values = [trace.result(x, d, k) for x, d, k in zip(args, dims, kinds, strict=True)]
        else:
            values = [trace.tracer(x, d) for x, d in zip(args, dims, strict=True)]
        outs = fun(*values)
        del values
        pairs = [trace.whole(o) for o in outs]
    del outs
    leaks.check([trace])
    return [x for x, _ in pairs], [d for _, d in pairs]


def placed(x: Any, dim: Dim, target: int, size: int) -> Any:
    """`x` with its batch dimension at `target`; repeated if it has none."""
    return repeated(x, size, target) if dim is None else move(x, dim, target)


# ---------------------------------------------------------------- programs


def batched_aval(aval: ShapedArray, dim: Dim, axis: Axis) -> ShapedArray:
    """The type of the whole batch of values of a type."""
    if aval.place is not None:
        return typing.value.batched(aval, dim, axis)
    if dim is None:
        return aval
    shape = aval.shape[:dim] + (axis.size,) + aval.shape[dim:]
    return ShapedArray(shape, aval.dtype, aval.weak_type)


def batch_jaxpr(
    closed: ClosedJaxpr, axis: Axis, dims: tuple[Dim, ...], forced: bool | tuple[bool, ...] = False
) -> tuple[ClosedJaxpr, tuple[Dim, ...]]:
    """The program over whole batches, and the batch dimensions of its results. Results in `forced`
    have theirs first."""
    if isinstance(forced, tuple):
        found = batch_jaxpr(closed, axis, dims)
        if all(d == 0 if f else True for d, f in zip(found[1], forced, strict=True)):
            return found
    key = ("batch", axis, dims, forced, axes.in_scope())
    if key not in closed.cache:
        closed.cache[key] = _batch_jaxpr(closed, axis, dims, forced)
    return closed.cache[key]


def _batch_jaxpr(
    closed: ClosedJaxpr, axis: Axis, dims: tuple[Dim, ...], forced: bool | tuple[bool, ...]
) -> tuple[ClosedJaxpr, tuple[Dim, ...]]:
    wanted = (forced,) * len(closed.jaxpr.outvars) if isinstance(forced, bool) else forced
    out_dims: tuple[Dim, ...] = ()

    def batched(*args: Any) -> list[Any]:
        nonlocal out_dims
        outs, found = batch(jaxpr_as_fun(closed), axis, args, dims)
        outs = [
            front(o, d, axis.size) if w else o for o, d, w in zip(outs, found, wanted, strict=True)
        ]
        out_dims = tuple(0 if w else d for d, w in zip(found, wanted))
        return outs

    avals = [batched_aval(a, d, axis) for a, d in zip(closed.in_avals, dims, strict=True)]
    return trace_to_jaxpr(batched, avals, "vmap", lenient=True), out_dims
