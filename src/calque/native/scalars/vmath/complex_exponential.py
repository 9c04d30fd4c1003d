"""exp, exp2, expm1 and the logistic function of complex numbers x + iy: the real part and the
imaginary one.

exp(x) is 2^n (1 + p), with a small p that the sine and the cosine of y take in as pairs; the
scaling by 2^n comes last and overflows only with the result."""

from __future__ import annotations

from typing import Final

from calque.native.scalars.expr import Expr, both, cast, const, either
from calque.native.scalars.vmath import pairs
from calque.native.scalars.vmath.base import (
    EXPONENT_BIAS,
    INF,
    absolute,
    add,
    copysign,
    div,
    equal,
    fast_two_sum,
    flip_sign,
    fma,
    greater,
    iop,
    is_nan,
    ldexp,
    less,
    less_equal,
    make_ldexp,
    mul,
    nearest_integer,
    neg,
    not_,
    pick,
    poly,
    power_of_two,
    rare,
    sub,
    two_sum,
    where,
    whole,
)
from calque.native.scalars.vmath.exponential import (
    EXP2_F32,
    EXP2_F64,
    EXPM1_F32,
    EXPM1_F64,
    clamp,
    grown_parts,
    reduce,
)
from calque.native.scalars.vmath.pairs import Pair
from calque.native.scalars.vmath.turns import Turn, turn, turn_exactly, turn_of_power

Parts = tuple[Expr, Expr]

# Below the first all parts are zeros, above the second the larger one is infinite.
RANGE: Final = {"f32": (-104.0, 89.4), "f64": (-746.0, 710.4)}
RANGE_OF_2: Final = {"f32": (-151.0, 129.0), "f64": (-1076.0, 1025.0)}


def grown(part: Pair, p: Expr) -> Expr:
    """part (1 + p), rounded."""
    return add(part.high, fma(p, pairs.rounded(part), part.low))


def exp(x: Expr, y: Expr) -> Parts:
    r, n = reduce(clamp(x, RANGE[x.dtype]))
    p = fma(mul(r, r), poly(r, pick(x, EXPM1_F32, EXPM1_F64)), r)
    return _power(x, y, p, n, turn(y), RANGE[x.dtype][1])


def exp2(x: Expr, y: Expr) -> Parts:
    near = clamp(x, RANGE_OF_2[x.dtype])
    q, n = nearest_integer(near, 1.0)
    r = sub(near, q)
    p = mul(r, poly(r, pick(x, EXP2_F32, EXP2_F64)))
    return _power(x, y, p, n, turn_of_power(y), RANGE_OF_2[x.dtype][1])


def _power(x: Expr, y: Expr, p: Expr, n: Expr, t: Turn, limit: float) -> Parts:
    """2^n (1 + p) turned; `limit` far out infinities in the quadrant of the angle, where there is
    one, and zeros on the other side."""
    im, re = t.placed(grown(t.sine, p), grown(t.cosine, p))
    re, im = ldexp(re, n), ldexp(im, n)
    far = where(equal(x, -INF), copysign(0.0, re), _far(x, re, im, limit))
    return _with_edges(x, y, (re, im), far, limit)


def _far(x: Expr, re: Expr, im: Expr, limit: float) -> Expr:
    """The real part, where it may be out of all bounds."""
    far = mul(re, where(greater(x, limit), INF, const(1.0, x.dtype)))
    return where(both(equal(x, INF), is_nan(im)), INF, far)


def _with_edges(x: Expr, y: Expr, usual: Parts, far: Expr, limit: float) -> Parts:
    """The parts, and what they are where x is far out or y is zero: `far`, and an imaginary part
    that is then infinite or zero."""
    re, im = usual
    far_im = mul(im, where(greater(x, limit), INF, const(1.0, x.dtype)))
    far_im = where(equal(x, -INF), copysign(0.0, im), far_im)
    edge = either(not_(less_equal(absolute(x), limit)), equal(y, 0.0))
    return rare(edge, re, far), rare(edge, im, where(equal(y, 0.0), y, far_im))


def expm1(x: Expr, y: Expr) -> Parts:
    """The real part is 2^k ((1 + p) cos y - 2^-k), of which only the last sum is rounded; k stays
    where 1 is no less than a last place."""
    limit = RANGE[x.dtype][1]
    p, n = grown_parts(clamp(x, RANGE[x.dtype]))
    t = turn(y)
    k = iop("max", whole(n), {"f32": -26, "f64": -56}[x.dtype])
    one = power_of_two(
        iop("max", iop("sub", const(0, k.dtype), k), 1 - EXPONENT_BIAS[x.dtype]), x.dtype
    )
    high, low = (t.placed(s, c)[1] for s, c in zip(t.sine, t.cosine, strict=True))
    less = pairs.plus(Pair(high, low), pairs.single(neg(one)))
    re = pairs.rounded(pairs.plus(less, pairs.times(p, Pair(high, low))))
    re = add(make_ldexp(re, cast(k, "i32")), 0.0)
    factor = pairs.rounded(p)
    im = ldexp(t.placed(grown(t.sine, factor), grown(t.cosine, factor))[0], n)
    far = where(equal(x, -INF), -1.0, _far(x, re, im, limit))
    return _with_edges(x, y, (re, im), far, limit)


def logistic(x: Expr, y: Expr) -> Parts:
    """1 / d with d = 1 + exp(-z), all times 2^-k to stay small: the real part of d is a pair, since
    it goes to 0 with the imaginary one near the poles."""
    p, n = grown_parts(clamp(neg(x), (RANGE[x.dtype][0], -RANGE[x.dtype][0])))
    n = whole(n)
    zero, least = const(0, n.dtype), 1 - EXPONENT_BIAS[x.dtype]
    minus_k = iop("min", iop("sub", zero, n), 0)
    down = iop("add", n, minus_k)
    one = power_of_two(iop("max", minus_k, least), x.dtype)
    w = power_of_two(iop("max", down, least), x.dtype)
    t = turn_exactly(y)
    sine_sign, cosine_sign = t.signs(x.dtype)
    cosine = Pair(*(t.placed_size(s, c)[1] for s, c in zip(t.sine, t.cosine, strict=True)))
    more = pairs.times(p, cosine)
    whole_part, rest = fast_two_sum(cosine.high, more.high)
    rest = add(rest, add(cosine.low, more.low))
    turned = flip_sign(w, cosine_sign)
    u, lost = two_sum(mul(whole_part, turned), one)
    u, u_low = fast_two_sum(u, fma(rest, turned, lost))
    factor = pairs.rounded(p)
    sine = Pair(*(t.placed_size(s, c)[0] for s, c in zip(t.sine, t.cosine, strict=True)))
    sine = pairs.near(sine.high, fma(factor, pairs.rounded(sine), sine.low))
    d = pairs.size_squared(Pair(u, u_low), pairs.scaled(sine, w))
    inverse = div(1.0, d.high)
    re = make_ldexp(pairs.rounded(pairs.quotient(Pair(u, u_low), d, inverse)), cast(minus_k, "i32"))
    im = pairs.rounded(pairs.quotient(sine, d, inverse))
    im = flip_sign(make_ldexp(im, cast(iop("add", down, minus_k), "i32")), sine_sign)
    # far out 1 or 0, whatever the angle
    edge, end = either(equal(absolute(x), INF), equal(y, 0.0)), greater(absolute(x), 1e30)
    far = where(less(x, 0.0), copysign(0.0, u), 1.0)
    return (
        rare(edge, re, where(end, far, re)),
        rare(edge, im, where(equal(y, 0.0), y, where(end, copysign(0.0, y), im))),
    )
