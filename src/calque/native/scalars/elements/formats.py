"""The narrow formats of ml_dtypes: they exist in memory only, as bytes. Here floats of at most 8
bits are decoded to f32 and encoded from f32 by integer arithmetic, with the bits ml_dtypes
gives."""

from __future__ import annotations

from typing import Final

from calque.machine.records import record
from calque.native.scalars.elements.values import op2
from calque.native.scalars.expr import Expr, cast, const, either, ex, select


@record
class FloatFormat:
    """A float of at most 8 bits. `largest` is the code of the largest finite number; `infinity` and
    `nan` are codes where there are such values (nan None: nans become `nothing`); a format without
    infinity saturates or overflows to nan.
    """

    exponent: int
    fraction: int
    bias: int
    largest: int
    infinity: int | None
    nan: int | None
    saturates: bool = False
    negative_zero: bool = True

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.fraction

    @property
    def sign(self) -> int:
        return 1 << (self.exponent + self.fraction)


FORMATS: Final[dict[str, FloatFormat]] = {
    "float8_e3m4": FloatFormat(3, 4, 3, 0x6F, 0x70, 0x78),
    "float8_e4m3": FloatFormat(4, 3, 7, 0x77, 0x78, 0x7C),
    "float8_e4m3fn": FloatFormat(4, 3, 7, 0x7E, None, 0x7F),
    "float8_e4m3b11fnuz": FloatFormat(4, 3, 11, 0x7F, None, 0x80, negative_zero=False),
    "float8_e4m3fnuz": FloatFormat(4, 3, 8, 0x7F, None, 0x80, negative_zero=False),
    "float8_e5m2": FloatFormat(5, 2, 15, 0x7B, 0x7C, 0x7E),
    "float8_e5m2fnuz": FloatFormat(5, 2, 16, 0x7F, None, 0x80, negative_zero=False),
    "float6_e2m3fn": FloatFormat(2, 3, 1, 0x1F, None, None, saturates=True),
    "float6_e3m2fn": FloatFormat(3, 2, 3, 0x1F, None, None, saturates=True),
    "float4_e2m1fn": FloatFormat(2, 1, 1, 0x7, None, None, saturates=True),
}
E8M0: Final = "float8_e8m0fnu"
SMALL_FLOATS: Final = frozenset(FORMATS) | {E8M0}
SMALL_INTS: Final = {"int4": 4, "int2": 2, "uint4": 4, "uint2": 2}


def i32(v: int) -> Expr:
    return const(v, "i32")


# --- decoding -------------------------------------------------------------------------------------


def decode(code: Expr, dtype: str) -> Expr:
    """The f32 value of a byte."""
    if dtype == E8M0:
        return decode_e8m0(code)
    f = FORMATS[dtype]
    i = cast(code, "i32")
    magnitude = op2("and", i, f.sign - 1)
    sign = op2("shl", op2("and", i, f.sign), 31 - f.exponent - f.fraction)
    # exponent and fraction put where f32 has them: small by 2^(127 - bias), denormals included,
    # which a multiplication mends
    raw = cast(op2("shl", magnitude, 23 - f.fraction), "f32", "bitcast")
    value = cast(ex("mul", raw, const(2.0 ** (127 - f.bias), "f32")), "i32", "bitcast")
    if f.infinity is not None:
        value = select(op2("eq", magnitude, f.infinity), i32(0x7F800000), value)
        value = select(op2("gt", magnitude, f.infinity), i32(0x7FC00000), value)
    elif f.nan is not None and f.negative_zero:
        value = select(op2("eq", magnitude, f.nan), i32(0x7FC00000), value)
    value = op2("or", value, sign)
    if not f.negative_zero:
        value = select(op2("eq", i, f.sign), i32(0x7FC00000 | -0x80000000), value)
    return cast(value, "f32", "bitcast")


def decode_e8m0(code: Expr) -> Expr:
    """2^(code - 127); 255 is nan."""
    i = cast(code, "i32")
    value = select(op2("eq", i, 0), i32(0x00400000), op2("shl", i, 23))
    return cast(select(op2("eq", i, 255), i32(0x7FC00000), value), "f32", "bitcast")


# --- encoding -------------------------------------------------------------------------------------


def encode(x: Expr, dtype: str) -> Expr:
    """The byte nearest to an f32 (ties to even)."""
    if dtype == E8M0:
        return encode_e8m0(x)
    f = FORMATS[dtype]
    i = cast(x, "i32", "bitcast")
    a = op2("and", i, 0x7FFFFFFF)
    sign = op2("lshr", op2("and", i, -0x80000000), 31 - f.exponent - f.fraction)
    is_nan = op2("gt", a, 0x7F800000)
    code = clamp_code(f, rounded_code(f, a))
    if f.infinity is not None:
        assert f.nan is not None
        code = select(is_nan, i32(f.nan), code)
    elif f.nan is None:
        code = select(is_nan, i32(0), code)
        sign = select(is_nan, op2("xor", sign, f.sign), sign)
    elif f.negative_zero:
        code = select(is_nan, i32(f.nan), code)
    if f.negative_zero:
        return cast(op2("or", code, sign), "u8")
    signed = select(op2("eq", code, 0), code, op2("or", code, sign))
    return cast(select(either(is_nan, op2("gt", code, f.largest)), i32(f.sign), signed), "u8")


def rounded_code(f: FloatFormat, a: Expr) -> Expr:
    """The code of a magnitude given as f32 bits, as if exponents had no upper end."""
    drop = 23 - f.fraction
    odd = op2("and", op2("lshr", a, drop), 1)
    normal = op2(
        "sub",
        op2("lshr", op2("add", op2("add", a, (1 << (drop - 1)) - 1), odd), drop),
        (127 - f.bias) << f.fraction,
    )
    # a denormal is a multiple of 2^(1 - bias - fraction): adding 2^23 times that rounds to one,
    # found in the low bits
    magic = const(2.0 ** (24 - f.bias - f.fraction), "f32")
    small = ex("add", cast(a, "f32", "bitcast"), magic)
    denormal = op2("sub", cast(small, "i32", "bitcast"), cast(magic, "i32", "bitcast"))
    return select(op2("lt", a, (128 - f.bias) << 23), denormal, normal)


def clamp_code(f: FloatFormat, code: Expr) -> Expr:
    """Codes beyond the largest: infinity, nan, or the largest itself. Formats whose nan is the code
    0x80 are left for later."""
    if f.saturates:
        return op2("min", code, f.largest)
    if f.infinity is not None:
        return op2("min", code, f.infinity)
    return op2("min", code, f.nan if f.negative_zero and f.nan is not None else f.largest + 1)


def encode_e8m0(x: Expr) -> Expr:
    """The nearest power of two (halfway: up; from 2^-127: always up); nothing negative, no zero and
    no infinity."""
    i = cast(x, "i32", "bitcast")
    normal = op2("lshr", op2("add", i, 0x400000), 23)
    denormal = select(op2("gt", i, 0x00400000), i32(1), i32(0))
    code = select(op2("lt", i, 0x00800000), denormal, normal)
    bad = either(op2("le", i, 0), op2("ge", i, 0x7F800000))
    return cast(select(bad, i32(255), op2("min", code, 255)), "u8")


# --- small integers ------------------------------------------------------------------------------


def pack_small(x: Expr, dtype: str) -> Expr:
    """A byte as ml_dtypes stores it: what is above the low bits is clear."""
    return op2("and", x, (1 << SMALL_INTS[dtype]) - 1)


def wrap_small(x: Expr, dtype: str) -> Expr:
    """The value of a stored byte: its low bits, sign-extended for int4 and int2."""
    unused = 8 - SMALL_INTS[dtype]
    return op2("ashr" if dtype[0] == "i" else "lshr", op2("shl", x, unused), unused)
