"""Loops with a known number of rounds: the primitive `scan` with its rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core import reference
from calque.core.avals import ShapedArray
from calque.core.dtypes import storage
from calque.core.jaxprs import ClosedJaxpr, Eqn
from calque.core.primitives import do
from calque.core.trace import eval_jaxpr, trace_to_jaxpr
from calque.ops.common import move, scalar_of
from calque.transforms.engines.axes import Axis, AxisPrimitive
from calque.transforms.engines.batching import Dim, batch_jaxpr, placed
from calque.transforms.engines.jvp import jvp_jaxpr
from calque.transforms.engines.slices import (
    dead_code_rules,
    dependence_rules,
    dependent_results,
    used_inputs,
    without_dead_code,
)
from calque.transforms.engines.zeros import nonzero, with_zeros
from calque.transforms.primitives.flow import rearranged, split
from calque.transforms.primitives.scan_common import (
    Mask,
    bind_counted,
    bind_scan,
    carried_too,
    result_avals,
    tangents_in,
    thirds,
)
from calque.transforms.primitives.scan_linear import linearize
from calque.transforms.primitives.scan_transpose import transpose


def _meaning(
    *args: np.ndarray,
    jaxpr: ClosedJaxpr,
    length: int,
    num_carry: int,
    num_consts: int,
    reverse: bool,
    unroll: Any,
    counted: bool = False,
) -> list[np.ndarray]:
    consts, carry, xs = split(args, num_consts, num_carry)
    stacked = [np.zeros((length, *a.shape), storage(a.dtype)) for a in jaxpr.out_avals[num_carry:]]
    rounds = int(args[0]) if counted else length
    for i in reversed(range(rounds)) if reverse else range(rounds):
        outs = reference.run(jaxpr, *consts, *carry, *[x[i] for x in xs])
        carry = outs[:num_carry]
        for s, y in zip(stacked, outs[num_carry:]):
            s[i] = y
    return [*carry, *stacked]


# ---------------------------------------------------------------- forward mode


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    jaxpr: ClosedJaxpr,
    num_carry: int,
    num_consts: int,
    **params: Any,
) -> Any:
    n_ys = len(jaxpr.jaxpr.outvars) - num_carry
    active = carried_too(nonzero(tangents), num_consts, num_carry, lambda m: jvp_jaxpr(jaxpr, m)[1])
    c_nz, carry_nz, x_nz = (tuple(m) for m in split(active, num_consts, num_carry))
    both, mask = jvp_jaxpr(jaxpr, active, carry_nz + (False,) * n_ys)
    # the program takes (values, tangents) and gives (values, tangents): bring constants, carry and
    # xs together
    n = len(active)
    values = split(range(n), num_consts, num_carry)
    slots = split(range(n, n + sum(active)), sum(c_nz), sum(carry_nz))
    outs = split(range(len(mask) + sum(mask)), num_carry, n_ys, sum(carry_nz))
    order = [i for v, t in zip(values, slots) for i in (*v, *t)]
    body = rearranged(both, order, [*outs[0], *outs[2], *outs[1], *outs[3]])
    parts = [
        [*p, *tangents_in(t, m)]
        for p, t, m in zip(
            split(primals, num_consts, num_carry),
            split(tangents, num_consts, num_carry),
            (c_nz, carry_nz, x_nz),
        )
    ]
    found = bind_scan(*parts, jaxpr=body, **params)
    carry, carry_t, ys, ys_t = split(found, num_carry, sum(carry_nz), n_ys)
    avals = result_avals(jaxpr=jaxpr, length=params["length"], num_carry=num_carry)
    return [*carry, *ys], with_zeros([*carry_t, *ys_t], mask, avals)


# ---------------------------------------------------------------- batching


def _batch(
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    *,
    jaxpr: ClosedJaxpr,
    num_carry: int,
    num_consts: int,
    **params: Any,
) -> Any:
    n_ys = len(jaxpr.jaxpr.outvars) - num_carry
    if params.get("counted") and dims[0] is not None:
        return _batch_counts(axis, args, dims, jaxpr, num_carry, num_consts, params)
    mask = tuple(d is not None for d in dims)
    c_dims, _, _ = split(dims, num_consts, num_carry)

    def inner(m: Mask) -> tuple[Dim, ...]:
        return (*c_dims, *(0 if b else None for b in m[num_consts:]))

    def outs_of(m: Mask) -> Mask:
        return tuple(d is not None for d in batch_jaxpr(jaxpr, axis, inner(m))[1])

    mask = carried_too(mask, num_consts, num_carry, outs_of)
    carry_mask = mask[num_consts : num_consts + num_carry]
    body, out_dims = batch_jaxpr(jaxpr, axis, inner(mask), carry_mask + (False,) * n_ys)
    consts, init, xs = split(args, num_consts, num_carry)
    _, i_dims, x_dims = split(dims, num_consts, num_carry)
    init = [placed(x, d, 0, axis.size) if m else x for x, d, m in zip(init, i_dims, carry_mask)]
    xs = [x if d is None else move(x, d, 1) for x, d in zip(xs, x_dims)]
    found = bind_scan(consts, init, xs, jaxpr=body, **params)
    return found, [
        *out_dims[:num_carry],
        *(None if d is None else d + 1 for d in out_dims[num_carry:]),
    ]


def _batch_counts(
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    jaxpr: ClosedJaxpr,
    num_carry: int,
    num_consts: int,
    params: dict[str, Any],
) -> Any:
    """Lanes with different numbers of rounds, together: as many as the longest needs; the others
    keep what they carry meanwhile."""
    one = ShapedArray((), np.dtype("int32"))
    step = scalar_of(one.dtype, -1 if params["reverse"] else 1)

    def body(*values: Any) -> list[Any]:
        _, consts, (i, *carry), xs = split(values, 1, num_consts, num_carry + 1)
        outs = eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *consts, *carry, *xs)
        more = do.lt(i, consts[0])
        return [
            do.add(i, step),
            *(do.select_n(more, x, y) for x, y in zip(carry, outs)),
            *outs[num_carry:],
        ]

    key = ("counts", params["reverse"])
    if key not in jaxpr.cache:
        consts, rest = split(jaxpr.in_avals, num_consts)
        jaxpr.cache[key] = trace_to_jaxpr(body, [one, *consts, one, *rest], "lanes")
    consts, rest = split(args, num_consts)
    c_dims, rest_dims = split(dims, num_consts)
    most = do.reduce_max(move(args[0], dims[0] or 0, 0), axes=(0,))
    first = do.sub(most, scalar_of(one.dtype, 1)) if params["reverse"] else scalar_of(one.dtype, 0)
    found, out_dims = _batch(
        axis,
        [most, *consts, first, *rest],
        [None, *c_dims, None, *rest_dims],
        jaxpr=jaxpr.cache[key],
        num_carry=num_carry + 1,
        num_consts=num_consts + 1,
        **params,
    )
    return found[1:], out_dims[1:]


# ---------------------------------------------------------------- dead code


def _dead_code(e: Eqn, used: Sequence[bool]) -> Eqn | None:
    """A loop without the carries, ys and operands that nobody needs."""
    p = e.params
    closed, n_consts, n_carry = p["jaxpr"], p["num_consts"], p["num_carry"]
    used = list(used)
    while True:
        jaxpr = without_dead_code(closed.jaxpr, used)
        reads = used_inputs(jaxpr)
        more = [u or r for u, r in zip(used[:n_carry], reads[n_consts:])]
        if more == used[:n_carry]:
            break
        used[:n_carry] = more
    counted = bool(p.get("counted"))

    def kept(i: int) -> bool:
        return (
            reads[i]
            or (counted and i == 0)
            or (n_consts <= i < n_consts + n_carry and used[i - n_consts])
        )

    keep = [i for i in range(len(reads)) if kept(i)]
    c, i, _ = thirds(keep, n_consts, n_carry)
    body = rearranged(ClosedJaxpr(jaxpr, closed.consts), keep)
    params = {**p, "jaxpr": body, "num_consts": len(c), "num_carry": len(i)}
    return e.replace(
        invars=[e.invars[k] for k in keep],
        outvars=[v for v, u in zip(e.outvars, used) if u],
        params=params,
    )


def _dependence(e: Eqn, unknown: Sequence[bool]) -> Sequence[bool]:
    closed, n_consts, n_carry = e.params["jaxpr"], e.params["num_consts"], e.params["num_carry"]
    if e.params.get("counted") and unknown[0]:
        return (True,) * len(e.outvars)

    def outs_of(m: Mask) -> Mask:
        return dependent_results(closed, m)

    return outs_of(carried_too(tuple(unknown), n_consts, n_carry, outs_of))


scan_p = AxisPrimitive(
    "scan",
    meaning=_meaning,
    shape=result_avals,
    jvp=_jvp,
    linearize=linearize,
    transpose=transpose,
    batch=_batch,
    multiple_results=True,
)
dead_code_rules["scan"] = _dead_code
dependence_rules["scan"] = _dependence

# whoever binds a scan needs the primitive
__all__ = ["bind_counted", "bind_scan", "scan_p"]
