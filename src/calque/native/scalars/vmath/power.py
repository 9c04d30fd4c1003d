"""pow, cbrt, rsqrt and hypot."""

from __future__ import annotations

from typing import Final

from calque.native.scalars.expr import Expr, both, cast, const, make
from calque.native.scalars.vmath import exponential, logarithm, power_single
from calque.native.scalars.vmath.base import (
    EXPONENT_BIAS,
    FRACTION_BITS,
    INF,
    INT_OF,
    NAN,
    absolute,
    add,
    all_of,
    any_of,
    at_most,
    bits,
    copysign,
    differ,
    div,
    equal,
    fast_two_sum,
    flip_sign,
    fma,
    from_bits,
    greater,
    iop,
    is_nan,
    less,
    mul,
    neg,
    no_less,
    not_,
    poly,
    rare,
    sign_bit,
    sqrt,
    sub,
    two_product,
    where,
)

POW_ATANH: Final = (
    0.3999999999999998, 0.2857142857144384, 0.22222222217789733, 0.18181818843993372,
    0.15384558428567804,
    0.13336264494836805, 0.1167578086267092, 0.11981751620290108,
)  # fmt: skip
TWO_THIRDS: Final = (0.6666666666666666, 3.700743415417188e-17)
LN2_F64: Final = (
    0.6931471803691238,
    1.9082149292705877e-10,
)  # the first with 33 bits, so that its multiples are exact


def power(x: Expr, y: Expr) -> Expr:
    """x^y, C's pow."""
    if x.dtype == "f32":
        return power_single.power(x, y)
    magnitude = power_f64(absolute(x), y)
    whole = make("trunc", (y,), y.dtype)
    half = mul(y, 0.5)
    odd = both(equal(whole, y), differ(make("trunc", (half,), y.dtype), half))
    zero = iop("and", bits(x), 0)
    magnitude = flip_sign(magnitude, where(odd, sign_bit(x), zero))
    undefined = all_of(less(x, 0.0), greater(x, -INF), differ(whole, y))
    return where(any_of(equal(x, 1.0), equal(y, 0.0)), 1.0, where(undefined, NAN, magnitude))


def limits(a: Expr, y: Expr) -> Expr:
    """-infinity at 0, and infinity and nan as they are; else y."""
    return where(equal(a, 0.0), -INF, where(less(a, INF), y, a))


def power_f64(a: Expr, y: Expr) -> Expr:
    """exp(y log(a)) with the logarithm as a pair, good to some 66 bits."""
    high, low = log_pair(a)
    high = limits(a, high)
    y = at_most(no_less(y, -1e306), 1e306)
    p = mul(y, high)
    tail = fma(y, low, fma(y, high, neg(p)))
    return exponential.exp_corrected(p, where(less(absolute(p), 1100.0), tail, 0.0))


def log_pair(a: Expr) -> tuple[Expr, Expr]:
    """log(a) as a sum: 2 atanh(s) with s = (m - 1) / (m + 1), its first two terms and e ln 2 in
    pairs."""
    f, minus_e = logarithm.split(a)
    e = neg(minus_e)
    d, d_low = fast_two_sum(const(2.0, "f64"), f)
    inverse = div(1.0, d)
    s = mul(f, inverse)
    s_low = mul(sub(fma(neg(s), d, f), mul(s, d_low)), inverse)
    z, z_low = two_product(s, s)
    z_low = fma(add(s, s), s_low, z_low)
    q, q_low = fast_two_sum(const(TWO_THIRDS[0], "f64"), mul(z, poly(z, POW_ATANH)))
    q_low = add(q_low, TWO_THIRDS[1])
    w, w_low = two_product(z, q)
    w_low = add(w_low, fma(z, q_low, mul(z_low, q)))
    t, t_low = two_product(s, w)
    t_low = add(t_low, fma(s, w_low, mul(s_low, w)))
    b, b_low = fast_two_sum(mul(e, LN2_F64[0]), add(s, s))
    c, c_low = fast_two_sum(b, t)
    rest = add(c_low, add(b_low, fma(e, LN2_F64[1], add(t_low, add(s_low, s_low)))))
    return fast_two_sum(c, rest)


# bits(a^(-1/3)) is about this less a third of bits(a)
CBRT_START: Final = {"f32": 1419872267.0, "f64": 6142909891733356544.0}
# ((1 - h)^(-1/3) - 1) / h for the errors h = 1 - a y^3 of that
CBRT_F32: Final = (0.3327100872993469, 0.22258123755455017, 0.25716081261634827)


def cbrt(x: Expr) -> Expr:
    """From a guess of a^(-1/3) by its bits, made better; at last a step on the root itself."""
    dtype, shift = x.dtype, {"f32": 24, "f64": 54}[x.dtype]
    a = absolute(x)
    special, tiny = logarithm.unusual(a), less(a, logarithm.SMALLEST[dtype])
    v = rare(special, a, where(tiny, mul(a, 2.0**shift), a))
    guess = fma(cast(bits(v), dtype), -1 / 3, CBRT_START[dtype])
    y = from_bits(cast(guess, INT_OF[dtype], "cast_fast"), dtype)
    c = cbrt_f32(v, y) if dtype == "f32" else cbrt_f64(v, y)
    odd = where(any_of(equal(x, 0.0), not_(tiny)), x, copysign(mul(c, 2.0 ** (-shift // 3)), x))
    return rare(special, copysign(c, x), odd)


def cbrt_f32(v: Expr, y: Expr) -> Expr:
    """The root of a normal number, by a `y` within 4% of v^(-1/3)."""
    h = fma(mul(mul(y, y), neg(v)), y, 1.0)
    y = fma(mul(y, h), poly(h, CBRT_F32), y)
    square = mul(y, y)
    c = mul(v, square)
    return fma(fma(neg(mul(c, c)), c, v), mul(square, 1 / 3), c)


def cbrt_f64(v: Expr, y: Expr) -> Expr:
    """As `cbrt_f32`, the square of the root in two parts in the last step."""
    for _ in range(3):
        h = fma(mul(mul(y, y), neg(v)), y, 1.0)
        y = fma(mul(y, h), fma(h, 2 / 9, 1 / 3), y)
    square = mul(y, y)
    c = mul(v, square)
    c2, c2_low = two_product(c, c)
    rest = sub(fma(neg(c2), c, v), mul(c2_low, c))
    return fma(rest, mul(square, 1 / 3), c)


def rsqrt(x: Expr) -> Expr:
    return div(1.0, sqrt(x))


def hypot(x: Expr, y: Expr) -> Expr:
    """sqrt(x^2 + y^2) without overflow, the larger scaled to about 1; infinity wins over nan."""
    a, b = absolute(x), absolute(y)
    swap = less(a, b)
    large, small = where(swap, b, a), where(swap, a, b)
    field = {"f32": 0x7F800000, "f64": 0x7FF0000000000000}[x.dtype]
    bias = 2 * EXPONENT_BIAS[x.dtype]
    top = (bias - 1) << FRACTION_BITS[x.dtype]
    exponent = iop(
        "min", iop("max", iop("and", bits(large), field), 1 << FRACTION_BITS[x.dtype]), top
    )
    scale = from_bits(exponent, x.dtype)
    inverse = from_bits(
        iop("sub", const(bias << FRACTION_BITS[x.dtype], exponent.dtype), exponent), x.dtype
    )
    u, v = mul(large, inverse), mul(small, inverse)
    square, error = two_product(u, u)
    h = mul(sqrt(add(square, fma(v, v, error))), scale)
    h = where(any_of(is_nan(x), is_nan(y)), NAN, h)
    return where(any_of(equal(a, INF), equal(b, INF)), INF, h)
