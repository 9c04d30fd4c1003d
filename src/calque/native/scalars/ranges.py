"""Which values an expression can take: the one answer for all that simplify, lower, schedule and
emit.

Expressions alone know that a loop variable is below its extent and that sizes are sizes
(``interval``, ``compare``, ...); a program that knows more of its sizes asks ``Ranges`` of its own.
Integers of users may wrap around: nothing is concluded from sums that might.
"""

from __future__ import annotations

from typing import Any, Final

from calque.native.scalars.node import INT_BITS, SIGNED, Expr
from calque.native.scalars.sums import Terms, sub, summands, terms

Interval = tuple[int, int]  # the least and the most, both possible ends included
SIZE_LIMIT: Final = 1 << 48  # no array dimension is this large: unknown sizes lie in [0, this]
INDEX_LIMIT: Final = 1 << 62  # no index is larger, and differences below it do not wrap around
ROUNDS: Final = 8  # so deep are extents followed that depend on other loops
OF_DTYPE: Final[dict[str, Interval]] = {
    d: (-(1 << n - 1), (1 << n - 1) - 1) if d in SIGNED else (0, (1 << n) - 1)
    for d, n in INT_BITS.items()
}
_ARITHMETIC: Final = frozenset(("add", "sub", "mul", "floordiv", "mod", "min", "max"))


class _OnTheNodes:
    """A memo that lives as long as the expressions."""

    def get(self, e: Expr) -> Interval | None:
        return e.interval

    def __contains__(self, e: Expr) -> bool:
        return e.interval is not None

    def __getitem__(self, e: Expr) -> Interval:
        assert e.interval is not None
        return e.interval

    def __setitem__(self, e: Expr, r: Interval) -> None:
        e.interval = r


class Ranges:
    """What expressions can be, by what is known of sizes."""

    __slots__ = ("_known",)

    def __init__(self, known: dict[Expr, Interval] | _OnTheNodes | None = None) -> None:
        self._known: Any = {} if known is None else known

    def size(self, name: str) -> Interval:
        """What is known of a size given at run time."""
        return (0, SIZE_LIMIT)

    def interval(self, e: Expr) -> Interval:
        """Bounds of an integer expression; those of its dtype where nothing is known."""
        got: Interval | None = self._known.get(e)
        return self._work_out(e) if got is None else got

    def _work_out(self, e: Expr) -> Interval:
        known = self._known
        todo = [e]
        while todo:
            x = todo[-1]
            need = [a for a in _operands(x) if a not in known]
            if need:
                todo += need
            else:
                todo.pop()
                known[x] = self._of_node(x)
        return known[e]  # type: ignore[no-any-return]

    def _of_node(self, e: Expr) -> Interval:
        """From the ranges of the operands."""
        op, known = e.op, self._known
        if op == "const":
            return (int(e.attr), int(e.attr))
        if op == "var":
            name, extent = e.attr
            return self.size(name) if extent is None else (0, max(known[extent][1] - 1, 0))
        if not _operands(e):
            return OF_DTYPE[e.dtype]
        if op == "cast":
            return _fitting(known[e.args[0]], e)
        a, b = [known[x] for x in e.args[-2:]]
        if op == "select":
            compared = _compared(e)
            if compared:  # a condition that always or never holds
                left, right = [known[x] for x in compared]
                if left[0] >= right[1]:
                    return b
                if left[1] < right[0]:
                    return a
        return _fitting(combined(op, a, b), e)

    def least(self, e: Expr) -> int:
        """A lower bound of a sum that does not wrap around; what counts against it and moves with
        a loop is taken at the loop's end, so that extents cancel."""
        t, c = terms(e)
        for _ in range(ROUNDS):
            late = [x for x, k in t.items() if k < 0 and x.op == "var" and _moves(x.attr[1])]
            if not late:
                break
            for x in late:
                k = t.pop(x)
                u, d = summands(x.attr[1])
                for y, j in u.items():
                    t[y] = t.get(y, 0) + k * j
                c += k * (d - 1)
            t = _flat(t)
        return c + sum([k * self.interval(x)[0 if k > 0 else 1] for x, k in t.items()])

    def at_least(self, a: Expr, b: Expr, by: int = 0) -> bool:
        """Is ``a >= b + by`` certain? (False when it is not known.)"""
        (alo, ahi), (blo, bhi) = self.interval(a), self.interval(b)
        if alo >= bhi + by:
            return True
        if ahi < blo + by or not (_tame(alo, ahi) and _tame(blo, bhi)):
            return False
        return self.least(sub(a, b)) >= by

    def compare(self, op: str, a: Expr, b: Expr) -> bool | None:
        """The truth of a comparison, when it is certain."""
        if a is b:
            return op in ("le", "ge", "eq")
        if op in ("gt", "ge"):
            op, a, b = {"gt": "lt", "ge": "le"}[op], b, a
        strict = 1 if op == "lt" else 0
        if op in ("lt", "le"):
            if self.at_least(b, a, strict):
                return True
            return False if self.at_least(a, b, 1 - strict) else None
        if self.at_least(a, b, 1) or self.at_least(b, a, 1):
            return op == "ne"
        return None


def _operands(e: Expr) -> tuple[Expr, ...]:
    """Those whose ranges say something about the range of ``e``."""
    op = e.op
    if op == "var":
        return () if e.attr[1] is None else (e.attr[1],)
    if op in _ARITHMETIC:
        return e.args
    if op == "cast":
        return e.args if e.args[0].dtype in OF_DTYPE else ()
    if op == "select":
        return e.args[1:] + _compared(e)
    return ()


def _compared(e: Expr) -> tuple[Expr, ...]:
    """The two integers that a selection compares with <, if that is its condition."""
    c = e.args[0]
    return c.args if c.op == "lt" and c.args[0].dtype in OF_DTYPE else ()


def _moves(extent: Expr | None) -> bool:
    """Is it the extent of a loop, and not a number?"""
    return extent is not None and extent.op != "const"


def _tame(lo: int, hi: int) -> bool:
    return lo >= -INDEX_LIMIT and hi <= INDEX_LIMIT


def _flat(t: Terms) -> Terms:
    return {x: k for x, k in t.items() if k}


def _fitting(r: Interval, e: Expr) -> Interval:
    """The range of a value of this type: nothing is known when it might wrap around, which indices
    do not."""
    if e.index:
        return (max(r[0], -INDEX_LIMIT), min(r[1], INDEX_LIMIT))
    lo, hi = OF_DTYPE[e.dtype]
    return r if lo <= r[0] and r[1] <= hi else (lo, hi)


def combined(op: str, a: Interval, b: Interval) -> Interval:
    """Interval arithmetic. A divisor is positive where it is used."""
    (alo, ahi), (blo, bhi) = a, b
    if op == "add":
        return (alo + blo, ahi + bhi)
    if op == "sub":
        return (alo - bhi, ahi - blo)
    if op == "min":
        return (min(alo, blo), min(ahi, bhi))
    if op == "max":
        return (max(alo, blo), max(ahi, bhi))
    if op == "select":
        return (min(alo, blo), max(ahi, bhi))
    if op == "mul":
        corners = (alo * blo, alo * bhi, ahi * blo, ahi * bhi)
        return (min(corners), max(corners))
    if alo < 0:
        return OF_DTYPE["i64"]
    blo, bhi = max(blo, 1), max(bhi, 1)
    if op == "floordiv":
        return (alo // bhi, ahi // blo)
    return (alo % blo, alo % blo) if (alo, blo) == (ahi, bhi) else (0, min(ahi, bhi - 1))


# --- with nothing known of sizes ------------------------------------------------------------------


class _AnySizes(Ranges):
    """What holds for all programs is kept on the expressions themselves."""

    def __init__(self) -> None:
        super().__init__(_OnTheNodes())

    def interval(self, e: Expr) -> Interval:
        r = e.interval
        return self._work_out(e) if r is None else r


ANY_SIZES: Final = _AnySizes()
interval: Final = ANY_SIZES.interval
at_least: Final = ANY_SIZES.at_least
compare: Final = ANY_SIZES.compare


def within(a: Expr, n: Expr) -> bool:
    """Is ``0 <= a < n`` certain?"""
    if a.op == "var" and a.attr[1] is n:
        return True
    return interval(a)[0] >= 0 and at_least(n, a, 1)
