"""sinh, cosh and tanh of complex numbers x + iy: the real part and the imaginary one.

|x| = n ln 2 + r; with d = 4^-n, 2^(1-n) sinh |x| = (1 - d) cosh r + (1 + d) sinh r, and 2^(1-n)
cosh |x| with the signs changed. Sine and cosine of y join them as pairs, and the scaling comes
last."""

from __future__ import annotations

from typing import Final, NamedTuple

from calque.native.scalars.expr import Expr, both, cast, const, either
from calque.native.scalars.vmath import pairs
from calque.native.scalars.vmath.base import (
    EXPONENT_BIAS,
    INF,
    absolute,
    add,
    at_most,
    copysign,
    div,
    equal,
    flip_sign,
    fma,
    greater,
    iop,
    is_nan,
    less,
    less_equal,
    make_ldexp,
    mul,
    neg,
    not_,
    pick,
    poly,
    power_of_two,
    rare,
    sign_bit,
    where,
    whole,
)
from calque.native.scalars.vmath.exponential import (
    COSH_F32,
    COSH_F64,
    SINH_F32,
    SINH_F64,
    reduce,
)
from calque.native.scalars.vmath.pairs import Pair
from calque.native.scalars.vmath.turns import Turn, turn, turn_exactly

Parts = tuple[Expr, Expr]

LIMIT: Final = {"f32": 90.0, "f64": 711.0}  # above, the larger part is infinite
# above, the imaginary part of tanh is zero
TANH_LIMIT: Final = {"f32": 60.0, "f64": 400.0}


class Hyperbolic(NamedTuple):
    """2^(1-n) sinh |x| and 2^(1-n) cosh |x|, n, and 4^-n."""

    sinh: Pair
    cosh: Pair
    n: Expr
    d: Expr


def parts(x: Expr, limit: float) -> Hyperbolic:
    r, shifted = reduce(at_most(absolute(x), limit))
    n = whole(shifted)
    minus_2n = iop("sub", const(0, n.dtype), iop("shl", n, 1))
    d = power_of_two(iop("max", minus_2n, 1 - EXPONENT_BIAS[x.dtype]), x.dtype)
    one = const(1.0, x.dtype)
    (less, less_low), (more, more_low) = pairs.near(one, neg(d)), pairs.near(one, d)
    z = mul(r, r)
    c = mul(z, poly(z, pick(x, COSH_F32, COSH_F64)))  # cosh(r) - 1
    s_rest = mul(mul(r, z), poly(z, pick(x, SINH_F32, SINH_F64)))  # sinh(r) - r
    u = mul(more, r)
    s = pairs.near(less, u)
    s_low = fma(less, c, fma(more, s_rest, fma(more_low, r, less_low)))
    s_low = add(s.low, add(fma(more, r, neg(u)), s_low))
    c_low = fma(more, c, fma(less, add(r, s_rest), more_low))
    return Hyperbolic(pairs.near(s.high, s_low), pairs.near(more, c_low), n, d)


def _product(p: Pair, t: Turn, k: int, n: Expr) -> Expr:
    """p times the sine (k = 0) or the cosine (k = 1), and 2^(n-1)."""
    q = Pair(*(t.placed_size(s, c)[k] for s, c in zip(t.sine, t.cosine, strict=True)))
    y = make_ldexp(pairs.rounded(pairs.times(p, q)), cast(iop("sub", n, 1), "i32"))
    return flip_sign(y, t.signs(y.dtype)[k])


def _edges(x: Expr, y: Expr, usual: Parts, zero: tuple[int, Expr]) -> Parts:
    """Infinite far out; where x is infinite, the real part is so without an angle, too. Where x is
    0 one part is, with a sign, though the other be no number."""
    (re, im), (part, sign), a = usual, zero, absolute(x)
    out = greater(a, LIMIT[x.dtype])
    scale = where(out, INF, const(1.0, x.dtype))
    edges = [where(both(equal(a, INF), is_nan(re)), INF, mul(re, scale)), mul(im, scale)]
    edges[part] = where(equal(x, 0.0), copysign(0.0, sign), edges[part])
    edge = either(either(out, is_nan(re)), either(equal(x, 0.0), equal(y, 0.0)))
    return rare(edge, re, edges[0]), rare(edge, im, where(equal(y, 0.0), y, edges[1]))


def sinh(x: Expr, y: Expr) -> Parts:
    h, t = parts(x, LIMIT[x.dtype]), turn(y)
    usual = _product(h.sinh, t, 1, h.n), _product(h.cosh, t, 0, h.n)
    re, im = _edges(x, y, usual, (0, t.placed(t.sine.high, t.cosine.high)[1]))
    return flip_sign(re, sign_bit(x)), im


def cosh(x: Expr, y: Expr) -> Parts:
    h, t = parts(x, LIMIT[x.dtype]), turn(y)
    usual = _product(h.cosh, t, 1, h.n), _product(h.sinh, t, 0, h.n)
    re, im = _edges(x, y, usual, (1, t.placed(t.sine.high, t.cosine.high)[0]))
    return re, flip_sign(im, sign_bit(x))


def tanh(x: Expr, y: Expr) -> Parts:
    """sinh x cosh x and sin y cos y over sinh^2 x + cos^2 y, all times 4^(1-n); the imaginary part
    gets its 4^-n last."""
    limit = TANH_LIMIT[x.dtype]
    h, t = parts(x, limit), turn_exactly(y)
    odd = t.odd()
    square = pairs.square(pairs.where(odd, t.sine, t.cosine))
    total = pairs.plus(pairs.square(h.sinh), pairs.scaled(square, mul(h.d, 4.0)))
    total = pairs.near(*total)
    inverse = div(1.0, total.high)
    re = pairs.rounded(pairs.quotient(pairs.times(h.sinh, h.cosh), total, inverse))
    turned = pairs.times(pairs.scaled(t.sine, 4.0), t.cosine)
    im = pairs.rounded(pairs.quotient(turned, total, inverse))
    im = make_ldexp(im, cast(iop("sub", const(0, h.n.dtype), iop("shl", h.n, 1)), "i32"))
    im = where(odd, neg(im), im)
    a, lost = absolute(x), is_nan(t.sine.high)
    far_im = where(greater(a, limit), copysign(0.0, im), im)
    far_im = where(both(lost, less(a, INF)), t.sine.high, far_im)
    far = where(equal(x, 0.0), 0.0, where(equal(a, INF), 1.0, re))
    edge = either(either(not_(less_equal(a, limit)), lost), equal(y, 0.0))
    return (
        copysign(rare(edge, re, far), x),
        rare(edge, im, where(equal(y, 0.0), y, far_im)),
    )
