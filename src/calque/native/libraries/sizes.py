"""Free sizes in a library: their names while a function is traced, and the instructions that work
out what depends on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from calque.core.avals import ShapedArray
from calque.core.polynomials import Poly
from calque.core.symbols import Symbols
from calque.native.scalars.expr import Expr
from calque.transforms.engines.specialiser import single

LARGEST: Final = 1 << 47  # as for free sizes elsewhere
# Sizes to trace with: no two are equal or divide each other, so that nothing holds by chance.
_USUAL: Final = (1009, 757, 521, 331, 211, 131, 83, 53, 37)
_DIVIDED: Final = (960, 1440, 720, 480, 240)
_POWERS: Final = (1024, 512, 256, 128, 64)
_REST: Final = (1010, 758, 518, 326, 206)  # 2 is left of a division by 3, and by 4
_LONG: Final = (90019, 70001, 50021, 40009, 30011)
_SHORT: Final = (13, 11, 7, 5, 3)
_CHECKED: Final = {"add": "sadd", "sub": "ssub", "mul": "smul"}
_CHOSEN: Final = {"min": "slt", "max": "sgt"}


class FreeSizes:
    """The named sizes of the arguments in one trace, and the numbers to trace with."""

    def __init__(self, names: Sequence[str], hints: Sequence[int]) -> None:
        self.names = tuple(names)
        self.numbers = dict(zip(names, hints))
        self.symbols = Symbols(hints)

    def aval(self, aval: ShapedArray, shape: Sequence[int | str]) -> ShapedArray:
        """A type with symbols for the names in its shape."""
        dims = dict(zip(self.names, self.symbols.sizes()))
        return aval.update(shape=tuple([dims[d] if isinstance(d, str) else d for d in shape]))

    def text(self, poly: Poly) -> str:
        """An expression of sizes, by their names."""
        return self.symbols.text(poly, self._shown)

    def _shown(self, i: int) -> str:
        op, a, b = self.symbols.atoms[i]
        if op == "size":
            return self.names[i]
        return f"{op}({self.text(a)}, {self.text(b)})"

    def guards(self) -> list[tuple[str, Poly, bool, str]]:
        """(kind, polynomial, answer, as text) of what the trace took for granted."""
        signs = {
            ("zero", True): "==",
            ("zero", False): "!=",
            ("negative", True): "<",
            ("negative", False): ">=",
        }
        return [
            (kind, poly, answer, f"{self.text(poly)} {signs[kind, answer]} 0")
            for (kind, poly), answer in self.symbols.guards.items()
        ]

    def needed_as_number(self) -> tuple[str, str] | None:
        """A size, or its quotient, that the trace pinned, and the guard that says so."""
        for kind, poly, answer, text in self.guards():
            monomials = [m for m, _ in poly if m]
            if kind == "zero" and answer and len(monomials) == 1:
                op, *_ = self.symbols.factor(monomials[0])
                if op in ("size", "floordiv"):
                    return self.text(((monomials[0], 1),)), text
        return None

    def serves(self, sizes: Sequence[int]) -> bool:
        """Whether these sizes give the answers that were taken for granted."""
        guards = self.symbols.guards
        try:
            return self.symbols.program(list(guards))(*sizes) == tuple(guards.values())
        except ZeroDivisionError:
            return False


def hints_beside(sizes: FreeSizes) -> list[tuple[int, ...]]:
    """Sizes where the answers about a single size of a trace are others: at the number that it was
    compared with, and next to it."""
    usual, out = list(sizes.numbers.values()), []
    for _, poly, _, _ in sizes.guards():
        k = single(poly, len(sizes.names))
        if k is None:
            continue
        of = dict(poly)
        edge = -of.get((), 0) // of[(k,)]
        out += [(*usual[:k], n, *usual[k + 1 :]) for n in (edge - 1, edge, edge + 1) if n > 0]
    return out


def hints_for(count: int) -> list[tuple[int, ...]]:
    """Sizes of so many names to trace with: what most calls have, then such as may need a program
    of their own: with many divisors, long and short ones, 1, in another order, all the same."""
    usual, divided, powers, rest, long, short = (
        [row[k] if k < len(row) else row[0] + 2 * k for k in range(count)]
        for row in (_USUAL, _DIVIDED, _POWERS, _REST, _LONG, _SHORT)
    )
    least = [[n] * count for n in (1, 2)]
    rows = [usual, divided, long, short, usual[::-1], *least, usual[:1] * count, powers, rest]
    for other in (long, short, *least, divided, rest):
        rows += [[*usual[:k], other[k], *usual[k + 1 :]] for k in range(count)]
        rows += [[*other[:k], usual[k], *other[k + 1 :]] for k in range(count)]
    return list(dict.fromkeys(map(tuple, rows)))


class SizeCode:
    """LLVM's instructions for expressions of sizes. `names` are what their variables are: values,
    or numbers. What does not fit in 64 bits, or is divided by what is not positive, is remembered;
    `failed` tells it."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.names = names
        self.lines: list[str] = []
        self._known: dict[Expr, str] = {}
        self._failed: list[str] = []
        self._count = 0

    def put(self, text: str) -> str:
        """One instruction; gives its value."""
        self._count += 1
        name = f"%t{self._count}"
        self.lines.append(f" {name} = {text}")
        return name

    def value(self, e: Expr) -> str:
        known = self._known.get(e)
        if known is None:
            known = self._known[e] = self._new(e)
        return known

    def _new(self, e: Expr) -> str:
        if e.op == "const":
            return str(e.attr)
        if e.op == "var":
            return str(self.names[e.attr[0]])
        a, b = (self.value(x) for x in e.args)
        if e.op in _CHECKED:
            return self.checked(_CHECKED[e.op], a, b)
        if e.op in _CHOSEN:
            first = self.put(f"icmp {_CHOSEN[e.op]} i64 {a}, {b}")
            return self.put(f"select i1 {first}, i64 {a}, i64 {b}")
        return self._divided(e.op, a, b)

    def checked(self, function: str, a: str, b: str) -> str:
        """A sum or product that must fit."""
        pair = self.put(f"call {{i64, i1}} @llvm.{function}.with.overflow.i64(i64 {a}, i64 {b})")
        self._failed.append(self.put(f"extractvalue {{i64, i1}} {pair}, 1"))
        return self.put(f"extractvalue {{i64, i1}} {pair}, 0")

    def _divided(self, op: str, a: str, b: str) -> str:
        """Quotient or remainder, rounded down."""
        wrong = self.put(f"icmp slt i64 {b}, 1")
        self._failed.append(wrong)
        by = self.put(f"select i1 {wrong}, i64 1, i64 {b}")
        rest = self.put(f"srem i64 {a}, {by}")
        below = self.put(f"icmp slt i64 {rest}, 0")
        if op == "mod":
            return self.put(
                f"select i1 {below}, i64 {self.put(f'add i64 {rest}, {by}')}, i64 {rest}"
            )
        quotient = self.put(f"sdiv i64 {a}, {by}")
        less = self.put(f"sub i64 {quotient}, 1")
        return self.put(f"select i1 {below}, i64 {less}, i64 {quotient}")

    def rounded(self, value: str, align: int) -> str:
        """A number of bytes, up to a multiple of a power of two."""
        return self.put(f"and i64 {self.checked('sadd', value, str(align - 1))}, {-align}")

    def failed(self) -> str | None:
        """Whether anything went wrong so far; None where nothing can."""
        out: str | None = None
        for flag in self._failed:
            out = flag if out is None else self.put(f"or i1 {out}, {flag}")
        return out


DECLARATIONS: Final = [
    f"declare {{i64, i1}} @llvm.{f}.with.overflow.i64(i64, i64)" for f in _CHECKED.values()
]
