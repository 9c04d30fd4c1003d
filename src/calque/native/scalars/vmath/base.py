"""Short names for building formulas; numbers are lifted to the dtype of their partner.

Everything here is element-wise and without branches. Emission never contracts inside a math
function, and `fma` is explicit, so that a formula gives the same bits on every machine, at every
vector width, alone or fused with what surrounds it."""

from __future__ import annotations

from typing import Final

from calque.native.scalars.expr import Expr, cast, const, const_bits, ex, float_bits, make, select

Number = float | int
Operand = Expr | float | int

INT_OF: Final = {"f16": "i16", "bf16": "i16", "f32": "i32", "f64": "i64"}
UINT_OF: Final = {"f16": "u16", "bf16": "u16", "f32": "u32", "f64": "u64"}
WIDTH: Final = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
FRACTION_BITS: Final = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}
EXPONENT_BIAS: Final = {"f16": 15, "bf16": 127, "f32": 127, "f64": 1023}
SIGN: Final = {"f32": -0x80000000, "f64": -0x8000000000000000}
INF: Final = float("inf")
NAN: Final = float("nan")
MAGIC: Final = {
    "f32": 1.5 * 2.0**23,
    "f64": 1.5 * 2.0**52,
}  # adding it rounds to an integer, found in the low bits


def lift(v: Operand, dtype: str) -> Expr:
    """A number as a constant; an expression as it is."""
    return v if isinstance(v, Expr) else const(v, dtype)


def pair(a: Operand, b: Operand) -> tuple[Expr, Expr]:
    """Both as expressions of one dtype."""
    if isinstance(a, Expr):
        return a, lift(b, a.dtype)
    assert isinstance(b, Expr)
    return lift(a, b.dtype), b


def add(a: Operand, b: Operand) -> Expr:
    x, y = pair(a, b)
    return make("add", (x, y), x.dtype)


def sub(a: Operand, b: Operand) -> Expr:
    x, y = pair(a, b)
    return make("sub", (x, y), x.dtype)


def mul(a: Operand, b: Operand) -> Expr:
    x, y = pair(a, b)
    return make("mul", (x, y), x.dtype)


def div(a: Operand, b: Operand) -> Expr:
    x, y = pair(a, b)
    return make("div", (x, y), x.dtype)


def fma(a: Expr, b: Operand, c: Operand) -> Expr:
    """a * b + c, rounded once."""
    return make("fma", (a, lift(b, a.dtype), lift(c, a.dtype)), a.dtype)


def neg(a: Expr) -> Expr:
    return make("neg", (a,), a.dtype)


def absolute(a: Expr) -> Expr:
    return make("abs", (a,), a.dtype)


def sqrt(a: Expr) -> Expr:
    return make("sqrt", (a,), a.dtype)


def copysign(a: Operand, b: Expr) -> Expr:
    """The magnitude of `a` with the sign of `b`."""
    return make("copysign", (lift(a, b.dtype), b), b.dtype)


def nearest(a: Expr) -> Expr:
    """To the nearest integer, ties to even."""
    return make("round", (a,), a.dtype)


def where(cond: Expr, a: Operand, b: Operand) -> Expr:
    x, y = pair(a, b)
    return select(cond, x, y)


def rare(cond: Expr, common: Expr, seldom: Expr) -> Expr:
    """`seldom` where `cond`, else `common`; emission may skip the work of `seldom` when no lane
    needs it."""
    return make("rare", (cond, common, seldom), common.dtype)


def less(a: Operand, b: Operand) -> Expr:
    return ex("lt", *pair(a, b))


def less_equal(a: Operand, b: Operand) -> Expr:
    return ex("le", *pair(a, b))


def greater(a: Operand, b: Operand) -> Expr:
    return ex("gt", *pair(a, b))


def greater_equal(a: Operand, b: Operand) -> Expr:
    return ex("ge", *pair(a, b))


def equal(a: Operand, b: Operand) -> Expr:
    return ex("eq", *pair(a, b))


def differ(a: Operand, b: Operand) -> Expr:
    return ex("ne", *pair(a, b))


def is_nan(a: Expr) -> Expr:
    return ex("ne", a, a)


def not_(a: Expr) -> Expr:
    return ex("not", a)


def all_of(first: Expr, *rest: Expr) -> Expr:
    for c in rest:
        first = ex("and", first, c)
    return first


def any_of(first: Expr, *rest: Expr) -> Expr:
    for c in rest:
        first = ex("or", first, c)
    return first


def at_most(a: Expr, limit: Number) -> Expr:
    """min(a, limit), a nan passes."""
    return where(greater(a, limit), limit, a)


def no_less(a: Expr, limit: Number) -> Expr:
    """max(a, limit), a nan passes."""
    return where(less(a, limit), limit, a)


# --- integers -------------------------------------------------------------------------------------


def iop(op: str, a: Expr, b: Expr | int) -> Expr:
    """An integer operation: add sub mul and or xor shl lshr ashr."""
    return ex(op, a, b if isinstance(b, Expr) else const(b, a.dtype))


def bits(a: Expr) -> Expr:
    """The bit pattern of a float as a signed integer."""
    return cast(a, INT_OF[a.dtype], "bitcast")


def from_bits(i: Expr, dtype: str) -> Expr:
    return cast(i, dtype, "bitcast")


def pattern(value: int, dtype: str) -> Expr:
    """A float constant given by its bits."""
    return const_bits(value, dtype)


def flip_sign(a: Expr, sign: Expr) -> Expr:
    """`a` with its sign flipped where the sign bit of the integer `sign` is set (its other bits
    must be clear)."""
    return from_bits(iop("xor", bits(a), sign), a.dtype)


def sign_bit(a: Expr) -> Expr:
    """The sign bit alone, as an integer."""
    return iop("and", bits(a), SIGN[a.dtype])


def power_of_two(n: Expr, dtype: str) -> Expr:
    """2^n for an integer n (of the float's width) in the range of normal numbers."""
    return from_bits(iop("shl", iop("add", n, EXPONENT_BIAS[dtype]), FRACTION_BITS[dtype]), dtype)


def ldexp(a: Expr, n: Expr) -> Expr:
    """a * 2^n, rounded once, for an `n` of `nearest_integer`."""
    return make_ldexp(a, whole(n) if a.dtype == "f32" else cast(n, "i32"))


def make_ldexp(a: Expr, n: Expr) -> Expr:
    """a * 2^n, rounded once, for an i32."""
    return make("ldexp", (a, n), a.dtype)


def ldexp_by_parts(a: Expr, n: Expr) -> Expr:
    """`ldexp` by two multiplications, for machines without an instruction for it: the first is
    exact for a near 1 and |n| <= 2 * bias, so that the result is rounded once and has the same
    bits."""
    n = cast(n, INT_OF[a.dtype])
    half = iop("ashr", n, 1)
    return mul(mul(a, power_of_two(half, a.dtype)), power_of_two(iop("sub", n, half), a.dtype))


def not_within(a: Expr, low: int, high: int) -> Expr:
    """Is `a` anything but a number from 2^low to 2^high?"""
    one, bias = 1 << FRACTION_BITS[a.dtype], EXPONENT_BIAS[a.dtype]
    above = cast(iop("sub", bits(a), (low + bias) * one), UINT_OF[a.dtype], "bitcast")
    return greater_equal(above, const((high - low) * one, above.dtype))


# --- polynomials ----------------------------------------------------------------------------------


def poly(x: Expr, coefficients: tuple[float, ...]) -> Expr:
    """sum coefficients[k] x^k by Horner's rule."""
    r = const(coefficients[-1], x.dtype)
    for c in coefficients[-2::-1]:
        r = make("fma", (r, x, const(c, x.dtype)), x.dtype)
    return r


def pick(x: Expr, f32: tuple[float, ...], f64: tuple[float, ...]) -> tuple[float, ...]:
    """The coefficients for the dtype of `x`."""
    return f32 if x.dtype == "f32" else f64


def nearest_integer(x: Expr, scale: float) -> tuple[Expr, Expr]:
    """round(x * scale) as a float, and as an integer of the same width of which only the low bits
    count (9 for f32, 32 for f64): enough for a sign or an exponent. |x * scale| must stay below
    2^21 (f32) or 2^50 (f64)."""
    magic = MAGIC[x.dtype]
    shifted = fma(x, scale, magic)
    return sub(shifted, magic), bits(shifted)


def whole(n: Expr) -> Expr:
    """The integer of `nearest_integer` with all its bits right."""
    return iop("sub", n, 0x4B400000 if n.dtype == "i32" else 0x4338000000000000)


def lookup(index: Expr, table: tuple[float, ...], dtype: str = "f32") -> Expr:
    """The number of a table of 32 at an i32 index, of which the low five bits count."""
    return make("lookup", (index,), dtype, tuple([float_bits(v, dtype) for v in table]))


# --- two numbers for one --------------------------------------------------------------------------


def two_sum(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """a + b exactly, as a rounded sum and its error."""
    s = add(a, b)
    bb = sub(s, a)
    return s, add(sub(a, sub(s, bb)), sub(b, bb))


def fast_two_sum(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """As `two_sum`, for |a| >= |b| (or a = 0)."""
    s = add(a, b)
    return s, sub(b, sub(s, a))


def two_product(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """a * b exactly, as a rounded product and its error."""
    p = mul(a, b)
    return p, fma(a, b, neg(p))
