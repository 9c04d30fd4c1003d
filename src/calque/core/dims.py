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

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from calque.core.polynomials import Poly, divided, multiplied, summed
from calque.machine.state import Hook, process

if TYPE_CHECKING:
    from calque.core.symbols import Symbols


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

    @property
    def scope(self) -> Any:
        """The scope of a size that has a name: what `export.symbolic_shape(..., scope=)` takes."""
        return self.symbols.public()

    def _poly(self, other: Any) -> Poly | None:
        """The expression of an operand; None of what is no size."""
        if type(other) is Dim and other.symbols is not self.symbols:
            self.symbols.meet(self, other)
        return poly_of(other)

    # --- arithmetic -------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        p = self._poly(other)
        return (
            self.symbols.dim(summed(self.poly, p))
            if p is not None
            else self._value("__add__", other)
        )

    def __radd__(self, other: Any) -> Any:
        known = self._poly(other) is not None
        return self.__add__(other) if known else self._value("__radd__", other)

    def __sub__(self, other: Any) -> Any:
        p = self._poly(other)
        return (
            self.symbols.dim(summed(self.poly, p, -1))
            if p is not None
            else self._value("__sub__", other)
        )

    def __rsub__(self, other: Any) -> Any:
        p = self._poly(other)
        return (
            self.symbols.dim(summed(p, self.poly, -1))
            if p is not None
            else self._value("__rsub__", other)
        )

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, (tuple, list, str, bytes)):
            return other * int(self)
        p = self._poly(other)
        return (
            self.symbols.dim(multiplied(self.poly, p))
            if p is not None
            else self._value("__mul__", other)
        )

    def __rmul__(self, other: Any) -> Any:
        known = isinstance(other, (tuple, list, str, bytes)) or self._poly(other) is not None
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
        p = self._poly(other)
        return (
            self._quotient(self.poly, p)[0] if p is not None else self._value("__floordiv__", other)
        )

    def __rfloordiv__(self, other: Any) -> Any:
        p = self._poly(other)
        return (
            self._quotient(p, self.poly)[0]
            if p is not None
            else self._value("__rfloordiv__", other)
        )

    def __mod__(self, other: Any) -> Any:
        p = self._poly(other)
        return self._quotient(self.poly, p)[1] if p is not None else self._value("__mod__", other)

    def __rmod__(self, other: Any) -> Any:
        p = self._poly(other)
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
        if type(other) is Dim and other.symbols is not self.symbols and other.symbols.named:
            return False  # of another scope
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
        p = self._poly(other)
        return NotImplemented if p is None else self._less(self.poly, p)

    def __gt__(self, other: Any) -> Any:
        p = self._poly(other)
        return NotImplemented if p is None else self._less(p, self.poly)

    def __le__(self, other: Any) -> Any:
        p = self._poly(other)
        return NotImplemented if p is None else not self._less(p, self.poly)

    def __ge__(self, other: Any) -> Any:
        p = self._poly(other)
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


def chosen(op: str, a: Any, b: Any) -> Any:
    """The smaller or the larger of two sizes ("min", "max"): of sizes with names, where it is open
    which that is, a size of its own."""
    scope = next((d.symbols for d in (a, b) if type(d) is Dim), None)
    if scope is None or not scope.named:
        return min(a, b) if op == "min" else max(a, b)
    difference = poly_of(a - b) or ()
    low, high = scope.bounds(difference) if difference else (0, 0)
    if low >= 0 or high <= 0:
        return b if (low >= 0) == (op == "min") else a
    p, q = poly_of(a) or (), poly_of(b) or ()
    x, y = scope.evaluate(p), scope.evaluate(q)
    return scope.dim(scope.atom(op, p, q, min(x, y) if op == "min" else max(x, y)))


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
    return len(a) == len(b) and all([m is n or surely_equal(m, n) for m, n in zip(a, b)])


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


def as_size(n: Any, what: str = "a size") -> Any:
    """An integer or a free size as it is; anything else must be usable as an index."""
    return n if type(n) is int or type(n) is Dim else whole(n, what)


def whole(n: Any, what: str) -> int:
    """An integer for the argument that the error names."""
    try:
        return operator.index(n)
    except TypeError:
        if hasattr(n, "aval"):  # of a program or an array, which say what they are
            raise
        divided = isinstance(n, (float, np.floating)) and not what.endswith(("axis", "axes"))
        raise TypeError(
            f"{what} must be an integer, got {n!r}: '{type(n).__name__}' object cannot be"
            f" interpreted as an integer{'. Divide sizes by // instead of /' if divided else ''}"
        ) from None
