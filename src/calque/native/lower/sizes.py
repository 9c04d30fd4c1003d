"""Sizes: which extents are baked into a kernel, which it takes when it is called, and what is known
of them while planning.

An extent up to `BAKED` is a constant of the kernel (it may be unrolled, or lives in registers). A
larger one is a size symbol, one for every distinct value, so that a program retraced for other
sizes finds its kernels made. While planning, the value behind a symbol is known: a question about
it is answered from that value (`interval`, `decide`), and the answer, not the value, shapes the
kernel.
"""

from __future__ import annotations

from typing import Any, Final

from calque.core.dims import Dim
from calque.core.polynomials import Poly
from calque.core.symbols import Symbols
from calque.native.scalars.expr import Expr, const, ex, var, walk
from calque.native.scalars.index import terms

BAKED: Final = 16
FREE_MOST: Final = 1 << 47  # no free size is larger
Interval = tuple[int, int]
_WIDE: Final = (-(1 << 62), 1 << 62)
_ARITHMETIC: Final = frozenset(("add", "sub", "mul", "floordiv", "mod", "min", "max"))
_SIZE_OPS: Final = _ARITHMETIC | {"var", "const"}
_INTEGERS: Final[dict[str, Interval]] = {
    "i64": _WIDE,
    **{f"i{n}": (-(1 << n - 1), (1 << n - 1) - 1) for n in (8, 16, 32)},
    **{f"u{n}": (0, (1 << n) - 1) for n in (8, 16, 32)},
}


def is_size(e: Expr) -> bool:
    """Can the driver work it out, which knows sizes and loop counters? It reads no elements."""
    return all(x.op in _SIZE_OPS for x in walk(e, set()))


class Sizes:
    """Extents as expressions. With `known` false (kernels that serve every shape) nothing is baked
    and nothing is decided."""

    __slots__ = ("_hinted", "found", "free", "known", "memo", "symbols", "values")

    def __init__(self, known: bool = True) -> None:
        self.known = known
        self.free: set[str] = (
            set()
        )  # symbols that have another value in every call, their `values` are hints
        self.found: dict[
            str, int
        ] = {}  # those of them that the program itself finds -> the most they can be
        self._hinted: Sizes | None = None
        self.symbols: dict[Any, Expr] = {}
        self.values: dict[str, int] = {}  # symbol -> the value it has in this program
        self.memo: dict[Expr, Interval] = {}

    def dim(self, n: Any) -> Expr:
        """The extent (or offset) `n` as an index expression."""
        e = self.symbols.get(n)
        if e is None:
            if type(n) is Dim:
                e = self.symbols[n] = self.polynomial(n.symbols, n.poly)
                return e
            if -BAKED <= n <= BAKED and (self.known or n in (0, 1)):
                e = const(n)
            elif n < 0:
                e = ex("sub", const(0), self.dim(-n))
            else:
                e = var(f"s{n}")
                self.values[f"s{n}"] = n
            self.symbols[n] = e
        return e

    def polynomial(self, symbols: Symbols, poly: Poly) -> Expr:
        """A free size as an expression of the symbols of its trace."""
        out: Expr = const(0)
        for monomial, c in sorted(poly, key=lambda t: t[1] < 0):
            term = const(abs(c))
            for i in monomial:
                term = ex("mul", self.atom(symbols, i), term)
            out = ex("sub" if c < 0 else "add", out, term)
        return out

    def atom(self, symbols: Symbols, i: int) -> Expr:
        op, a, b = symbols.atoms[i]
        if op not in ("size", "found"):
            return ex(op, self.polynomial(symbols, a), self.polynomial(symbols, b))
        name = f"n{i}"
        if op == "found":
            name = f"f{a}"
            self.found[name] = min(symbols.atom_interval(i)[1], FREE_MOST)
        if self.known:
            self.free.add(name)
        self.values[name] = symbols.atom_hints[i]
        return var(name)

    def symbol(self, name: str) -> Expr:
        return var(name)

    @property
    def hinted(self) -> Sizes:
        """The same sizes with the hints as values: for what changes only the speed."""
        if not self.free:
            return self
        if self._hinted is None:
            self._hinted = Sizes(self.known)
            self._hinted.values = self.values
        return self._hinted

    def may_grow(self, extent: Expr) -> bool:
        """May this program be called with a much longer loop than this one? Then pieces that are
        worth a thread are cut when it is."""
        return not self.free.isdisjoint(extent.names)

    def define(self, n: int, e: Expr, value: int | None = None) -> None:
        """Let `n` be written as `e` from now on (for kernels whose sizes are not the ones of this
        program)."""
        self.symbols[n] = e
        if e.op == "var":
            self.values[e.attr[0]] = n if value is None else value

    def value(self, e: Expr) -> int:
        """The number a size expression has in this program."""
        lo, hi = self.interval(e)
        if lo != hi:
            raise ValueError(f"not a size: {e}")
        return lo

    def planned(self, e: Expr) -> int:
        """The number a size expression has for the shapes that were planned, also when kernels must
        not rely on it."""
        if e.op == "var" and e.attr[1] is None:
            return self.values[e.attr[0]]
        return self.hinted.value(e) if e.op == "const" or self.known else 0

    def interval(self, e: Expr) -> Interval:
        """Bounds of an index expression, from the sizes of this program."""
        got = self.memo.get(e)
        if got is not None:
            return got
        todo = [e]
        while todo:
            x = todo[-1]
            if x in self.memo:
                todo.pop()
                continue
            need = [a for a in self._operands(x) if a not in self.memo]
            if need:
                todo += need
                continue
            todo.pop()
            self.memo[x] = self._bound(x)
        return self.memo[e]

    def _operands(self, e: Expr) -> tuple[Expr, ...]:
        if e.op == "var":
            return () if e.attr[1] is None else (e.attr[1],)
        if e.op in _ARITHMETIC or e.op == "cast":
            return e.args if e.args[0].dtype in _INTEGERS and e.dtype in _INTEGERS else ()
        if e.op == "select" and e.dtype in _INTEGERS:
            return e.args[1:] + self._compared(e)
        return ()

    @staticmethod
    def _compared(e: Expr) -> tuple[Expr, ...]:
        """The two integers that a selection compares with <, if that is its condition."""
        c = e.args[0]
        return c.args if c.op == "lt" and c.args[0].dtype in _INTEGERS else ()

    def _bound(self, e: Expr) -> Interval:
        m = self.memo
        if e.op == "const" and e.dtype in _INTEGERS:
            return (e.attr, e.attr)
        if e.op == "var":
            if e.attr[1] is None:
                if e.attr[0] in self.found:
                    return (0, self.found[e.attr[0]])
                if e.attr[0] in self.free:
                    return (1, FREE_MOST)
                v = self.values.get(e.attr[0])
                return (v, v) if v is not None and self.known else (0, 1 << 48)
            return (0, max(m[e.attr[1]][1] - 1, 0))
        if not self._operands(e):
            return (
                (e.lo, e.hi)
                if e.lo is not None and e.hi is not None
                else _INTEGERS.get(e.dtype, _WIDE)
            )
        if e.op == "cast":
            return self._fitting(m[e.args[0]], e.dtype)
        (a, b), (c, d) = (m[x] for x in e.args[-2:])
        if e.op == "select" and self._compared(e):  # a condition that always or never holds
            (lo, hi), (other, top) = (m[x] for x in self._compared(e))
            if lo >= top:
                return (c, d)
            if hi < other:
                return (a, b)
        bound = _combine(e.op, a, b, c, d)
        if self.free and e.index:  # sizes and places do not wrap around
            return (max(bound[0], _WIDE[0]), min(bound[1], _WIDE[1]))
        return self._fitting(bound, e.dtype)

    @staticmethod
    def _fitting(bound: Interval, dtype: str) -> Interval:
        """A bound of a value of this type; nothing is known when it might wrap around."""
        lo, hi = _INTEGERS[dtype]
        return bound if lo <= bound[0] and bound[1] <= hi else (lo, hi)

    def decide(self, op: str, a: Expr, b: Expr) -> bool | None:
        """The truth of a < b or a >= b for all values the loop variables take, or None."""
        if not self.known:
            return None
        (alo, ahi), (blo, bhi) = self.interval(a), self.interval(b)
        below = True if ahi < blo else False if alo >= bhi else None
        if below is None and self.free and a.index and b.index:
            below = self._relate(a, b)
        return below if op == "lt" or below is None else not below

    def _relate(self, a: Expr, b: Expr) -> bool | None:
        """Is a < b for all places and all free sizes? Each loop variable takes its ends."""
        if self._least(ex("sub", b, a)) > 0:
            return True
        return False if self._least(ex("sub", a, b)) >= 0 else None

    def _least(self, e: Expr) -> int:
        """A lower bound of a sum of multiples of loop variables and sizes."""
        for _ in range(8):
            parts, _ = terms(e)
            loops = [(x, k) for x, k in parts.items() if x.op == "var" and x.attr[1] is not None]
            if not loops:
                break
            for x, k in loops:
                last = ex("sub", x.attr[1], const(1)) if k < 0 else const(0)
                e = ex("add", ex("sub", e, ex("mul", x, const(k))), ex("mul", last, const(k)))
        return self.interval(e)[0]


def _combine(op: str, a: int, b: int, c: int, d: int) -> Interval:
    """Interval arithmetic: (a, b) op (c, d)."""
    if op == "add":
        return (a + c, b + d)
    if op == "sub":
        return (a - d, b - c)
    if op == "min":
        return (min(a, c), min(b, d))
    if op == "max":
        return (max(a, c), max(b, d))
    if op == "select":
        return (min(a, c), max(b, d))
    if op == "mul":
        corners = (a * c, a * d, b * c, b * d)
        return (min(corners), max(corners))
    if a < 0 or c <= 0:
        return _WIDE
    if op == "floordiv":
        return (a // d, b // c)
    return (a % c, a % c) if (a, c) == (b, d) else (0, min(b, d - 1))
