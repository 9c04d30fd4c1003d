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
from calque.native.scalars.ranges import SIZE_LIMIT, Interval, Ranges

BAKED: Final = 16
FREE_MOST: Final = 1 << 47  # no free size is larger
_ARITHMETIC: Final = frozenset(("add", "sub", "mul", "floordiv", "mod", "min", "max"))
_SIZE_OPS: Final = _ARITHMETIC | {"var", "const"}


def is_size(e: Expr) -> bool:
    """Can the driver work it out, which knows sizes and loop counters? It reads no elements."""
    return all(x.op in _SIZE_OPS for x in walk(e, set()))


class Sizes(Ranges):
    """Extents as expressions. With `known` false (kernels that serve every shape) nothing is baked
    and nothing is decided."""

    __slots__ = ("_hinted", "found", "free", "known", "symbols", "values")

    def __init__(self, known: bool = True) -> None:
        super().__init__()
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

    def fixed(self) -> dict[str, int]:
        """The values of symbols that are the same in every call."""
        return {n: v for n, v in self.values.items() if n not in self.free} if self.known else {}

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

    def size(self, name: str) -> Interval:
        """What is known of a symbol."""
        if name in self.found:
            return (0, self.found[name])
        if name in self.free:
            return (1, FREE_MOST)
        v = self.values.get(name)
        return (v, v) if v is not None and self.known else (0, SIZE_LIMIT)

    def decide(self, op: str, a: Expr, b: Expr) -> bool | None:
        """The truth of a < b or a >= b for all values the loop variables take, or None."""
        if not self.known:
            return None
        if self.free and a.index and b.index:
            return self.compare(op, a, b)
        (alo, ahi), (blo, bhi) = self.interval(a), self.interval(b)
        below = True if ahi < blo else False if alo >= bhi else None
        return below if op == "lt" or below is None else not below
