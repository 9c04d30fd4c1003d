"""pow of f32: 2^(y log2(x)), the logarithm and the product as pairs of f32.

With x = 2^e m and m in [0.711, 1.422), a table of 32 gives c near 1/m with few bits, so that f = m
c - 1 is exact and small.
"""

from __future__ import annotations

from typing import Final

from calque.native.scalars.expr import Expr, both, make
from calque.native.scalars.vmath.base import (
    INF,
    NAN,
    absolute,
    add,
    all_of,
    any_of,
    at_most,
    bits,
    differ,
    equal,
    flip_sign,
    fma,
    from_bits,
    greater,
    iop,
    ldexp,
    less,
    lookup,
    mul,
    nearest_integer,
    neg,
    no_less,
    not_,
    poly,
    rare,
    sign_bit,
    sub,
    where,
)
from calque.native.scalars.vmath.logarithm import (
    SMALLEST,
    exponent_distance,
    exponent_field,
    unusual,
)

# The least m. With this one f is smallest where log2(m) is small, so that its error is small beside
# it.
BASE: Final = 0x3F3608F3
# By five bits of `exponent_distance`: c, and -log2(c) in two parts, the first with 16 bits after
# the point.
C: Final = (
    0.7109375, 0.7265625, 0.7421875, 0.765625, 0.78125, 0.796875, 0.8203125, 0.84375, 0.859375,
    0.890625, 0.9140625,
    0.9375, 0.96875, 1.0, 1.015625, 1.03125, 1.046875, 1.0625, 1.078125, 1.109375, 1.125,
    1.140625, 1.15625, 1.1875,
    1.203125, 1.234375, 1.25, 1.28125, 1.3125, 1.328125, 1.359375, 1.390625,
)  # fmt: skip
LOG2_HIGH: Final = (
    0.4922027587890625, 0.460845947265625, 0.430145263671875, 0.385284423828125, 0.35614013671875,
    0.32757568359375,
    0.2857513427734375, 0.2451171875, 0.2186431884765625, 0.1671142578125, 0.129638671875,
    0.093109130859375,
    0.045806884765625, 0.0, -0.022369384765625, -0.0443878173828125, -0.0660858154296875,
    -0.08746337890625,
    -0.1085205078125, -0.149749755859375, -0.169921875, -0.1898193359375, -0.2094573974609375,
    -0.2479248046875,
    -0.26678466796875, -0.3037872314453125, -0.321929931640625, -0.3575592041015625,
    -0.3923187255859375,
    -0.409393310546875, -0.4429473876953125, -0.475738525390625,
)  # fmt: skip
LOG2_LOW: Final = (
    2.601012283776072e-06, -4.75837350677466e-06, -8.720028290554183e-07, 5.732056706619915e-06,
    3.6735066260007443e-06, -1.0255652114210534e-06, 3.1395604764838936e-06, -4.68966345579247e-06,
    -2.902001142501831e-06, -4.271977104508551e-06, -3.391458449186757e-06, 2.7353209475222684e-07,
    -3.195152430635062e-06, 0.0, 1.571737129779649e-06, -6.301975645328639e-06,
    -3.3750279726518784e-06,
    5.376559215619636e-07, -3.9489655137003865e-06, 2.636354793139617e-06, -3.1264423796528718e-06,
    -5.22294249094557e-06, 4.0318318497156724e-06, -2.7087560283689527e-06, -1.8727261021922459e-06,
    6.483268407464493e-06, 1.8367533130003721e-06, 7.199483661679551e-06, 1.3028071634835214e-06,
    2.374409177718917e-06, 3.891846517944941e-06, 5.094424068374792e-06,
)  # fmt: skip
# log2(1 + f) = f LOG2_E + f (LOG2_E_LOW + f P(f)), |f| < 0.0196
LOG2_E: Final = 1.44269502162933349609375
LOG2_E_LOW: Final = 1.9259629911266175e-08
LOG2: Final = (-0.7213475108146667, 0.48089835047721863, -0.36078575253486633, 0.28864383697509766)
# 2^r = 1 + r P(r), |r| <= 1/2
EXP2: Final = (
    0.6931472420692444,
    0.24022655189037323,
    0.05550272762775421,
    0.009617064148187637,
    0.0013417742447927594,
    0.00015824608271941543,
)


def power(x: Expr, y: Expr) -> Expr:
    """x^y, C's pow. What is not a normal positive number to an ordinary result is put right
    aside."""
    odd_base = unusual(x)
    h, low = log2_pair(x, odd_base)
    t, t_low = times(y, h, low)
    p, i = exp2_parts(t, t_low)
    size = from_bits(iop("add", bits(p), iop("shl", i, 23)), "f32")
    odd = any_of(odd_base, not_(less(absolute(t), 124.0)))  # t_low is below 2 where t is so
    return rare(odd, size, special_cases(x, y, extreme_size(absolute(x), y, h, low)))


def times(y: Expr, h: Expr, low: Expr) -> tuple[Expr, Expr]:
    """y (h + low) as a sum."""
    t = mul(y, h)
    return t, fma(y, low, fma(y, h, neg(t)))


def exp2_parts(t: Expr, t_low: Expr) -> tuple[Expr, Expr]:
    """2^(t + t_low) = p 2^i."""
    n, i = nearest_integer(add(t, t_low), 1.0)
    return poly(add(sub(t, n), t_low), (1.0, *EXP2)), i


def extreme_size(a: Expr, y: Expr, h: Expr, low: Expr) -> Expr:
    """a^y for any y and any a that is not negative, where h + low is log2(a) if that is finite."""
    plain = both(greater(a, 0.0), less(a, INF))
    y = at_most(no_less(y, -3e38), 3e38)  # no infinity: a zero times it is a zero
    t, t_low = times(y, where(plain, h, where(equal(a, 0.0), -INF, a)), low)
    t_low = where(both(plain, less(absolute(t), 200.0)), t_low, 0.0)
    p, i = exp2_parts(at_most(no_less(t, -160.0), 130.0), t_low)
    return ldexp(p, i)


def log2_pair(x: Expr, odd: Expr) -> tuple[Expr, Expr]:
    """log2(|x|) as a sum, for |x| positive and finite; where x is not `odd`, it is a normal
    positive number."""
    a = absolute(x)
    tiny = less(a, SMALLEST["f32"])
    u = rare(odd, bits(x), where(tiny, iop("sub", bits(mul(a, 2.0**23)), 23 << 23), bits(a)))
    field, minus_e = exponent_field(u, "f32", BASE)
    m = from_bits(iop("add", u, field), "f32")
    index = iop("lshr", exponent_distance(u, "f32", BASE), 18)
    f = fma(m, lookup(index, C), -1.0)
    whole = sub(lookup(index, LOG2_HIGH), minus_e)
    p = mul(f, LOG2_E)
    rest = fma(f, fma(f, poly(f, LOG2), LOG2_E_LOW), fma(f, LOG2_E, neg(p)))
    h = add(whole, p)
    return h, add(add(sub(whole, h), p), add(rest, lookup(index, LOG2_LOW)))


def special_cases(x: Expr, y: Expr, size: Expr) -> Expr:
    """The sign, where x is negative and y an odd integer; nan and 1 where they are due."""
    whole = make("trunc", (y,), y.dtype)
    half = mul(y, 0.5)
    odd = both(equal(whole, y), differ(make("trunc", (half,), y.dtype), half))
    signed = flip_sign(size, where(odd, sign_bit(x), iop("and", bits(x), 0)))
    undefined = all_of(less(x, 0.0), greater(x, -INF), differ(whole, y))
    return where(any_of(equal(x, 1.0), equal(y, 0.0)), 1.0, where(undefined, NAN, signed))
