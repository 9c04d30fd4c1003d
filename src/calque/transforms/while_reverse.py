"""Reverse mode through loops of any number of rounds, in memory that does not grow with them.

The loop is run once to count its rounds. Then rounds are taken back from the last to the first. The values that a round
started from come from a hierarchy of checkpoints: level 1 holds those of SLOTS consecutive rounds, level 2 those at which
SLOTS blocks of level 1 begin, and so on. Each level costs one more forward run, and a level that is not needed costs nothing."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from calque.core.avals import ShapedArray, nbytes
from calque.core.jaxprs import ClosedJaxpr
from calque.core.primitives import UndefinedPrimal, Zero, do
from calque.core.trace import eval_jaxpr, trace_to_jaxpr, typeof
from calque.ops.common import add_tangents, scalar_of
from calque.transforms.flow import rearranged, split, with_inputs
from calque.transforms.slices import dependents, without_dead_code
from calque.transforms.transpose import transpose_jaxpr
from calque.transforms.zeros import instantiate, tangent_aval, zeros

I32 = np.dtype("int32")
BUDGET = 1 << 24  # bytes of checkpoints at each level
MOST_SLOTS, LEAST_SLOTS = 1024, 16
ROUNDS = 31  # trip counts have this many bits

BindWhile = Callable[..., list[Any]]


class _Loop(NamedTuple):
    """A loop in two parts: what is known, and what is linear in the arguments to transpose."""

    bind: BindWhile
    cond: ClosedJaxpr  # cond_consts, known carry -> bool
    step: ClosedJaxpr  # known consts, known carry -> known carry
    back: ClosedJaxpr  # known consts, known carry, cotangents of linear carry -> cotangents of linear consts, linear carry
    cond_consts: list[Any]
    consts: list[Any]
    slots: int


def reverse_while(
    bind: BindWhile,
    cts: Sequence[Any],
    cond_consts: list[Any],
    body_consts: list[Any],
    init: list[Any],
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
) -> list[Any]:
    """Cotangents of the body constants and the initial values that are UndefinedPrimal; None for the others."""
    n = len(body_consts)
    linear = [type(x) is UndefinedPrimal for x in (*body_consts, *init)]
    touched = _touched(body_jaxpr, linear, n)
    known = [i for i in range(len(init)) if not touched[n + i]]
    lin = [i for i in range(len(init)) if touched[n + i]]
    _check_condition(cond_jaxpr, len(cond_consts), lin)
    loop = _loop(bind, cond_jaxpr, body_jaxpr, cond_consts, body_consts, touched, known, lin)
    start = [init[i] for i in known]
    count = _count(loop, start)
    carry_avals = [tangent_aval(body_jaxpr.out_avals[i]) for i in lin]
    const_avals = [tangent_aval(c.aval) for c in body_consts if type(c) is UndefinedPrimal]
    first = [zeros(a) for a in const_avals] + [instantiate(cts[i]) for i in lin]
    found = _back_through(loop, _levels(loop.slots), start, count, first)
    ct_consts, ct_carry = split(found, len(const_avals))
    it = iter(ct_consts)
    out: list[Any] = [next(it) if type(c) is UndefinedPrimal else None for c in body_consts]
    by_place = dict(zip(lin, ct_carry))
    del carry_avals
    for i, x in enumerate(init):
        if type(x) is UndefinedPrimal:
            ct = by_place.get(i)
            out.append(Zero(tangent_aval(x.aval)) if ct is None else ct)
        else:
            out.append(None)
    return out


def _touched(body: ClosedJaxpr, linear: Sequence[bool], num_consts: int) -> list[bool]:
    """The constants that are linear and the carry that depends on anything linear in some round."""
    mask = list(linear)
    while True:
        _, _, reached = dependents(body.jaxpr, mask)
        new = mask[:num_consts] + [m or a in reached for m, a in zip(mask[num_consts:], body.jaxpr.outvars)]
        if new == mask:
            return mask
        mask = new


def _check_condition(cond: ClosedJaxpr, cond_nconsts: int, lin: Sequence[int]) -> None:
    mask = [False] * len(cond.jaxpr.invars)
    for i in lin:
        mask[cond_nconsts + i] = True
    _, _, reached = dependents(cond.jaxpr, mask)
    if cond.jaxpr.outvars[0] in reached:
        raise TypeError("while_loop is not linear in what its condition reads: it has no transpose in it")


def _loop(
    bind: BindWhile,
    cond: ClosedJaxpr,
    body: ClosedJaxpr,
    cond_consts: list[Any],
    body_consts: list[Any],
    touched: Sequence[bool],
    known: Sequence[int],
    lin: Sequence[int],
) -> _Loop:
    n = len(body_consts)
    known_consts = [i for i in range(n) if not touched[i]]
    places = [*known_consts, *(n + i for i in known)]
    # of a call whose known results read linear operands only for what is dead, `dependents` gives the part that does not
    known_eqns, _, _ = dependents(body.jaxpr, touched)
    j = without_dead_code(body.jaxpr.replace(eqns=known_eqns), [i in known for i in range(len(body.jaxpr.outvars))])
    step = rearranged(ClosedJaxpr(j, body.consts), places)
    linear_part = ClosedJaxpr(
        without_dead_code(body.jaxpr, [i in lin for i in range(len(body.jaxpr.outvars))]), body.consts
    )
    lin_places = [i for i in range(n) if touched[i]] + [n + i for i in lin]
    whole = rearranged(linear_part, [*places, *lin_places])
    mask = (False,) * len(places) + (True,) * len(lin_places)
    back, _ = transpose_jaxpr(whole, mask, (True,) * len(lin), True)
    m = len(cond_consts)
    condition = rearranged(cond, [*range(m), *(m + i for i in known)])
    carry_bytes = sum(nbytes(body.out_avals[i]) for i in known)
    slots = max(
        LEAST_SLOTS,
        min(MOST_SLOTS, 1 << (BUDGET // max(carry_bytes, 1)).bit_length() - 1 if carry_bytes <= BUDGET else 1),
    )
    return _Loop(bind, condition, step, back, cond_consts, [body_consts[i] for i in known_consts], slots)


def _levels(slots: int) -> int:
    return -(-ROUNDS // (slots.bit_length() - 1))


# ---------------------------------------------------------------- programs of the parts


def _i32(x: int) -> Any:
    return scalar_of(I32, x)


def _count(loop: _Loop, start: Sequence[Any]) -> Any:
    """The number of rounds."""
    m = len(loop.cond_consts)
    cond = with_inputs(loop.cond, [*range(m), ShapedArray((), I32), *range(m, len(loop.cond.jaxpr.invars))])

    def body(*args: Any) -> list[Any]:
        consts, (i, *carry) = split(args, len(loop.consts))
        return [do.add(i, _i32(1)), *eval_jaxpr(loop.step.jaxpr, loop.step.consts, *consts, *carry)]

    avals = loop.step.in_avals
    n = len(loop.consts)
    counted = trace_to_jaxpr(body, [*avals[:n], ShapedArray((), I32), *avals[n:]], "count")
    return loop.bind(loop.cond_consts, loop.consts, [_i32(0), *start], cond_jaxpr=cond, body_jaxpr=counted)[0]


def _repeat(
    loop: _Loop, count: Any, consts: Sequence[Any], init: Sequence[Any], body: Callable[..., list[Any]]
) -> list[Any]:
    """`carry = body(i, consts, carry)` for i in range(count)."""
    i32 = ShapedArray((), I32)
    n = len(consts)
    avals = [typeof(x).strip_weak_type() for x in init]

    def cond(*args: Any) -> list[Any]:
        return [do.lt(args[0], args[1])]

    def counted(*args: Any) -> list[Any]:
        given, (i, stop, *carry) = split(args, n)
        return [do.add(i, _i32(1)), stop, *body(i, given, carry)]

    cond_jaxpr = trace_to_jaxpr(cond, [i32, i32, *avals], "cond_fun")
    body_jaxpr = trace_to_jaxpr(counted, [*(typeof(c) for c in consts), i32, i32, *avals], "body_fun")
    return loop.bind([], consts, [_i32(0), count, *init], cond_jaxpr=cond_jaxpr, body_jaxpr=body_jaxpr)[2:]


def _advance(loop: _Loop, consts: Sequence[Any], carry: Sequence[Any], count: Any) -> list[Any]:
    """The known carry after `count` rounds."""
    step = lambda i, c, v: eval_jaxpr(loop.step.jaxpr, loop.step.consts, *c, *v)
    return _repeat(loop, count, consts, carry, step)


def _back_through(loop: _Loop, level: int, start: Sequence[Any], count: Any, cts: Sequence[Any]) -> list[Any]:
    """Cotangents taken back through `count` rounds that began at `start`; `count` is at most slots ** level."""
    if level == 0:
        return _back_one(loop, loop.consts, start, cts)
    block = loop.slots ** (level - 1)
    if block.bit_length() > ROUNDS:
        return _back_through(loop, level - 1, start, count, cts)
    blocks = count if block == 1 else do.div(do.add(count, _i32(min(block - 1, (1 << ROUNDS) - 1))), _i32(block))
    n_consts, n_start = len(loop.consts), len(start)
    # under vmap, lanes that have finished come here too, with k < 0: they must find nothing to do
    size_of = lambda k, total: do.select_n(
        do.lt(k, _i32(0)), do.min(_i32(block), do.sub(total, do.mul(k, _i32(block)))), _i32(0)
    )

    def save(k: Any, given: Sequence[Any], state: Sequence[Any]) -> list[Any]:
        consts, (total,) = split(given, n_consts)
        carry, stores = split(state, n_start)
        stores = [_put(s, x, k) for s, x in zip(stores, carry)]
        more = do.sub(total, do.mul(k, _i32(block)))
        count_here = do.select_n(do.gt(more, _i32(block)), _i32(0), _i32(block)) if block > 1 else _i32(1)
        return [*_advance(loop, consts, carry, count_here), *stores]

    def back(k: Any, given: Sequence[Any], state: Sequence[Any]) -> list[Any]:
        consts, stores, (total, number) = split(given, n_consts, n_start)
        k = do.sub(do.sub(number, _i32(1)), k)
        here = loop._replace(consts=consts)
        return _back_through(here, level - 1, [_get(s, k) for s in stores], size_of(k, total), state)

    stores = [_store(typeof(x), loop.slots) for x in start]
    saved = _repeat(loop, blocks, [*loop.consts, count], [*start, *stores], save)
    return _repeat(loop, blocks, [*loop.consts, *saved[n_start:], count, blocks], cts, back)


def _back_one(loop: _Loop, consts: Sequence[Any], carry: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
    """Cotangents taken back through one round."""
    n_lin_carry = len(loop.back.in_avals) - len(consts) - len(carry)
    sums, ct_carry = split(cts, len(cts) - n_lin_carry)
    found = eval_jaxpr(loop.back.jaxpr, loop.back.consts, *consts, *carry, *ct_carry)
    ct_consts, ct_new = split(found, len(sums))
    return [*(add_tangents(a, b) for a, b in zip(sums, ct_consts)), *ct_new]


def _store(aval: ShapedArray, slots: int) -> Any:
    return do.empty(dtype=aval.dtype, out_sharding=None, shape=(slots, *aval.shape))


def _put(store: Any, x: Any, k: Any) -> Any:
    aval = typeof(x)
    row = do.broadcast_in_dim(
        x, shape=(1, *aval.shape), broadcast_dimensions=tuple(range(1, aval.ndim + 1)), sharding=None
    )
    return do.dynamic_update_slice(store, row, k, *[_i32(0)] * aval.ndim)


def _get(store: Any, k: Any) -> Any:
    shape = typeof(store).shape[1:]
    row = do.dynamic_slice(store, k, *[_i32(0)] * len(shape), slice_sizes=(1, *shape))
    return do.squeeze(row, dimensions=(0,))
