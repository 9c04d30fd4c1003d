"""Reverse mode through loops of any number of rounds, in time linear in them and in memory that is bounded.

The loop is run once to count its rounds. Then rounds are taken back from the last to the first. Where they are not too many, a second run
keeps the values that each of them started from. Else these come from a hierarchy of checkpoints: blocks of so many rounds, blocks of
blocks, and so on; each level costs one more forward run, and a level that is not needed costs nothing.

All this is one equation, `while_back`: so vmap can take it lane by lane when the lanes differ in their numbers of rounds, and what one
lane keeps is gone before the next begins."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from calque.core.avals import ShapedArray, nbytes
from calque.core.jaxprs import ClosedJaxpr
from calque.core.primitives import UndefinedPrimal, Zero, do
from calque.core.trace import eval_jaxpr, trace_to_jaxpr, typeof
from calque.ops.common import add_tangents, scalar_of
from calque.transforms import lanes
from calque.transforms.axes import Axis
from calque.transforms.batching import Dim, batch_jaxpr, placed
from calque.transforms.call import CallPrimitive, Tangents, dead_code_of_call
from calque.transforms.flow import rearranged, split, with_inputs
from calque.transforms.scan import bind_counted
from calque.transforms.slices import (
    dead_code_rules,
    dependence_rules,
    dependent_results,
    dependents,
    without_dead_code,
)
from calque.transforms.transpose import transpose_jaxpr
from calque.transforms.zeros import instantiate, tangent_aval, zeros

I32 = np.dtype("int32")
BUDGET = 1 << 24  # bytes of checkpoints at each level
MOST_ROUNDS, MOST_SLOTS, LEAST_SLOTS = 1 << 17, 1 << 14, 16  # together all the rounds there may be
ROUNDS = 31  # trip counts have this many bits

BindWhile = Callable[..., list[Any]]


class _Parts(NamedTuple):
    """A loop in two parts: what is known, and what is linear in the arguments to transpose.

    cond   constants of the condition, known carry -> bool
    step   known constants, known carry -> known carry
    back   known constants, known carry, cotangents of the linear carry -> cotangents of the linear constants, of the linear carry"""

    bind: BindWhile
    cond: ClosedJaxpr
    step: ClosedJaxpr
    back: ClosedJaxpr
    sizes: tuple[int, int, int]  # constants of the condition, known constants, linear constants


class _Loop(NamedTuple):
    """The parts with the values of their constants, and how much is kept."""

    parts: _Parts
    cond_consts: list[Any]
    consts: list[Any]
    rounds: int  # of which the values are kept
    slots: int  # blocks of each higher level


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
    fixed = [i for i in known if body_jaxpr.jaxpr.outvars[i] is body_jaxpr.jaxpr.invars[n + i]]
    moving = [i for i in known if i not in fixed]
    parts = _parts(bind, cond_jaxpr, body_jaxpr, len(cond_consts), touched, (fixed, moving, lin))
    const_avals = [tangent_aval(c.aval) for c in body_consts if type(c) is UndefinedPrimal]
    first = [zeros(a) for a in const_avals] + [instantiate(cts[i]) for i in lin]
    unchanged = [init[i] for i in fixed]
    consts = [c for c, t in zip(body_consts, touched) if not t]
    found = bind_back(parts, [*cond_consts, *unchanged, *consts, *unchanged, *(init[i] for i in moving), *first])
    ct_consts, ct_carry = split(found, len(const_avals))
    it = iter(ct_consts)
    out: list[Any] = [next(it) if type(c) is UndefinedPrimal else None for c in body_consts]
    by_place = dict(zip(lin, ct_carry))
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


def _parts(
    bind: BindWhile,
    cond: ClosedJaxpr,
    body: ClosedJaxpr,
    num_cond_consts: int,
    touched: Sequence[bool],
    carry: tuple[Sequence[int], Sequence[int], Sequence[int]],
) -> _Parts:
    """The parts of a loop of which some of the carry never changes (it counts as constant), some changes, some is linear."""
    fixed, moving, lin = carry
    key = ("parts", cond, tuple(touched), num_cond_consts, tuple(fixed))
    if key not in body.cache:
        n, m = len(touched) - len(body.jaxpr.outvars), num_cond_consts
        known_consts = [i for i in range(n) if not touched[i]]
        places = [*known_consts, *(n + i for i in (*fixed, *moving))]
        outs = len(body.jaxpr.outvars)
        of = lambda j, which: ClosedJaxpr(without_dead_code(j, [i in which for i in range(outs)]), body.consts)
        # of a call whose known results read linear operands only for what is dead, `dependents` gives the part that does not
        known_eqns, _, _ = dependents(body.jaxpr, touched)
        step = rearranged(of(body.jaxpr.replace(eqns=known_eqns), moving), places)
        lin_places = [i for i in range(n) if touched[i]] + [n + i for i in lin]
        whole = rearranged(of(body.jaxpr, lin), [*places, *lin_places])
        mask = (False,) * len(places) + (True,) * len(lin_places)
        back, _ = transpose_jaxpr(whole, mask, (True,) * len(lin), True)
        condition = rearranged(cond, [*range(m), *(m + i for i in (*fixed, *moving))])
        sizes = (m + len(fixed), len(known_consts) + len(fixed), len(lin_places) - len(lin))
        body.cache[key] = _Parts(bind, condition, step, back, sizes)
    return body.cache[key]


# ---------------------------------------------------------------- the primitive


def bind_back(parts: _Parts, args: Sequence[Any]) -> list[Any]:
    """Cotangents before the loop; `args` are the constants of the condition, the known constants and carry, and the cotangents after it."""
    return while_back_p.bind(*args, jaxpr=_definition(parts, [typeof(x) for x in args]), parts=parts)


def _definition(parts: _Parts, avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """The program of `while_back`."""
    key = ("definition", parts, tuple(avals), MOST_ROUNDS, MOST_SLOTS, LEAST_SLOTS, ROUNDS)
    cache = parts.back.cache
    if key not in cache:
        m, n, _ = parts.sizes
        n_carry = len(parts.step.jaxpr.outvars)
        carry_bytes = sum(nbytes(a) for a in parts.step.out_avals)

        def whole(*args: Any) -> list[Any]:
            cond_consts, consts, start, cts = split(args, m, n, n_carry)
            rounds, slots = (_most(carry_bytes, most) for most in (MOST_ROUNDS, MOST_SLOTS))
            return _back(_Loop(parts, cond_consts, consts, rounds, slots), start, cts)

        cache[key] = trace_to_jaxpr(whole, [a.strip_weak_type() for a in avals], "while_back")
    return cache[key]


def _most(carry_bytes: int, most: int) -> int:
    """How many carries may be kept: a power of two."""
    return max(LEAST_SLOTS, min(most, 1 << max(BUDGET // max(carry_bytes, 1), 1).bit_length() - 1))


class _BackPrimitive(CallPrimitive):
    """A call of its definition, which vmap takes lane by lane when the numbers of rounds differ."""

    __slots__ = ()

    def linearize_rule(self, primals: Sequence[Any], tangents: Tangents, *, jaxpr: ClosedJaxpr, **params: Any) -> Any:
        """As for the loop itself: what the rounds leave behind stays inside."""
        outs = self.bind(*primals, jaxpr=jaxpr, **params)
        return outs, self.jvp_rule(primals, tangents, jaxpr=jaxpr, **params)[1]

    def batch_rule(
        self,
        axis: Axis,
        args: Sequence[Any],
        dims: Sequence[Dim],
        *,
        jaxpr: ClosedJaxpr,
        parts: _Parts | None = None,
        **params: Any,
    ) -> Any:
        if not diverges(jaxpr, [d is not None for d in dims]):
            if parts is not None:
                return _batch_parts(axis, args, dims, parts)
        elif not lanes.together(axis, (jaxpr,)):
            return lanes.one_by_one(self, axis, args, dims, {"jaxpr": jaxpr, "parts": parts, **params})
        return super().batch_rule(axis, args, dims, jaxpr=jaxpr, **params)


while_back_p = _BackPrimitive("while_back", adapt=lambda params: {}, hidden=("parts",))
dead_code_rules["while_back"] = dead_code_of_call
dependence_rules["while_back"] = lambda e, unknown: dependent_results(e.params["jaxpr"], tuple(unknown))


def diverges(closed: ClosedJaxpr, batched: Sequence[bool]) -> bool:
    """Does the number of rounds, by which the program chooses its way, depend on these arguments?"""
    _, _, reached = dependents(closed.jaxpr, batched)
    choices = [e for e in closed.eqns if e.primitive.name == "cond" or e.params.get("counted")]
    return any(e.invars[0] in reached for e in choices)


def _batch_parts(axis: Axis, args: Sequence[Any], dims: Sequence[Dim], parts: _Parts) -> Any:
    """Lanes that take the same number of rounds: the parts over whole batches; how much is kept is decided anew."""
    m, n, _ = parts.sizes
    n_carry = len(parts.step.jaxpr.outvars)
    cond_dims, const_dims, carry_dims, _ = split(dims, m, n, n_carry)
    mask = tuple(d is not None for d in carry_dims)
    of = lambda mask: tuple(0 if b else None for b in mask)
    while True:
        out_dims = batch_jaxpr(parts.step, axis, (*const_dims, *of(mask)))[1]
        more = tuple(b or d is not None for b, d in zip(mask, out_dims))
        if more == mask:
            break
        mask = more
    cond, _ = batch_jaxpr(parts.cond, axis, (*cond_dims, *of(mask)))
    step, _ = batch_jaxpr(parts.step, axis, (*const_dims, *of(mask)), mask)
    n_cts = len(parts.back.jaxpr.invars) - n - n_carry
    back, _ = batch_jaxpr(parts.back, axis, (*const_dims, *of(mask), *(0,) * n_cts), True)
    known, carry, cts = split(args, m + n, n_carry)
    carry = [placed(x, d, 0, axis.size) if b else x for x, d, b in zip(carry, carry_dims, mask)]
    cts = [placed(x, d, 0, axis.size) for x, d in zip(cts, dims[m + n + n_carry :])]
    found = bind_back(parts._replace(cond=cond, step=step, back=back), [*known, *carry, *cts])
    return found, [0] * len(found)


# ---------------------------------------------------------------- its definition


def _i32(x: int) -> Any:
    return scalar_of(I32, x)


def _back(loop: _Loop, start: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
    """Cotangents taken back through the whole loop."""
    count = _count(loop, start)
    args = [count, *loop.consts, *start, *cts]
    n, k = len(loop.consts), len(start)
    level, reach = 1, loop.rounds
    while reach < 1 << ROUNDS:
        level, reach = level + 1, reach * loop.slots

    def through(level: int) -> ClosedJaxpr:
        def branch(count: Any, *values: Any) -> list[Any]:
            consts, start, cts = split(values, n, k)
            return _back_through(loop._replace(consts=consts), level, start, count, cts)

        return trace_to_jaxpr(branch, [typeof(x) for x in args], "back")

    few = do.convert_element_type(do.le(count, _i32(loop.rounds)), new_dtype=I32, weak_type=False, sharding=None)
    return do.cond(few, *args, branches=(through(level), through(1)))


def _count(loop: _Loop, start: Sequence[Any]) -> Any:
    """The number of rounds."""
    parts, m, n = loop.parts, len(loop.cond_consts), len(loop.consts)
    cond = with_inputs(parts.cond, [*range(m), ShapedArray((), I32), *range(m, len(parts.cond.jaxpr.invars))])

    def body(*args: Any) -> list[Any]:
        consts, (i, *carry) = split(args, n)
        return [do.add(i, _i32(1)), *eval_jaxpr(parts.step.jaxpr, parts.step.consts, *consts, *carry)]

    avals = parts.step.in_avals
    counted = trace_to_jaxpr(body, [*avals[:n], ShapedArray((), I32), *avals[n:]], "count")
    return parts.bind(loop.cond_consts, loop.consts, [_i32(0), *start], cond_jaxpr=cond, body_jaxpr=counted)[0]


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
    return loop.parts.bind([], consts, [_i32(0), count, *init], cond_jaxpr=cond_jaxpr, body_jaxpr=body_jaxpr)[2:]


def _advance(loop: _Loop, consts: Sequence[Any], carry: Sequence[Any], count: Any) -> list[Any]:
    """The known carry after `count` rounds."""
    step = loop.parts.step
    return _repeat(loop, count, consts, carry, lambda i, c, v: eval_jaxpr(step.jaxpr, step.consts, *c, *v))


def _back_through(loop: _Loop, level: int, start: Sequence[Any], count: Any, cts: Sequence[Any]) -> list[Any]:
    """Cotangents taken back through `count` rounds that began at `start`; level 1 takes `rounds`, each further one `slots` times as many."""
    if level == 1:
        return _back_block(loop, start, count, cts)
    block = loop.rounds * loop.slots ** (level - 2)
    if block.bit_length() > ROUNDS:
        return _back_through(loop, level - 1, start, count, cts)
    blocks = do.div(do.add(count, _i32(min(block - 1, (1 << ROUNDS) - 1))), _i32(block))
    n_consts, n_start = len(loop.consts), len(start)
    rest = lambda k, total: do.sub(total, do.mul(k, _i32(block)))

    def save(k: Any, given: Sequence[Any], state: Sequence[Any]) -> list[Any]:
        consts, (total,) = split(given, n_consts)
        carry, stores = split(state, n_start)
        stores = [_put(s, x, k) for s, x in zip(stores, carry)]
        here = do.select_n(do.gt(rest(k, total), _i32(block)), _i32(0), _i32(block))
        return [*_advance(loop, consts, carry, here), *stores]

    def back(k: Any, given: Sequence[Any], state: Sequence[Any]) -> list[Any]:
        consts, stores, (total, number) = split(given, n_consts, n_start)
        k = do.sub(do.sub(number, _i32(1)), k)
        here = loop._replace(consts=consts)
        return _back_through(here, level - 1, [_get(s, k) for s in stores], do.min(_i32(block), rest(k, total)), state)

    stores = [_store(typeof(x), loop.slots) for x in start]
    saved = _repeat(loop, blocks, [*loop.consts, count], [*start, *stores], save)
    return _repeat(loop, blocks, [*loop.consts, *saved[n_start:], count, blocks], cts, back)


def _back_block(loop: _Loop, start: Sequence[Any], count: Any, cts: Sequence[Any]) -> list[Any]:
    """The same for at most `rounds`: forward once more, keeping what each round starts from, then backward."""
    step, back, n, k = loop.parts.step, loop.parts.back, len(loop.consts), len(start)
    n_sums = loop.parts.sizes[2]
    j = step.jaxpr
    keeping = ClosedJaxpr(j.replace(outvars=[*j.outvars, *j.invars[n:]]), step.consts)
    kept = bind_counted(count, loop.consts, start, [], jaxpr=keeping, length=loop.rounds, reverse=False)[k:]

    def one(*args: Any) -> list[Any]:
        consts, sums, ct_carry, carry = split(args, n, n_sums, len(cts) - n_sums)
        found = eval_jaxpr(back.jaxpr, back.consts, *consts, *carry, *ct_carry)
        ct_consts, ct_new = split(found, n_sums)
        return [*(add_tangents(a, b) for a, b in zip(sums, ct_consts)), *ct_new]

    avals = [typeof(x) for x in (*loop.consts, *cts)]
    body = trace_to_jaxpr(one, [*avals, *step.in_avals[n:]], "back")
    return bind_counted(count, loop.consts, cts, kept, jaxpr=body, length=loop.rounds, reverse=True)


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
