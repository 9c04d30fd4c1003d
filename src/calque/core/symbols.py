"""The free sizes of one trace: what expressions of them are, between which bounds they lie, and
what was asked of them (see `core.dims`)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from calque.core import dims
from calque.core.dims import Dim, poly_of
from calque.core.errors import ConcretizationTypeError
from calque.core.polynomials import Monomial, Poly, multiplied, summed
from calque.core.source import asked_by_user, here
from calque.machine.state import process

INFINITE: Final = 1 << 62
LARGEST_HINT: Final = 1 << 16  # of a found size
LARGEST: Final = 1 << 47  # that a found size can be
_NAMES: Final = "nmkhwdbtuvpqr"
_RELATED: Final = ("floordiv", "found", "min", "max")
_FILES: Final = (__file__, dims.__file__)  # whose questions are those of their callers
_found_numbers: Final = process.container("numbers of found sizes", itertools.count())


class Symbols:
    """The free sizes of one trace, what was asked of them, and the answers."""

    named = False  # have they names, and no program that knows more of them?

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

    def public(self) -> Any:
        """The scope as users know it; sizes that no user has named have none."""
        raise AttributeError("a size without a name has no scope", name="scope")

    def meet(self, size: Dim, other: Dim) -> None:
        """An error where a size of other symbols than these may take no part in arithmetic."""

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
            if kind == "zero" and not asked_by_user(_FILES):
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
        for factors, c in self.products(poly, name):
            if abs(c) != 1 or not factors:
                factors.insert(0, str(abs(c)))
            sign = "-" if c < 0 else "+" if out else ""
            out += (f" {sign} " if out else sign) + "*".join(factors)
        return out or "0"

    def products(self, poly: Poly, name: Callable[[int], str]) -> list[tuple[list[str], int]]:
        """The factors and the coefficient of each term, in the order in which they are written."""
        terms = sorted(poly, key=lambda t: (-len(t[0]), t[0]))
        return [([name(i) for i in monomial], c) for monomial, c in terms]

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


def _times(a: int, b: int) -> int:
    return max(min(a * b, INFINITE), -INFINITE)
