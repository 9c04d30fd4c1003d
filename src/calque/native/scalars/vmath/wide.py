"""Numbers of twice the digits, for the steps of a formula that would lose some: of f32 they are
f64, of f64 pairs."""

from __future__ import annotations

from calque.native.scalars.expr import Expr, cast
from calque.native.scalars.vmath import base, pairs
from calque.native.scalars.vmath.base import add, div, mul, neg
from calque.native.scalars.vmath.pairs import Pair

Wide = Expr | Pair


def of(p: Pair) -> Wide:
    """A pair of either dtype."""
    return p if p.high.dtype == "f64" else add(cast(p.high, "f64"), cast(p.low, "f64"))


def of_single(x: Expr) -> Wide:
    return pairs.single(x) if x.dtype == "f64" else cast(x, "f64")


def sum_of(a: Expr, b: base.Operand) -> Wide:
    """a + b exactly (but for what even f64 has no place for)."""
    if a.dtype == "f64":
        return Pair(*base.two_sum(*base.pair(a, b)))
    return add(cast(a, "f64"), cast(b, "f64") if isinstance(b, Expr) else b)


def plus(a: Wide, b: Wide) -> Wide:
    if isinstance(a, Expr):
        assert isinstance(b, Expr)
        return add(a, b)
    assert isinstance(b, Pair)
    return pairs.near(*pairs.plus(a, b))


def times(a: Wide, b: Wide) -> Wide:
    if isinstance(a, Expr):
        assert isinstance(b, Expr)
        return mul(a, b)
    assert isinstance(b, Pair)
    return pairs.times(a, b)


def square(a: Wide) -> Wide:
    return mul(a, a) if isinstance(a, Expr) else pairs.square(a)


def scaled(a: Wide, by: base.Operand) -> Wide:
    """a times a power of two."""
    if isinstance(a, Pair):
        return pairs.scaled(a, by)
    return mul(a, cast(by, "f64") if isinstance(by, Expr) else by)


def negative(a: Wide) -> Wide:
    return neg(a) if isinstance(a, Expr) else pairs.negative(a)


def where(cond: Expr, a: Wide, b: Wide) -> Wide:
    if isinstance(a, Expr):
        assert isinstance(b, Expr)
        return base.where(cond, a, b)
    assert isinstance(b, Pair)
    return pairs.where(cond, a, b)


def first(a: Wide) -> Expr:
    """The number itself, or the greater part of a pair."""
    return a if isinstance(a, Expr) else a.high


def quotient(a: Wide, b: Wide, inverse: Expr) -> Wide:
    """a / b, by the inverse of the first part of b."""
    if isinstance(a, Expr):
        return mul(a, inverse)
    assert isinstance(b, Pair)
    return pairs.quotient(a, b, inverse)


def root(a: Wide) -> Wide:
    """The square root; of a pair of what is not 0."""
    return base.sqrt(a) if isinstance(a, Expr) else pairs.root(a)


def rounded(a: Wide, dtype: str) -> Expr:
    return cast(a, dtype) if isinstance(a, Expr) else pairs.rounded(a)


def inverse(a: Wide) -> Expr:
    """1 / a, but for the last places of a pair."""
    return div(1.0, first(a))
