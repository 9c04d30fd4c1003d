"""log, log2, log1p and the inverse hyperbolic functions.

x = 2^e m with m in [sqrt(1/2), sqrt(2)), f = m - 1 and log(m) = f + f^2 P(f)."""

from __future__ import annotations

from typing import Final

from calque.native.scalars.expr import Expr, cast, const
from calque.native.scalars.vmath.base import (
    EXPONENT_BIAS,
    FRACTION_BITS,
    INF,
    NAN,
    absolute,
    add,
    any_of,
    bits,
    copysign,
    div,
    equal,
    fast_two_sum,
    fma,
    from_bits,
    greater,
    iop,
    less,
    mul,
    neg,
    not_,
    not_within,
    poly,
    rare,
    sqrt,
    sub,
    where,
)

# (log(1+f) - f) / f^2
LOG_F32: Final = (
    -0.49999988079071045, 0.3333333134651184, -0.25001561641693115, 0.2000160664319992,
    -0.16609250009059906, 0.14192315936088562,
    -0.13255736231803894, 0.12832622230052948, -0.07489591091871262,
)  # fmt: skip
# (log(1+f) - f + f^2/2) / f^3
LOG_F64: Final = (
    0.3333333333333335, -0.2500000000000037, 0.19999999999993043, -0.16666666666546928,
    0.14285714286710066, -0.12500000014699184,
    0.11111111048795372, -0.09999999062602032, 0.09090910879966128, -0.08333368203194189,
    0.07692295290968341, -0.07142068158723121,
    0.06666041678751086, -0.06260734373345274, 0.0590130659350038, -0.05475570036821639,
    0.050325164636110226, -0.05211759596784287,
    0.0605455309497854, -0.05354992762092743, 0.022009365110263156,
)  # fmt: skip
# log2(1+f) = f C + f P(f), C rounded
LOG2_F32: Final = (
    1.9201335632601513e-08, -0.7213473320007324, 0.4808982312679291, -0.3606986701488495,
    0.2885698974132538, -0.2395661175251007,
    0.20451617240905762, -0.19143173098564148, 0.18690794706344604, -0.10992606729269028,
)  # fmt: skip
LN2: Final = {"f32": 0.693147182464599609375, "f64": 0.6931471805599453}
LN2_LOW: Final = 2.3190468138462996e-17
LOG2_E: Final = {"f32": 1.44269502162933349609375, "f64": 1.4426950408889634}
LOG2_E_LOW: Final = 2.0355273740931033e-17
SQRT_HALF: Final = {"f32": 0x3F3504F3, "f64": 0x3FE6A09E667F3BCD}
SMALLEST: Final = {"f32": 2.0**-126, "f64": 2.0**-1022}


def small_integer(e: Expr, dtype: str) -> Expr:
    """A small integer as a float (by way of i32: 64-bit conversions are slow or missing on many
    machines)."""
    return cast(cast(e, "i32"), dtype)


def unusual(x: Expr) -> Expr:
    """Is x anything but positive, normal and finite?"""
    bias = EXPONENT_BIAS[x.dtype]
    return not_within(x, 1 - bias, 1 + bias)


def exponent_distance(u: Expr, dtype: str, base: int) -> Expr:
    """For the bits of 2^e m, base <= bits(m) < bits(2 base): an integer with -e above and, below
    it, what falls as m grows."""
    return iop("sub", const(base + (1 << FRACTION_BITS[dtype]) - 1, u.dtype), u)


def exponent_field(u: Expr, dtype: str, base: int | None = None) -> tuple[Expr, Expr]:
    """-e where the exponent stands in a float, and -e as a float; m in [sqrt(1/2), sqrt(2)) without
    another base.

    Minus e, because e = 0 must not turn a -0 that is added to it into 0."""
    d, shift = exponent_distance(u, dtype, base or SQRT_HALF[dtype]), FRACTION_BITS[dtype]
    return iop("and", d, -1 << shift), small_integer(iop("ashr", d, shift), dtype)


def split(x: Expr) -> tuple[Expr, Expr]:
    """x = 2^e (1 + f): f and -e. Where log(x) is infinite or nan, -e is so too, with the sign that
    belongs to it; f never is."""
    dtype, shift = x.dtype, FRACTION_BITS[x.dtype]
    special, tiny = unusual(x), less(x, SMALLEST[x.dtype])
    u = rare(
        special, bits(x), where(tiny, iop("sub", bits(mul(x, 2.0**shift)), shift << shift), bits(x))
    )
    field, minus_e = exponent_field(u, dtype)
    f = sub(from_bits(iop("add", u, field), dtype), 1.0)
    odd = where(tiny, where(equal(x, 0.0), INF, where(less(x, 0.0), NAN, minus_e)), neg(x))
    return f, rare(special, minus_e, odd)


def split1p(x: Expr) -> tuple[Expr, Expr]:
    """1 + x = 2^e (1 + f) for finite x > -1: f and -e; f = 2^-e x + (2^-e - 1) is rounded once."""
    return split1p_scaled(x)[:2]


def split1p_scaled(x: Expr) -> tuple[Expr, Expr, Expr]:
    """The same, and 2^-e."""
    dtype = x.dtype
    field, minus_e = exponent_field(bits(add(x, 1.0)), dtype)
    up = from_bits(iop("add", field, (EXPONENT_BIAS[dtype] + 2) << FRACTION_BITS[dtype]), dtype)
    scale = mul(up, 0.25)  # 2^-e may be denormal
    return fma(x, scale, neg(sub(1.0, scale))), minus_e, scale


def combine(f: Expr, minus_e: Expr, correction: Expr | None = None) -> Expr:
    """e ln 2 + log(1 + f) (+ a tiny correction)."""
    z = mul(f, f)
    if f.dtype == "f32":
        p = poly(f, LOG_F32)
        y = fma(z, p, f) if correction is None else add(f, fma(z, p, correction))
        return fma(minus_e, -LN2["f32"], y)
    half = mul(z, -0.5) if correction is None else fma(z, -0.5, correction)
    tail = fma(mul(z, f), poly(f, LOG_F64), fma(minus_e, -LN2_LOW, half))
    return fma(minus_e, -LN2["f64"], add(f, tail))


def combine_pair(f: Expr, low: Expr, minus_e: Expr) -> Expr:
    """e ln 2 + log(1 + f + low), where low is at most a last place of 1 + f."""
    return combine(f, minus_e, fma(neg(low), f, low))


def log(x: Expr) -> Expr:
    return combine(*split(x))


def log2(x: Expr) -> Expr:
    """With log2(e) in two parts, exact at powers of two."""
    f, minus_e = split(x)
    high = LOG2_E[x.dtype]
    if x.dtype == "f32":
        y = mul(f, high)
        return sub(add(y, fma(f, poly(f, LOG2_F32), fma(f, high, neg(y)))), minus_e)
    z = mul(f, f)
    tail = fma(mul(z, f), poly(f, LOG_F64), mul(z, -0.5))
    y, error = fast_two_sum(f, tail)
    return sub(fma(y, high, fma(y, LOG2_E_LOW, mul(error, high))), minus_e)


def log1p(x: Expr) -> Expr:
    odd = where(equal(x, -1.0), -INF, where(less(x, -1.0), NAN, x))
    return rare(unusual(add(x, 1.0)), combine(*split1p(x)), odd)


HUGE: Final = {"f32": 2.0**30, "f64": 2.0**60}


def asinh(x: Expr) -> Expr:
    """log1p(a + a^2 / (1 + sqrt(1 + a^2))); for huge a, log(2 a)."""
    a = absolute(x)
    huge = greater(a, HUGE[x.dtype])
    z = mul(a, a)
    t = add(a, div(z, add(sqrt(add(z, 1.0)), 1.0)))
    f, e = split1p(where(huge, a, t))
    y = combine(f, where(huge, sub(e, 1.0), e))
    plain = any_of(less(a, {"f32": 2.0**-13, "f64": 2.0**-28}[x.dtype]), not_(less(a, INF)))
    return where(plain, x, copysign(y, x))


def acosh(x: Expr) -> Expr:
    """log1p(t + sqrt(2 t + t^2)) with t = x - 1; for huge x, log(2 x)."""
    huge = greater(x, HUGE[x.dtype])
    t = sub(x, 1.0)
    u, error = fast_two_sum(sqrt(fma(t, t, add(t, t))), t)
    f, e = split1p(where(huge, x, u))
    error = where(less(x, 1.0625), error, 0.0)  # matters only while log1p(u) is about u
    y = where(less(x, INF), combine(f, where(huge, sub(e, 1.0), e), error), x)
    return where(less(x, 1.0), NAN, y)


def atanh(x: Expr) -> Expr:
    """log1p(2 a / (1 - a)) / 2, with what the quotient lacks where that matters."""
    a = absolute(x)
    below = sub(1.0, a)
    ratio = div(add(a, a), below)
    lost = sub(sub(1.0, below), a)  # of the difference
    rest = fma(neg(ratio), below, fma(neg(ratio), lost, add(a, a)))
    f, e, scale = split1p_scaled(ratio)
    error = mul(fma(mul(rest, 0.5), ratio, rest), scale)  # 1 / (1 - a) is 1 + ratio / 2
    y = mul(combine(f, e, where(less(a, 0.5), error, 0.0)), 0.5)
    y = where(less(a, {"f32": 2.0**-13, "f64": 2.0**-28}[x.dtype]), a, y)
    y = where(equal(a, 1.0), INF, y)
    return copysign(where(greater(a, 1.0), NAN, y), x)
