"""Long sums in the order of a loop, taken in rounds.

before: for k < n: s = sum(x[k])                            (in rounds of 512)
after:  for r < ceil(n / 512): for k < min(512, n - 512 r): p = sum(x[512 r + k])
                               s = sum(p)"""

from __future__ import annotations

from collections.abc import Sequence

from calque.machine.records import replace
from calque.native.loops.tree import Acc, Body, For, If, Recurrence, Statement, map_exprs
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import Expr, const, ex, ref, rewrite, var


def in_rounds(body: Sequence[Statement], sizes: Sizes) -> Body:
    """The same statements with every fold that goes in rounds as two loops."""
    return tuple(inside(s, sizes) for s in body)


def inside(s: Statement, sizes: Sizes) -> Statement:
    if isinstance(s, For):
        body = in_rounds(s.body, sizes)
        f = s if body == s.body else replace(s, body=body)
        turns = max((a.round for a in s.accs if isinstance(a, Acc)), default=0)
        return two_loops(f, turns, sizes) if turns else f
    if isinstance(s, Recurrence):
        return replace(s, test=in_rounds(s.test, sizes), body=in_rounds(s.body, sizes))
    if isinstance(s, If):
        return replace(s, then=in_rounds(s.then, sizes), orelse=in_rounds(s.orelse, sizes))
    return s


def two_loops(f: For, turns: int, sizes: Sizes) -> For:
    """A loop whose folds all go in rounds of so many turns."""
    accs = [a for a in f.accs if isinstance(a, Acc) and a.round == turns and a.op == "sum"]
    assert len(accs) == len(f.accs), f"folds of {f.name} go in different rounds"
    low, high = sizes.interval(f.extent)
    if high <= turns:
        return replace(f, accs=tuple(replace(a, round=0) for a in accs))
    count = ex("floordiv", ex("add", f.extent, const(turns - 1)), const(turns))
    r = var(f"{f.name}.r", count)
    start = ex("mul", r, const(turns))
    whole = low == high and high % turns == 0
    left = const(turns) if whole else ex("min", const(turns), ex("sub", f.extent, start))
    k = var(f"{f.name}.in", left)
    at = ex("add", start, k)
    memo: dict[Expr, Expr] = {}

    def fix(e: Expr) -> Expr:
        return rewrite(e, lambda x: at if x is f.var else None, memo)

    parts = tuple(Acc(f"{a.name}.in", "sum", fix(a.value), order="sequential") for a in accs)
    sums = tuple(
        Acc(a.name, "sum", ref(p.name, a.value.dtype), init=a.init, order="sequential")
        for a, p in zip(accs, parts, strict=True)
    )
    inner = replace(f, var=k, body=map_exprs(f.body, fix), accs=parts)
    return For(r, (inner,), sums)
