"""Index algebra: sums of multiples. All of it holds modulo 2**64, so user integers pass
unharmed."""

from __future__ import annotations

from typing import Final

from calque.native.scalars.node import Expr, const, make

MAX_TERMS: Final = 32  # longer sums are left as they are written: linear cost on long chains
ZERO: Final = const(0)
ONE: Final = const(1)
Terms = dict[Expr, int]
_SUMS: Final = ("add", "mul", "sub")


def terms(e: Expr) -> tuple[Terms, int]:
    """``e`` as a sum of multiples of nodes, plus a constant. The terms are the caller's own."""
    found, constant = summands(e)
    return dict(found), constant


def summands(e: Expr) -> tuple[Terms, int]:
    """The same, which sums keep for the next who asks: not to be changed."""
    op = e.op
    if op == "const":
        return {}, e.attr
    if op not in _SUMS or (op == "mul" and e.args[1].op != "const"):
        return {e: 1}, 0  # if it kept itself, only the collector of garbage could free it
    known = e.sum
    if known is None:
        known = e.sum = _spread(e)
    return known


def _spread(e: Expr) -> tuple[Terms, int]:
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
    if 0 in out.values():
        out = _flat(out)
    return out, constant


def _times(e: Expr, k: int) -> Expr:
    return e if k == 1 else make("mul", (e, const(k)), "i64")


def _undo_split(t: Terms) -> Terms:
    """``(x//n)*n + x%n -> x``: a reshape undone."""
    for m in t:
        if m.op != "mod":
            continue
        x, n = m.args
        k = t[m]
        q = _quotient(x, n)
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


def _quotient(x: Expr, n: Expr) -> Expr:
    """``x // n`` as it stands in sums: a quotient of a quotient is one of the product."""
    if x.op == "floordiv" and x.args[1].op == "const" and n.op == "const":
        x, n = x.args[0], const(x.args[1].attr * n.attr)
    return make("floordiv", (x, n), "i64")


def _flat(t: Terms) -> Terms:
    """Without terms that are nothing."""
    return {a: b for a, b in t.items() if b}


def total(t: Terms, constant: int) -> Expr:
    """The expression of a sum."""
    t = _undo_split(t)
    out: Expr | None = None
    for e, k in t.items():
        if e.op in ("add", "sub", "const"):  # only _undo_split brings these back
            inner, c = summands(e)
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
    if e.op not in _SUMS:
        return 1
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
    u, d = summands(b)
    for e, k in u.items():
        t[e] = t.get(e, 0) + k
    return total(_flat(t) if 0 in t.values() else t, c + d)


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
        t, c = summands(a)
        return total({e: k * b.attr for e, k in t.items()}, c * b.attr)
    return make("mul", (a, b), "i64")


def inside(at: Expr, d: Expr, i: Expr) -> Expr:
    """``at*d + i``: element ``i`` of a row of ``d``. ``(a + x//d)*d + x%d -> a*d + x``, also where
    ``d`` is a size, over which products are not spread out."""
    if d.op != "const" and i.op in ("mod", "add", "sub") and at is not ZERO:
        t, c = terms(i)
        outer, first = terms(at)
        for m, k in t.items():
            q = _quotient(*m.args) if m.op == "mod" and m.args[1] is d else None
            if q is not None and outer.get(q) == k:
                del t[m], outer[q]
                return add(mul(total(outer, first), d), add(total(t, c), mul(m.args[0], const(k))))
    return add(mul(at, d), i)
