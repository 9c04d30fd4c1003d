"""Conversions of elements between all dtypes, as expressions.

Floats of 16 bits and more, integers and bools are converted by the expression language itself
(`cast`: float to int saturates and makes nan 0; halves are rounded to nearest even); narrow formats
go by way of a dtype that can be computed with."""

from __future__ import annotations

from typing import Final

from calque.native.scalars.elements.formats import (
    SMALL_FLOATS,
    SMALL_INTS,
    decode,
    encode,
    pack_small,
    wrap_small,
)
from calque.native.scalars.elements.values import REAL_OF, Cx, Value, op2
from calque.native.scalars.expr import Expr, cast, const, either, ex

WIDE_FLOATS: Final = frozenset({"f16", "bf16", "f32", "f64"})


def scalar_of(dtype: str) -> str:
    """The dtype in which elements of `dtype` are computed with."""
    if dtype in SMALL_FLOATS:
        return "f32"
    if dtype in SMALL_INTS:
        return "i8" if dtype[0] == "i" else "u8"
    return dtype


def convert(x: Value, source: str, target: str) -> Value:
    """An element of dtype `source` as one of dtype `target`, as JAX's convert_element_type."""
    if source == target:
        return x
    if target in REAL_OF:
        part = REAL_OF[target]
        if isinstance(x, Cx):
            return Cx(cast(x.re, part), cast(x.im, part))
        real = convert_real(x, source, part)
        return Cx(real, const(0.0, part))
    if isinstance(x, Cx):
        if target == "i1":
            zero = const(0.0, x.re.dtype)
            return either(ex("ne", x.re, zero), ex("ne", x.im, zero))
        return convert_real(x.re, REAL_OF[source], target)
    return convert_real(x, source, target)


def convert_real(x: Expr, source: str, target: str) -> Expr:
    """`convert` between real dtypes."""
    if source == target:
        return x
    if source in SMALL_FLOATS:
        x, source = decode(x, source), "f32"
    elif source in SMALL_INTS:
        x = wrap_small(x, source)
    source = scalar_of(source)
    if target in SMALL_FLOATS:
        return encode(cast(x, "f32"), target)  # from f64 in two roundings, as ml_dtypes does
    if target in SMALL_INTS:
        return to_small_int(x, target)
    return cast(x, target)


def to_small_int(x: Expr, target: str) -> Expr:
    """Floats saturate, integers wrap."""
    if x.dtype in WIDE_FLOATS:
        bits, signed = SMALL_INTS[target], target[0] == "i"
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
        clamped = op2("min", op2("max", cast(x, "i32"), low), high)
        x = clamped
    return pack_small(cast(x, scalar_of(target)), target)
