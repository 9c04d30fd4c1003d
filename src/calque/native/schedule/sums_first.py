"""Sums of the rows of a matrix, and then what is made of them, in vectors: a block of rows after
the other, whose sums lie in a row on the stack.

before: for d < n: for k: s = sum(w[d, k] * x[k]); y[d] = tanh(s + z[d])
after:  for b < n / 64: for r < 64: for k: s = sum(w[64 b + r, k] * x[k]); row[r] = s
                        for r < 64: y[64 b + r] = tanh(row[r] + z[64 b + r])"""

from __future__ import annotations

from typing import Final

from calque.machine.records import replace
from calque.native.loops.tree import Acc, Body, For, Let, Statement, Store, map_exprs
from calque.native.lower.cost import body_weight, nanoseconds, step_along, turns
from calque.native.lower.dot import LEAST_SUM, block_of_rows
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import (
    Buffer,
    Expr,
    const,
    ex,
    index_and_guard,
    load,
    ref,
    rewrite,
    var,
    walk,
)
from calque.native.schedule.far_rows import ROWS, in_far_rows
from calque.native.schedule.lanes import keeps_blocks
from calque.native.schedule.threads import PARALLEL_NS

HEAVY: Final = 8  # weight of what is done with a sum that is worth a loop of its own


def rows_of_block(f: For, sizes: Sizes) -> int:
    """How many rows make a block, where each turn of `f` adds up a row of a matrix and much is done
    with the sum; 0 elsewhere."""
    low, high = sizes.interval(f.extent)
    if f.accs or f.colliding or not sizes.known or low != high:
        return 0
    sums = f.body[0]
    if not isinstance(sums, For) or sums.body or f.name in sums.extent.names:
        return 0
    if len(sums.accs) != 1 or not _reads_rows(sums.accs[0], f, sums):
        return 0
    if not all(isinstance(s, (Let, Store)) and _is_outside(s) for s in f.body[1:]):
        return 0
    length = turns(sums.extent, sizes.hinted)
    if body_weight(f.body[1:]) < HEAVY or length < LEAST_SUM:
        return 0
    return block_of_rows(low, nanoseconds((f,), sizes) > PARALLEL_NS)


def _is_outside(s: Statement) -> bool:
    return isinstance(s, Let) or (isinstance(s, Store) and s.buf.place == "arg")


def _reads_rows(a: object, f: For, sums: For) -> bool:
    """Is a matrix read along its rows, for a sum in the order of its own?"""
    if not isinstance(a, Acc) or not keeps_blocks(a) or a.running:
        return False
    found = False
    for e in walk(a.value, set()):
        if e.op == "load" and e.attr.place == "arg":
            idx = index_and_guard(e)[0]
            along = step_along(e.attr.shape, idx, sums.name)
            if along not in (0, 1):
                return False
            found |= along == 1 and step_along(e.attr.shape, idx, f.name) not in (0, 1)
    return found


def sums_first(f: For, rows: int) -> tuple[For, Body, For]:
    """The loop over blocks without its body, the loops that sum the rows of one, some rows at a
    time, and the loop that makes something of the sums."""
    sums = f.body[0]
    assert isinstance(sums, For)
    acc = sums.accs[0]
    assert isinstance(acc, Acc)
    row = Buffer(f"{acc.name}.row", (const(rows),), acc.value.dtype, "stack")
    b = var(f"{f.name}.b", ex("floordiv", f.extent, const(rows)))
    first = ex("mul", b, const(rows))
    total = ref(acc.name, acc.value.dtype)

    def added(tag: str, start: int, count: int) -> For:
        r = var(f"{f.name}.{tag}", const(count))
        at = ex("add", const(start), r)
        return For(r, (*_at((sums,), f.var, ex("add", first, at)), Store(row, (at,), total)))

    whole = rows - rows % ROWS
    loops = [in_far_rows(added("r", 0, whole))]
    if whole < rows:
        loops.append(added("rest", whole, rows - whole))
    t = var(f"{f.name}.t", const(rows))
    made = _at(f.body[1:], f.var, ex("add", first, t), total, load(row, (t,)))
    return replace(f, var=b, body=()), tuple(loops), For(t, made)


def _at(
    body: Body, loop: Expr, at: Expr, total: Expr | None = None, kept: Expr | None = None
) -> Body:
    """A part of the body for a row, with the sum that was kept."""
    memo: dict[Expr, Expr] = {}

    def rule(e: Expr) -> Expr | None:
        if e is loop:
            return at
        return kept if e is total else None

    return map_exprs(body, lambda e: rewrite(e, rule, memo))
