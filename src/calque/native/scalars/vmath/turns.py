"""Sine and cosine of one angle together, as pairs: what complex functions multiply by."""

from __future__ import annotations

from typing import Final, NamedTuple

from calque.native.scalars.expr import Expr, cast, ex
from calque.native.scalars.vmath import reduction
from calque.native.scalars.vmath.base import (
    INT_OF,
    WIDTH,
    absolute,
    add,
    equal,
    flip_sign,
    fma,
    greater_equal,
    iop,
    mul,
    nearest,
    nearest_integer,
    neg,
    pick,
    poly,
    rare,
    sub,
    where,
)
from calque.native.scalars.vmath.pairs import Pair

# (sin(r) - r) / r^3 in powers of r^2, |r| <= pi/4
SIN_F32: Final = (-0.16666653752326965, 0.008332106284797192, -0.00019507884280756116)
SIN_F64: Final = (
    -0.16666666666666666, 0.008333333333333044, -0.00019841269840966335, 2.755731907686908e-06,
    -2.5052071878236044e-08, 1.6054456308588826e-10, -7.397656602747699e-13,
)  # fmt: skip
# (cos(r) - 1 + r^2 / 2) / r^4 in powers of r^2, |r| <= pi/4
COS_F32: Final = (0.04166664555668831, -0.0013887303648516536, 2.443120138195809e-05)
COS_F64: Final = (
    0.04166666666666659, -0.0013888888888872167, 2.4801587288274827e-05, -2.7557314007398984e-07,
    2.087567684736112e-09, -1.1357264860016577e-11,
)  # fmt: skip
LN2: Final = {
    "f32": (0.693147182464599609375, -1.904654299957767e-09),
    "f64": (0.6931471805599453, 2.3190468138462996e-17),
}


class Turn(NamedTuple):
    """The sine and the cosine of an angle r of at most pi/4, both as pairs; the angle that is meant
    is n quarter turns more."""

    sine: Pair
    cosine: Pair
    n: Expr

    def placed(self, sine: Expr, cosine: Expr) -> tuple[Expr, Expr]:
        """What was made of both where the quarters put it: that of the sine, that of the cosine."""
        s, c = self.placed_size(sine, cosine)
        s_sign, c_sign = self.signs(sine.dtype)
        return flip_sign(s, s_sign), flip_sign(c, c_sign)

    def placed_size(self, sine: Expr, cosine: Expr) -> tuple[Expr, Expr]:
        """The same without the signs that the quarters change."""
        odd = self.odd()
        return where(odd, cosine, sine), where(odd, sine, cosine)

    def signs(self, dtype: str) -> tuple[Expr, Expr]:
        """The bits that change those signs."""
        up = WIDTH[dtype] - 2
        return (
            iop("shl", iop("and", self.n, 2), up),
            iop("shl", iop("and", iop("add", self.n, 1), 2), up),
        )

    def odd(self) -> Expr:
        return ex("ne", iop("and", self.n, 1), iop("and", self.n, 0))


def turn(x: Expr) -> Turn:
    """Of x radians."""
    q, n = nearest_integer(x, 2 * reduction.ONE_OVER_PI)
    huge = greater_equal(absolute(x), reduction.HUGE[x.dtype])
    far, far_n = _huge(x, reduction.RADIANS)
    r = rare(huge, reduction.common(x, q, 0.5), far.high)
    return _turned(r, None, rare(huge, n, far_n))


def turn_exactly(x: Expr) -> Turn:
    """Of x radians, with what r loses: where its sine may be less than all else, that shows."""
    r, n = _reduced(x, reduction.RADIANS)
    return _turned(r.high, r.low, n)


def turn_of_power(x: Expr) -> Turn:
    """Of x ln 2 radians, the angle of 2^(ix)."""
    r, n = _reduced(x, reduction.LOG_TWO)
    high, low = LN2[x.dtype]
    return _turned(fma(r.high, high, fma(r.high, low, mul(r.low, high))), None, n)


def _reduced(x: Expr, measure: reduction.Scale) -> tuple[Pair, Expr]:
    """x less n quarter turns, and n, of which the low bits count."""
    q, n = nearest_integer(x, 2 * measure.inverse)
    r, rest = reduction.common_pair(x, q, 0.5, measure)
    huge = greater_equal(absolute(x), reduction.HUGE[x.dtype])
    far, far_n = _huge(x, measure)
    return Pair(rare(huge, r, far.high), rare(huge, rest, far.low)), rare(huge, n, far_n)


def _huge(x: Expr, measure: reduction.Scale) -> tuple[Pair, Expr]:
    """The same of huge x, by all bits that count."""
    t, rest = reduction.half_turns(x, measure)
    t, rest = add(t, t), add(rest, rest)
    q = nearest(t)
    f = sub(t, q)
    high, middle, _ = (p * 0.5 for p in measure.half_turn["f64"])
    wide = fma(f, high, fma(f, middle, mul(rest, high)))
    if x.dtype == "f32":
        r = cast(wide, "f32")
        low = cast(sub(wide, cast(r, "f64")), "f32")
    else:
        r = wide
        low = add(fma(f, high, neg(r)), fma(f, middle, mul(rest, high)))
    lost = sub(x, x)  # nan where x is infinite or nan
    known = equal(lost, 0.0)
    r, low = where(known, r, lost), where(known, low, lost)
    return Pair(r, low), cast(cast(q, "i32"), INT_OF[x.dtype])


def _turned(r: Expr, rest: Expr | None, n: Expr) -> Turn:
    z = mul(r, r)
    half = mul(r, -0.5)
    c = fma(half, r, 1.0)
    c_rest = fma(half, r, sub(1.0, c))
    c_rest = c_rest if rest is None else fma(neg(r), rest, c_rest)
    c_rest = fma(mul(z, z), poly(z, pick(r, COS_F32, COS_F64)), c_rest)
    cube, p = mul(r, z), poly(z, pick(r, SIN_F32, SIN_F64))
    s_rest = mul(cube, p) if rest is None else fma(cube, p, mul(rest, c))
    return Turn(Pair(r, s_rest), Pair(c, c_rest), n)
