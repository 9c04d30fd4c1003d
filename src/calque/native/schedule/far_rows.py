"""Sums of the rows of a matrix, four rows at a time that lie far apart: memory is read at full
speed only along several lines, and what a row is multiplied with is read once for four.

before: for d < n: for k: s = sum(w[d, k] * x[k]); y[d] = s
after:  for d < n / 4: for k: s0 = sum(w[d, k] * x[k]); s1 = sum(w[d + n / 4, k] * x[k]); ...
        y[d] = s0; y[d + n / 4] = s1; ..."""

from __future__ import annotations

from typing import Final

from calque.machine.records import replace
from calque.native.loops.tree import Acc, Body, For, Let, Statement, Store, map_exprs
from calque.native.lower.cost import body_weight, step_along, turns
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import (
    Expr,
    const,
    ex,
    index_and_guard,
    item_size,
    ref,
    rewrite,
    var,
    walk,
)
from calque.native.schedule.lanes import keeps_blocks

ROWS: Final = 4  # at a time: their partial sums stay in registers
LARGE: Final = 1 << 14  # bytes of a matrix that are worth it
LEAST: Final = 64  # rows, so that threads have enough of them
HEAVIEST: Final = 40  # weight of what is done for a row, which is written four times


def suits_far_rows(f: For, sizes: Sizes) -> bool:
    """Does each turn of `f` only add up a row of a matrix, and store what comes of it?"""
    sums, low = f.body[0], sizes.interval(f.extent)[0]
    if f.accs or f.colliding or not isinstance(sums, For) or not sizes.known:
        return False
    if low != sizes.interval(f.extent)[1] or low < LEAST or low % ROWS:
        return False
    if sums.body or len(sums.accs) != 1 or f.name in sums.extent.names:
        return False
    acc = sums.accs[0]
    if not isinstance(acc, Acc) or not keeps_blocks(acc) or acc.running:
        return False
    if not all(isinstance(s, Let) or _stores_outside(s) for s in f.body[1:]):
        return False
    return body_weight((f,)) <= HEAVIEST and _reads_rows(acc, f, sums, sizes)


def _stores_outside(s: Statement) -> bool:
    return isinstance(s, Store) and s.buf.place == "arg"


def _reads_rows(a: Acc, f: For, sums: For, sizes: Sizes) -> bool:
    """Is a matrix that is not small read along its rows, and nothing that jumps?"""
    count = turns(f.extent, sizes.hinted) * turns(sums.extent, sizes.hinted)
    found = False
    for e in walk(a.value, set()):
        if e.op != "load" or e.attr.place != "arg":
            continue
        idx, guard = index_and_guard(e)
        along = step_along(e.attr.shape, idx, sums.name)
        if guard is not None or along not in (0, 1):
            return False
        row = along == 1 and step_along(e.attr.shape, idx, f.name) not in (0, 1)
        found = found or (row and count * item_size(e.attr.dtype) >= LARGE)
    return found


def in_far_rows(f: For) -> For:
    """The loop with four of its turns at a time."""
    sums = f.body[0]
    assert isinstance(sums, For)
    quarter = ex("floordiv", f.extent, const(ROWS))
    d = var(f"{f.name}.far", quarter)
    made = [_turn(f, sums, ex("add", d, ex("mul", quarter, const(r))), r) for r in range(ROWS)]
    together = replace(sums, accs=tuple(a for one, _ in made for a in one.accs))
    return replace(f, var=d, body=(together, *[s for _, rest in made for s in rest]))


def _turn(f: For, sums: For, at: Expr, number: int) -> tuple[For, Body]:
    """One turn, at a place, with names of its own."""
    acc = sums.accs[0]
    assert isinstance(acc, Acc)
    lets = [s for s in f.body[1:] if isinstance(s, Let)]
    kinds = {acc.name: acc.value.dtype} | {s.name: s.value.dtype for s in lets}
    named = {n: f"{n}.far{number}" for n in kinds}
    memo: dict[Expr, Expr] = {}

    def rule(e: Expr) -> Expr | None:
        if e is f.var:
            return at
        if e.op == "ref" and e.attr[0] in named:
            return ref(named[e.attr[0]], kinds[e.attr[0]])
        return None

    def fix(e: Expr) -> Expr:
        return rewrite(e, rule, memo)

    mine = replace(acc, value=fix(acc.value), init=acc.init and fix(acc.init))
    mine = replace(mine, name=named[acc.name])
    rest = tuple(
        replace(s, name=named[s.name]) if isinstance(s, Let) else s
        for s in map_exprs(f.body[1:], fix)
    )
    return replace(sums, accs=(mine,)), rest
