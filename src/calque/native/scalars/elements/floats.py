"""Real floating-point elements: what is neither one operation nor a function of `vmath`."""

from __future__ import annotations

from typing import Final

from calque.native.scalars.elements.conversions import convert_real
from calque.native.scalars.elements.values import op2
from calque.native.scalars.expr import Expr, both, cast, const, either, ex, make, select
from calque.native.scalars.powers import NAMES

BITS: Final = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
FRACTION: Final = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}
EXPONENT: Final = {"f16": 5, "bf16": 8, "f32": 8, "f64": 11}
INF: Final = float("inf")


def int_of(x: Expr) -> Expr:
    """The bit pattern as a signed integer."""
    return cast(x, f"i{BITS[x.dtype]}", "bitcast")


def math(name: str, *args: Expr) -> Expr:
    """A function of `vmath`; halves by way of f32, rounded once."""
    d = args[0].dtype
    if d in ("f16", "bf16"):
        return cast(make(name, tuple([cast(a, "f32") for a in args]), "f32"), d)
    return make(name, args, d)


def sign(x: Expr) -> Expr:
    """-1, 1, or x itself where it is a zero or a nan."""
    plain = either(op2("eq", x, 0.0), ex("ne", x, x))
    return select(plain, x, ex("copysign", const(1.0, x.dtype), x))


def is_finite(x: Expr) -> Expr:
    return op2("lt", ex("abs", x), INF)


def round_away(x: Expr) -> Expr:
    """To the nearest integer, halfway cases away from zero."""
    t = ex("trunc", x)
    half = op2("ge", ex("abs", ex("sub", x, t)), 0.5)
    up = ex("add", t, ex("copysign", const(1.0, x.dtype), x))
    return ex("copysign", select(half, up, t), x)


def nextafter(x: Expr, y: Expr) -> Expr:
    """One step of the bit pattern towards y."""
    i = int_of(x)
    one, zero = const(1, i.dtype), const(0, i.dtype)
    away = ex("eq", ex("lt", x, y), ex("ge", i, zero))  # grows in magnitude
    step = ex("add", i, select(away, one, const(-1, i.dtype)))
    top = const(-(1 << (BITS[x.dtype] - 1)), i.dtype)
    tiny = ex("or", ex("and", int_of(y), top), one)
    moved = cast(select(op2("eq", x, 0.0), tiny, step), x.dtype, "bitcast")
    same = select(ex("eq", x, y), y, moved)
    return select(either(ex("ne", x, x), ex("ne", y, y)), const(float("nan"), x.dtype), same)


def integer_power(x: Expr, y: int) -> Expr:
    """x^y by squaring; halves in f32, rounded once."""
    d = x.dtype
    if d in ("f16", "bf16"):
        x = cast(x, "f32")
    out: Expr | None = None
    n, base = abs(y), x
    while n:
        if n & 1:
            out = base if out is None else ex("mul", out, base)
        n >>= 1
        if n:
            base = ex("mul", base, base)
    out = const(1.0, x.dtype) if out is None else out
    return cast(ex("div", const(1.0, x.dtype), out) if y < 0 else out, d)


def power(x: Expr, y: Expr, y_dtype: str) -> Expr:
    """x^y for a float or an integer y; the sign for an integer one comes from its last bit, which a
    float may have lost."""
    if y_dtype in BITS:
        return math("pow", x, y)
    size = math(
        "pow",
        ex("abs", x),
        cast(convert_real(y, y_dtype, "f32" if x.dtype != "f64" else "f64"), x.dtype),
    )
    odd = ex("ne", ex("and", y, const(1, y.dtype)), const(0, y.dtype))
    negative = ex("lt", int_of(x), const(0, int_of(x).dtype))
    return select(both(odd, negative), ex("neg", size), size)


def fixed_power(x: Expr, exponent: float) -> Expr:
    """x^exponent for one of `power_roots.NAMES`."""
    return math(NAMES[exponent], x)


def reduce_precision(x: Expr, exponent_bits: int, mantissa_bits: int) -> Expr:
    """Rounded to fewer fraction bits (ties to even); exponents out of the smaller range become
    infinity or zero."""
    d = x.dtype
    i = int_of(x)
    w, fraction, exponent = BITS[d], FRACTION[d], EXPONENT[d]

    def k(v: int) -> Expr:
        return const(v, i.dtype)

    sign_mask = k(-(1 << (w - 1)))
    a, s = ex("and", i, k((1 << (w - 1)) - 1)), ex("and", i, sign_mask)
    infinity = ((1 << exponent) - 1) << fraction
    r = a
    if mantissa_bits < fraction:
        drop = fraction - mantissa_bits
        odd = ex("and", ex("lshr", a, k(drop)), k(1))
        r = ex("add", ex("add", a, k((1 << (drop - 1)) - 1)), odd)
        r = ex("and", r, k(-(1 << drop)))
    if exponent_bits < exponent:
        bias, small = (1 << (exponent - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        r = select(ex("gt", r, k(((bias + small + 1) << fraction) - 1)), k(infinity), r)
        r = select(ex("lt", r, k((bias - small + 1) << fraction)), k(0), r)
    special = ex("ge", a, k(infinity))
    return select(special, x, cast(ex("or", r, s), d, "bitcast"))


def order_key(x: Expr) -> Expr:
    """An integer in the total order of floats: -nan, -inf, ..., -0, 0, ..., inf, nan."""
    i, w = int_of(x), BITS[x.dtype]
    flip = ex("and", ex("ashr", i, const(w - 1, i.dtype)), const((1 << (w - 1)) - 1, i.dtype))
    return ex("xor", i, flip)
