"""How scalar dtypes and operations are written in LLVM IR.

``f16`` and ``bf16`` values are carried as ``float`` holding a value of the narrow type exactly:
each operation is done in ``float`` and rounded, which is the correctly rounded narrow result (24
bits are more than twice 11 plus 2)."""

from __future__ import annotations

import struct
from typing import Final

from calque.native.scalars.expr import Expr, bits_float, float_bits

VALUE: Final = {
    "i1": "i1", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "u8": "i8", "u16": "i16",
    "u32": "i32", "u64": "i64",
    "f16": "float", "bf16": "float", "f32": "float", "f64": "double",
}  # fmt: skip
MEMORY: Final = {**VALUE, "i1": "i8", "f16": "half", "bf16": "i16"}
MANGLED: Final = {
    "float": "f32",
    "double": "f64",
    "half": "f16",
}  # as intrinsics' names spell types; integers are their own

FLOAT_BINARY: Final = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
INT_BINARY: Final = {
    "add": "add", "sub": "sub", "mul": "mul", "sdiv": "sdiv", "srem": "srem", "udiv": "udiv",
    "urem": "urem", "and": "and", "or": "or", "xor": "xor",
    "shl": "shl", "lshr": "lshr", "ashr": "ashr",
}  # fmt: skip
FLOAT_COMPARE: Final = {
    "lt": "olt",
    "le": "ole",
    "gt": "ogt",
    "ge": "oge",
    "eq": "oeq",
    "ne": "une",
}
INT_COMPARE: Final = {"lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}
FLOAT_INTRINSIC: Final = {
    "fma": "fma", "sqrt": "sqrt", "abs": "fabs", "copysign": "copysign", "floor": "floor",
    "ceil": "ceil", "trunc": "trunc", "round": "roundeven",
}  # fmt: skip
ROUNDED: Final = frozenset(
    {"add", "sub", "mul", "div", "fma", "sqrt"}
)  # narrow floats need rounding after these


def double_text(value: float) -> str:
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def float_text(bits: int, dtype: str) -> str:
    """A float constant as LLVM writes it: the bits of the equal double. The payload of a nan is
    kept."""
    if dtype == "f64":
        return f"0x{bits:016X}"
    if dtype != "f32":
        bits = float_bits(bits_float(bits, dtype), "f32")
    if bits & 0x7F800000 == 0x7F800000:
        return f"0x{(bits >> 31) << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29:016X}"
    return double_text(bits_float(bits, "f32"))


def const_text(e: Expr) -> str:
    """A constant operand."""
    if e.dtype == "i1":
        return "true" if e.attr else "false"
    if e.dtype in ("f16", "bf16", "f32", "f64"):
        return float_text(e.attr, e.dtype)
    return str(e.attr)


def vector(t: str, width: int) -> str:
    """A value of type ``t`` for each of ``width`` lanes; width 0 is a scalar."""
    return f"<{width} x {t}>" if width else t


def splat_text(t: str, text: str, width: int) -> str:
    """A constant in every lane."""
    return f"splat ({t} {text})" if width else text


def mangled(t: str, width: int) -> str:
    return f"v{width}{MANGLED.get(t, t)}" if width else MANGLED.get(t, t)


def index_list(lanes: list[int]) -> str:
    """A shuffle mask."""
    return f"<{len(lanes)} x i32> <" + ", ".join([f"i32 {i}" for i in lanes]) + ">"
