"""Sizes that are not fixed: `Dim` is an integer of which a program knows only the expression, not the value.

A `Dim` belongs to the `Symbols` of one trace. It has a hint, the size that was seen while tracing. What Python asks of it
(`n == 3`, `n > k`) is answered from the hint, and the answer is kept as a guard: the program serves every sizes that give the same
answers. Where Python needs the number itself (`range(n)`, `int(n)`) the size is pinned: the guard says that it is the hint.
Sizes of symbols are at least 1; a program for empty arrays is another one."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

Monomial = tuple[int, ...]  # numbers of atoms, sorted, a square stands twice
Poly = tuple[tuple[Monomial, int], ...]  # sorted (monomial, coefficient) pairs, no zeros

INFINITE: Final = 1 << 62
_NAMES: Final = "nmkhwdbtuvpqr"


class Symbols:
    """The free sizes of one trace, what was asked of them, and the answers."""

    def __init__(self, hints: Sequence[int]) -> None:
        self.hints = tuple(hints)
        self.atoms: list[tuple[str, Any, Any]] = [("size", i, None) for i in range(len(hints))]
        self.atom_hints = list(hints)
        self.numbers: dict[tuple[str, Any, Any], int] = {a: i for i, a in enumerate(self.atoms)}
        self.guards: dict[tuple[str, Poly], bool] = {}  # ("zero" or "negative", polynomial) -> the answer
        self.open = True
        self.lenient = (
            False  # while compiling: sizes that differ are treated as such, which is right for equal ones, too
        )
        self.pins = False  # arithmetic with what is no size needs the number: Python's own, which may be more exact
        self.memo: dict[Poly, Dim] = {}

    def sizes(self) -> list[Dim]:
        """The symbols themselves."""
        return [self.dim((((i,), 1),)) for i in range(len(self.hints))]

    def dim(self, poly: Poly) -> Any:
        """A polynomial as a size; a constant one is an int."""
        if not poly:
            return 0
        if len(poly) == 1 and poly[0][0] == ():
            return poly[0][1]
        d = self.memo.get(poly)
        if d is None:
            d = self.memo[poly] = Dim(self, poly, self.evaluate(poly))
        return d

    def atom(self, op: str, a: Poly, b: Poly, hint: int) -> Poly:
        """A quotient or remainder that cannot be written otherwise."""
        key = (op, a, b)
        i = self.numbers.get(key)
        if i is None:
            i = self.numbers[key] = len(self.atoms)
            self.atoms.append(key)
            self.atom_hints.append(hint)
        return (((i,), 1),)

    def evaluate(self, poly: Poly) -> int:
        """The value for the hints."""
        total = 0
        for monomial, c in poly:
            for i in monomial:
                c *= self.atom_hints[i]
            total += c
        return total

    def interval(self, poly: Poly) -> tuple[int, int]:
        """Bounds for all sizes from 1."""
        low = high = 0
        for monomial, c in poly:
            lo, hi = c, c
            for i in monomial:
                a, b = self.atom_interval(i)
                if a < 0:
                    return (-INFINITE, INFINITE)
                lo, hi = (_times(lo, a), _times(hi, b)) if c > 0 else (_times(lo, b), _times(hi, a))
            low, high = low + lo, high + hi
        return (max(low, -INFINITE), min(high, INFINITE))

    def bounds(self, poly: Poly) -> tuple[int, int]:
        """As `interval`; and a quotient is bounded by what it divides: n - n // 2 is not negative."""
        low, high = self.interval(poly)
        if any(self.atoms[i][0] == "floordiv" for monomial, _ in poly for i in monomial):
            low, high = max(low, self.least(poly)), min(high, -self.least(_product(poly, (((), -1),))))
        return (low, high)

    def least(self, poly: Poly) -> int:
        """A lower bound, from d * (a // d) being between a - d + 1 and a."""
        factor, out = 1, poly
        for monomial, c in poly:
            atom: tuple[str, Any, Any] = self.atoms[monomial[0]] if len(monomial) == 1 else ("", (), ())
            op, a, b = atom
            if op == "floordiv" and len(b) == 1 and b[0][0] == ():
                d, k = b[0][1], c * factor
                out = _product(_sum(out, ((monomial, k),), -1), (((), d),))
                bound = a if k < 0 else _sum(a, (((), d - 1),), -1)
                out = _sum(out, _product(bound, (((), k),)))
                factor *= d
        low = self.interval(out)[0]
        return low if low <= -INFINITE else -(-low // factor)

    def atom_interval(self, i: int) -> tuple[int, int]:
        op, a, b = self.atoms[i]
        if op == "size":
            return (1, INFINITE)
        (alo, ahi), (blo, bhi) = self.interval(a), self.interval(b)
        if blo <= 0:
            return (-INFINITE, INFINITE)
        if op == "mod":
            return (0, bhi - 1)
        if alo < 0:
            return (-INFINITE, INFINITE)
        return (0 if bhi >= INFINITE else alo // bhi, INFINITE if ahi >= INFINITE else ahi // blo)

    def ask(self, kind: str, poly: Poly) -> bool:
        """Is the polynomial zero, or negative? From its bounds, else from the hint, with a guard."""
        lo, hi = self.bounds(poly)
        if kind == "negative":
            if hi < 0 or lo >= 0:
                return hi < 0
        elif lo > 0 or hi < 0:
            return False
        known = self.guards.get((kind, poly))
        if known is not None:
            return known
        value = self.evaluate(poly)
        answer = value < 0 if kind == "negative" else value == 0
        if self.open:
            if self.lenient and kind == "zero" and not answer and all(i < len(self.hints) for m, _ in poly for i in m):
                return False
            self.guards[kind, poly] = answer
            if _on_guard is not None:
                _on_guard(self, kind, poly, answer)
        return answer

    def text(self, poly: Poly, name: Callable[[int], str]) -> str:
        """The polynomial as Python writes it."""
        out = ""
        for monomial, c in sorted(poly, key=lambda t: (-len(t[0]), t[0])):
            factors = [name(i) for i in monomial]
            if abs(c) != 1 or not factors:
                factors.insert(0, str(abs(c)))
            sign = "-" if c < 0 else "+" if out else ""
            out += (f" {sign} " if out else sign) + "*".join(factors)
        return out or "0"

    def shown(self, i: int) -> str:
        """An atom for people."""
        op, a, b = self.atoms[i]
        if op == "size":
            return _NAMES[a] if a < len(_NAMES) else f"n{a}"
        return f"{op}({self.text(a, self.shown)}, {self.text(b, self.shown)})"

    def program(self, results: Iterable[tuple[str, Poly]]) -> Callable[..., tuple[int, ...]]:
        """A function of the sizes that gives these values (`value`), or whether they are `zero` or `negative`."""
        results = list(results)
        lines = []
        for i, (op, a, b) in enumerate(self.atoms):
            if op != "size":
                sign = "//" if op == "floordiv" else "%"
                lines.append(f" a{i} = ({self.text(a, 'a{}'.format)}) {sign} ({self.text(b, 'a{}'.format)})")
        ends = {"value": "", "zero": " == 0", "negative": " < 0"}
        values = [f"({self.text(p, 'a{}'.format)}){ends[kind]}" for kind, p in results]
        arguments = ", ".join(f"a{i}" for i in range(len(self.hints)))
        source = "\n".join([f"def f({arguments}):", *lines, f" return ({''.join(v + ', ' for v in values)})"])
        scope: dict[str, Any] = {}
        exec(compile(source, "<sizes>", "exec"), scope)
        made: Callable[..., tuple[int, ...]] = scope["f"]
        return made


_on_guard: Callable[[Symbols, str, Poly, bool], None] | None = None


def watch_guards(listener: Callable[[Symbols, str, Poly, bool], None] | None) -> None:
    """`listener` is told of every new guard."""
    global _on_guard
    _on_guard = listener


def _times(a: int, b: int) -> int:
    return max(min(a * b, INFINITE), -INFINITE)


def _poly(x: Any) -> Poly | None:
    if type(x) is Dim:
        return x.poly
    if isinstance(x, (int, np.integer)):
        return (((), int(x)),) if x else ()
    return None


def _sum(a: Poly, b: Poly, sign: int = 1) -> Poly:
    out = dict(a)
    for monomial, c in b:
        out[monomial] = out.get(monomial, 0) + sign * c
    return tuple(sorted((m, c) for m, c in out.items() if c))


def _product(a: Poly, b: Poly) -> Poly:
    out: dict[Monomial, int] = {}
    for m1, c1 in a:
        for m2, c2 in b:
            m = tuple(sorted(m1 + m2))
            out[m] = out.get(m, 0) + c1 * c2
    return tuple(sorted((m, c) for m, c in out.items() if c))


def _without(m: Monomial, part: Monomial) -> Monomial | None:
    """A monomial divided by another, if that leaves one."""
    rest = list(m)
    for i in part:
        if i not in rest:
            return None
        rest.remove(i)
    return tuple(rest)


def _split(a: Poly, b: Poly) -> tuple[Poly, Poly] | None:
    """(q, r) with a = q * b + r as far as the terms of `a` are multiples of the single term of `b`."""
    if len(b) != 1:
        return ((((), 1),), ()) if a == b else None
    (mb, cb) = b[0]
    q, r = [], []
    for m, c in a:
        rest = _without(m, mb)
        whole, left = divmod(c, cb) if rest is not None else (0, c)
        if rest is not None and whole:
            q.append((rest, whole))
        if left:
            r.append((m, left))
    return tuple(sorted(q)), tuple(r)


class Dim:
    """A size given by an expression. Made by tracing; see the module."""

    __slots__ = ("_hash", "hint", "poly", "symbols")

    def __init__(self, symbols: Symbols, poly: Poly, hint: int) -> None:
        self.symbols, self.poly, self.hint = symbols, poly, hint
        self._hash = hash(("dim", id(symbols), poly))

    # --- arithmetic -----------------------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        p = _poly(other)
        return self.symbols.dim(_sum(self.poly, p)) if p is not None else self._value("__add__", other)

    def __radd__(self, other: Any) -> Any:
        return self.__add__(other) if _poly(other) is not None else self._value("__radd__", other)

    def __sub__(self, other: Any) -> Any:
        p = _poly(other)
        return self.symbols.dim(_sum(self.poly, p, -1)) if p is not None else self._value("__sub__", other)

    def __rsub__(self, other: Any) -> Any:
        p = _poly(other)
        return self.symbols.dim(_sum(p, self.poly, -1)) if p is not None else self._value("__rsub__", other)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, (tuple, list, str, bytes)):
            return other * int(self)
        p = _poly(other)
        return self.symbols.dim(_product(self.poly, p)) if p is not None else self._value("__mul__", other)

    def __rmul__(self, other: Any) -> Any:
        known = isinstance(other, (tuple, list, str, bytes)) or _poly(other) is not None
        return self.__mul__(other) if known else self._value("__rmul__", other)

    def __neg__(self) -> Any:
        return self.__mul__(-1)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return -self if self < 0 else self

    def __pow__(self, other: Any) -> Any:
        if isinstance(other, int) and 0 <= other <= 8:
            out: Any = 1
            for _ in range(other):
                out = out * self
            return out
        return self._value("__pow__", other)

    def __floordiv__(self, other: Any) -> Any:
        p = _poly(other)
        return self._quotient(self.poly, p)[0] if p is not None else self._value("__floordiv__", other)

    def __rfloordiv__(self, other: Any) -> Any:
        p = _poly(other)
        return self._quotient(p, self.poly)[0] if p is not None else self._value("__rfloordiv__", other)

    def __mod__(self, other: Any) -> Any:
        p = _poly(other)
        return self._quotient(self.poly, p)[1] if p is not None else self._value("__mod__", other)

    def __rmod__(self, other: Any) -> Any:
        p = _poly(other)
        return self._quotient(p, self.poly)[1] if p is not None else self._value("__rmod__", other)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __truediv__(self, other: Any) -> Any:
        return self._value("__truediv__", other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._value("__rtruediv__", other)

    def _quotient(self, a: Poly, b: Poly) -> tuple[Any, Any]:
        """(a // b, a % b) as sizes."""
        s = self.symbols
        if not b:
            raise ZeroDivisionError("a size divided by zero")
        parts = _split(a, b)
        q, r = parts if parts is not None else ((), a)
        if not r:
            return s.dim(q), 0
        lo, hi = s.interval(r)
        if lo < 0 and s.ask("negative", r):  # quotients are of numbers from 0 only
            if s.ask("negative", _sum(r, b)):
                number, divisor = int(s.dim(r)), int(s.dim(b))
                return s.dim(q) + number // divisor, number % divisor
            return s.dim(q) - 1, s.dim(_sum(r, b))
        if lo >= 0 and hi < s.interval(b)[0]:  # the remainder is smaller than the divisor
            return s.dim(q), s.dim(r)
        low = s.dim(s.atom("floordiv", r, b, s.evaluate(r) // s.evaluate(b)))
        left = s.dim(s.atom("mod", r, b, s.evaluate(r) % s.evaluate(b)))
        return s.dim(q) + low, left

    def _value(self, method: str, other: Any) -> Any:
        """Arithmetic with what is no size: the value while running takes part."""
        mine = value_of(self)
        result = getattr(mine, method)(other)
        if result is NotImplemented:
            return NotImplemented
        return result

    # --- questions ------------------------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        p = _poly(other)
        if p is None:
            return NotImplemented
        diff = _sum(self.poly, p, -1)
        return not diff or self.symbols.ask("zero", diff)

    def __ne__(self, other: object) -> bool:
        same = self.__eq__(other)
        return same if same is NotImplemented else not same

    def _less(self, a: Poly, b: Poly) -> bool:
        return self.symbols.ask("negative", _sum(a, b, -1))

    def __lt__(self, other: Any) -> Any:
        p = _poly(other)
        return NotImplemented if p is None else self._less(self.poly, p)

    def __gt__(self, other: Any) -> Any:
        p = _poly(other)
        return NotImplemented if p is None else self._less(p, self.poly)

    def __le__(self, other: Any) -> Any:
        p = _poly(other)
        return NotImplemented if p is None else not self._less(p, self.poly)

    def __ge__(self, other: Any) -> Any:
        p = _poly(other)
        return NotImplemented if p is None else not self._less(self.poly, p)

    def __hash__(self) -> int:
        return self._hash

    def __bool__(self) -> bool:
        return not self.symbols.ask("zero", self.poly)

    # --- the number itself ----------------------------------------------------------------------------------------------------

    def __index__(self) -> int:
        """Pins the size."""
        self.symbols.ask("zero", _sum(self.poly, (((), self.hint),) if self.hint else (), -1))
        return self.hint

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.__index__())

    def __complex__(self) -> complex:
        return complex(self.__index__())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.__index__(), dtype)

    def __str__(self) -> str:
        return self.symbols.text(self.poly, self.symbols.shown)

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __reduce__(self) -> Any:
        return int, (self.hint,)


_value_of: Callable[[Dim], Any] = int


def value_of(d: Dim) -> Any:
    """A free size as a number of the running program."""
    return int(d) if d.symbols.pins else _value_of(d)


def set_value_of(f: Callable[[Dim], Any]) -> None:
    """Install what makes a traced number of a size."""
    global _value_of
    _value_of = f


def is_symbolic(shape: Iterable[Any]) -> bool:
    return any(type(d) is Dim for d in shape)


def substituted(x: Any, values: dict[Dim, int]) -> Any:
    """A parameter with its sizes replaced by numbers."""
    if type(x) is Dim:
        return values[x]
    if type(x) in (tuple, list):
        return type(x)(substituted(v, values) for v in x)
    return x


def product(sizes: Iterable[Any]) -> Any:
    """The product of sizes, free ones among them."""
    out: Any = 1
    for n in sizes:
        out = out * n
    return out


def hint_of(n: Any) -> int:
    """A size, or what it was while tracing: for decisions that change nothing but the speed."""
    return n.hint if type(n) is Dim else n


def surely_equal(a: Any, b: Any) -> bool:
    """Are two sizes equal whatever the free ones are? Asks nothing."""
    if type(a) is Dim or type(b) is Dim:
        return type(a) is type(b) and a.poly == b.poly
    return bool(a == b)


def surely_same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """`surely_equal` for shapes."""
    if a is b:
        return True
    return len(a) == len(b) and all([surely_equal(m, n) for m, n in zip(a, b)])


def surely_at_most(n: Any, limit: int) -> bool:
    """Is a size fixed, and at most `limit`? Asks nothing."""
    return type(n) is not Dim and n <= limit


def surely_divides(k: int, n: Any) -> bool:
    """Is a size a multiple of `k`, whatever the free ones are? Asks nothing."""
    if type(n) is Dim:
        return all(c % k == 0 for _, c in n.poly)
    return bool(n % k == 0)


def as_size(n: Any) -> Any:
    """An integer or a free size as it is; anything else must be usable as an index."""
    return n if type(n) is int or type(n) is Dim else operator.index(n)


def slice_bounds(s: slice, size: Any) -> tuple[Any, Any, int]:
    """(start, length, step) of a Python slice of an axis."""
    start, stop = (None if v is None else as_size(v) for v in (s.start, s.stop))
    step = 1 if s.step is None else operator.index(s.step)
    if not any(type(v) is Dim for v in (start, stop, size)):
        first, end, step = slice(start, stop, step).indices(size)
        return first, len(range(first, end, step)), step
    if step == 0:
        raise ValueError("slice step cannot be zero")
    low, high = (0, size) if step > 0 else (-1, size - 1)

    def clipped(v: Any, default: Any) -> Any:
        if v is None:
            return default
        if v < 0:
            v = v + size
            return low if v < low else v
        return high if v > high else v

    first = clipped(start, low if step > 0 else high)
    end = clipped(stop, high if step > 0 else low)
    span = end - first if step > 0 else first - end
    never = type(span) is Dim and span.symbols.bounds(span.poly)[0] >= 0 and abs(step) == 1
    if not never and span <= 0:
        return first, 0, step
    return first, span if abs(step) == 1 else (span - 1) // abs(step) + 1, step
