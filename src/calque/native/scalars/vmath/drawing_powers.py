"""pow and tan as random numbers are drawn with: XLA leaves them to the C library, and in float32
these are the operations of glibc on processors with FMA, one by one.

pow is Nagy's (of Arm's Optimized Routines): 2^(y log2(x)) in float64, by a table of 16 and one of
32. tan is that of Sun's fdlibm, in float32, as glibc had it before 2.41. In f64 these are the
accurate functions, as in float32 wherever nothing is drawn."""

from __future__ import annotations

import math
from typing import Final

from calque.native.scalars.expr import Expr, cast
from calque.native.scalars.vmath import power, power_single, trigonometric
from calque.native.scalars.vmath.base import (
    INF,
    absolute,
    add,
    any_of,
    at_most,
    bits,
    div,
    fast_two_sum,
    flip_sign,
    fma,
    from_bits,
    greater,
    greater_equal,
    iop,
    ldexp,
    less,
    lookup,
    mul,
    nearest_integer,
    neg,
    no_less,
    not_,
    pattern,
    poly,
    rare,
    sign_bit,
    sub,
    two_product,
    where,
)
from calque.native.scalars.vmath.logarithm import unusual

_BASE: Final = 0x3F330000  # the bits of the least m, of x = 2^k m
# 1/c and log2(c) for a c amid each sixteenth of the numbers m
_INVERSE: Final = (
    1.398907162146528, 1.3403141896637998, 1.286432210124115, 1.2367150214269895,
    1.1906977166711752, 1.1479821020556429, 1.1082251448272158, 1.0711297413057381,
    1.036437278977283, 1.0, 0.9492859795739057, 0.8951049428609004,
    0.8476821620351103, 0.8050314851692001, 0.7664671008843108, 0.731428603316328,
)  # fmt: skip
_LOG2: Final = (
    -0.48430022186289673, -0.42257122959194704, -0.3633754347673556, -0.30651309567405577,
    -0.25180720160537634, -0.19910014943794563, -0.14825100623281615, -0.09913323807318392,
    -0.051632812977629436, 0.0, 0.07508531937943004, 0.15987125980713107,
    0.2384046664317681, 0.31288288605863257, 0.38370422656453185, 0.451211048935815,
)  # fmt: skip
# log2(1 + r), the highest power first
_LOG2_OF: Final = (
    0.288457581109214, -0.36092606229713164, 0.480898481472577, -0.7213474675006291,
    1.4426950408774342,
)  # fmt: skip
# 2^(i / 32) in two parts
_EXP2: Final = (
    1.0, 1.0218971486541166, 1.0442737824274138, 1.0671404006768237, 1.0905077326652577,
    1.1143867425958924, 1.1387886347566916, 1.1637248587775775, 1.189207115002721,
    1.215247359980469, 1.241857812073484, 1.2690509571917332, 1.2968395546510096,
    1.3252366431597413, 1.3542555469368927, 1.383909881963832, 1.4142135623730951,
    1.4451808069770467, 1.4768261459394993, 1.5091644275934228, 1.5422108254079407,
    1.5759808451078865, 1.6104903319492543, 1.645755478153965, 1.681792830507429,
    1.718619298122478, 1.7562521603732995, 1.7947090750031072, 1.8340080864093424,
    1.8741676341103, 1.9152065613971474, 1.9571441241754002,
)  # fmt: skip
_EXP2_LOW: Final = (
    0.0, 5.109225028973444e-17, 8.551889705537965e-17, -7.899853966841582e-17,
    -3.046782079812471e-17, 1.0410278456845571e-16, 8.912812676025408e-17, 3.8292048369240935e-17,
    3.982015231465646e-17, -7.712630692681488e-17, 4.658027591836937e-17, 2.667932131342186e-18,
    2.5382502794888315e-17, -2.8587312100388614e-17, 7.70094837980299e-17, -6.770511658794786e-17,
    -9.667293313452913e-17, -3.0237581349939873e-17, -3.483994556892796e-17,
    -1.016455327754295e-16, 7.949834809697621e-17, -1.0136916471278304e-17,
    2.4707192569797888e-17, -1.0125679913674773e-16, 8.199010020581497e-17,
    -1.851380418263111e-17, 2.960140695448873e-17, 1.8227458427912087e-17, 3.283107224245627e-17,
    -6.122763413004143e-17, -1.0619946056195963e-16, 8.960767791036668e-17,
)  # fmt: skip
_LOG_2: Final = (0.021660849391992087, 5.062034433330175e-13)  # log(2) / 32, the first with 35 bits
_PER_LOG: Final = 46.16624130844683
# of (e^r - 1 - r) / r^2
_EXP_REST: Final = (
    0.5,
    0.16666666666666666,
    0.041666666666666664,
    0.008333333333333333,
    0.001388888888888889,
)
# 2^r, the highest power first
_EXP2_OF: Final = (0.05550361559341535, 0.2402284522445722, 0.6931471806916203)

_QUARTER: Final = 0x3F490FDA  # the bits of pi / 4
_QUARTER_LOW: Final = 0x33222168  # and of what that lacks
_FAR: Final = 0x3F2CA140  # 0.6744: from here on by what is left to pi / 4
_THREE_QUARTERS: Final = 0x4016CBE4
# of tan(x) = x + x^3 P(x^2): the first coefficient, and the others by turns, the lowest power first
_TAN_FIRST: Final = 0x3EAAAAAB
_TAN_ODD: Final = (0x3E088889, 0x3CB327A4, 0x3B6B6916, 0x3A1A26C8, 0x38A3F445, 0xB79BAE5F)
_TAN_EVEN: Final = (0x3D5D0DD1, 0x3C11371F, 0x3ABEDE48, 0x398137B9, 0x3895C07A, 0x37D95384)


def pow(x: Expr, y: Expr) -> Expr:
    """x^y; what is not a power of a positive normal number is computed as elsewhere."""
    if x.dtype != "f32":
        return wide_pow(x, y)
    odd = any_of(unusual(x), not_(less(absolute(y), INF)))
    exponent = mul(cast(y, "f64"), log2(bits(x)))
    drawn = cast(exp2(at_most(no_less(exponent, -300.0), 300.0)), "f32")
    return rare(odd, drawn, power_single.power(x, y))


def log2(x: Expr) -> Expr:
    """The logarithm of a positive normal f32, which is given by its bits, in f64."""
    distance = iop("sub", x, _BASE)
    exponent = iop("ashr", distance, 23)
    index = iop("lshr", distance, 19)
    m = cast(from_bits(iop("sub", x, iop("shl", exponent, 23)), "f32"), "f64")
    r = fma(m, lookup(index, _INVERSE * 2, "f64"), -1.0)
    whole = add(lookup(index, _LOG2 * 2, "f64"), cast(exponent, "f64"))
    a, b, c, d, e = _LOG2_OF
    square = mul(r, r)
    low = fma(fma(r, c, d), square, fma(r, e, whole))
    return fma(fma(r, a, b), mul(square, square), low)


def exp2(x: Expr) -> Expr:
    """2^x in f64, to as many digits as an f32 asks for."""
    n, i = nearest_integer(x, 32.0)
    r = sub(x, mul(n, 1 / 32))
    root = bits(lookup(cast(i, "i32"), _EXP2, "f64"))
    scale = from_bits(iop("add", root, iop("shl", iop("ashr", i, 5), 52)), "f64")
    a, b, c = _EXP2_OF
    return mul(fma(fma(r, a, b), mul(r, r), fma(r, c, 1.0)), scale)


def wide_pow(x: Expr, y: Expr) -> Expr:
    """x^y in f64, rounded from some 60 bits, as the C library's nearly is."""
    high, low = power.log_pair(x)
    p = mul(y, high)
    rest = fma(y, low, fma(y, high, neg(p)))
    drawn = wide_exp(p, rest)
    odd = any_of(unusual(x), not_(less(absolute(p), 700.0)))
    return rare(odd, drawn, power.power(x, y))


def wide_exp(x: Expr, low: Expr) -> Expr:
    """e^(x + low) for |x| < 700: 2^(n / 32) e^r, all but the last terms in two parts."""
    n, i = nearest_integer(x, _PER_LOG)
    r = fma(n, -_LOG_2[0], x)
    low = fma(n, -_LOG_2[1], low)
    full = add(r, low)
    low = fma(mul(full, full), poly(full, _EXP_REST), low)
    index = cast(i, "i32")
    root, root_low = lookup(index, _EXP2, "f64"), lookup(index, _EXP2_LOW, "f64")
    product, product_low = two_product(root, r)
    high, lost = fast_two_sum(root, product)
    low = fma(root, low, fma(root_low, r, add(root_low, product_low)))
    return ldexp(add(high, add(lost, low)), iop("ashr", i, 5))


def tan(x: Expr) -> Expr:
    """The tangent up to 3 pi / 4, where numbers are drawn; beyond it as elsewhere."""
    if x.dtype != "f32":
        return trigonometric.tan(x)
    a = absolute(x)
    turned = greater(a, number(_QUARTER))
    high, low = less_half(a)
    y = tangent(where(turned, high, a), where(turned, low, number(0)), turned)
    beyond = not_(less(a, number(_THREE_QUARTERS)))
    return rare(beyond, flip_sign(y, sign_bit(x)), trigonometric.tan(x))


def number(value: int) -> Expr:
    return pattern(value, "f32")


def less_half(a: Expr) -> tuple[Expr, Expr]:
    """a - pi / 2 as a sum."""
    rest = sub(cast(a, "f64"), math.pi / 2)
    high = cast(rest, "f32")
    return high, cast(sub(rest, cast(high, "f64")), "f32")


def tangent(x: Expr, y: Expr, turned: Expr) -> Expr:
    """tan(x + y) for |x| <= pi / 4; -1 / tan(x + y) where `turned`."""
    far = greater_equal(absolute(x), number(_FAR))
    minus = less(x, 0.0)
    size, rest = absolute(x), where(minus, neg(y), y)
    nearer = add(sub(number(_QUARTER), size), sub(number(_QUARTER_LOW), rest))
    x, y = where(far, nearer, x), where(far, number(0), y)
    z = mul(x, x)
    w = mul(z, z)
    r, v = horner(w, _TAN_ODD), mul(z, horner(w, _TAN_EVEN))
    cube = mul(z, x)
    r = add(y, mul(z, add(mul(cube, add(r, v)), y)))
    r = add(r, mul(number(_TAN_FIRST), cube))
    sum_ = add(x, r)
    kind = where(turned, -1.0, number(0x3F800000))
    quotient = div(mul(sum_, sum_), add(sum_, kind))
    close = sub(kind, mul(2.0, sub(x, sub(quotient, r))))
    close = where(less(absolute(x), 2.0**-13), sub(kind, mul(2.0, x)), close)
    inverse = where(less(size, 2.0**-13), div(-1.0, x), minus_inverse(sum_, x, r))
    inside = where(turned, inverse, sum_)
    return where(far, where(minus, neg(close), close), inside)


def horner(x: Expr, coefficients: tuple[int, ...]) -> Expr:
    """A polynomial whose products and sums are rounded one by one, the lowest power first."""
    p = number(coefficients[-1])
    for c in coefficients[-2::-1]:
        p = add(number(c), mul(x, p))
    return p


def minus_inverse(w: Expr, x: Expr, r: Expr) -> Expr:
    """-1 / w, where w is x + r rounded: by parts of 12 bits, whose product is exact."""
    z = from_bits(iop("and", bits(w), -4096), "f32")
    v = sub(r, sub(z, x))
    a = div(-1.0, w)
    t = from_bits(iop("and", bits(a), -4096), "f32")
    s = add(1.0, mul(t, z))
    return add(t, mul(a, add(s, mul(t, v))))
