"""Loops that run while a condition holds: the primitive `while` with all its rules.

The condition may have dimensions (it gets them from vmap): they are the first dimensions of every
carried value. Each lane then stops when its own condition fails, and the loop ends with the last of
them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core import reference
from calque.core.avals import ShapedArray
from calque.core.jaxprs import ClosedJaxpr, Eqn
from calque.core.primitives import UndefinedPrimal, do
from calque.core.trace import eval_jaxpr, trace_to_jaxpr, typeof
from calque.core.trace_state import Tracer
from calque.transforms.engines.axes import Axis, AxisPrimitive
from calque.transforms.engines.batching import Dim, batch_jaxpr, placed
from calque.transforms.engines.jvp import jvp_jaxpr
from calque.transforms.engines.linear import Tape
from calque.transforms.engines.slices import (
    dead_code_rules,
    dependence_rules,
    dependent_results,
    silent,
    used_inputs,
    without_dead_code,
)
from calque.transforms.engines.zeros import instantiate, nonzero, with_zeros
from calque.transforms.primitives import lanes
from calque.transforms.primitives.flow import rearranged, split, with_inputs
from calque.transforms.primitives.while_reverse import reverse_while

Mask = tuple[bool, ...]


def bind_while(
    cond_consts: Sequence[Any],
    body_consts: Sequence[Any],
    init: Sequence[Any],
    *,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
) -> list[Any]:
    return while_p.bind(
        *cond_consts,
        *body_consts,
        *init,
        body_jaxpr=body_jaxpr,
        body_nconsts=len(body_consts),
        cond_jaxpr=cond_jaxpr,
        cond_nconsts=len(cond_consts),
    )


def _meaning(
    *args: np.ndarray,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
) -> list[np.ndarray]:
    cond_consts, body_consts, carry = split(args, cond_nconsts, body_nconsts)
    while True:
        (pred,) = reference.run(cond_jaxpr, *cond_consts, *carry)
        if not pred.any():
            return list(carry)
        new = reference.run(body_jaxpr, *body_consts, *carry)
        carry = (
            new
            if not pred.ndim
            else [np.where(_expanded(pred, x.ndim), y, x) for x, y in zip(carry, new)]
        )


def _expanded(pred: np.ndarray, ndim: int) -> np.ndarray:
    return pred.reshape(pred.shape + (1,) * (ndim - pred.ndim))


def _shape(*avals: ShapedArray, body_jaxpr: ClosedJaxpr, **_: Any) -> list[ShapedArray]:
    return body_jaxpr.out_avals


# ---------------------------------------------------------------- differentiation


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
) -> Any:
    cond_consts, body_consts, init = split(primals, cond_nconsts, body_nconsts)
    _, const_ts, init_ts = split(tangents, cond_nconsts, body_nconsts)
    active = carry_fixpoint(
        nonzero(tangents)[cond_nconsts:], body_nconsts, lambda m: jvp_jaxpr(body_jaxpr, m)[1]
    )
    c_nz, carry_nz = active[:body_nconsts], active[body_nconsts:]
    both, _ = jvp_jaxpr(body_jaxpr, active, carry_nz)
    c, v, c_t, v_t = split(range(len(both.jaxpr.invars)), body_nconsts, len(init), sum(c_nz))
    body = rearranged(both, [*c, *c_t, *v, *v_t])
    carry_ts = [instantiate(t) for t, nz in zip(init_ts, carry_nz) if nz]
    unread = [typeof(t) for t in carry_ts]
    cond = with_inputs(cond_jaxpr, [*range(len(cond_jaxpr.jaxpr.invars)), *unread])
    consts = [*body_consts, *(t for t, nz in zip(const_ts, c_nz) if nz)]
    outs = bind_while(cond_consts, consts, [*init, *carry_ts], cond_jaxpr=cond, body_jaxpr=body)
    n = len(init)
    return outs[:n], with_zeros(outs[n:], carry_nz, body_jaxpr.out_avals)


def carry_fixpoint(mask: Mask, num_consts: int, outs_of: Any) -> Mask:
    """`mask` over (consts, carry), with each carry that becomes true in some round."""
    while True:
        new = mask[:num_consts] + tuple(a or b for a, b in zip(mask[num_consts:], outs_of(mask)))
        if new == mask:
            return mask
        mask = new


def _linearize(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    """The tape gets the loop over values and tangents together, which reads nothing of the rounds
    that ran, and shows nothing again. The part of it that gives the values leaves the tape, unless
    it cannot be told apart: then the loop runs by itself as well.
    """
    again: dict[str, Any] = {
        k: silent(v) if isinstance(v, ClosedJaxpr) else v for k, v in params.items()
    }
    outs, out_tangents = _jvp(primals, tangents, **again)
    shows = any(again[k] is not v for k, v in params.items())
    if shows or any(isinstance(o, Tracer) and isinstance(o._trace, Tape) for o in outs):
        outs = while_p.bind(*primals, **params)
    return outs, out_tangents


def _transpose(
    cts: Sequence[Any],
    *args: Any,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
) -> list[Any]:
    cond_consts, body_consts, init = split(args, cond_nconsts, body_nconsts)
    if any(type(c) is UndefinedPrimal for c in cond_consts):
        raise TypeError(
            "while_loop is not linear in what its condition reads: it has no transpose in it"
        )
    if cond_jaxpr.out_avals[0].shape:
        cond_jaxpr, body_jaxpr = scalar_condition(
            cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts
        )
        body_consts = [*cond_consts, *body_consts]
        found = reverse_while(
            bind_while, cts, cond_consts, body_consts, init, cond_jaxpr, body_jaxpr
        )
        return [None] * cond_nconsts + found[cond_nconsts:]
    return [None] * cond_nconsts + reverse_while(
        bind_while, cts, cond_consts, body_consts, init, cond_jaxpr, body_jaxpr
    )


def scalar_condition(
    cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, cond_nconsts: int, body_nconsts: int
) -> tuple[ClosedJaxpr, ClosedJaxpr]:
    """The same loop with one condition for all lanes: lanes that have stopped keep their values.

    The new body takes the constants of the condition before its own."""
    carry_avals = body_jaxpr.out_avals

    def cond(*args: Any) -> list[Any]:
        (pred,) = eval_jaxpr(cond_jaxpr.jaxpr, cond_jaxpr.consts, *args)
        return [do.reduce_or(pred, axes=tuple(range(typeof(pred).ndim)))]

    def body(*args: Any) -> list[Any]:
        cond_consts, body_consts, carry = split(args, cond_nconsts, body_nconsts)
        (pred,) = eval_jaxpr(cond_jaxpr.jaxpr, cond_jaxpr.consts, *cond_consts, *carry)
        new = eval_jaxpr(body_jaxpr.jaxpr, body_jaxpr.consts, *body_consts, *carry)
        return [do.select_n(_spread(pred, typeof(x).shape), x, y) for x, y in zip(carry, new)]

    key = ("scalar condition", cond_jaxpr)
    if key not in body_jaxpr.cache:
        consts = cond_jaxpr.in_avals[:cond_nconsts]
        body_jaxpr.cache[key] = (
            trace_to_jaxpr(cond, cond_jaxpr.in_avals, "cond_fun"),
            trace_to_jaxpr(
                body, [*consts, *body_jaxpr.in_avals[:body_nconsts], *carry_avals], "body_fun"
            ),
        )
    return body_jaxpr.cache[key]


def _spread(pred: Any, shape: tuple[int, ...]) -> Any:
    n = typeof(pred).ndim
    if len(shape) == n:
        return pred
    return do.broadcast_in_dim(pred, shape=shape, broadcast_dimensions=tuple(range(n)))


# ---------------------------------------------------------------- batching


def _batch(
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    *,
    body_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    cond_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
) -> Any:
    cond_consts, body_consts, init = split(args, cond_nconsts, body_nconsts)
    cc_dims, bc_dims, i_dims = split(dims, cond_nconsts, body_nconsts)

    def carry_dims(m: Sequence[bool]) -> tuple[int | None, ...]:
        return tuple([0 if b else None for b in m])

    def outs_of(m: Sequence[bool]) -> tuple[bool, ...]:
        return tuple(
            [
                d is not None
                for d in batch_jaxpr(body_jaxpr, axis, (*bc_dims, *carry_dims(m[body_nconsts:])))[1]
            ]
        )

    mask = carry_fixpoint(
        tuple([d is not None for d in dims[cond_nconsts:]]), body_nconsts, outs_of
    )[body_nconsts:]
    pred_dim = batch_jaxpr(cond_jaxpr, axis, (*cc_dims, *carry_dims(mask)))[1][0]
    by_lane = pred_dim is not None or (any(mask) and bool(cond_jaxpr.out_avals[0].shape))
    if by_lane:  # the lanes stop one by one
        if not cond_jaxpr.out_avals[0].shape and not lanes.together(axis, (cond_jaxpr, body_jaxpr)):
            params = {
                "body_jaxpr": body_jaxpr,
                "body_nconsts": body_nconsts,
                "cond_jaxpr": cond_jaxpr,
                "cond_nconsts": cond_nconsts,
            }
            return lanes.one_by_one(while_p, axis, args, dims, params)
        # what is carried has its own value in each
        mask = (True,) * len(mask)
    cond, _ = batch_jaxpr(cond_jaxpr, axis, (*cc_dims, *carry_dims(mask)), (by_lane,))
    body, _ = batch_jaxpr(body_jaxpr, axis, (*bc_dims, *carry_dims(mask)), mask)
    init = [placed(x, d, 0, axis.size) if m else x for x, d, m in zip(init, i_dims, mask)]
    return bind_while(cond_consts, body_consts, init, cond_jaxpr=cond, body_jaxpr=body), list(
        carry_dims(mask)
    )


# ---------------------------------------------------------------- dead code and dependence


def _dead_code(e: Eqn, used: Sequence[bool]) -> Eqn | None:
    """A loop without the carried values that neither a result nor the condition needs."""
    p = e.params
    cond, body, nc, nb = p["cond_jaxpr"], p["body_jaxpr"], p["cond_nconsts"], p["body_nconsts"]
    reads = used_inputs(cond.jaxpr)
    mask = [u or r for u, r in zip(used, reads[nc:])]
    while True:
        jaxpr = without_dead_code(body.jaxpr, mask)
        reads = used_inputs(jaxpr)
        more = [m or r for m, r in zip(mask, reads[nb:])]
        if more == mask:
            break
        mask = more
    consts = [i for i in range(nb) if reads[i]]
    carry = [i for i, m in enumerate(mask) if m]
    new_body = rearranged(ClosedJaxpr(jaxpr, body.consts), [*consts, *(nb + i for i in carry)])
    new_cond = rearranged(cond, [*range(nc), *(nc + i for i in carry)])
    kept = [*range(nc), *(nc + i for i in consts), *(nc + nb + i for i in carry)]
    return e.replace(
        invars=[e.invars[i] for i in kept],
        outvars=[e.outvars[i] for i in carry],
        params={
            "cond_jaxpr": new_cond,
            "cond_nconsts": nc,
            "body_jaxpr": new_body,
            "body_nconsts": len(consts),
        },
    )


def _dependence(e: Eqn, unknown: Sequence[bool]) -> Sequence[bool]:
    p = e.params
    cond, body, nc, nb = p["cond_jaxpr"], p["body_jaxpr"], p["cond_nconsts"], p["body_nconsts"]
    mask = carry_fixpoint(tuple(unknown[nc:]), nb, lambda m: dependent_results(body, m))
    if dependent_results(cond, (*unknown[:nc], *mask[nb:]))[0]:
        return (True,) * len(e.outvars)
    return mask[nb:]


while_p = AxisPrimitive(
    "while",
    meaning=_meaning,
    shape=_shape,
    jvp=_jvp,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    multiple_results=True,
)
dead_code_rules["while"] = _dead_code
dependence_rules["while"] = _dependence
