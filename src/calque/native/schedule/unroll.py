"""Small loops around a reduction are unrolled inside it, so that what does not depend on them is
computed once."""

from __future__ import annotations

from typing import Final

from calque.machine.records import replace
from calque.native.loops.rows import beside_each_other, turn
from calque.native.loops.tree import Acc, Body, For, Let, Statement, Store, loaded, stored
from calque.native.lower.cost import operation_weight, operations
from calque.native.scalars.expr import is_const

MOST: Final = 8  # accumulators that a reduction may have when it is done
MOST_SUMS: Final = 16  # sums in the order of their loop that go on beside each other
FEW: Final = 4  # turns that are written out
SHARED: Final = 10  # weight of what is computed once instead of many times that is worth it


def unrolled(body: Body, few: bool = True) -> Body:
    """before: for c < 3: (for k: r = sum(f(c, k) * g(k))); y[c] = r
    after:  for k: (r.0 = sum(f(0, k) * g(k)); r.1 = sum(f(1, k) * g(k)); r.2 = ...); y[0] = r.0;
    y[1] = r.1; y[2] = r.2

    There are `few` such reductions where no long loop stands around them."""
    out: list[Statement] = []
    for s in body:
        if isinstance(s, For) and any(isinstance(x, For) for x in s.body):
            few_inside = few and is_const(s.extent) and s.extent.attr <= FEW
            s = replace(s, body=unrolled(s.body, few_inside))
            if suits(s, few_inside):
                out += beside_each_other(s, s.body)
                continue
        out.append(s)
    return tuple(out)


def suits(f: For, few: bool) -> bool:
    """Is this a short loop around reductions alone, whose work it repeats? Or sums in the order of
    their loop, in which each addition waits for the one before, while there are `few` of them?"""
    if f.accs or f.kind != "serial" or f.colliding or not is_const(f.extent):
        return False
    loops = [s for s in f.body if isinstance(s, For)]
    if len(loops) + sum(isinstance(s, Store) for s in f.body) < len(f.body):
        return False
    n = f.extent.attr * sum(len(x.accs) for x in loops)
    if not 2 <= f.extent.attr <= MOST or n > (MOST_SUMS if few else MOST):
        return False
    orders: set[str] = set()
    for x in loops:
        plain = all(isinstance(a, Acc) and not a.running for a in x.accs)
        if x.body or not plain or x.kind != "serial" or f.name in x.extent.names:
            return False
        orders.update(a.order for a in x.accs if isinstance(a, Acc))
    if not stored(f.body).isdisjoint(loaded(tuple(loops))):
        return False
    if "sequential" in orders:
        return few and orders == {"sequential"}
    return n <= MOST and any(repeated(f, x) >= SHARED for x in loops)


def has_few_turns(f: For) -> bool:
    """Is it short enough to be written out?"""
    return is_const(f.extent) and 2 <= f.extent.attr <= FEW


def with_sums_beside(f: For) -> For:
    """A loop in whose body short loops of sums, each in the order of its loop, read the same row
    again and again: with these sums beside each other, in one loop.

    before: for i: for c < 3: (for k: r = sum(x[i, k] * w[k, c])); y[i, c] = r
    after:  for i: (for k: r.0 = sum(x[i, k] * w[k, 0]); r.1 = ...); y[i, 0] = r.0; y[i, 1] = ..."""
    if not any(isinstance(s, For) and reads_row_again(s) for s in f.body):
        return f
    body: list[Statement] = []
    for s in f.body:
        body += beside_each_other(s, s.body) if isinstance(s, For) and reads_row_again(s) else [s]
    return replace(f, body=tuple(body))


def reads_row_again(f: For) -> bool:
    """Is this a short loop around a sum in the order of its loop, and what is made of it, that
    reads a row anew in every turn?"""
    if f.accs or f.kind != "serial" or f.colliding or not is_const(f.extent):
        return False
    if not 2 <= f.extent.attr <= MOST or not f.body:
        return False
    x, *others = f.body
    if not isinstance(x, For) or not all(isinstance(s, (Let, Store)) for s in others):
        return False
    if x.body or x.kind != "serial":
        return False
    if f.name in x.extent.names or not stored(f.body).isdisjoint(loaded((x,))):
        return False
    if not all(isinstance(a, Acc) and a.order == "sequential" and not a.running for a in x.accs):
        return False
    values = [v for a in x.accs for v in a.values]
    return any(
        e.op == "load" and x.name in e.names and f.name not in e.names
        for e in operations(values, set())
    )


def repeated(f: For, x: For) -> int:
    """The weight of what a reduction computes again in every turn of the loop around it."""
    return sum(
        operation_weight(e.op)
        for e in operations([v for a in x.accs for v in a.values], set())
        if e.op != "load" and x.name in e.names and f.name not in e.names
    )


def written_out(f: For) -> For:
    """A long loop around nothing but a short loop of long reductions, with the turns of that
    beside each other; any other loop as it is.

    before: for i: for c < 3: (for k: r = sum(x[k, c, i])); y[i, c] = r
    after:  for i: (for k: r.0 = sum(x[k, 0, i])); y[i, 0] = r.0; (for k: r.1 = ...); ..."""
    if len(f.body) != 1 or not isinstance(f.body[0], For) or is_const(f.extent):
        return f
    inner = f.body[0]
    loops = [s for s in inner.body if isinstance(s, For)]
    plain = not inner.accs and inner.kind == "serial" and not inner.colliding
    if not plain or not loops or not is_const(inner.extent):
        return f
    if not 1 <= inner.extent.attr <= FEW:
        return f
    if len(loops) + sum(isinstance(s, Store) for s in inner.body) < len(inner.body):
        return f
    if any(
        s.body or is_const(s.extent) or not all(isinstance(a, Acc) for a in s.accs) for s in loops
    ):
        return f
    return replace(
        f, body=tuple([s for i in range(inner.extent.attr) for s in turn(inner, inner.body, i)])
    )
