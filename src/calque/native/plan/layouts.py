"""Where the elements of a temporary lie: axes as short as those of a vector in space stand before
the long one, so that loops along that are contiguous.

before: for i: for j: t[i, j, 0] = a; t[i, j, 1] = b; t[i, j, 2] = c      (every third float)
after:  for i: for j: t[i, 0, j] = a; t[i, 1, j] = b; t[i, 2, j] = c      (one after the other)

Only what loops alone touch is moved: nobody outside of the program sees it, and no routine does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Final

from calque.machine.records import replace
from calque.native.loops.tree import Body, Store, map_exprs, map_stores, own_exprs, statements
from calque.native.lower.sizes import Sizes
from calque.native.plan.steps import Nest, Repeat, Step, Switch, changed, walk
from calque.native.scalars.expr import Buffer, Expr, is_const, load, rewrite
from calque.native.scalars.expr import walk as nodes_of

SHORT: Final = (3, 4)  # extents of the last axis that are moved: pairs are complex numbers
MOST: Final = 16  # elements of all axes that are moved
LONG: Final = 16  # a shorter axis than this is no vector

Order = tuple[int, ...]  # of the axes: which of them stands first, second...


def candidates(temporaries: Iterable[Buffer], sizes: Sizes) -> dict[Buffer, Order]:
    """The temporaries that would rather lie otherwise, and how."""
    if not sizes.known:
        return {}
    return {b: o for b in temporaries if (o := better_order(b, sizes)) is not None}


def better_order(b: Buffer, sizes: Sizes) -> Order | None:
    """The axes with the short ones at the end before the long one that they follow."""
    rank = len(b.shape)
    last = rank
    while last and is_const(b.shape[last - 1]) and b.shape[last - 1].attr <= MOST:
        last -= 1
    short = b.shape[last:]
    if not short or not last or short[-1].attr not in SHORT or prod(d.attr for d in short) > MOST:
        return None
    if sizes.hinted.interval(b.shape[last - 1])[1] < LONG:
        return None
    return (*range(last - 1), *range(last, rank), last - 1)


def fitting(steps: Sequence[Step], wanted: dict[Buffer, Order]) -> dict[Buffer, Order]:
    """Those that loops alone touch, at places along their short axes that are known or a loop of
    their own."""
    left = dict(wanted)
    for s in walk(steps):
        if isinstance(s, Nest) and not s.vectors:
            for b in misfits(s.body, left):
                del left[b]
        else:
            for b in touched_by(s):
                left.pop(b, None)
        if not left:
            break
    return left


def touched_by(s: Step) -> Iterable[Buffer]:
    """What a step itself reads or writes, not the steps inside."""
    if isinstance(s, Repeat):
        return [b for pair in s.swaps for b in pair]
    return () if isinstance(s, Switch) else s.reads() | s.writes()


def misfits(body: Body, wanted: dict[Buffer, Order]) -> set[Buffer]:
    """Those that a nest touches in another way."""
    out: set[Buffer] = set()
    seen: set[Expr] = set()
    for s in statements(body):
        touched = [(s.buf, s.idx)] if isinstance(s, Store) and s.buf in wanted else []
        for root in own_exprs(s):
            if not wanted.keys().isdisjoint(root.bufs):
                touched += [
                    (e.attr, e.args)
                    for e in nodes_of(root, seen)
                    if e.op == "load" and e.attr in wanted
                ]
        out |= {b for b, idx in touched if not walks(b, idx, wanted[b])}
    return out


def walks(b: Buffer, idx: Sequence[Expr], order: Order) -> bool:
    """Is a place told axis by axis: by loops, and along the short axes also by constants?"""
    rank = len(b.shape)
    moved = order.index(rank - 1) - order[-1] + 1
    short = range(rank - moved, rank)
    return all(
        (is_const(idx[k]) or (idx[k].op == "var" and idx[k].attr[1] is b.shape[k]))
        if k in short
        else not idx[k].bufs
        for k in range(rank)
    )


def laid_out(
    steps: Sequence[Step], temporaries: set[Buffer], nbytes: dict[Buffer, int], sizes: Sizes
) -> Sequence[Step]:
    """The steps with temporaries that lie as loops like it. Both tables of buffers follow."""
    wanted = candidates(temporaries, sizes)
    orders = fitting(steps, wanted) if wanted else {}
    if not orders:
        return steps
    new = {
        b: Buffer(b.name, [b.shape[k] for k in order], b.dtype, b.place)
        for b, order in orders.items()
    }
    for b, other in new.items():
        temporaries.remove(b)
        temporaries.add(other)
        nbytes[other] = nbytes.pop(b)

    def change(s: Step) -> Sequence[Step]:
        if not isinstance(s, Nest) or new.keys().isdisjoint(s.reads() | s.writes()):
            return (s,)
        return (replace(s, loops=moved_in(s.body, orders, new), like=None),)

    return changed(steps, change)


def moved_in(body: Body, orders: dict[Buffer, Order], new: dict[Buffer, Buffer]) -> Body:
    """A nest that finds the buffers in their new layouts."""
    memo: dict[Expr, Expr] = {}

    def rule(e: Expr) -> Expr | None:
        if e.op != "load" or e.attr not in new:
            return None
        order = orders[e.attr]
        args = [rewrite(a, rule, memo) for a in e.args]
        guard = args[len(order)] if len(args) > len(order) else None
        return load(new[e.attr], [args[k] for k in order], guard)

    def store(s: Store) -> Store:
        if s.buf not in new:
            return s
        return Store(new[s.buf], tuple([s.idx[k] for k in orders[s.buf]]), s.value, s.guard)

    return map_stores(map_exprs(body, lambda e: rewrite(e, rule, memo)), store)
