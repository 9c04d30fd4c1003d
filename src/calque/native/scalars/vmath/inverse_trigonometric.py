"""asin, acos, atan and atan2."""

from __future__ import annotations

from typing import Final

from calque.native.scalars.expr import Expr, const, ex
from calque.native.scalars.vmath.base import (
    absolute,
    add,
    all_of,
    bits,
    copysign,
    div,
    equal,
    fast_two_sum,
    flip_sign,
    fma,
    greater,
    iop,
    less,
    mul,
    neg,
    not_within,
    pick,
    poly,
    rare,
    sign_bit,
    sqrt,
    sub,
    where,
)
from calque.native.scalars.vmath.pairs import Pair, is_single

# (asin(r) - r) / r^3 in powers of r^2, |r| <= 1/2
ASIN_F32: Final = (
    0.16666752099990845,
    0.074953094124794,
    0.04546914994716644,
    0.024184782058000565,
    0.04215829074382782,
)
ASIN_F64: Final = (
    0.16666666666665408, 0.07500000000337124, 0.04464285682823381, 0.030381959141142965,
    0.022371757942316096, 0.017359706521367767,
    0.013885216842968165, 0.01216934192651845, 0.006527378637360284, 0.01952998411827486,
    -0.01622707757203394, 0.03191428801429683,
)  # fmt: skip
# (atan(r) - r) / r^3 in powers of r^2, |r| <= 1
ATAN_F32: Final = (
    -0.33333152532577515, 0.19993767142295837, -0.14211001992225647, 0.10665769129991531,
    -0.07551660388708115, 0.04320473223924637,
    -0.016363192349672318, 0.0029194229282438755,
)  # fmt: skip
ATAN_F64: Final = (
    -0.3333333333333307, 0.19999999999951745, -0.14285714282587775, 0.1111111100733263,
    -0.09090907007639508, 0.0769227988716368,
    -0.06666404409972362, 0.05880529734280599, -0.05253526479131874, 0.04722347430653987,
    -0.04219241390111382, 0.03664312061212073,
    -0.02990569298348952, 0.021987019879617525, -0.01390253005250049, 0.007197854651849636,
    -0.002885594659530503,
    0.0008315545952225061, -0.0001522101157585596, 1.3229903850286313e-05,
)  # fmt: skip
HALF_PI: Final = {
    "f32": (1.5707963705062866, -4.371138828673793e-08),
    "f64": (1.5707963267948966, 6.123233995736766e-17),
}
PI: Final = {
    "f32": (3.1415927410125732, -8.742277657347586e-08),
    "f64": (3.141592653589793, 1.2246467991473532e-16),
}


def arcsine_parts(x: Expr) -> tuple[Expr, Expr, Expr]:
    """For a = |x|: whether a > 1/2; s, which is a, or sqrt((1 - a) / 2) for such a; and asin(s) -
    s."""
    a = absolute(x)
    big = greater(a, 0.5)
    z = where(big, fma(a, -0.5, 0.5), mul(a, a))
    s = where(big, sqrt(z), a)
    return big, s, mul(mul(s, z), poly(z, pick(x, ASIN_F32, ASIN_F64)))


def asin(x: Expr) -> Expr:
    """asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)) for a > 1/2."""
    high, low = HALF_PI[x.dtype]
    big, s, tail = arcsine_parts(x)
    d, error = fast_two_sum(const(high, x.dtype), mul(s, -2.0))
    y = where(big, sub(d, fma(tail, 2.0, sub(-low, error))), add(s, tail))
    return copysign(y, x)


def acos(x: Expr) -> Expr:
    """2 asin(s) for x > 1/2, pi - 2 asin(s) for x < -1/2, pi/2 - asin(x) between."""
    high, low = HALF_PI[x.dtype]
    big, s, tail = arcsine_parts(x)
    negative = less(x, 0.0)
    twice = mul(2.0, add(s, tail))
    outer = where(negative, sub(2 * high, sub(twice, 2 * low)), twice)
    signed = where(negative, neg(tail), tail)
    return where(big, outer, sub(high, sub(x, sub(low, signed))))


def atan(x: Expr) -> Expr:
    """atan(a) = pi/2 - atan(1/a) for a > 1."""
    a = absolute(x)
    big = greater(a, 1.0)
    r = where(big, div(1.0, a), a)
    return copysign(unfold(big, r, x.dtype), x)


def unfold(swapped: Expr, r: Expr, dtype: str) -> Expr:
    """atan(r), or where `swapped` pi/2 - atan(r), for r in [0, 1]."""
    high, low = HALF_PI[dtype]
    z = mul(r, r)
    tail = mul(mul(r, z), poly(z, pick(r, ATAN_F32, ATAN_F64)))
    return where(swapped, sub(high, sub(r, sub(low, tail))), add(r, tail))


def atan2(y: Expr, x: Expr) -> Expr:
    """The quotient of the smaller by the larger magnitude, one division, then the octant."""
    ax, ay = absolute(x), absolute(y)
    swapped = greater(ay, ax)
    large, small = where(swapped, ay, ax), where(swapped, ax, ay)
    q = div(small, large)
    q = where(
        equal(small, large), where(equal(large, 0.0), small, 1.0), q
    )  # also infinity by infinity
    r = unfold(swapped, q, x.dtype)
    high, low = PI[x.dtype]
    left = ex("lt", bits(x), iop("and", bits(x), 0))  # the sign bit: -0 counts
    r = where(left, sub(high, sub(r, low)), r)
    r = copysign(r, y)
    return where(all_of(equal(x, x), equal(y, y)), r, add(x, y))


def angle(y: Expr, x: Pair) -> Expr:
    """atan2 of what is more than y and x.high: the quotient is a pair, too."""
    dtype = y.dtype
    ax, ay = absolute(x.high), absolute(y)
    swapped = greater(ay, ax)
    large, small = where(swapped, ay, ax), where(swapped, ax, ay)
    inverse = div(1.0, large)
    q = mul(small, inverse)
    rest = fma(neg(q), large, small)
    if not is_single(x):
        x_low = flip_sign(x.low, sign_bit(x.high))
        rest = add(rest, where(swapped, x_low, mul(neg(q), x_low)))
    z = mul(q, q)
    low = mul(mul(rest, inverse), fma(z, -0.5, 1.0))  # about 1 / (1 + z)
    tail = fma(mul(q, z), poly(z, pick(q, ATAN_F32, ATAN_F64)), low)
    right = less(const(-1, bits(y).dtype), bits(x.high))
    (half, half_low), (full, full_low) = HALF_PI[dtype], PI[dtype]
    high = where(swapped, half, where(right, 0.0, const(full, dtype)))
    rest = where(swapped, half_low, where(right, 0.0, const(full_low, dtype)))
    turned = iop("xor", where(swapped, sign_bit(const(-1.0, dtype)), 0), sign_bit(x.high))
    r = add(high, add(flip_sign(q, turned), add(rest, flip_sign(tail, turned))))
    limit = {"f32": 100, "f64": 900}[dtype]
    return rare(not_within(large, -limit, limit), copysign(r, y), atan2(y, x.high))
