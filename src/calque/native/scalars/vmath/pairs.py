"""Numbers as sums of two: a rounded one and the rest of it, which is smaller than its last place.

What is computed with them loses nothing that would show in a result that is rounded once, at the
end (`rounded`). A rest may also be up to half of its number: all but `near` and the divisor of a
`quotient` may be so. Products below 2^-102 in f32, or 2^-969 in f64, lose their rests."""

from __future__ import annotations

from typing import NamedTuple

from calque.native.scalars.expr import Expr, const
from calque.native.scalars.vmath import base
from calque.native.scalars.vmath.base import (
    add,
    div,
    fast_two_sum,
    fma,
    mul,
    neg,
    sub,
    two_product,
    two_sum,
)


class Pair(NamedTuple):
    high: Expr
    low: Expr


def single(x: Expr) -> Pair:
    """A number without a rest."""
    return Pair(x, const(0.0, x.dtype))


def is_single(p: Pair) -> bool:
    """Is there no rest, whatever the number?"""
    return p.low.op == "const" and p.low.attr == 0


def near(high: Expr, low: Expr) -> Pair:
    """A sum whose second part is the smaller one."""
    return Pair(*fast_two_sum(high, low))


def rounded(p: Pair) -> Expr:
    return add(p.high, p.low)


def plus(p: Pair, q: Pair) -> Pair:
    high, low = two_sum(p.high, q.high)
    for r in (p, q):
        low = low if is_single(r) else add(low, r.low)
    return Pair(high, low)


def times(p: Pair, q: Pair) -> Pair:
    high, low = two_product(p.high, q.high)
    return Pair(high, fma(p.high, q.low, fma(p.low, rounded(q), low)))


def square(p: Pair) -> Pair:
    high, low = two_product(p.high, p.high)
    return Pair(high, fma(add(add(p.high, p.high), p.low), p.low, low))


def scaled(p: Pair, by: base.Operand) -> Pair:
    """p times a power of two."""
    return Pair(mul(p.high, by), mul(p.low, by))


def where(cond: Expr, p: Pair, q: Pair) -> Pair:
    return Pair(base.where(cond, p.high, q.high), base.where(cond, p.low, q.low))


def negative(p: Pair) -> Pair:
    return Pair(neg(p.high), neg(p.low))


def quotient(p: Pair, q: Pair, inverse: Expr) -> Pair:
    """p / q, by the inverse of q, which may be wrong in its last places."""
    high = mul(p.high, inverse)
    rest = fma(neg(high), q.high, p.high)
    if not is_single(q):
        rest = fma(neg(high), q.low, rest)
    rest = rest if is_single(p) else add(rest, p.low)
    return Pair(high, mul(rest, inverse))


def root(p: Pair) -> Pair:
    """The square root of what is not 0."""
    high = base.sqrt(p.high)
    rest = add(fma(neg(high), high, p.high), p.low)
    return Pair(high, div(mul(rest, 0.5), high))


def size_squared(u: Pair, v: Pair) -> Pair:
    """u^2 + v^2."""
    a, b = base.absolute(u.high), base.absolute(v.high)
    swap = base.less(a, b)
    large, small = base.where(swap, b, a), base.where(swap, a, b)
    square, rest = two_product(large, large)
    high = fma(small, small, square)
    rest = add(rest, fma(small, small, sub(square, high)))
    half = mul(u.high, u.low)
    half = half if is_single(v) else fma(v.high, v.low, half)
    return Pair(high, fma(half, 2.0, rest))
