"""Sizes that have names: those of exported programs that serve any. What is asked of them while a
program is traced is answered from bounds alone, since no size has been seen."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from calque.core.dims import Dim, chosen, poly_of
from calque.core.errors import InconclusiveDimensionOperation
from calque.core.polynomials import Poly, multiplied, summed
from calque.core.symbols import Symbols
from calque.xla.text.types import is_named

_CONSTRAINT: Final = re.compile(r"^([^<>=]+)(>=|<=|==)([^<>=]+)$")
_HINT: Final = 97  # no size was seen: decisions about speed take this one
_OPERATIONS: Final[Mapping[str, Callable[[int, int], int]]] = {
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "min": min,
    "max": max,
}


class Scope(Symbols):
    """Names of sizes, and what is known of them."""

    named = True

    def __init__(self, constraints_str: Sequence[str] = ()) -> None:
        super().__init__(())
        if isinstance(constraints_str, str):
            raise ValueError(
                f"The symbolic constraints should be a sequence of strings. Got {constraints_str!r}"
            )
        self.at: dict[str, int] = {}  # the atom of each name
        self.known: list[Poly] = []  # expressions that are not negative
        self.same: list[tuple[Poly, Poly]] = []  # sizes that are the same
        self.sizes_of_shapes: list[Poly] = []  # which are not negative, or there is no such shape
        self.reads = False  # is a program being read, whose sizes were asked for before?
        self.texts = tuple(constraints_str)
        self._public: SymbolicScope | None = None  # as users know it
        for text in self.texts:
            self._learn(text)

    def public(self) -> SymbolicScope:
        if self._public is None:
            self._public = SymbolicScope.__new__(SymbolicScope)
            self._public._scope = self
        return self._public

    def meet(self, size: Dim, other: Dim) -> None:
        if other.symbols.named:
            theirs = other.symbols.public()._scope
            raise ValueError(
                f"Invalid mixing of symbolic scopes: {size} stands in {self.described()} and"
                f" {other} in {theirs.described()}. Make all sizes in one call of symbolic_shape,"
                " or give it `scope=` with the scope of the others."
            )

    def described(self) -> str:
        return (
            f"a scope with the constraints {list(self.texts)}"
            if self.texts
            else "a scope of its own"
        )

    # --- names ------------------------------------------------------------------------------------

    def variable(self, name: str) -> Any:
        """The size of this name, which is new where nobody has named it."""
        i = self.at.get(name)
        if i is None:
            i = self.at[name] = len(self.atoms)
            self.atoms.append(("size", name, None))
            self.atom_hints.append(_HINT + 2 * len(self.at))
            self.unknown.add(i)
        return self.dim((((i,), 1),))

    def variables(self, sizes: Iterable[Any]) -> list[str]:
        """The names in these sizes, in alphabetical order."""
        found: set[str] = set()
        for d in sizes:
            if type(d) is Dim:
                found |= {self.atoms[i][1] for i in self.roots(d.poly)}
        return sorted(found)

    def roots(self, poly: Poly) -> set[int]:
        out: set[int] = set()
        for i in {i for m, _ in poly for i in m}:
            op, a, b = self.atoms[i]
            out |= {i} if op == "size" else self.roots(a) | self.roots(b)
        return out

    # --- questions --------------------------------------------------------------------------------

    def _learn(self, text: str) -> None:
        parts = _CONSTRAINT.match(text)
        if parts is None:
            raise ValueError(
                f"Unsupported symbolic constraint {text!r}: write two sizes with >=, <= or =="
                " between them"
            )
        left, right = (poly_of(size_named(self, p)) or () for p in (parts[1], parts[3]))
        above = summed(left, right, -1)
        if parts[2] == "==":
            self.same.append((left, right))
            self.known += [above, multiplied(above, (((), -1),))]
        else:
            self.known.append(above if parts[2] == ">=" else multiplied(above, (((), -1),)))

    def normal(self, poly: Poly) -> Poly:
        """The expression with the sizes that constraints name in place of what they equal."""
        for left, right in self.same:
            if len(left) == 1 and left[0][1] == 1:
                for monomial, c in poly:
                    if monomial == left[0][0]:
                        rest = summed(poly, ((monomial, c),), -1)
                        poly = summed(rest, multiplied(right, (((), c),)))
        return poly

    def dim(self, poly: Poly) -> Any:
        return super().dim(self.normal(poly) if getattr(self, "same", ()) else poly)

    def bounds(self, poly: Poly) -> tuple[int, int]:
        low, high = super().bounds(poly)
        if poly in self.sizes_of_shapes:
            low = max(low, 0)
        for k in (
            *self.known,
            *self.sizes_of_shapes,
        ):  # what is at least a known expression from 0 on is so, too
            for factor in (1, 2, 3, 4, 8):
                scaled = multiplied(k, (((), factor),))
                low = max(low, super().bounds(summed(poly, scaled, -1))[0])
                high = min(high, super().bounds(summed(poly, scaled))[1])
        return low, high

    def atom_interval(self, i: int) -> tuple[int, int]:
        """Names are bounded by constraints that speak of them alone, and so is what is made of
        them."""
        low, high = super().atom_interval(i)
        if self.atoms[i][0] == "size":
            for k in self.known:
                rest = {m: c for m, c in k if m}
                number = sum(c for m, c in k if not m)
                if rest == {(i,): 1}:
                    low = max(low, -number)
                elif rest == {(i,): -1}:
                    high = min(high, number)
        return low, high

    def of_shape(self, text: str) -> Any:
        """A size of a shape: it is not negative, whatever else is known."""
        size = size_named(self, text)
        if type(size) is Dim and self.bounds(size.poly)[0] < 0:
            self.sizes_of_shapes.append(size.poly)
        return size

    def of_program(self, text: str) -> Any:
        """A size of a program that was exported before: what it asked then was answered from
        constraints, which are not written."""
        self.reads = True
        try:
            return self.of_shape(text)
        finally:
            self.reads = False

    def ask(self, kind: str, poly: Poly) -> bool:
        if not poly:
            return kind == "zero"
        low, high = self.bounds(poly)
        if kind == "zero":  # what may be different is
            return low == high == 0
        if high < 0 or low >= 0 or self.reads:
            return high < 0
        raise self.unanswered(kind, poly)

    def value(self, poly: Poly) -> int | None:
        return None

    def unanswered(self, kind: str, poly: Poly) -> Exception:
        text = self.text(poly, self.shown)
        if kind == "value":
            return InconclusiveDimensionOperation(
                f"Symbolic dimension '{text}' used in a context that requires a constant: the"
                " number is not known when the program is exported. Give this size as a number, or"
                " leave the question to the program (calque.numpy.asarray makes an array of it)"
            )
        return InconclusiveDimensionOperation(
            f"Symbolic dimension comparison '{text}' < '0' is inconclusive: it depends on the sizes"
            " that the program will be called with. Say what is known of them with constraints, as"
            ' in symbolic_shape("a, b", constraints=["a >= b"])'
        )

    # --- numbers and texts ------------------------------------------------------------------------

    def at_values(self, poly: Poly, values: Mapping[str, Any]) -> Any:
        """The expression for these sizes, which may be sizes of another scope."""
        total: Any = 0
        for monomial, c in poly:
            term: Any = c
            for i in monomial:
                term = term * self._atom_at(i, values)
            total = total + term
        return total

    def _atom_at(self, i: int, values: Mapping[str, Any]) -> Any:
        op, a, b = self.atoms[i]
        if op == "size":
            return values[a]
        x, y = self.at_values(a, values), self.at_values(b, values)
        if op in ("min", "max") and (type(x) is Dim or type(y) is Dim):
            return (least if op == "min" else most)(x, y)
        return _OPERATIONS[op](x, y)

    def products(self, poly: Poly, name: Callable[[int], str]) -> list[tuple[list[str], int]]:
        """By their names, the longest first, and with powers, as JAX writes sizes."""
        terms = [(sorted([name(i) for i in monomial]), c) for monomial, c in poly]
        terms.sort(key=lambda t: (len(t[0]), t[0][::-1]), reverse=True)
        return [(_with_powers(names), c) for names, c in terms]

    def shown(self, i: int) -> str:
        op, a, b = self.atoms[i]
        if op == "size":
            return str(a)
        return f"{op}({self.text(a, self.shown)}, {self.text(b, self.shown)})"

    def __str__(self) -> str:
        return f"symbolic scope of {', '.join(self.at) or 'no sizes'}" + (
            f" with the constraints {', '.join(self.texts)}" if self.texts else ""
        )


def least(a: Any, b: Any) -> Any:
    """The smaller of two sizes, which may be a size of its own."""
    return chosen("min", a, b)


def most(a: Any, b: Any) -> Any:
    """The larger of two sizes."""
    return chosen("max", a, b)


# ---------------------------------------------------------------- sizes as text


def shape_of(text: str | None, scope: Scope, like: Sequence[Any] | None = None) -> tuple[Any, ...]:
    """The sizes that a text names: "(a, 2*b, 3)". `_` and `...` are those of the shape `like`."""
    parts = [] if text is None else _parts(text)
    if text is None:
        parts = ["..."]
    if "..." in parts:
        at = parts.index("...")
        if like is None:
            raise ValueError(
                f"{text!r} leaves out sizes with ..., which `like` must give: a shape or an array"
            )
        if parts.count("...") > 1 or len(parts) - 1 > len(like):
            raise ValueError(f"{text!r} does not fit a shape of {len(like)} dimensions")
        parts[at : at + 1] = ["_"] * (len(like) - len(parts) + 1)
    if like is not None and len(parts) != len(like):
        raise ValueError(f"{text!r} does not fit a shape of {len(like)} dimensions")
    found = []
    for k, part in enumerate(parts):
        if part == "_":
            if like is None or type(like[k]) is not int:
                raise ValueError(f"{text!r} leaves out size {k}, which `like` must give")
            found.append(like[k])
            continue
        size = scope.of_shape(part)
        if like is not None and type(like[k]) is int and type(size) is int and size != like[k]:
            raise ValueError(f"{text!r} says {size} of dimension {k}, which is {like[k]}")
        found.append(size)
    return tuple(found)


def _parts(text: str) -> list[str]:
    """The sizes of a shape; those between parentheses stay together."""
    text = text.strip()
    if text.startswith("(") and text.endswith(")") and _closes_at_end(text):
        text = text[1:-1]
    parts, depth = [""], 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    found = [p.strip() for p in parts]
    if found[-1] == "":
        found.pop()
    return found


def _closes_at_end(text: str) -> bool:
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return i == len(text) - 1
    return False


def size_named(scope: Scope, text: str) -> Any:
    """One size as text."""
    try:
        tree = ast.parse(text.strip().replace("^", "**"), mode="eval").body
    except SyntaxError:
        raise ValueError(
            f"syntax error in symbolic shape: {text!r} is no size. Write numbers and names with"
            " +, -, *, floordiv(,), mod(,), min(,) and max(,)"
        ) from None
    return _evaluated(scope, tree, text)


def _evaluated(scope: Scope, tree: ast.expr, text: str) -> Any:
    match tree:
        case ast.Constant(value=int(number)):
            return number
        case ast.Name(id=name):
            return scope.variable(name)
        case ast.UnaryOp(op=ast.USub(), operand=x):
            return -_evaluated(scope, x, text)
        case ast.BinOp(left=x, op=op, right=y):
            sign = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Pow: "pow"}.get(type(op))
            if sign is not None:
                a, b = _evaluated(scope, x, text), _evaluated(scope, y, text)
                return getattr(operator, sign)(a, b)
        case ast.Call(func=ast.Name(id=name), args=[x, y]) if name in _OPERATIONS:
            a, b = _evaluated(scope, x, text), _evaluated(scope, y, text)
            if name in ("min", "max"):
                return chosen(name, a, b)
            return a // b if name == "floordiv" else a % b
    raise ValueError(
        f"syntax error in symbolic shape: {text!r} is no size. Write numbers and names with +, -,"
        " *, floordiv(,), mod(,), min(,) and max(,)"
    )


def _with_powers(names: list[str]) -> list[str]:
    powers = [n if names.count(n) == 1 else f"{n}^{names.count(n)}" for n in names]
    return list(dict.fromkeys(powers))


class SymbolicScope:
    """Names of sizes, and what is known of them. Sizes of two scopes are never mixed.

    Args:
        constraints_str: What is known, as texts such as "a >= 3", "b <= 2*a" or "a == 4*b".

    >>> scope = jax.export.SymbolicScope(["a >= 3"])
    >>> (a,) = jax.export.symbolic_shape("a", scope=scope)
    >>> a >= 2, 2 * a + 1
    (True, 2*a + 1)"""

    def __init__(self, constraints_str: Sequence[str] = ()) -> None:
        self._scope = Scope(constraints_str)
        self._scope._public = self

    def __str__(self) -> str:
        return str(self._scope)


def scope_for(given: SymbolicScope | None, constraints: Sequence[str], name: str) -> Scope:
    """The scope that a user gave, or a new one that knows these constraints."""
    if given is None:
        return Scope(constraints)
    if constraints:
        raise ValueError(f"{name}: give either constraints or a scope that has them")
    if not isinstance(given, SymbolicScope):
        raise TypeError(f"{name}: scope must be a SymbolicScope or None, got {given!r}")
    return given._scope


def scope_of(sizes: Iterable[Any]) -> Scope | None:
    """The scope of the first of these sizes that has one."""
    return next((d.symbols for d in sizes if is_named(d)), None)  # type: ignore[misc]


__all__ = [
    "Scope",
    "SymbolicScope",
    "is_named",
    "least",
    "most",
    "scope_for",
    "scope_of",
    "shape_of",
    "size_named",
]
