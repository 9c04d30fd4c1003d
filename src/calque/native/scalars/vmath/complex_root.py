"""1/sqrt of complex numbers x + iy: the real part and the imaginary one."""

from __future__ import annotations

from calque.native.scalars.expr import Expr, const, either
from calque.native.scalars.vmath import pairs
from calque.native.scalars.vmath.base import (
    EXPONENT_BIAS,
    FRACTION_BITS,
    INF,
    NAN,
    absolute,
    add,
    bits,
    copysign,
    div,
    equal,
    fast_two_sum,
    fma,
    from_bits,
    iop,
    less,
    mul,
    neg,
    power_of_two,
    rare,
    sqrt,
    where,
)
from calque.native.scalars.vmath.logarithm import unusual

Parts = tuple[Expr, Expr]


def rsqrt(x: Expr, y: Expr) -> Parts:
    """With m = |z| and t = sqrt((m + |x|) / 2): t / m and |y| / (2 t m), by one division; scaled by
    a power of 4 to about 1."""
    dtype, shift, bias = x.dtype, FRACTION_BITS[x.dtype], EXPONENT_BIAS[x.dtype]
    a, b = absolute(x), absolute(y)
    large = where(less(a, b), b, a)
    exponent = iop("min", iop("max", iop("lshr", bits(large), shift), 1), 2 * bias)
    k = iop("ashr", iop("sub", exponent, bias), 1)
    down = from_bits(iop("shl", iop("sub", const(bias, k.dtype), iop("add", k, k)), shift), dtype)
    back = power_of_two(iop("sub", const(0, k.dtype), k), dtype)
    u, v = mul(a, down), mul(b, down)
    square = pairs.size_squared(pairs.single(u), pairs.single(v))
    m = sqrt(square.high)
    w, w_low = fast_two_sum(m, u)
    half_w, half_v = mul(w, 0.5), mul(v, 0.5)
    t = sqrt(half_w)
    product = mul(t, m)
    inverse = div(1.0, product)
    over_m = mul(t, inverse)
    m_low = mul(mul(add(fma(neg(m), m, square.high), square.low), 0.5), over_m)
    t_low = fma(add(w_low, m_low), 0.5, fma(neg(t), t, half_w))
    t_low = mul(mul(t_low, mul(m, 0.5)), inverse)
    large_part, small_part = mul(t, over_m), mul(half_v, inverse)
    wrong = fma(neg(large_part), m_low, add(fma(neg(large_part), m, t), t_low))
    large_part = mul(fma(wrong, over_m, large_part), back)
    rest = fma(t, m_low, mul(t_low, m))
    wrong = fma(neg(small_part), rest, fma(neg(small_part), product, half_v))
    small_part = mul(fma(wrong, inverse, small_part), back)
    left = less(x, 0.0)
    re = where(left, small_part, large_part)
    im = copysign(where(left, large_part, small_part), neg(y))
    edge, none = unusual(square.high), either(equal(a, INF), equal(b, INF))
    far = where(none, 0.0, where(less(square.high, 1.0), INF, const(NAN, dtype)))
    far_im = where(none, copysign(0.0, neg(y)), NAN)
    return rare(edge, re, far), rare(edge, im, far_im)
