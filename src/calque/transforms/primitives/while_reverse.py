"""Reverse mode through loops of any number of rounds, in time linear in them and in memory that is
bounded.

The loop is run once to count its rounds. Then rounds are taken back from the last to the first.
Where they are not too many, a second run keeps the values that each of them started from. Else
these come from a hierarchy of checkpoints: blocks of so many rounds, blocks of blocks, and so on;
each level costs one more forward run, and a level that is not needed costs nothing.

All this is one equation, `while_back`: so vmap can take it lane by lane when the lanes differ in
their numbers of rounds, and what one lane keeps is gone before the next begins."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np

from calque.core.avals import ShapedArray, nbytes
from calque.core.jaxprs import ClosedJaxpr, Eqn, Jaxpr
from calque.core.primitives import UndefinedPrimal, Zero, do
from calque.core.trace import eval_jaxpr, trace_to_jaxpr, typeof
from calque.ops.common import add_tangents, scalar_of
from calque.transforms.engines.axes import Axis
from calque.transforms.engines.batching import Dim, batch_jaxpr, placed
from calque.transforms.engines.slices import (
    dead_code_rules,
    dependence_rules,
    dependent_results,
    dependents,
    without_dead_code,
)
from calque.transforms.engines.transpose import transpose_jaxpr
from calque.transforms.engines.zeros import instantiate, tangent_aval, zeros
from calque.transforms.primitives import lanes
from calque.transforms.primitives.call import CallPrimitive, Tangents, dead_code_of_call
from calque.transforms.primitives.flow import rearranged, split, with_inputs
from calque.transforms.primitives.remat import recomputed_tangents, remat_p
from calque.transforms.primitives.scan import bind_counted

I32 = np.dtype("int32")
BUDGET = 1 << 24  # bytes of checkpoints at each level
MOST_ROUNDS, MOST_SLOTS, LEAST_SLOTS = 1 << 17, 1 << 14, 16  # together all the rounds there may be
ROUNDS = 31  # trip counts have this many bits

BindWhile = Callable[..., list[Any]]


class _Parts(NamedTuple):
    """A loop in two parts: what is known, and what is linear in the arguments to transpose.

    cond   constants of the condition, known carry -> bool
    step   known constants, known carry -> known carry
    back   known constants, known carry, cotangents of the linear carry -> cotangents of the linear
    constants, of the linear carry
    """

    bind: BindWhile
    cond: ClosedJaxpr
    step: ClosedJaxpr
    back: ClosedJaxpr
    sizes: tuple[int, int, int]  # constants of the condition, known constants, linear constants


def reverse_while(
    bind: BindWhile,
    cts: Sequence[Any],
    cond_consts: list[Any],
    body_consts: list[Any],
    init: list[Any],
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
) -> list[Any]:
    """Cotangents of the body constants and the initial values that are UndefinedPrimal; None for
    the others."""
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
    found = bind_back(
        parts, [*cond_consts, *unchanged, *consts, *unchanged, *(init[i] for i in moving), *first]
    )
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
        new = mask[:num_consts] + [
            m or a in reached for m, a in zip(mask[num_consts:], body.jaxpr.outvars)
        ]
        if new == mask:
            return mask
        mask = new


def _check_condition(cond: ClosedJaxpr, cond_nconsts: int, lin: Sequence[int]) -> None:
    mask = [False] * len(cond.jaxpr.invars)
    for i in lin:
        mask[cond_nconsts + i] = True
    _, _, reached = dependents(cond.jaxpr, mask)
    if cond.jaxpr.outvars[0] in reached:
        raise TypeError(
            "while_loop is not linear in what its condition reads: it has no transpose in it"
        )


def _parts(
    bind: BindWhile,
    cond: ClosedJaxpr,
    body: ClosedJaxpr,
    num_cond_consts: int,
    touched: Sequence[bool],
    carry: tuple[Sequence[int], Sequence[int], Sequence[int]],
) -> _Parts:
    """The parts of a loop of which some of the carry never changes (it counts as constant), some
    changes, some is linear."""
    fixed, moving, lin = carry
    key = ("parts", cond, tuple(touched), num_cond_consts, tuple(fixed))
    if key not in body.cache:
        n, m = len(touched) - len(body.jaxpr.outvars), num_cond_consts
        known_consts = [i for i in range(n) if not touched[i]]
        places = [*known_consts, *(n + i for i in (*fixed, *moving))]
        outs = len(body.jaxpr.outvars)

        def of(j: Jaxpr, which: Collection[int]) -> ClosedJaxpr:
            return ClosedJaxpr(without_dead_code(j, [i in which for i in range(outs)]), body.consts)

        # of a call whose known results read linear operands only for what is dead, `dependents`
        # gives the part that does not
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
    """Cotangents before the loop; `args` are the constants of the condition, the known constants
    and carry, and the cotangents after it."""
    return while_back_p.bind(
        *args, jaxpr=_definition(parts, [typeof(x) for x in args]), parts=parts
    )


def _definition(parts: _Parts, avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """The program of `while_back`."""
    key = ("definition", parts, tuple(avals), MOST_ROUNDS, MOST_SLOTS, LEAST_SLOTS, ROUNDS)
    cache = parts.back.cache
    if key not in cache:
        m = parts.sizes[0]
        plain = [a.strip_weak_type() for a in avals]
        loop = _Loop(parts, plain[m:])
        cache[key] = trace_to_jaxpr(
            lambda *args: _back(loop, args[:m], args[m:]), plain, "while_back"
        )
    return cache[key]


def _most(carry_bytes: int, most: int) -> int:
    """How many carries may be kept: a power of two."""
    return max(LEAST_SLOTS, min(most, 1 << max(BUDGET // max(carry_bytes, 1), 1).bit_length() - 1))


class _BackPrimitive(CallPrimitive):
    """A call of its definition, which vmap takes lane by lane when the numbers of rounds differ."""

    __slots__ = ()

    def linearize_rule(
        self, primals: Sequence[Any], tangents: Tangents, *, jaxpr: ClosedJaxpr, **params: Any
    ) -> Any:
        """As for a checkpoint: what the rounds leave behind stays inside."""
        outs = self.bind(*primals, jaxpr=jaxpr, **params)
        return outs, recomputed_tangents(self, primals, tangents, jaxpr)

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
            return lanes.one_by_one(
                self, axis, args, dims, {"jaxpr": jaxpr, "parts": parts, **params}
            )
        return super().batch_rule(axis, args, dims, jaxpr=jaxpr, **params)


def _dead_code(e: Eqn, used: Sequence[bool]) -> Eqn | None:
    """As of a call; the parts are those of all operands and results."""
    kept = dead_code_of_call(e, used)
    if kept is None or (len(kept.invars) == len(e.invars) and len(kept.outvars) == len(e.outvars)):
        return kept
    return kept.replace(params={**kept.params, "parts": None})


while_back_p = _BackPrimitive("while_back", adapt=lambda params: {}, hidden=("parts",))
dead_code_rules["while_back"] = _dead_code
dependence_rules["while_back"] = lambda e, unknown: dependent_results(
    e.params["jaxpr"], tuple(unknown)
)


def diverges(closed: ClosedJaxpr, batched: Sequence[bool]) -> bool:
    """Whether the number of rounds, by which the program chooses its way, depends on these
    arguments."""
    _, _, reached = dependents(closed.jaxpr, batched)
    choices = [e for e in closed.eqns if e.primitive.name == "cond" or e.params.get("counted")]
    return any(e.invars[0] in reached for e in choices)


def _batch_parts(axis: Axis, args: Sequence[Any], dims: Sequence[Dim], parts: _Parts) -> Any:
    """Lanes that take the same number of rounds: the parts over whole batches; how much is kept is
    decided anew."""
    m, n, _ = parts.sizes
    n_carry = len(parts.step.jaxpr.outvars)
    cond_dims, const_dims, carry_dims, _ = split(dims, m, n, n_carry)
    mask = tuple(d is not None for d in carry_dims)

    def of(mask: Sequence[bool]) -> tuple[int | None, ...]:
        return tuple(0 if b else None for b in mask)

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
#
# All loops in it but the first are counted scans, and what they repeat is a checkpoint: their
# derivatives of any order are such scans again, a small number of them for each, and keep no more
# than they.


def _i32(x: int) -> Any:
    return scalar_of(I32, x)


def _count(
    parts: _Parts, cond_consts: Sequence[Any], consts: Sequence[Any], start: Sequence[Any]
) -> Any:
    """The number of rounds."""
    m, n = len(cond_consts), len(consts)
    cond = with_inputs(
        parts.cond, [*range(m), ShapedArray((), I32), *range(m, len(parts.cond.jaxpr.invars))]
    )

    def body(*args: Any) -> list[Any]:
        consts, (i, *carry) = split(args, n)
        return [
            do.add(i, _i32(1)),
            *eval_jaxpr(parts.step.jaxpr, parts.step.consts, *consts, *carry),
        ]

    avals = parts.step.in_avals
    counted = trace_to_jaxpr(body, [*avals[:n], ShapedArray((), I32), *avals[n:]], "count")
    return parts.bind(cond_consts, consts, [_i32(0), *start], cond_jaxpr=cond, body_jaxpr=counted)[
        0
    ]


class _Loop:
    """A loop in blocks of rounds, blocks of blocks, and so on; the programs of each level hold
    those of the level below, and share them."""

    def __init__(self, parts: _Parts, avals: Sequence[ShapedArray]):
        self.parts = parts
        self.n_carry = len(parts.step.jaxpr.outvars)
        n = len(parts.step.in_avals) - self.n_carry
        self.avals, self.ct_avals = split(avals, n + self.n_carry)
        carry_bytes = sum(nbytes(a) for a in parts.step.out_avals)
        self.rounds, self.slots = (_most(carry_bytes, most) for most in (MOST_ROUNDS, MOST_SLOTS))
        self.levels = 1
        while self.reach(self.levels) < 1 << ROUNDS:
            self.levels += 1
        self._found: dict[tuple[str, int], ClosedJaxpr] = {}

    def reach(self, level: int) -> int:
        """How many rounds a level takes."""
        return self.rounds * self.slots ** (level - 1)

    def length(self, level: int) -> int:
        """Of how many blocks of the level below."""
        return min(self.slots, -(-(1 << ROUNDS) // self.reach(level - 1)))

    def advance(self, level: int) -> ClosedJaxpr:
        """count, known constants and carry -> the known carry after so many rounds."""
        return self._program("advance", level, self._advance, [])

    def back(self, level: int) -> ClosedJaxpr:
        """count, known constants and carry, cotangents after so many rounds -> cotangents before
        them."""
        return self._program(
            "back", level, self._back_block if level == 1 else self._back_blocks, self.ct_avals
        )

    def _program(
        self, name: str, level: int, rule: Any, more: Sequence[ShapedArray]
    ) -> ClosedJaxpr:
        if (name, level) not in self._found:

            def whole(*args: Any) -> Any:
                return rule(
                    level, *split(args[1:], len(self.avals) - self.n_carry, self.n_carry), args[0]
                )

            self._found[name, level] = trace_to_jaxpr(
                whole, [ShapedArray((), I32), *self.avals, *more], name
            )
        return self._found[name, level]

    def _advance(
        self, level: int, consts: list[Any], carry: list[Any], _: Any, count: Any
    ) -> list[Any]:
        if level > 1:
            return self._through_blocks(level, consts, carry, count)[: self.n_carry]
        return bind_counted(
            count, consts, carry, [], jaxpr=self._round(), length=self.rounds, reverse=False
        )

    def _round(self, keeping: bool = False) -> ClosedJaxpr:
        """One round, which may give what it starts from as well."""
        once = _as_checkpoint(self.parts.step)
        j = once.jaxpr
        return (
            ClosedJaxpr(j.replace(outvars=[*j.outvars, *j.invars[-self.n_carry :]]))
            if keeping and self.n_carry
            else once
        )

    def _through_blocks(
        self, level: int, consts: list[Any], carry: list[Any], count: Any
    ) -> list[Any]:
        """The carry after `count` rounds, and what each block starts from, stacked."""
        n, block, below = len(consts), self.reach(level - 1), self.advance(level - 1)

        def one(*args: Any) -> list[Any]:
            (total,), consts, (k, *carry) = split(args, 1, n)
            return [
                do.add(k, _i32(1)),
                *_again(below, [_rounds_in(k, block, total), *consts, *carry]),
                *carry,
            ]

        i32 = ShapedArray((), I32)
        body = trace_to_jaxpr(one, [i32, *self.avals[:n], i32, *self.avals[n:]], "blocks")
        found = bind_counted(
            _blocks(count, block),
            [count, *consts],
            [_i32(0), *carry],
            [],
            jaxpr=body,
            length=self.length(level),
            reverse=False,
        )
        return found[1:]

    def _back_blocks(
        self, level: int, consts: list[Any], start: list[Any], cts: list[Any], count: Any
    ) -> list[Any]:
        n, block, below = len(consts), self.reach(level - 1), self.back(level - 1)
        saved = self._through_blocks(level, consts, start, count)[self.n_carry :]
        blocks = _blocks(count, block)

        def one(*args: Any) -> list[Any]:
            (total,), consts, (k, *cts), start = split(args, 1, n, 1 + len(self.ct_avals))
            return [
                do.sub(k, _i32(1)),
                *_again(below, [_rounds_in(k, block, total), *consts, *start, *cts]),
            ]

        i32 = ShapedArray((), I32)
        body = trace_to_jaxpr(
            one, [i32, *self.avals[:n], i32, *self.ct_avals, *self.avals[n:]], "blocks back"
        )
        init = [do.sub(blocks, _i32(1)), *cts]
        length = self.length(level)
        return bind_counted(
            blocks, [count, *consts], init, saved, jaxpr=body, length=length, reverse=True
        )[1:]

    def _back_block(
        self, level: int, consts: list[Any], start: list[Any], cts: list[Any], count: Any
    ) -> list[Any]:
        """Forward once more, keeping what each round starts from, then backward."""
        n, n_sums, length = len(consts), self.parts.sizes[2], self.rounds
        kept = bind_counted(
            count, consts, start, [], jaxpr=self._round(keeping=True), length=length, reverse=False
        )

        def one(*args: Any) -> list[Any]:
            consts, sums, ct_carry, carry = split(args, n, n_sums, len(cts) - n_sums)
            ct_consts, ct_new = split(_again(self.parts.back, [*consts, *carry, *ct_carry]), n_sums)
            return [*(add_tangents(a, b) for a, b in zip(sums, ct_consts)), *ct_new]

        body = trace_to_jaxpr(one, [*self.avals[:n], *self.ct_avals, *self.avals[n:]], "back")
        return bind_counted(
            count, consts, cts, kept[self.n_carry :], jaxpr=body, length=length, reverse=True
        )


def _back(loop: _Loop, cond_consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """Cotangents taken back through the whole loop; `args` are the known constants and carry, and
    the cotangents after it."""
    n = len(loop.parts.step.in_avals) - loop.n_carry
    count = _count(loop.parts, cond_consts, args[:n], args[n : n + loop.n_carry])
    few = do.convert_element_type(do.le(count, _i32(loop.rounds)), new_dtype=I32)
    branches = tuple(_as_checkpoint(loop.back(level)) for level in (loop.levels, 1))
    return do.cond(few, count, *args, branches=branches)


def _blocks(count: Any, block: int) -> Any:
    """How many blocks hold so many rounds; of none, one without rounds."""
    return do.add(do.div(do.sub(count, _i32(1)), _i32(block)), _i32(1))


def _rounds_in(k: Any, block: int, total: Any) -> Any:
    return do.min(_i32(block), do.sub(total, do.mul(k, _i32(block))))


def _again(program: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """The results of a program of which a derivative keeps the arguments alone."""
    return remat_p.bind(*args, jaxpr=program, policy=None, prevent_cse=True, differentiated=False)


def _as_checkpoint(program: ClosedJaxpr) -> ClosedJaxpr:
    """A program that does that."""
    if "checkpoint" not in program.cache:

        def whole(*args: Any) -> Any:
            return _again(program, args)

        program.cache["checkpoint"] = trace_to_jaxpr(whole, program.in_avals, "checkpoint")
    return program.cache["checkpoint"]
