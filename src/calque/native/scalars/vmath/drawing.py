"""Functions as random numbers are drawn with: in float32 the operations of XLA on processors with
FMA, one by one, so that the numbers are JAX's to the last bit.

The inverse of erf is Giles' (Approximating the erfinv function, 2012), up to 65 units in the last
place off in the tails, which are as dense as the uniform numbers behind them. The logarithm and the
exponential function are Cephes', the error function is a quotient of polynomials: all of them up to
5 units off. Those of f64 stand in `drawing_double`."""

from __future__ import annotations

import math
from typing import Final

from calque.native.scalars.expr import Expr, cast, ex
from calque.native.scalars.vmath import drawing_double, error_function
from calque.native.scalars.vmath.base import (
    INF,
    NAN,
    absolute,
    add,
    any_of,
    bits,
    copysign,
    differ,
    div,
    equal,
    fma,
    from_bits,
    greater,
    iop,
    less,
    less_equal,
    mul,
    neg,
    pattern,
    rare,
    sqrt,
    sub,
    where,
)

# bits of coefficients, the highest power first
_MIDDLE: Final = (
    0x32F16588, 0x34B84B36, 0xB66C7357, 0xB6935AC1, 0x396532DB, 0xBAA45408, 0xBB88E4EF,
    0x3E7C8F63, 0x3FC02E2F,
)  # fmt: skip
_TAIL: Final = (
    0xB951F09B, 0x38D3B56B, 0x3AB0DC72, 0xBB70BDE7, 0x3BBC127B, 0xBBF9C5D7, 0x3C1AA57E,
    0x3F8036DB, 0x40354F7E,
)  # fmt: skip
_ABOVE: Final = (0x383DE04B, 0x3EFF40C5, 0x40D284FA, 0x41EF4B9C, 0x4273CC76, 0x426473AD, 0x41A05101)
_BELOW: Final = (0x3F800000, 0x417101AD, 0x42A6185B, 0x435DC32D, 0x439A8CA3, 0x43586D8A, 0x42707982)
_LOG: Final = (
    (0x3D9021BB, 0xBDEBD1B8, 0x3DEF251A),
    (0xBDFE5D4F, 0x3E11E9BF, 0xBE2AAE50),
    (0x3E4CCEAC, 0xBE7FFFFC, 0x3EAAAAAA),
)
_SMALL: Final = 0x3ED413CD  # sqrt(2) - 1
_ROOT_OF_HALF: Final = 0x3F3504F3
_LOG_2: Final = (0x3F318000, 0xB95E8083)  # in two parts
_LOG2_E: Final = 0x3FB8AA3B
_EXP: Final = (0x39506967, 0x3AB743CE, 0x3C088908, 0x3D2AA9C1, 0x3E2AAAAA, 0x3F000000)
_EXP_ENDS: Final = (0xC2AF999A, 0x42B1999A)  # -87.8 and 88.8: beyond them 0 and infinity
_ERF_ABOVE: Final = (0x39702D51, 0x3B5F5DA2, 0x3D50B6EB, 0x3E3DA740, 0x3F906EBA)
_ERF_BELOW: Final = (
    0xB3FD3906, 0x37C588DF, 0x3A856D28, 0x3C6687D4, 0x3DE34C21, 0x3EFEB44A, 0x3F800000,
)  # fmt: skip
_ERF_END: Final = 0x407547CB  # 3.83: beyond it 1


def normal_erf_inv(x: Expr) -> Expr:
    """The inverse of erf."""
    if x.dtype != "f32":
        return drawing_double.erf_inv(x)
    log = log1p_inside(mul(x, neg(x)))
    return rare(less_equal(log, -5.0), mul(horner(sub(-2.5, log), _MIDDLE), x), tail(x, log))


def tail(x: Expr, log: Expr) -> Expr:
    """Where 1 - x^2 has a small logarithm, and at the ends: one number in 300 is drawn there."""
    y = mul(horner(sub(sqrt(neg(log)), 3.0), _TAIL), x)
    y = where(equal(absolute(x), 1.0), mul(x, INF), y)
    return where(less_equal(absolute(x), 1.0), y, NAN)


def number(value: int) -> Expr:
    return pattern(value, "f32")


def horner(x: Expr, coefficients: tuple[int, ...]) -> Expr:
    p = number(coefficients[0])
    for c in coefficients[1:]:
        p = fma(p, x, number(c))
    return p


def log1p_inside(x: Expr) -> Expr:
    """log(1 + x) for -1 <= x: a quotient of polynomials near 0."""
    square = mul(x, x)
    quotient = div(horner(x, _ABOVE), horner(x, _BELOW))
    small = add(x, fma(square, -0.5, mul(mul(x, square), quotient)))
    return where(less(absolute(x), number(_SMALL)), small, log_inside(add(x, 1.0)))


def log_inside(x: Expr) -> Expr:
    """log(x) for 0 < x; of what is less that of the smallest normal number."""
    least = number(0x00800000)  # the smallest normal number
    whole = bits(where(less(x, least), least, x))
    exponent = add(cast(iop("sub", iop("lshr", whole, 23), 127), "f32"), 1.0)
    part = from_bits(iop("or", iop("and", whole, 0x007FFFFF), 0x3F000000), "f32")
    low = less(part, number(_ROOT_OF_HALF))
    z = add(sub(part, 1.0), where(low, part, 0.0))
    exponent = sub(exponent, where(low, 1.0, number(0)))
    square = mul(z, z)
    cube = mul(square, z)
    first, second, third = (horner(z, c) for c in _LOG)
    y = fma(fma(first, cube, second), cube, third)
    high, rest = _LOG_2
    y = fma(y, cube, mul(exponent, number(rest)))
    return fma(exponent, number(high), add(fma(square, -0.5, z), y))


def log(x: Expr) -> Expr:
    """The logarithm; XLA's is infinite for subnormal numbers, which are never drawn."""
    if x.dtype != "f32":
        return drawing_double.log(x)
    tiny = less(x, number(0x00800000))
    y = log_inside(where(tiny, mul(x, 2.0**23), x))
    y = where(less(x, INF), where(tiny, add(y, -23 * math.log(2)), y), x)
    y = where(equal(x, 0.0), -INF, y)
    return where(any_of(less(x, 0.0), not_a_number(x)), NAN, y)


def log1p(x: Expr) -> Expr:
    """log(1 + x)."""
    if x.dtype != "f32":
        return drawing_double.log1p(x)
    y = where(less(x, INF), log1p_inside(x), x)
    y = where(equal(x, -1.0), -INF, y)
    return where(any_of(less(x, -1.0), not_a_number(x)), NAN, y)


def exp(x: Expr) -> Expr:
    """e^x = 2^n e^r: r is what is left of x without n log 2."""
    if x.dtype != "f32":
        return drawing_double.exp(x)
    first, last = map(number, _EXP_ENDS)
    inside = where(less(x, last), x, last)
    inside = where(less(first, inside), inside, first)
    n = ex("floor", fma(inside, number(_LOG2_E), 0.5))
    n = where(less(n, -127.0), -127.0, where(greater(n, 127.0), 127.0, n))
    high, rest = map(number, _LOG_2)
    r = fma(neg(n), rest, fma(neg(n), high, inside))
    y = add(fma(horner(r, _EXP), mul(r, r), r), 1.0)
    scale = from_bits(iop("add", iop("shl", cast(n, "i32"), 23), 0x3F800000), "f32")
    return where(not_a_number(x), x, mul(y, scale))


def erf(x: Expr) -> Expr:
    """The error function, a quotient of polynomials of x^2; in f64 the accurate one."""
    if x.dtype != "f32":
        return error_function.erf(x)
    square = mul(x, x)
    y = div(mul(x, horner(square, _ERF_ABOVE)), horner(square, _ERF_BELOW))
    y = where(less(absolute(x), number(_ERF_END)), y, copysign(1.0, x))
    return where(not_a_number(x), x, y)


def not_a_number(x: Expr) -> Expr:
    return differ(x, x)
