"""The primitive `linear_call`: a linear call with a transpose of its own."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from calque.core import reference
from calque.core.avals import ShapedArray
from calque.core.jaxprs import ClosedJaxpr
from calque.core.primitives import UndefinedPrimal
from calque.core.trace import eval_jaxpr
from calque.ops.common import front, instantiate
from calque.transforms.engines.axes import Axis, AxisPrimitive
from calque.transforms.engines.batching import Dim, batch_jaxpr
from calque.transforms.engines.jvp import jvp_jaxpr
from calque.transforms.engines.zeros import (
    add_tangents,
    nonzero,
    only_nonzero,
    with_zeros,
    zero_like,
)
from calque.transforms.primitives.flow import split


class Thunk:
    """The transpose of a linear function as a program of (residuals, cotangents), traced when it is
    first needed."""

    def __init__(self, make: Callable[[], ClosedJaxpr]):
        self.make = make
        self.made: ClosedJaxpr | None = None

    def __call__(self) -> ClosedJaxpr:
        if self.made is None:
            self.made = self.make()
        return self.made

    def __repr__(self) -> str:
        return "transpose"


def _meaning(*args: Any, callee: ClosedJaxpr, **_: Any) -> list[Any]:
    return reference.run(callee, *args)


def _shape(*avals: ShapedArray, callee: ClosedJaxpr, **_: Any) -> list[ShapedArray]:
    return callee.out_avals


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    callee: ClosedJaxpr,
    num_callee_consts: int,
    num_res: int,
    **params: Any,
) -> Any:
    n = num_callee_consts + num_res
    bind = functools.partial(
        linear_call_p.bind,
        callee=callee,
        num_callee_consts=num_callee_consts,
        num_res=num_res,
        **params,
    )
    outs = bind(*primals)
    total = [zero_like(o) for o in outs]
    if any(nonzero(tangents[n:])):
        total = bind(*primals[:n], *map(instantiate, tangents[n:]))
    active = (*nonzero(tangents[:n]), *(False for _ in primals[n:]))
    if any(active):  # the residuals vary too: by the program itself
        both, mask = jvp_jaxpr(callee, active)
        found = eval_jaxpr(both.jaxpr, both.consts, *primals, *only_nonzero(tangents[:n]))
        more = with_zeros(found[len(outs) :], mask, callee.out_avals)
        total = [add_tangents(a, b) for a, b in zip(total, more)]
    return outs, total


def _transpose(
    cts: Sequence[Any],
    *args: Any,
    callee: ClosedJaxpr,
    num_callee_consts: int,
    num_res: int,
    transpose_thunk: Thunk,
) -> list[Any]:
    n = num_callee_consts + num_res
    if any(type(x) is UndefinedPrimal for x in args[:n]):
        raise TypeError(
            "linear_call is not linear in its residual arguments: it has no transpose in them"
        )
    swapped = Thunk(lambda: _of_residuals(callee, args[:num_callee_consts]))
    back = transpose_thunk()
    outs = linear_call_p.bind(
        *args[num_callee_consts:n],
        *map(instantiate, cts),
        callee=back,
        num_callee_consts=0,
        num_res=num_res,
        transpose_thunk=swapped,
    )
    return [None] * n + list(outs)


def _of_residuals(callee: ClosedJaxpr, consts: Sequence[Any]) -> ClosedJaxpr:
    """The callee with its captured values as constants."""
    j, n = callee.jaxpr, len(consts)
    return ClosedJaxpr(
        j.replace(constvars=j.constvars + j.invars[:n], invars=j.invars[n:]),
        [*callee.consts, *consts],
    )


def _batch(
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    *,
    callee: ClosedJaxpr,
    num_callee_consts: int,
    num_res: int,
    transpose_thunk: Thunk,
) -> Any:
    n = num_callee_consts + num_res
    args = [*args[:n], *(front(x, d, axis.size) for x, d in zip(args[n:], dims[n:]))]
    dims = [
        *dims[:n],
        *(0 for _ in dims[n:]),
    ]  # so that cotangents of linear arguments are mapped as those of results
    _, res_dims, _ = split(dims, num_callee_consts, num_res)
    batched, out_dims = batch_jaxpr(callee, axis, tuple(dims), True)

    def transpose() -> ClosedJaxpr:
        back, _ = batch_jaxpr(transpose_thunk(), axis, (*res_dims, *out_dims), True)
        return back

    outs = linear_call_p.bind(
        *args,
        callee=batched,
        num_callee_consts=num_callee_consts,
        num_res=num_res,
        transpose_thunk=Thunk(transpose),
    )
    return outs, list(out_dims)


linear_call_p = AxisPrimitive(
    "linear_call",
    meaning=_meaning,
    shape=_shape,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    multiple_results=True,
)
