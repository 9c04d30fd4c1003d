"""What gets a buffer becomes a stage: loops over the elements it stores, then over what it reduces,
then expressions.

Loop variables are named by depth, so that two stages over equal extents have the *same* loops.
Extents of 1 have no loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Final, NamedTuple

import numpy as np

from calque.core.arrays import to_numpy
from calque.core.dims import hint_of, surely_at_most, surely_equal
from calque.core.jaxprs import ClosedJaxpr
from calque.machine.records import record, replace
from calque.native.loops.tree import Acc, Accumulator, Fold, Order, round_of
from calque.native.lower.cost import operation_weight, operations, step_along
from calque.native.lower.dot import times
from calque.native.lower.graph import REAL_PART, Node, graph_of
from calque.native.lower.indexing import scatter_place
from calque.native.lower.layout import clamped, reindex
from calque.native.lower.reductions import (
    CHUNK,
    FOLD_OF,
    combine,
    complex_identity,
    logaddexp,
    started,
)
from calque.native.lower.rules import LIMITS, Index, Lower, Value, View
from calque.native.lower.sizes import BAKED
from calque.native.passes.pipeline import run as run_passes
from calque.native.scalars.elements import Cx, supports
from calque.native.scalars.elements import lower as lower_element
from calque.native.scalars.expr import (
    DTYPES,
    FALSE,
    TRUE,
    ZERO,
    Buffer,
    Expr,
    cast,
    const,
    ex,
    index_and_guard,
    ref,
    var,
    walk,
)

CUMULATIVE: Final = {
    "cumsum": "sum",
    "cumprod": "prod",
    "cummax": "max",
    "cummin": "min",
    "cumlogsumexp": "logsumexp",
}
MAX_PIECES: Final = 3  # a concatenation of more pieces is written piece by piece

ROW: Final = 8  # elements that a loop has at least whose turns are lanes of vectors

Part = tuple[Index, Expr]


@record(eq=False)
class Stage:
    """One buffer, or a part of one, being written.

    dims        loop variables, outermost first: `rank` loops over the output, then those that
                `accs` fold over
    idx         where the value is stored (without the part's own suffix)
    parts       (suffix, value): one for a real array, two for a complex one
    running     the last loop carries the accumulators, and every iteration stores
    local       a reader in the same loops may take the value from a register: it is stored at its
                own loop index
    colliding   how many loops, from the outermost on, have turns that may write the same place
                (those of a scatter): they stay serial, and are shared only with such loops
    marks       all it ever stores is True, in one cell: such stages commute
    early       a first value that nothing before it reads or writes: it may stand in front
    reads       the loads among all that it computes
    weight      of what it computes
    """

    buf: Buffer
    dims: tuple[Expr, ...]
    rank: int
    idx: Index
    parts: tuple[Part, ...]
    accs: tuple[Accumulator, ...] = ()
    guard: Expr | None = None
    running: bool = False
    local: bool = True
    colliding: int = 0
    marks: bool = False
    early: bool = False
    reads: frozenset[Expr] = field(init=False)
    weight: int = field(init=False)

    def __post_init__(self) -> None:
        work = operations(self.values(), set())
        object.__setattr__(self, "reads", frozenset([e for e in work if e.op == "load"]))
        object.__setattr__(self, "weight", sum([operation_weight(e.op) for e in work]))

    def values(self) -> list[Expr]:
        """Every expression the stage computes or stores at."""
        out = [v for _, v in self.parts]
        for a in self.accs:
            out += a.values
        if not self.local:
            out += self.idx
            if self.guard is not None:
                out.append(self.guard)
        return out

    @property
    def buffers_read(self) -> frozenset[Buffer]:
        return frozenset([e.attr for e in self.reads])


def loops_of(low: Lower, shape: Sequence[int], start: int = 0) -> tuple[tuple[Expr, ...], Index]:
    """(loop variables, index): an extent of 1 has no loop."""
    dims: list[Expr] = []
    idx: list[Expr] = []
    for n in shape:
        if surely_equal(n, 1) and low.sizes.known:
            idx.append(ZERO)
        else:
            v = var(f"d{start + len(dims)}", low.sizes.dim(n))
            dims.append(v)
            idx.append(v)
    return tuple(dims), tuple(idx)


def parts_of(value: Value) -> tuple[Part, ...]:
    if isinstance(value, Cx):
        return ((ZERO,), value.re), ((const(1),), value.im)
    return (((), value),)


def stages_of(low: Lower, n: Node, home: View) -> list[Stage]:
    """The stages that write `n` to its home."""
    make = MAKERS.get(n.op)
    if make is not None:
        return make(low, n, home)
    if n.op == "concatenate" and len(n.args) > MAX_PIECES:
        return concatenate_stage(low, n, home)
    dims, idx = loops_of(low, n.shape)
    parts = parts_of(low.made(n, idx))
    if n.op == "concatenate" and any(looks_up(v) for _, v in parts):
        return concatenate_stage(low, n, home)
    made = Stage(home.buf, dims, len(dims), home.prefix + idx, parts)
    return [before_reshape(low, n, home) or made if reads_apart(made) else made]


def reads_apart(s: Stage) -> bool:
    """Is something read at places that are no steps of equal length apart in the innermost loop?"""
    return bool(s.dims) and any(
        step_along(e.attr.shape, index_and_guard(e)[0], s.dims[-1].attr[0]) is None for e in s.reads
    )


def before_reshape(low: Lower, n: Node, home: View) -> Stage | None:
    """The stage with the loops of what is reshaped in it, if all is read in equal steps there and
    rows are no shorter than vectors.

    before: for i < 7 * 32: y[i] = x[i // 32 * 2, i % 32] + x[i // 32 * 2 + 1, i % 32]
    after:  for i < 7: for j < 32: y[i * 32 + j] = x[i * 2, j] + x[i * 2 + 1, j]"""
    x = reshaped_in(low, n)
    if x is None or hint_of(x.shape[-1]) < ROW:
        return None
    dims, idx = loops_of(low, x.shape)
    to = reindex(low.sizes, idx, x.shape, n.shape)
    parts = parts_of(low.made(n, to))
    made = Stage(home.buf, dims, len(dims), home.prefix + to, parts, local=False)
    return None if reads_apart(made) else made


def reshaped_in(low: Lower, n: Node) -> Node | None:
    """What an expression reshapes that is no memory, but computed where it is read."""
    todo, seen = [n], {n}
    while todo:
        x = todo.pop()
        if x.op == "reshape":
            return x.args[0] if is_inside(low, x.args[0]) else None
        if supports(x.op, [a.dtype for a in x.args]):
            new = [a for a in x.args if a.shape == n.shape and a not in seen and is_inside(low, a)]
            todo += new
            seen.update(new)
    return None


def is_inside(low: Lower, n: Node) -> bool:
    """Is a node part of the expressions of those who read it?"""
    return n not in low.view and n not in low.alias and n not in low.in_registers


def looks_up(e: Expr) -> bool:
    """Is anything read at a place that stands in memory? Where only some lanes of a vector may ask
    for the place, each asks for its own."""
    return any(x.op == "load" and any(a.bufs for a in x.args) for x in walk(e, set()))


def accumulate(
    name: str, kind: str, value: Value, order: Order = "blocked", round_: int = 0
) -> tuple[tuple[Accumulator, ...], Value]:
    """Accumulators for a fold of `value` in this order, and the result in terms of them. What is
    not an elementary fold goes turn by turn."""
    if not isinstance(value, Cx):
        op = kind
        if value.dtype == "i1":
            op = {"max": "or", "min": "and", "sum": "or", "prod": "and"}.get(kind, kind)
        return (Acc(name, op, value, order=order, round=round_),), ref(name, value.dtype)
    d = value.re.dtype
    if kind == "sum":
        parts = (("re", value.re), ("im", value.im))
        accs = tuple(
            [Acc(f"{name}.{part}", kind, v, order=order, round=round_) for part, v in parts]
        )
        return accs, Cx(ref(f"{name}.re", d), ref(f"{name}.im", d))
    left, right = (Cx(ref(f"{name}.{s}re", d), ref(f"{name}.{s}im", d)) for s in "lr")
    both, start = combine(kind, left, right), complex_identity(kind, d)
    fold = Fold(
        (f"{name}.re", f"{name}.im"),
        (start.re, start.im),
        (value.re, value.im),
        (left.re, left.im),
        (right.re, right.im),
        (both.re, both.im),
        order="sequential",
    )
    return (fold,), Cx(ref(f"{name}.re", d), ref(f"{name}.im", d))


def sum_in_order(
    low: Lower, name: str, value: Value, loop: Expr
) -> tuple[tuple[Accumulator, ...], Value]:
    """Accumulators for a sum of `value` in the order of a loop, which is taken in rounds where it
    may be long."""
    dtype = value.re.dtype if isinstance(value, Cx) else value.dtype
    turns = round_of(dtype)
    short = low.sizes.interval(loop.attr[1])[1] <= turns
    return accumulate(name, "sum", value, "sequential", 0 if short else turns)


def reduce_stage(low: Lower, n: Node, home: View) -> list[Stage]:
    x, (axis,), kind = n.args[0], n.params["axes"], FOLD_OF[n.op]
    dims, idx = loops_of(low, n.shape)
    k = var(f"d{len(dims)}", low.sizes.dim(x.shape[axis]))
    value = low.at(x, (*idx[:axis], k, *idx[axis:]))
    accs, result = accumulate(f"r.{home.buf.name}", kind, value)
    return [Stage(home.buf, (*dims, k), len(dims), home.prefix + idx, parts_of(result), accs)]


def chunks_stage(low: Lower, n: Node, home: View) -> list[Stage]:
    """The folds of chunks of an axis: element c of the result folds elements c * CHUNK to (c + 1) *
    CHUNK."""
    x, (axis,), kind = n.args[0], n.params["axes"], n.params["kind"]
    dims, idx = loops_of(low, n.shape)
    begin = ex("mul", idx[axis], const(CHUNK))
    whole = x.shape[axis] % CHUNK == 0
    extent = (
        const(CHUNK)
        if whole
        else ex("min", const(CHUNK), ex("sub", low.sizes.dim(x.shape[axis]), begin))
    )
    k = var(f"d{len(dims)}", extent)
    value = low.at(x, (*idx[:axis], ex("add", begin, k), *idx[axis + 1 :]))
    accs, result = accumulate(f"r.{home.buf.name}", kind, value)
    alone = (
        len(dims) == 1
    )  # one long sum: stored, so that the loop over its chunks has no result and can be shared out
    return [
        Stage(
            home.buf,
            (*dims, k),
            len(dims),
            home.prefix + idx,
            parts_of(result),
            accs,
            local=not alone,
        )
    ]


def cumulative_stage(low: Lower, n: Node, home: View) -> list[Stage]:
    """A running fold: the loop along the axis stands last."""
    x, axis, kind, name = n.args[0], n.params["axis"], CUMULATIVE[n.op], f"r.{home.buf.name}"
    others, other = loops_of(low, n.shape[:axis] + n.shape[axis + 1 :])
    k = var(f"d{len(others)}", low.sizes.dim(n.shape[axis]))
    at = ex("sub", low.sizes.dim(n.shape[axis] - 1), k) if n.params["reverse"] else k
    idx = (*other[:axis], at, *other[axis:])
    value = low.at(x, idx)
    accs, result = running(name, kind, value)
    local = at is k and axis == len(n.shape) - 1
    return [
        Stage(
            home.buf,
            (*others, k),
            len(others) + 1,
            home.prefix + idx,
            parts_of(result),
            accs,
            running=True,
            local=local,
        )
    ]


def running(name: str, kind: str, value: Value) -> tuple[tuple[Accumulator, ...], Value]:
    if kind == "logsumexp":
        d = value.dtype
        left, right, start = ref(f"{name}.l", d), ref(f"{name}.r", d), const(float("-inf"), d)
        fold = Fold(
            (name,), (start,), (value,), (left,), (right,), (logaddexp(left, right),), running=True
        )
        return (fold,), ref(name, d)
    accs, result = accumulate(name, kind, value)
    return tuple([replace(a, running=True, order="blocked") for a in accs]), result


def places_stage(low: Lower, n: Node, home: View) -> list[Stage]:
    """Where a mask is true: each place goes to the number of true ones before it, until a true one
    has taken that.

    So no branch is mispredicted; what follows the last true one goes behind the end, where blocks
    of found sizes have room.
    """
    (mask,) = n.args
    k = var("d0", low.sizes.dim(mask.shape[0]))
    chosen = low.at(mask, (k,))
    count, name = cast(chosen, n.dtype), f"r.{home.buf.name}"
    at = cast(ex("sub", ref(name, n.dtype), count), "i64")
    value = low.number(k, n.dtype)
    return [
        Stage(
            home.buf,
            (k,),
            1,
            (*home.prefix, at),
            parts_of(value),
            (Acc(name, "sum", count, running=True),),
            running=True,
            local=False,
            colliding=1,
        )
    ]


def matmul_stage(low: Lower, n: Node, home: View) -> list[Stage]:
    """A product of matrices as a plain nest: the sum in order of k, one accumulator per element."""
    x, y = n.args
    dims, idx = loops_of(low, n.shape)
    inner, (k,) = loops_of(low, x.shape[-1:], len(dims))
    value = times(n, low.at(x, (*idx[:-1], k)), low.at(y, (*idx[:-2], k, idx[-1])))
    if not inner:
        return [
            Stage(home.buf, dims, len(dims), home.prefix + idx, parts_of(started("sum", value, n)))
        ]
    accs, result = sum_in_order(low, f"r.{home.buf.name}", value, k)
    return [Stage(home.buf, dims + inner, len(dims), home.prefix + idx, parts_of(result), accs)]


def update_stage(low: Lower, n: Node, home: View) -> list[Stage]:
    """dynamic_update_slice: what lies around the box is copied (two slabs per dimension), the box
    computed in place.

    When the operand, or what lies around the box, already stands in the same memory nothing is
    copied: O(update), not O(array).
    """
    stands = home in (low.view.get(n.args[0]), low.around_stands.get(n))
    boxes = boxes_of(low, n, not stands)
    return [box_stage(home, b) for b in boxes]


class Box(NamedTuple):
    """A part of an array: loops over its elements, where they lie in the array, and what they
    are."""

    dims: tuple[Expr, ...]
    to: Index
    value: Value


def boxes_of(low: Lower, n: Node, around: bool = True) -> list[Box]:
    """The box that an update writes; with `around` after those of the elements that stay what they
    were."""
    u = n.args[1]
    part = [low.sizes.dim(d) for d in u.shape]
    inside = box(low, u, starts_of(low, n), part, shifted=False)
    return [*boxes_around(low, n), *inside] if around else inside


def starts_of(low: Lower, n: Node) -> list[Expr]:
    """Where the box that an update writes begins."""
    x, u = n.args[:2]
    starts = [
        ZERO if dx == du else clamped(low, low.at(s, ()), low.sizes.dim(dx - du))
        for s, dx, du in zip(n.args[2:], x.shape, u.shape)
    ]
    return starts + [ZERO] * (len(x.shape) - len(starts))  # the words of random keys


def boxes_around(low: Lower, n: Node) -> list[Box]:
    """The boxes of the elements that an update leaves what they were."""
    x, u = n.args[:2]
    whole, part = [low.sizes.dim(d) for d in x.shape], [low.sizes.dim(d) for d in u.shape]
    starts = starts_of(low, n)
    out: list[Box] = []
    lo: list[Expr] = [ZERO] * len(starts)
    size = list(whole)
    for k, s in enumerate(starts):
        if x.shape[k] != u.shape[k]:
            end = ex("add", s, part[k])
            out += box(low, x, lo, [*size[:k], s, *size[k + 1 :]])
            out += box(
                low,
                x,
                [*lo[:k], end, *lo[k + 1 :]],
                [*size[:k], ex("sub", whole[k], end), *size[k + 1 :]],
            )
        lo[k], size[k] = s, part[k]
    return out


def box(
    low: Lower, source: Node, base: Sequence[Expr], extents: Sequence[Expr], shifted: bool = True
) -> list[Box]:
    """Elements of `source` for the box of `extents` at `base`, if it has any; `shifted` says that
    they are read there as well."""
    if any(e.op == "const" and e.attr <= 0 for e in extents):
        return []
    dims: list[Expr] = []
    own: list[Expr] = []
    for e in extents:
        if e.op == "const" and e.attr == 1:
            own.append(ZERO)
        else:
            own.append(var(f"d{len(dims)}", e))
            dims.append(own[-1])
    to = tuple(ex("add", i, b) for i, b in zip(own, base))
    return [Box(tuple(dims), to, low.at(source, to if shifted else tuple(own)))]


def box_stage(home: View, b: Box) -> Stage:
    return Stage(home.buf, b.dims, len(b.dims), home.prefix + b.to, parts_of(b.value), local=False)


def scatter_stage(low: Lower, n: Node, home: View) -> list[Stage]:
    """A copy of the operand (unless it stands there already), then the updates in their order, each
    where its indices say."""
    x, _, updates = n.args
    out = []
    if low.view.get(x) != home:
        dims, idx = loops_of(low, x.shape)
        out.append(Stage(home.buf, dims, len(dims), home.prefix + idx, parts_of(low.at(x, idx))))
    window = n.params["dimension_numbers"].update_window_dims
    unique = n.params.get("unique_indices")
    colliding = [d for d in range(len(updates.shape)) if d not in window and not unique]
    order = (
        range(len(updates.shape))
        if unique
        else sorted(range(len(updates.shape)), key=lambda d: d in window)
    )
    dims, turned = loops_of(low, [updates.shape[d] for d in order])
    idx = tuple(
        turned[order.index(d)] for d in range(len(turned))
    )  # of what collides, the loops stand outside
    place = scatter_place(low, n, idx)
    if place.ok is FALSE:
        return out
    to = home.prefix + place.idx
    new = low.at(updates, idx)
    guard = None if place.ok is TRUE else place.ok
    old = View(home.buf).element(to, n.dtype in REAL_PART, guard)
    value = scattered(low, n, old, new)
    collides = sum(turned[order.index(d)] is not ZERO for d in colliding)
    out.append(
        Stage(
            home.buf,
            dims,
            len(dims),
            to,
            parts_of(value),
            guard=guard,
            local=False,
            colliding=collides,
        )
    )
    return out


SCATTER: Final = {"add": "add", "sub": "sub", "mul": "mul", "min": "min", "max": "max"}


def scattered(low: Lower, n: Node, old: Value, new: Value) -> Value:
    """What an update makes of the element that is there."""
    how = n.op.removeprefix("scatter").strip("-")
    if how in SCATTER:
        return lower_element(SCATTER[how], [old, new], [n.dtype, n.dtype], n.dtype, {})
    body = n.params.get("update_jaxpr")
    if body is None:
        return new
    return apply_scalar(low, body, n.params.get("update_consts", ()), [old, new], n)[0]


def apply_scalar(
    low: Lower, body: Any, consts: Sequence[Any], values: Sequence[Value], like: Node
) -> list[Value]:
    """The results of a program of scalars on these elements."""
    closed = body if isinstance(body, ClosedJaxpr) else ClosedJaxpr(body, consts)
    g = graph_of(run_passes(closed))
    for node, c in zip(g.consts, run_passes(closed).consts):
        low.memo[node, ()] = low.constant(np.asarray(to_numpy(c)), node.dtype)
    for node, v in zip(g.inputs, values):
        low.memo[node, ()] = v
    return [low.at(o, ()) for o in g.outputs]


def concatenate_stage(low: Lower, n: Node, home: View) -> list[Stage]:
    """Pieces written one by one; single columns side by side, all in one go."""
    axis = n.params["dimension"]
    last = axis == len(n.shape) - 1
    if (
        last
        and surely_at_most(n.shape[-1], BAKED)
        and all(surely_equal(a.shape[axis], 1) for a in n.args)
        and n.dtype not in REAL_PART
    ):
        dims, idx = loops_of(low, n.shape[:-1])
        parts = tuple([((const(k),), low.at(a, (*idx, ZERO))) for k, a in enumerate(n.args)])
        return [Stage(home.buf, dims, len(dims), home.prefix + idx, parts)]
    out: list[Stage] = []
    start = 0
    for a in n.args:
        base = [low.sizes.dim(start) if d == axis else ZERO for d in range(len(n.shape))]
        if not surely_equal(a.shape[axis], 0):
            out += [
                box_stage(home, b)
                for b in box(low, a, base, [low.sizes.dim(d) for d in a.shape], shifted=False)
            ]
        start += a.shape[axis]
    return out


SCATTERS: Final = (
    "scatter",
    "scatter-add",
    "scatter-sub",
    "scatter-mul",
    "scatter-min",
    "scatter-max",
)
MAKERS: Final = {
    **dict.fromkeys(FOLD_OF, reduce_stage),
    **dict.fromkeys(CUMULATIVE, cumulative_stage),
    **dict.fromkeys(SCATTERS, scatter_stage),
    "reduce_chunks": chunks_stage,
    "matmul": matmul_stage,
    "dynamic_update_slice": update_stage,
    "places": places_stage,
}
LIMITS.update(
    dict.fromkeys(("cumsum", "cumprod"), lambda n: n.dtype in DTYPES or n.dtype in REAL_PART)
)
LIMITS.update(dict.fromkeys(("cummax", "cummin", "cumlogsumexp"), lambda n: n.dtype in DTYPES))
