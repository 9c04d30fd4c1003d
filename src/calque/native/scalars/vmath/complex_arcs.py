"""asin and acos of complex numbers x + iy: the real part and the imaginary one.

With a = |x|, b = |y|, R and S the distances from -1 and 1, D = R + a + 1 and T = S + |a - 1|: what
R + S is more than 2, and more than 2 a, is E and F; one of the terms is b^2 / T, where T itself
would be the difference of what is almost equal (Hull, Fairgrieve and Tang). Then sqrt(A^2 - 1) =
sqrt(E (E + 4)) / 2 and sqrt(A^2 - a^2) = sqrt(F (R + S + 2 a)) / 2 for A = (R + S) / 2."""

from __future__ import annotations

from typing import Final, NamedTuple

from calque.native.scalars.expr import Expr, both, const, either
from calque.native.scalars.vmath import base, pairs, wide
from calque.native.scalars.vmath.base import (
    INF,
    NAN,
    absolute,
    add,
    copysign,
    div,
    equal,
    fast_two_sum,
    greater,
    less,
    mul,
    neg,
    not_,
    rare,
    sqrt,
    where,
)
from calque.native.scalars.vmath.inverse_trigonometric import HALF_PI, angle, atan2
from calque.native.scalars.vmath.logarithm import combine_pair, split1p_scaled

Parts = tuple[Expr, Expr]

# numbers above the first are scaled by 2^ of the second, and logarithms taken of 2^ of the third
# times as much
HUGE: Final = {"f32": (2.0**50, -80, 60), "f64": (2.0**400, -600, 300)}
TINY: Final = {"f32": 2.0**-40, "f64": 2.0**-400}  # of an imaginary part, next to nothing
LEAST: Final = {"f32": 2.0**-300, "f64": 2.0**-1000}  # for T, which is 0 at 1


class Arc(NamedTuple):
    """a and sqrt(A^2 - a^2), scaled alike, and log(A + sqrt(A^2 - 1))."""

    a: Expr
    root: Expr
    log: Expr


def arc(x: Expr, y: Expr) -> Arc:
    dtype = x.dtype
    limit, down, _ = HUGE[dtype]
    a, b = absolute(x), absolute(y)
    huge = greater(where(less(a, b), b, a), limit)
    one = where(huge, 2.0**down, const(1.0, dtype))
    a, b = mul(a, one), mul(b, one)
    left, right, tiny = less(a, one), greater(a, one), less(b, TINY[dtype])
    more, away = wide.sum_of(a, one), wide.sum_of(a, neg(one))
    away = wide.where(left, wide.negative(away), away)
    b2 = wide.square(wide.of_single(b))
    r = wide.root(wide.plus(wide.square(more), b2))
    s = wide.root(wide.plus(wide.square(away), b2))
    s = wide.where(either(left, right), s, wide.of_single(b))
    d, t = wide.plus(r, more), wide.plus(s, away)
    over_d, over_t = _inverses(d, t, dtype)
    v, w = wide.times(b2, over_d), wide.times(b2, over_t)
    e = wide.plus(v, wide.where(left, w, t))
    f = wide.plus(v, wide.where(right, w, t))
    both_over = wide.plus(over_d, over_t)
    inside = wide.where(tiny, both_over, wide.times(b2, both_over))
    four = wide.of_single(mul(one, 4.0))
    twice_a = wide.of_single(add(a, a))

    def half_root(outside: Expr, other: wide.Wide, factor: wide.Wide) -> Expr:
        """Of b^2 (1/D + 1/T) times the factor where `outside`, else of `other` times it."""
        square = wide.times(wide.where(outside, inside, other), factor)
        scale = where(both(outside, tiny), mul(b, 0.5), const(0.5, dtype))
        return mul(sqrt(wide.rounded(square, dtype)), scale)

    q = half_root(left, e, wide.plus(e, four))
    root = half_root(right, f, wide.plus(wide.plus(r, s), twice_a))
    return Arc(a, root, _log_of_sum(q, mul(wide.rounded(e, dtype), 0.5), huge))


def _inverses(d: wide.Wide, t: wide.Wide, dtype: str) -> tuple[wide.Wide, wide.Wide]:
    """1 / d and 1 / t, by one division."""
    first_d, first_t = wide.first(d), base.no_less(wide.first(t), LEAST[dtype])
    inverse = div(1.0, mul(first_d, first_t))
    one = wide.of_single(const(1.0, dtype))
    return (
        wide.quotient(one, d, mul(first_t, inverse)),
        wide.quotient(one, t, mul(first_d, inverse)),
    )


def _log_of_sum(q: Expr, e: Expr, huge: Expr) -> Expr:
    """log1p(q + e) for q >= e; the logarithm of the sum where it is huge and scaled."""
    _, down, up = HUGE[q.dtype]
    u, low = fast_two_sum(q, e)
    f, minus_e, scale = split1p_scaled(where(huge, mul(u, 2.0**up), u))
    minus_e = where(huge, add(minus_e, float(down + up)), minus_e)
    return combine_pair(f, where(huge, 0.0, mul(low, scale)), minus_e)


def asin(x: Expr, y: Expr) -> Parts:
    c = arc(x, y)
    re, im = angle(c.a, pairs.single(c.root)), c.log
    lost, endless = _edges(x, y)
    re = rare(lost, re, where(endless, atan2(absolute(x), absolute(y)), NAN))
    im = rare(lost, im, where(endless, INF, const(NAN, x.dtype)))
    re = where(equal(x, 0.0), 0.0, re)
    return copysign(re, x), copysign(im, y)


def acos(x: Expr, y: Expr) -> Parts:
    c = arc(x, y)
    re, im = angle(c.root, pairs.single(copysign(c.a, x))), c.log
    lost, endless = _edges(x, y)
    no_angle = where(equal(x, 0.0), HALF_PI[x.dtype][0], const(NAN, x.dtype))
    re = rare(lost, re, where(endless, atan2(absolute(y), x), no_angle))
    im = rare(lost, im, where(endless, INF, const(NAN, x.dtype)))
    return re, copysign(im, neg(y))


def _edges(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """Is either part infinite or no number; is it infinite?"""
    a, b = absolute(x), absolute(y)
    return (
        not_(both(less(a, INF), less(b, INF))),
        either(equal(a, INF), equal(b, INF)),
    )
