"""1/sqrt of complex numbers x + iy: the real part and the imaginary one."""

from __future__ import annotations

from typing import Final

from calque.native.scalars.expr import Expr, both, const, either
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
    not_within,
    power_of_two,
    rare,
    sqrt,
    where,
)

Parts = tuple[Expr, Expr]


SAFE: Final = {"f32": 50, "f64": 450}  # so many powers of 2 to either side need no scaling


def rsqrt(x: Expr, y: Expr) -> Parts:
    """With m = |z| and t = sqrt((m + |x|) / 2): t / m and |y| / (2 t m)."""
    a, b = absolute(x), absolute(y)
    large = where(less(a, b), b, a)
    large_part, small_part = sizes(a, b)
    left = less(x, 0.0)
    re, im = where(left, small_part, large_part), where(left, large_part, small_part)
    safe = SAFE[x.dtype]
    far = _far(a, b, large, left)
    unusual = not_within(large, -safe, safe)
    return rare(unusual, re, far[0]), copysign(rare(unusual, im, far[1]), neg(y))


def sizes(u: Expr, v: Expr) -> Parts:
    """The two quotients for numbers that are neither huge nor tiny, by one division."""
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
    rest = fma(t, m_low, mul(t_low, m))
    more = fma(neg(small_part), rest, fma(neg(small_part), product, half_v))
    return fma(wrong, over_m, large_part), fma(more, inverse, small_part)


def _far(a: Expr, b: Expr, large: Expr, left: Expr) -> Parts:
    """The sizes of the parts by a power of 4 that makes the number about 1; zeros for infinities,
    and an infinity for zero."""
    dtype, shift, bias = a.dtype, FRACTION_BITS[a.dtype], EXPONENT_BIAS[a.dtype]
    exponent = iop("min", iop("max", iop("lshr", bits(large), shift), 1), 2 * bias)
    k = iop("ashr", iop("sub", exponent, bias), 1)
    down = from_bits(iop("shl", iop("sub", const(bias, k.dtype), iop("add", k, k)), shift), dtype)
    back = power_of_two(iop("sub", const(0, k.dtype), k), dtype)
    large_part, small_part = (mul(part, back) for part in sizes(mul(a, down), mul(b, down)))
    re, im = where(left, small_part, large_part), where(left, large_part, small_part)
    none = both(equal(a, 0.0), equal(b, 0.0))
    endless = either(equal(a, INF), equal(b, INF))
    re = where(endless, 0.0, where(none, INF, re))
    return re, where(endless, 0.0, where(none, NAN, im))
