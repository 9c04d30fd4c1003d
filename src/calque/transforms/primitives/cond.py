"""Choice between programs: the primitive `cond` with all its rules."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core import reference
from calque.core.avals import ShapedArray
from calque.core.jaxprs import ClosedJaxpr, Eqn, Literal
from calque.core.primitives import UndefinedPrimal, Zero, do
from calque.core.trace import eval_jaxpr, literal_value, typeof
from calque.ops.common import batch_size, filled, front, scalar_of
from calque.transforms.engines.axes import Axis, AxisPrimitive
from calque.transforms.engines.batching import Dim, batch_jaxpr
from calque.transforms.engines.jvp import jvp_jaxpr
from calque.transforms.engines.linear import SplitProgram, linearize_jaxpr
from calque.transforms.engines.slices import (
    dead_code_rules,
    dependence_rules,
    dependent_results,
    used_inputs,
    without_dead_code,
)
from calque.transforms.engines.transpose import transpose_jaxpr
from calque.transforms.engines.zeros import has_tangent, nonzero, only_nonzero, with_zeros
from calque.transforms.primitives import lanes
from calque.transforms.primitives.flow import rearranged, with_inputs, zeros_eqn

Branches = tuple[ClosedJaxpr, ...]


def bind_cond(index: Any, operands: Sequence[Any], branches: Branches) -> list[Any]:
    return cond_p.bind(index, *operands, branches=branches)


def _meaning(index: np.ndarray, *operands: np.ndarray, branches: Branches) -> list[np.ndarray]:
    return reference.run(branches[min(max(int(index), 0), len(branches) - 1)], *operands)


def _shape(index: ShapedArray, *operands: ShapedArray, branches: Branches) -> list[ShapedArray]:
    return branches[0].out_avals


def _either(masks: Sequence[Sequence[bool]]) -> tuple[bool, ...]:
    return tuple([any(m) for m in zip(*masks)])


# ---------------------------------------------------------------- differentiation


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, branches: Branches) -> Any:
    index, *operands = primals
    active = nonzero(tangents[1:])
    some = _either([jvp_jaxpr(b, active)[1] for b in branches])
    both = tuple(jvp_jaxpr(b, active, some)[0] for b in branches)
    outs = bind_cond(index, [*operands, *only_nonzero(tangents[1:])], both)
    n = len(some)
    return outs[:n], with_zeros(outs[n:], some, branches[0].out_avals)


def _linearize(primals: Sequence[Any], tangents: Sequence[Any], *, branches: Branches) -> Any:
    index, *operands = primals
    active, out_avals = nonzero(tangents[1:]), branches[0].out_avals
    some = _either([linearize_jaxpr(b, active).nonzeros for b in branches])
    if not any(some):
        return bind_cond(index, operands, branches), with_zeros([], some, out_avals)
    lins = [linearize_jaxpr(b, active, some) for b in branches]
    slots, places = _joined_residuals(lins)
    known = bind_cond(
        index, operands, tuple(_with_slots(lin, slots, p) for lin, p in zip(lins, places))
    )
    n = len(some)
    outs = known[:n]
    sources = {"in": operands, "out": outs, "new": known[n:]}
    used = sorted({s for p in places for s in p})
    residuals = [sources[kind][i] for kind, i in used]
    linear = tuple(_linear_branch(lin, p, used, residuals) for lin, p in zip(lins, places))
    out_tangents = bind_cond(index, [*residuals, *only_nonzero(tangents[1:])], linear)
    return outs, with_zeros(out_tangents, some, out_avals)


def _joined_residuals(
    lins: Sequence[SplitProgram],
) -> tuple[list[ShapedArray], list[list[tuple[str, int]]]]:
    """Slots for what the branches leave behind, shared between branches, and each branch's sources
    with slots for "new"."""
    slots: list[ShapedArray] = []
    places = []
    for lin in lins:
        free = list(range(len(slots)))
        taken: dict[int, int] = {}
        for k, aval in enumerate(lin.primal.out_avals[len(lin.nonzeros) :]):
            aval = aval.strip_weak_type()
            slot = next((s for s in free if slots[s] is aval), None)
            if slot is None:
                slot = len(slots)
                slots.append(aval)
            else:
                free.remove(slot)
            taken[k] = slot
        places.append([(kind, taken[i]) if kind == "new" else (kind, i) for kind, i in lin.sources])
    return slots, places


def _with_slots(
    lin: SplitProgram, slots: Sequence[ShapedArray], places: Sequence[tuple[str, int]]
) -> ClosedJaxpr:
    """A branch whose results are its own and then all slots: zeros in those of the other
    branches."""
    j, n = lin.primal.jaxpr, len(lin.nonzeros)
    new = [i for kind, i in lin.sources if kind == "new"]
    slot_of = {k: place[1] for k, place in zip(new, (p for p in places if p[0] == "new"))}
    atoms: dict[int, Any] = {slot_of[k]: j.outvars[n + k] for k in slot_of}
    eqns: list[Eqn] = []
    for s, aval in enumerate(slots):
        if s not in atoms:
            more, atoms[s] = zeros_eqn(aval)
            eqns += more
    outvars = [*j.outvars[:n], *(atoms[s] for s in range(len(slots)))]
    return ClosedJaxpr(j.replace(eqns=j.eqns + eqns, outvars=outvars), lin.primal.consts)


def _linear_branch(
    lin: SplitProgram,
    places: Sequence[tuple[str, int]],
    used: Sequence[tuple[str, int]],
    residuals: Sequence[Any],
) -> ClosedJaxpr:
    """The linear part of a branch as a program of all residuals, though it reads only its own."""
    own = {place: i for i, place in enumerate(places)}
    n = len(places)
    inputs = [own[u] if u in own else typeof(r) for u, r in zip(used, residuals)]
    return with_inputs(lin.linear, [*inputs, *range(n, len(lin.linear.jaxpr.invars))])


def _transpose(cts: Sequence[Any], index: Any, *operands: Any, branches: Branches) -> list[Any]:
    if type(index) is UndefinedPrimal:
        raise TypeError("cond is not linear in its predicate: it has no transpose in it")
    linear = tuple([type(x) is UndefinedPrimal for x in operands])
    nonzeros = nonzero(cts)
    some = _either([transpose_jaxpr(b, linear, nonzeros)[1] for b in branches])
    back = tuple(transpose_jaxpr(b, linear, nonzeros, some)[0] for b in branches)
    known = [x for x in operands if type(x) is not UndefinedPrimal]
    outs = iter(bind_cond(index, [*known, *only_nonzero(cts)], back) if any(some) else [])
    which = iter(some)
    found = [
        (next(outs) if next(which) else Zero(x.aval)) if lin else None
        for x, lin in zip(operands, linear)
    ]
    return [None, *found]


# ---------------------------------------------------------------- batching


def _batch(axis: Axis, args: Sequence[Any], dims: Sequence[Dim], *, branches: Branches) -> Any:
    index, *operands = args
    if dims[0] is not None:
        same = _same_in_all(branches, operands, dims[1:])
        if same:  # one value in every lane, whichever way it goes
            n = len(branches[0].out_avals)
            rest, order = [j for j in range(n) if j not in same], range(len(operands))
            fewer = tuple(rearranged(b, order, rest) for b in branches)
            outs, out_dims = _batch(axis, args, dims, branches=fewer) if rest else ([], [])
            found = dict(zip(rest, zip(outs, out_dims)))
            pairs = [(same[j], None) if j in same else found[j] for j in range(n)]
            return [x for x, _ in pairs], [d for _, d in pairs]
        if lanes.cheap(branches) or lanes.together(axis, branches):
            return _batch_by_choice(axis, args, dims, branches)
        return lanes.one_by_one(cond_p, axis, args, dims, {"branches": branches})
    some = _either(
        [[d is not None for d in batch_jaxpr(b, axis, tuple(dims[1:]))[1]] for b in branches]
    )
    batched = tuple(batch_jaxpr(b, axis, tuple(dims[1:]), some)[0] for b in branches)
    return bind_cond(index, operands, batched), [0 if s else None for s in some]


def _same_in_all(
    branches: Branches, operands: Sequence[Any], dims: Sequence[Dim]
) -> dict[int, Any]:
    """The results that are the same operand, not mapped, or the same number in every branch."""
    places = [{v: k for k, v in enumerate(b.invars)} for b in branches]
    same: dict[int, Any] = {}
    for j, atoms in enumerate(zip(*(b.outvars for b in branches))):
        if all(isinstance(a, Literal) for a in atoms):
            first = atoms[0]
            if all(a.aval is first.aval and a.val.tobytes() == first.val.tobytes() for a in atoms):
                same[j] = literal_value(first)
            continue
        which = {p.get(a) for p, a in zip(places, atoms)}
        k = which.pop()
        if not which and k is not None and dims[k] is None:
            same[j] = operands[k]
    return same


def _batch_by_choice(
    axis: Axis, args: Sequence[Any], dims: Sequence[Dim], branches: Branches
) -> Any:
    """Each lane has its own predicate: every branch runs on all lanes, and each lane picks its
    result.

    A branch sees the operands of other branches' lanes without their derivatives: what it computes
    for them may be infinite or undefined, and must not reach a gradient."""
    size = batch_size(args, dims)
    index, *operands = [front(x, d, size) for x, d in zip(args, dims)]
    results = []
    for k, branch in enumerate(branches):
        batched, _ = batch_jaxpr(branch, axis, (0,) * len(operands), True)
        here = do.eq(index, filled((size,), scalar_of(typeof(index).dtype, k)))
        seen = [_only_where(here, x) for x in operands]
        results.append(eval_jaxpr(batched.jaxpr, batched.consts, *seen))
    outs = [do.select_n(_spread(index, typeof(cases[0]).shape), *cases) for cases in zip(*results)]
    return outs, [0] * len(outs)


def _only_where(here: Any, x: Any) -> Any:
    """`x`, whose derivative is dropped in the lanes that are not here."""
    if not has_tangent(typeof(x)):
        return x
    return do.select_n(_spread(here, typeof(x).shape), do.stop_gradient(x), x)


def _spread(x: Any, shape: tuple[int, ...]) -> Any:
    """A vector over the lanes, repeated to `shape`."""
    if len(shape) == 1:
        return x
    return do.broadcast_in_dim(x, shape=shape, broadcast_dimensions=(0,))


# ---------------------------------------------------------------- the primitive


def _dead_code(e: Eqn, used: Sequence[bool]) -> Eqn | None:
    pruned = [without_dead_code(b.jaxpr, used) for b in e.params["branches"]]
    reads = [any(r) for r in zip(*(used_inputs(j) for j in pruned))]
    keep = [i for i, r in enumerate(reads) if r]
    branches = tuple(
        rearranged(ClosedJaxpr(j, b.consts), keep) for j, b in zip(pruned, e.params["branches"])
    )
    outvars = [v for v, u in zip(e.outvars, used) if u]
    return e.replace(
        invars=[e.invars[0], *(e.invars[1 + i] for i in keep)],
        outvars=outvars,
        params={"branches": branches},
    )


def _dependence(e: Eqn, unknown: Sequence[bool]) -> Sequence[bool]:
    if unknown[0]:
        return (True,) * len(e.outvars)
    return _either([dependent_results(b, tuple(unknown[1:])) for b in e.params["branches"]])


cond_p = AxisPrimitive(
    "cond",
    meaning=_meaning,
    shape=_shape,
    jvp=_jvp,
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    multiple_results=True,
)
dead_code_rules["cond"] = _dead_code
dependence_rules["cond"] = _dependence
