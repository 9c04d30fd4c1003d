"""Sizes: which extents are baked into a kernel, which it takes when it is called, and what is known of them while planning.

An extent up to `BAKED` is a constant of the kernel (it may be unrolled, or lives in registers). A larger one is a size symbol,
one for every distinct value, so that a program retraced for other sizes finds its kernels made. While planning, the value behind a
symbol is known: a question about it is answered from that value (`interval`, `decide`), and the answer, not the value, shapes the kernel."""

from __future__ import annotations

from typing import Final

from calque.native.expr import Expr, const, ex, var

BAKED: Final = 16
Interval = tuple[int, int]
_WIDE: Final = (-(1 << 62), 1 << 62)
_ARITHMETIC: Final = frozenset(("add", "sub", "mul", "floordiv", "mod", "min", "max"))
_INTEGERS: Final[dict[str, Interval]] = {
    "i64": _WIDE,
    **{f"i{n}": (-(1 << n - 1), (1 << n - 1) - 1) for n in (8, 16, 32)},
    **{f"u{n}": (0, (1 << n) - 1) for n in (8, 16, 32)},
}


class Sizes:
    """Extents as expressions. With `known` false (kernels that serve every shape) nothing is baked and nothing is decided."""

    __slots__ = ("known", "memo", "symbols", "values")

    def __init__(self, known: bool = True) -> None:
        self.known = known
        self.symbols: dict[int, Expr] = {}
        self.values: dict[str, int] = {}  # symbol -> the value it has in this program
        self.memo: dict[Expr, Interval] = {}

    def dim(self, n: int) -> Expr:
        """The extent (or offset) `n` as an index expression."""
        e = self.symbols.get(n)
        if e is None:
            if -BAKED <= n <= BAKED and (self.known or n in (0, 1)):
                e = const(n)
            elif n < 0:
                e = ex("sub", const(0), self.dim(-n))
            else:
                e = var(f"s{n}")
                self.values[f"s{n}"] = n
            self.symbols[n] = e
        return e

    def define(self, n: int, e: Expr, value: int | None = None) -> None:
        """Let `n` be written as `e` from now on (for kernels whose sizes are not the ones of this program)."""
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
        """The number a size expression has for the shapes that were planned, also when kernels must not rely on it."""
        if e.op == "var" and e.attr[1] is None:
            return self.values[e.attr[0]]
        return self.value(e) if e.op == "const" or self.known else 0

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
            c = e.args[0]
            return e.args[1:] + (c.args if c.op == "lt" and c.args[0].dtype in _INTEGERS else ())
        return ()

    def _bound(self, e: Expr) -> Interval:
        m = self.memo
        if e.op == "const" and e.dtype in _INTEGERS:
            return (e.attr, e.attr)
        if e.op == "var":
            if e.attr[1] is None:
                v = self.values.get(e.attr[0])
                return (v, v) if v is not None and self.known else (0, 1 << 48)
            return (0, max(m[e.attr[1]][1] - 1, 0))
        if not self._operands(e):
            return (e.lo, e.hi) if e.lo is not None and e.hi is not None else _INTEGERS.get(e.dtype, _WIDE)
        if e.op == "cast":
            return self._fitting(m[e.args[0]], e.dtype)
        (a, b), (c, d) = (m[x] for x in e.args[-2:])
        if e.op == "select" and e.args[0].op == "lt":  # a condition that always or never holds
            (lo, hi), (other, top) = (m[x] for x in e.args[0].args)
            if lo >= top:
                return (c, d)
            if hi < other:
                return (a, b)
        return self._fitting(_combine(e.op, a, b, c, d), e.dtype)

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
        if op == "lt":
            return True if ahi < blo else False if alo >= bhi else None
        return True if alo >= bhi else False if ahi < blo else None


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
    return (a // d, b // c) if op == "floordiv" else (0, min(b, d - 1))
