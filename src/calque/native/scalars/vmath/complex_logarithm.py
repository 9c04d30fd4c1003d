"""log, log1p and atanh of complex numbers x + iy: the real part and the imaginary one.

The real part is half the logarithm of a sum of squares, which is a pair: nothing is lost near 1,
where the logarithm is about its distance from 1."""

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
    is_nan,
    less,
    mul,
    neg,
    not_,
    rare,
    sub,
    two_product,
    two_sum,
    where,
)
from calque.native.scalars.vmath.inverse_trigonometric import HALF_PI, angle
from calque.native.scalars.vmath.logarithm import (
    combine_pair,
    exponent_field,
    log,
    small_integer,
    split1p_scaled,
    unusual,
)
from calque.native.scalars.vmath.pairs import Pair

Parts = tuple[Expr, Expr]

# atanh: beyond the first, and so near to 1 that the square is less than the second
BIG: Final = {"f32": (2.0**40, 2.0**-80), "f64": (2.0**300, 2.0**-160)}


def log_hypot(x: Expr, y: Expr) -> Expr:
    """log(sqrt(x^2 + y^2))."""
    return log_size(Pair(x, const(0.0, x.dtype)), y)


def log_size(x: Pair, y: Expr) -> Expr:
    """log(sqrt(x^2 + y^2)), both scaled so that the larger one is about 1."""
    dtype, shift = y.dtype, FRACTION_BITS[y.dtype]
    a, b = absolute(x.high), absolute(y)
    swap = less(a, b)
    large, small = where(swap, b, a), where(swap, a, b)
    twice_bias = 2 * EXPONENT_BIAS[dtype]
    exponent = iop("lshr", bits(large), shift)
    exponent = iop("min", iop("max", exponent, 1), twice_bias - 1)
    down = from_bits(
        iop("shl", iop("sub", const(twice_bias, exponent.dtype), exponent), shift), dtype
    )
    k = small_integer(iop("sub", exponent, EXPONENT_BIAS[dtype]), dtype)
    large, small = mul(large, down), mul(small, down)
    square, rest = two_product(large, large)
    total = fma(small, small, square)
    rest = add(rest, fma(small, small, sub(square, total)))
    half = mul(mul(x.high, down), mul(x.low, down))
    out = _half_log(total, fma(half, 2.0, rest), k)
    edge = where(is_nan(total), NAN, where(less(total, 1.0), -INF, const(INF, dtype)))
    edge = where(either(equal(a, INF), equal(b, INF)), INF, edge)
    return rare(unusual(total), out, edge)


def _half_log(high: Expr, low: Expr, k: Expr) -> Expr:
    """log(high + low) / 2 + k ln 2, for a normal number."""
    dtype, shift = high.dtype, FRACTION_BITS[high.dtype]
    field, minus_e = exponent_field(bits(high), dtype)
    f = sub(from_bits(iop("add", bits(high), field), dtype), 1.0)
    scale = from_bits(iop("add", field, EXPONENT_BIAS[dtype] << shift), dtype)
    f, f_low = fast_two_sum(f, mul(low, scale))
    return mul(combine_pair(f, f_low, fma(k, -2.0, minus_e)), 0.5)


def log1p(x: Expr, y: Expr) -> Parts:
    u, low = two_sum(const(1.0, x.dtype), x)
    return log_size(Pair(u, low), y), angle(y, Pair(u, low))


def atanh(x: Expr, y: Expr) -> Parts:
    """With d = (1 - |x|)^2 + y^2: log1p(4 |x| / d) / 4, and half the angle of 2 (1 - |x|) - d + 2i
    y."""
    a, b = absolute(x), absolute(y)
    w = Pair(*two_sum(const(1.0, x.dtype), neg(a)))
    d = pairs.size_squared(w, pairs.single(b))
    q = pairs.quotient(pairs.single(mul(a, 4.0)), d, div(1.0, d.high))
    f, minus_e, scale = split1p_scaled(q.high)
    re = mul(combine_pair(f, mul(q.low, scale), minus_e), 0.25)
    g = add(fma(w.high, 2.0, neg(d.high)), fma(w.low, 2.0, neg(d.low)))
    im = mul(angle(add(b, b), pairs.single(g)), 0.5)
    big, small = BIG[x.dtype]
    near, far = less(d.high, small), not_(both(less(a, big), less(b, big)))
    edge_re = where(near, mul(log(mul(b, 0.5)), -0.5), _far(a, b, big))
    known = either(not_(either(is_nan(a), is_nan(b))), equal(b, INF))
    edge_im = where(near, im, where(known, HALF_PI[x.dtype][0], add(a, b)))
    edge = either(near, far)
    return copysign(rare(edge, re, edge_re), x), copysign(rare(edge, im, edge_im), y)


def _far(a: Expr, b: Expr, big: float) -> Expr:
    """a / (a^2 + b^2) for a number of which one part is big; 0 where that is infinite."""
    u, v = mul(a, 1 / big**2), mul(b, 1 / big**2)
    r = mul(div(u, fma(u, u, mul(v, v))), 1 / big**2)
    r = where(either(equal(a, INF), equal(b, INF)), 0.0, r)
    return where(both(equal(a, 0.0), is_nan(b)), 0.0, r)
