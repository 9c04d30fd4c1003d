"""Index algebra: division and remainder of mixed radix, the smaller and the larger of two indices.

What is done only where the operands are known not to be negative asks their ranges, so user
integers pass unharmed.
"""

from __future__ import annotations

from calque.native.scalars.node import Expr, const, make
from calque.native.scalars.ranges import at_least, interval, within
from calque.native.scalars.sums import ONE, ZERO, Terms, add, mul, summands, total


def _divided(e: Expr, n: Expr) -> tuple[Expr, Expr] | None:
    """``e = q*n + r`` with everything that is visibly a multiple of n in q."""
    t, c = summands(e)
    q: Terms = {}
    r: Terms = {}
    for x, k in t.items():
        if n.op == "const" and k % n.attr == 0:
            q[x] = k // n.attr
        elif x is n:
            q[ONE] = q.get(ONE, 0) + k
        elif x.op == "mul" and (x.args[1] is n or x.args[0] is n):
            y = x.args[0] if x.args[1] is n else x.args[1]
            q[y] = q.get(y, 0) + k
        else:
            r[x] = k
    low = c // n.attr if n.op == "const" else 0
    whole = q.pop(ONE, 0) + low
    if not q and not whole:
        return None
    return _combine(q, whole), total(r, c - low * n.attr if n.op == "const" else c)


def _parted(a: Expr, b: Expr) -> tuple[Expr, Expr] | None:
    """``_divided`` where both parts are certainly not negative.

    A size that divides is taken to be positive: a loop over indices of an empty array never runs,
    and a division by a size that is not a constant is compiled so that it cannot trap."""
    if (b.attr <= 0) if b.op == "const" else interval(b)[0] < 0:
        return None
    parts = _divided(a, b)
    if parts is None or interval(parts[1])[0] < 0 or interval(a)[0] < 0:
        return None
    return parts


def _combine(q: Terms, constant: int) -> Expr:
    out = const(constant)
    for e, k in q.items():
        out = add(mul(e, const(k)), out)
    return out


def floordiv(a: Expr, b: Expr) -> Expr:
    """Division of non-negative integers."""
    if b.op == "const":
        if a.op == "const" and b.attr:
            return const(a.attr // b.attr)
        if b.attr == 1:
            return a
    if a is b and interval(b)[0] > 0:
        return ONE
    if within(a, b):
        return ZERO
    parts = _parted(a, b)
    if parts is not None:
        return add(parts[0], floordiv(parts[1], b))
    if b.op == "const" and a.op == "floordiv" and a.args[1].op == "const":
        return floordiv(a.args[0], const(a.args[1].attr * b.attr))
    return make("floordiv", (a, b), "i64")


def mod(a: Expr, b: Expr) -> Expr:
    """Remainder of non-negative integers."""
    if b.op == "const":
        if a.op == "const" and b.attr:
            return const(a.attr % b.attr)
        if b.attr == 1:
            return ZERO
    if within(a, b):
        return a
    parts = _parted(a, b)
    if parts is not None:
        return mod(parts[1], b)
    if (
        b.op == "const"
        and a.op == "mod"
        and a.args[1].op == "const"
        and b.attr
        and a.args[1].attr % b.attr == 0
    ):
        return mod(a.args[0], b)
    return make("mod", (a, b), "i64")


def minimum(a: Expr, b: Expr) -> Expr:
    if at_least(b, a):
        return a
    return b if at_least(a, b) else make("min", (a, b), "i64")


def maximum(a: Expr, b: Expr) -> Expr:
    if at_least(a, b):
        return a
    return b if at_least(b, a) else make("max", (a, b), "i64")
