"""Sizes that are not fixed: `Dim` is an integer of which a program knows only the expression, not
the value.

A `Dim` belongs to the `Symbols` of one trace. It has a hint, the size that was seen while tracing.
What Python asks of it (`n == 3`, `n > k`) is answered from the hint, and the answer is kept as a
guard: the program serves every sizes that give the same answers. Where Python needs the number
itself (`range(n)`, `int(n)`) the size is pinned: the guard says that it is the hint. Sizes of
symbols are at least 1; a program for empty arrays is another one.

A *found* size is known only while the program runs (how many elements a mask selects). Nothing can
be guessed of it: a question that its bounds do not answer is an error that names the line. Only our
own code may take two sizes for different that might be equal.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from calque.core.errors import ConcretizationTypeError
from calque.core.polynomials import Monomial, Poly, divided, multiplied, summed
from calque.core.source import asked_by_user, here
from calque.machine.state import Hook, process

INFINITE: Final = 1 << 62
_NAMES: Final = "nmkhwdbtuvpqr"


class Symbols:
    """The free sizes of one trace, what was asked of them, and the answers."""

    def __init__(self, hints: Sequence[int]) -> None:
        self.hints = tuple(hints)
        self.atoms: list[tuple[str, Any, Any]] = [("size", i, None) for i in range(len(hints))]
        self.atom_hints = list(hints)
        self.numbers: dict[tuple[str, Any, Any], int] = {a: i for i, a in enumerate(self.atoms)}
        self.guards: dict[
            tuple[str, Poly], bool
        ] = {}  # ("zero" or "negative", polynomial) -> the answer
        self.open = True
        # while compiling: sizes that differ are treated as such, which is right for equal ones, too
        self.lenient = False
        # arithmetic with what is no size needs the number: Python's own, which may be more exact
        self.pins = False
        self.memo: dict[Poly, Dim] = {}
        self.actual: dict[
            int, int
        ] = {}  # found size -> its value, where a program runs equation by equation
        self.unknown: set[int] = set()  # atoms that are found sizes, or depend on some
        self.makers: dict[int, str] = {}  # found size -> what made it

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
            if self.is_found(a) or self.is_found(b):
                self.unknown.add(i)
        return (((i,), 1),)

    def found(self, maker: str, most: Any) -> Dim:
        """A new size that the running program finds, from 0 to `most`."""
        bound = poly_of(most) or ()
        i = len(self.atoms)
        self.atoms.append(("found", next(_found_numbers), bound))
        self.atom_hints.append(min(self.evaluate(bound), LARGEST_HINT))
        self.unknown.add(i)
        self.makers[i] = f"{maker} at {here()}"
        made: Dim = self.dim((((i,), 1),))
        return made

    def maker(self, size: Dim) -> str:
        """What made a found size."""
        return "; ".join(self.makers[i] for i in sorted(self.roots(size.poly)))

    def settle(self, size: Dim, value: int) -> None:
        """A program that runs equation by equation has found a size."""
        self.actual[size.poly[0][0][0]] = value

    def value(self, poly: Poly) -> int | None:
        """The number, if all the found sizes in it are settled."""
        roots = self.roots(poly)
        if not roots <= self.actual.keys():
            return None
        found = {f"a{i}": self.actual[i] for i in roots}
        return self.program([("value", poly)])(*self.hints, **found)[0]

    def factor(self, monomial: Monomial) -> tuple[str, Any, Any]:
        """The atom that a monomial consists of, if it is one."""
        return self.atoms[monomial[0]] if len(monomial) == 1 else ("", (), ())

    def clipped(self, poly: Poly) -> Any:
        """p - c, where the polynomial is max(p, 0) - c."""
        atoms = [(m[0], c) for m, c in poly if len(m) == 1]
        if (
            len(atoms) != 1
            or len(poly) != 2
            or atoms[0][1] != 1
            or self.dim(poly[:1]) != poly[0][1]
            or poly[0][1] > 0
        ):
            return None
        op, a, b = self.atoms[atoms[0][0]]
        inner = b if op == "max" and not a else a if op == "max" and not b else None
        return None if inner is None else self.dim(summed(inner, poly[:1]))

    def is_found(self, poly: Poly) -> bool:
        """Whether it depends on a size that is known only while running."""
        return bool(self.unknown) and any(i in self.unknown for m, _ in poly for i in m)

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
        """As `interval`; and a quotient is bounded by what it divides: n - n // 2 is not
        negative."""
        low, high = self.interval(poly)
        if any(self.atoms[i][0] in _RELATED for monomial, _ in poly for i in monomial):
            low, high = (
                max(low, self.least(poly)),
                min(high, -self.least(multiplied(poly, (((), -1),)))),
            )
        return (low, high)

    def least(self, poly: Poly) -> int:
        """A lower bound, from d * (a // d) being between a - d + 1 and a, and a found size below
        its bound."""
        for monomial, c in poly:
            op, a, b = self.factor(monomial)
            if op in (
                "min",
                "max",
            ):  # it is either; where it is the worse one both must do, else one suffices
                rest = summed(poly, ((monomial, c),), -1)
                either = [self.least(summed(rest, multiplied(x, (((), c),)))) for x in (a, b)]
                return min(either) if (op == "min") == (c > 0) else max(either)
        factor, out = 1, poly
        for monomial, c in poly:
            op, a, b = self.factor(monomial)
            if op == "floordiv" and len(b) == 1 and b[0][0] == ():
                d, k = b[0][1], c * factor
                out = multiplied(summed(out, ((monomial, k),), -1), (((), d),))
                bound = a if k < 0 else summed(a, (((), d - 1),), -1)
                out = summed(out, multiplied(bound, (((), k),)))
                factor *= d
            elif op == "found" and c < 0:
                k = c * factor
                out = summed(summed(out, ((monomial, k),), -1), multiplied(b, (((), k),)))
        low = self.interval(out)[0]
        return low if low <= -INFINITE else -(-low // factor)

    def atom_interval(self, i: int) -> tuple[int, int]:
        op, a, b = self.atoms[i]
        if op == "size":
            return (1, INFINITE)
        if op == "found":
            return (0, min(self.interval(b)[1], LARGEST))
        (alo, ahi), (blo, bhi) = self.interval(a), self.interval(b)
        if op in ("min", "max"):
            pick = min if op == "min" else max
            return (pick(alo, blo), pick(ahi, bhi))
        if blo <= 0:
            return (-INFINITE, INFINITE)
        if op == "mod":
            return (0, bhi - 1)
        if alo < 0:
            return (-INFINITE, INFINITE)
        return (0 if bhi >= INFINITE else alo // bhi, INFINITE if ahi >= INFINITE else ahi // blo)

    def ask(self, kind: str, poly: Poly) -> bool:
        """Whether the polynomial is zero, or negative: from its bounds, else from the hint, with a
        guard."""
        lo, hi = self.bounds(poly)
        if kind == "negative":
            if hi < 0 or lo >= 0:
                return hi < 0
        elif lo > 0 or hi < 0:
            return False
        known = self.guards.get((kind, poly))
        if known is not None:
            return known
        value = self.value(poly) if self.is_found(poly) else self.evaluate(poly)
        if value is None:
            if kind == "zero" and not asked_by_user(__file__):
                return False
            raise self.unanswered(kind, poly)
        answer = value < 0 if kind == "negative" else value == 0
        if self.open and not self.is_found(poly):
            if (
                self.lenient
                and kind == "zero"
                and not answer
                and all(i < len(self.hints) for m, _ in poly for i in m)
            ):
                return False
            self.guards[kind, poly] = answer
        return answer

    def unanswered(self, kind: str, poly: Poly) -> Exception:
        """The error for a question about a size that only the running program knows."""
        question = {"zero": "is it 0?", "negative": "is it below 0?", "value": "its value"}[kind]
        made = "; ".join(sorted({f"{self.shown(i)}: {self.makers[i]}" for i in self.roots(poly)}))
        return ConcretizationTypeError(
            f"Python needs an answer about {self.text(poly, self.shown)} ({question}), a size that"
            f" is known only while the program runs ({made}). Give that function a static size="
            " (and fill_value=), compute with the size as a number (jnp.asarray(x.shape[0])), or"
            " leave the question to the program: calque.lax.cond, jnp.where, calque.check."
        )

    def roots(self, poly: Poly) -> set[int]:
        """The found sizes that it depends on."""
        out: set[int] = set()
        for i in {i for m, _ in poly for i in m} & self.unknown:
            op, a, b = self.atoms[i]
            out |= {i} if op == "found" else self.roots(a) | self.roots(b)
        return out

    def needed(self, polys: Iterable[Poly]) -> list[int]:
        """The atoms that take part in these, each after those that it is made of."""
        out: dict[int, None] = {}
        for poly in polys:
            for i in sorted({i for m, _ in poly for i in m}):
                op, a, b = self.atoms[i]
                if op not in ("size", "found"):
                    out |= dict.fromkeys(self.needed((a, b)))
                out[i] = None
        return list(out)

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
        if op in ("size", "found"):
            k = (
                a
                if op == "size"
                else len(self.hints) + sum(t[0] == "found" for t in self.atoms[:i])
            )
            return _NAMES[k] if k < len(_NAMES) else f"n{k}"
        return f"{op}({self.text(a, self.shown)}, {self.text(b, self.shown)})"

    def program(self, results: Iterable[tuple[str, Poly]]) -> Callable[..., tuple[int, ...]]:
        """A function of the sizes, then of the found ones by number (`a4=`), that gives these
        values (`value`), or whether they are `zero` or `negative`."""
        results = list(results)
        lines, found = [], []
        for i in self.needed(p for _, p in results):
            op, a, b = self.atoms[i]
            if op == "found":
                found.append(f"a{i}")
            elif op in ("min", "max"):
                lines.append(
                    f" a{i} = {op}({self.text(a, 'a{}'.format)}, {self.text(b, 'a{}'.format)})"
                )
            elif op != "size":
                sign = "//" if op == "floordiv" else "%"
                lines.append(
                    f" a{i} = ({self.text(a, 'a{}'.format)}) {sign} ({self.text(b, 'a{}'.format)})"
                )
        ends = {"value": "", "zero": " == 0", "negative": " < 0"}
        values = [f"({self.text(p, 'a{}'.format)}){ends[kind]}" for kind, p in results]
        arguments = ", ".join([*(f"a{i}" for i in range(len(self.hints))), *found])
        source = "\n".join(
            [f"def f({arguments}):", *lines, f" return ({''.join(v + ', ' for v in values)})"]
        )
        scope: dict[str, Any] = {}
        exec(compile(source, "<sizes>", "exec"), scope)
        made: Callable[..., tuple[int, ...]] = scope["f"]
        return made


_RELATED: Final = ("floordiv", "found", "min", "max")
LARGEST_HINT: Final = 1 << 16  # of a found size
LARGEST: Final = 1 << 47  # that a found size can be
_found_numbers = itertools.count()


def _times(a: int, b: int) -> int:
    return max(min(a * b, INFINITE), -INFINITE)


def poly_of(x: Any) -> Poly | None:
    if type(x) is Dim:
        return x.poly
    if isinstance(x, (int, np.integer)):
        return (((), int(x)),) if x else ()
    return None


def _quotient_up(n: Any, divisor: int) -> Any:
    return (n + (divisor - 1)) // divisor


class Dim:
    """A size given by an expression. Made by tracing; see the module."""

    __slots__ = ("_hash", "hint", "poly", "symbols")

    def __init__(self, symbols: Symbols, poly: Poly, hint: int) -> None:
        self.symbols, self.poly, self.hint = symbols, poly, hint
        self._hash = hash(("dim", id(symbols), poly))

    # --- arithmetic -------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        p = poly_of(other)
        return (
            self.symbols.dim(summed(self.poly, p))
            if p is not None
            else self._value("__add__", other)
        )

    def __radd__(self, other: Any) -> Any:
        return self.__add__(other) if poly_of(other) is not None else self._value("__radd__", other)

    def __sub__(self, other: Any) -> Any:
        p = poly_of(other)
        return (
            self.symbols.dim(summed(self.poly, p, -1))
            if p is not None
            else self._value("__sub__", other)
        )

    def __rsub__(self, other: Any) -> Any:
        p = poly_of(other)
        return (
            self.symbols.dim(summed(p, self.poly, -1))
            if p is not None
            else self._value("__rsub__", other)
        )

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, (tuple, list, str, bytes)):
            return other * int(self)
        p = poly_of(other)
        return (
            self.symbols.dim(multiplied(self.poly, p))
            if p is not None
            else self._value("__mul__", other)
        )

    def __rmul__(self, other: Any) -> Any:
        known = isinstance(other, (tuple, list, str, bytes)) or poly_of(other) is not None
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
        p = poly_of(other)
        return (
            self._quotient(self.poly, p)[0] if p is not None else self._value("__floordiv__", other)
        )

    def __rfloordiv__(self, other: Any) -> Any:
        p = poly_of(other)
        return (
            self._quotient(p, self.poly)[0]
            if p is not None
            else self._value("__rfloordiv__", other)
        )

    def __mod__(self, other: Any) -> Any:
        p = poly_of(other)
        return self._quotient(self.poly, p)[1] if p is not None else self._value("__mod__", other)

    def __rmod__(self, other: Any) -> Any:
        p = poly_of(other)
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
        if (
            s.interval(a)[1] <= 0 and len(b) == 1 and b[0][0] == () and b[0][1] > 0
        ):  # -n // d == -((n + d - 1) // d)
            up = _quotient_up(s.dim(multiplied(a, (((), -1),))), b[0][1])
            return -up, s.dim(a) + up * b[0][1]
        parts = divided(a, b)
        q, r = parts if parts is not None else ((), a)
        if not r:
            return s.dim(q), 0
        lo, hi = s.interval(r)
        if lo < 0 and s.ask("negative", r):  # quotients are of numbers from 0 only
            if s.ask("negative", summed(r, b)):
                number, divisor = int(s.dim(r)), int(s.dim(b))
                return s.dim(q) + number // divisor, number % divisor
            return s.dim(q) - 1, s.dim(summed(r, b))
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

    # --- questions --------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        p = poly_of(other)
        if p is None:
            return NotImplemented
        diff = summed(self.poly, p, -1)
        return not diff or self.symbols.ask("zero", diff)

    def __ne__(self, other: object) -> bool:
        same = self.__eq__(other)
        return same if same is NotImplemented else not same

    def _less(self, a: Poly, b: Poly) -> bool:
        return self.symbols.ask("negative", summed(a, b, -1))

    def __lt__(self, other: Any) -> Any:
        p = poly_of(other)
        return NotImplemented if p is None else self._less(self.poly, p)

    def __gt__(self, other: Any) -> Any:
        p = poly_of(other)
        return NotImplemented if p is None else self._less(p, self.poly)

    def __le__(self, other: Any) -> Any:
        p = poly_of(other)
        return NotImplemented if p is None else not self._less(p, self.poly)

    def __ge__(self, other: Any) -> Any:
        p = poly_of(other)
        return NotImplemented if p is None else not self._less(self.poly, p)

    def __hash__(self) -> int:
        return self._hash

    def __bool__(self) -> bool:
        return not self.symbols.ask("zero", self.poly)

    # --- the number itself ------------------------------------------------------------------------

    def __index__(self) -> int:
        """Pins the size."""
        if self.symbols.is_found(self.poly):
            value = self.symbols.value(self.poly)
            if value is None:
                raise self.symbols.unanswered("value", self.poly)
            return value
        self.symbols.ask("zero", summed(self.poly, (((), self.hint),) if self.hint else (), -1))
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


# what makes a traced number of a size
traced_value: Final[Hook[Callable[[Dim], Any]]] = process.hook("number of a free size", int)


def value_of(d: Dim) -> Any:
    """A free size as a number of the running program."""
    return int(d) if d.symbols.pins else traced_value.call(d)


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
    """Whether two sizes are equal whatever the free ones are. Asks nothing."""
    if type(a) is Dim or type(b) is Dim:
        return type(a) is type(b) and a.poly == b.poly
    return bool(a == b)


def surely_same(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """`surely_equal` for shapes."""
    if a is b:
        return True
    return len(a) == len(b) and all([surely_equal(m, n) for m, n in zip(a, b)])


def surely_at_most(n: Any, limit: int) -> bool:
    """Whether a size is fixed, and at most `limit`. Asks nothing."""
    return type(n) is not Dim and n <= limit


def is_found(n: Any) -> bool:
    """Whether this is a size that is known only while the program runs."""
    return type(n) is Dim and n.symbols.is_found(n.poly)


def surely_less(a: Any, b: Any) -> bool:
    """Whether a < b; of found sizes, whether that is certain."""
    if is_found(a) or is_found(b):
        d = a - b
        return bool(d.symbols.bounds(d.poly)[1] < 0 if type(d) is Dim else d < 0)
    return bool(a < b)


def may_exceed(n: Any, limit: int) -> bool:
    """Whether a size is larger than `limit`; of a found size, whether it could be. What is done
    then must be right for any."""
    return n.symbols.bounds(n.poly)[1] > limit if is_found(n) else bool(n > limit)


def surely_divides(k: int, n: Any) -> bool:
    """Whether a size is a multiple of `k`, whatever the free ones are. Asks nothing."""
    if type(n) is Dim:
        return all(c % k == 0 for _, c in n.poly)
    return bool(n % k == 0)


def as_size(n: Any) -> Any:
    """An integer or a free size as it is; anything else must be usable as an index."""
    return n if type(n) is int or type(n) is Dim else operator.index(n)
