"""Index algebra: sums of multiples, division and remainder of mixed radix, and what can be proved
about ranges.

All of it holds modulo 2**64 or is done only where the ranges of the operands are known, so user
integers pass unharmed.
"""

from __future__ import annotations

from typing import Final

from calque.native.scalars.node import Expr, const, make

MAX_TERMS: Final = 8  # longer sums are left as they are written: linear cost on long chains
ZERO: Final = const(0)
ONE: Final = const(1)
Terms = dict[Expr, int]


def terms(e: Expr) -> tuple[Terms, int]:
    """``e`` as a sum of multiples of nodes, plus a constant."""
    out: Terms = {}
    constant = 0
    todo = [(e, 1)]
    while todo:
        e, k = todo.pop()
        if e.op == "const":
            constant += k * e.attr
        elif e.op == "add" and len(out) <= MAX_TERMS:
            todo += ((e.args[1], k), (e.args[0], k))
        elif e.op == "sub" and len(out) <= MAX_TERMS:
            todo += ((e.args[1], -k), (e.args[0], k))
        elif e.op == "mul" and e.args[1].op == "const":
            todo.append((e.args[0], k * e.args[1].attr))
        else:
            out[e] = out.get(e, 0) + k
    return {t: k for t, k in out.items() if k}, constant


def _times(e: Expr, k: int) -> Expr:
    return e if k == 1 else make("mul", (e, const(k)), "i64")


def _undo_split(t: Terms) -> Terms:
    """``(x//n)*n + x%n -> x``: a reshape undone."""
    for m in [m for m in t if m.op == "mod" and m in t]:
        x, n = m.args
        k = t[m]
        q = make("floordiv", (x, n), "i64")
        if n.op == "const":
            if t.get(q) == k * n.attr:
                t = {a: b for a, b in t.items() if a is not q and a is not m}
                t[x] = t.get(x, 0) + k
                return _undo_split(_flat(t))
            continue
        whole = make("mul", (q, n), "i64")
        if t.get(whole) == k:
            t = {a: b for a, b in t.items() if a is not whole and a is not m}
            t[x] = t.get(x, 0) + k
            return _undo_split(_flat(t))
    return t


def _flat(t: Terms) -> Terms:
    return {a: b for a, b in t.items() if b}


def total(t: Terms, constant: int) -> Expr:
    """The expression of a sum."""
    t = _undo_split(t)
    out: Expr | None = None
    for e, k in t.items():
        if e.op in ("add", "sub", "const"):  # only _undo_split brings these back
            inner, c = terms(e)
            merged = {**{a: b for a, b in t.items() if a is not e}}
            for a, b in inner.items():
                merged[a] = merged.get(a, 0) + b * k
            return total(_flat(merged), constant + c * k)
    for e, k in t.items():
        if out is None:
            out = _times(e, k)
        elif k == -1:
            out = make("sub", (out, e), "i64")
        else:
            out = make("add", (out, _times(e, k)), "i64")
    if out is None:
        return const(constant)
    return make("add", (out, const(constant)), "i64") if constant else out


def _size(e: Expr) -> int:
    """How many terms, cheaply and at most MAX_TERMS + 1."""
    n, todo = 0, [e]
    while todo and n <= MAX_TERMS:
        e = todo.pop()
        if e.op in ("add", "sub"):
            todo += e.args
        elif e.op == "mul" and e.args[1].op == "const":
            todo.append(e.args[0])
        else:
            n += 1
    return n


def add(a: Expr, b: Expr) -> Expr:
    if a.op == "const" and b.op != "const":
        a, b = b, a
    if b.op == "const":
        if b.attr == 0:
            return a
        if a.op == "const":
            return const(a.attr + b.attr)
    if _size(a) + _size(b) > MAX_TERMS:
        return make("add", (a, b), "i64")
    t, c = terms(a)
    u, d = terms(b)
    for e, k in u.items():
        t[e] = t.get(e, 0) + k
    return total(_flat(t), c + d)


def sub(a: Expr, b: Expr) -> Expr:
    if a is b:
        return ZERO
    if _size(a) + _size(b) > MAX_TERMS:
        return make("sub", (a, b), "i64")
    return add(a, mul(b, const(-1)))


def mul(a: Expr, b: Expr) -> Expr:
    if a.op == "const":
        a, b = b, a
    if b.op != "const":
        return make("mul", (a, b), "i64")
    if b.attr == 0:
        return b
    if b.attr == 1:
        return a
    if a.op in ("const", "add", "sub", "mul") and _size(a) <= MAX_TERMS:
        t, c = terms(a)
        return total({e: k * b.attr for e, k in t.items()}, c * b.attr)
    return make("mul", (a, b), "i64")


def _divided(e: Expr, n: Expr) -> tuple[Expr, Expr] | None:
    """``e = q*n + r`` with everything that is visibly a multiple of n in q."""
    t, c = terms(e)
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
    if a is b and b.lo is not None and b.lo > 0:
        return ONE
    if within(a, b):
        return ZERO
    if not (b.op == "const" and b.attr <= 0):
        parts = _divided(a, b)
        if (
            parts is not None
            and parts[1].lo is not None
            and parts[1].lo >= 0
            and a.lo is not None
            and a.lo >= 0
        ):
            if positive(b) or b.op == "const":
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
    if not (b.op == "const" and b.attr <= 0):
        parts = _divided(a, b)
        if (
            parts is not None
            and parts[1].lo is not None
            and parts[1].lo >= 0
            and a.lo is not None
            and a.lo >= 0
        ):
            if positive(b) or b.op == "const":
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


def positive(n: Expr) -> bool:
    """A size that divides is taken to be positive: a loop over indices of an empty array never
    runs, and a division by a size that is not a constant is compiled so that it cannot trap."""
    return n.lo is not None and n.lo >= 0


# --- proofs ---------------------------------------------------------------------------------------


def lower_bound(e: Expr) -> int | None:
    """The least value of an index expression, using that a loop variable is below its extent."""
    if e.lo is None:
        return None
    t, c = terms(e)
    for _ in range(
        4
    ):  # replace variables that count against us by extent - 1, outermost extents included
        late = [
            x
            for x, k in t.items()
            if k < 0 and x.op == "var" and x.attr[1] is not None and x.attr[1].op != "const"
        ]
        if not late:
            break
        for x in late:
            k = t.pop(x)
            u, d = terms(x.attr[1])
            for y, j in u.items():
                t[y] = t.get(y, 0) + k * j
            c += k * (d - 1)
        t = _flat(t)
    low = c
    for x, k in t.items():
        bound = x.lo if k > 0 else x.hi
        if bound is None:
            return None
        low += k * bound
    return low


def at_least(a: Expr, b: Expr, by: int = 0) -> bool:
    """Is ``a >= b + by`` certain? (False when it is not known.)"""
    if a.lo is None or b.lo is None or a.hi is None or b.hi is None:
        return False
    if a.lo >= b.hi + by:
        return True
    if a.hi < b.lo + by:
        return False
    low = lower_bound(sub(a, b))
    return low is not None and low >= by


def within(a: Expr, n: Expr) -> bool:
    """Is ``0 <= a < n`` certain?"""
    if a.op == "var" and a.attr[1] is n:
        return True
    return a.lo is not None and a.lo >= 0 and at_least(n, a, 1)


def compare(op: str, a: Expr, b: Expr) -> bool | None:
    """The truth of a comparison of indices, when it is certain."""
    if a is b:
        return op in ("le", "ge", "eq")
    if a.lo is None or b.lo is None:
        return None
    if op in ("gt", "ge"):
        op, a, b = {"gt": "lt", "ge": "le"}[op], b, a
    strict = 1 if op == "lt" else 0
    if op in ("lt", "le"):
        if at_least(b, a, strict):
            return True
        return False if at_least(a, b, 1 - strict) else None
    if at_least(a, b, 1) or at_least(b, a, 1):
        return op == "ne"
    return None


def minimum(a: Expr, b: Expr) -> Expr:
    if at_least(b, a):
        return a
    return b if at_least(a, b) else make("min", (a, b), "i64")


def maximum(a: Expr, b: Expr) -> Expr:
    if at_least(a, b):
        return a
    return b if at_least(b, a) else make("max", (a, b), "i64")
