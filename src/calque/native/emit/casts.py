"""Conversions between the dtypes of expressions."""

from __future__ import annotations

from typing import Final

from calque.native.emit.instructions import convert, intrinsic
from calque.native.emit.lanes import Lanes
from calque.native.emit.narrow import from_memory, round_narrow, to_memory, to_odd
from calque.native.emit.types import MEMORY, VALUE, double_text, mangled, splat_text, vector
from calque.native.emit.values import operand, operation, steps
from calque.native.emit.writer import Writer
from calque.native.scalars.expr import FLOAT_BITS, SIGNED, Expr, cast, stride
from calque.native.scalars.ranges import interval

DIGITS: Final = {"float": 24, "double": 53}  # binary, of a float


@operation("cast", "cast_fast")
def by_value(w: Writer, e: Expr, lanes: Lanes) -> str:
    """JAX's meaning of ``convert_element_type``; ``cast_fast`` says nothing of floats beyond the
    range of an integer."""
    x, t = e.args[0], VALUE[e.dtype]
    if x.index and lanes.vary(x):
        if t in ("i8", "i16", "i32"):
            step = stride(x, lanes.variable or "")
            if step is not None:
                return steps(w, x, step, t, lanes)
        low, high = interval(x)
        if e.dtype in FLOAT_BITS and low >= -(1 << 31) and high < 1 << 31:
            x = cast(x, "i32")
    v = operand(w, x, lanes)
    if e.dtype == "i1":
        return _to_bool(w, v, x.dtype, lanes.width)
    if x.dtype in FLOAT_BITS:
        if e.dtype in FLOAT_BITS:
            return _float_to_float(w, v, x.dtype, e.dtype, lanes.width)
        return _float_to_int(w, v, x.dtype, e.dtype, lanes.width, e.op == "cast_fast")
    return _from_int(w, v, x.dtype, e.dtype, lanes.width)


@operation("bitcast")
def same_bits(w: Writer, e: Expr, lanes: Lanes) -> str:
    """Narrow floats pass through their form in memory."""
    src, dst, width = e.args[0].dtype, e.dtype, lanes.width
    raw = to_memory(w, operand(w, e.args[0], lanes), src, width)
    if MEMORY[src] != MEMORY[dst]:
        raw = convert(w, "bitcast", MEMORY[src], raw, MEMORY[dst], width)
    return from_memory(w, raw, dst, width)


def _to_bool(w: Writer, v: str, src: str, width: int) -> str:
    t = VALUE[src]
    if src in FLOAT_BITS:
        op, zero = "fcmp une", "0x0000000000000000"
    else:
        op, zero = "icmp ne", "0"
    return w.new(f"{op} {vector(t, width)} {v}, {splat_text(t, zero, width)}")


def _from_int(w: Writer, v: str, src: str, dst: str, width: int) -> str:
    a, b = VALUE[src], VALUE[dst]
    if dst in FLOAT_BITS:
        wide = convert(w, "sitofp" if src in SIGNED else "uitofp", a, v, b, width)
        return round_narrow(w, wide, dst, width)
    if a == b:
        return v
    op = "trunc" if int(b[1:]) < int(a[1:]) else "sext" if src in SIGNED else "zext"
    return convert(w, op, a, v, b, width)


def _float_to_int(w: Writer, v: str, src: str, dst: str, width: int, fast: bool) -> str:
    a, b = VALUE[src], VALUE[dst]
    op = "fptosi" if dst in SIGNED else "fptoui"
    if fast:
        return convert(w, op, a, v, b, width)
    if width and w.options.indexed:
        return _saturated(w, v, a, dst, width)
    name = f"{mangled(b, width)}.{mangled(a, width)}"
    return intrinsic(w, f"{op}.sat", name, vector(b, width), (vector(a, width), v))


def _saturated(w: Writer, v: str, a: str, dst: str, width: int) -> str:
    """Floats as integers of a range, NaN as 0. (LLVM has an operation for it, which it does lane by
    lane on x86.)"""
    b, full = VALUE[dst], vector(a, width)
    bits, signed = int(b[1:]), dst in SIGNED
    least, beyond = (-(1 << (bits - 1)), 1 << (bits - 1)) if signed else (0, 1 << bits)
    digits = DIGITS[a]
    # the last integer, or the float before the first one beyond
    last = beyond - max(1, beyond >> digits)
    low, high = (splat_text(a, double_text(float(x)), width) for x in (least, last))
    above = w.new(f"fcmp ogt {full} {v}, {low}")  # also where it is no number
    inside = w.new(f"select <{width} x i1> {above}, {full} {v}, {full} {low}")
    below = w.new(f"fcmp olt {full} {inside}, {high}")
    inside = w.new(f"select <{width} x i1> {below}, {full} {inside}, {full} {high}")
    out = convert(w, "fptosi" if signed else "fptoui", a, inside, b, width)
    to = vector(b, width)
    if last != beyond - 1:
        over = w.new(f"fcmp oge {full} {v}, {splat_text(a, double_text(float(beyond)), width)}")
        most = splat_text(b, str(beyond - 1), width)
        out = w.new(f"select <{width} x i1> {over}, {to} {most}, {to} {out}")
    number = w.new(f"fcmp ord {full} {v}, zeroinitializer")
    return w.new(f"select <{width} x i1> {number}, {to} {out}, {to} zeroinitializer")


def _float_to_float(w: Writer, v: str, src: str, dst: str, width: int) -> str:
    if dst == "f64":
        return convert(w, "fpext", "float", v, "double", width)
    if src == "f64":
        if dst == "f32":
            return convert(w, "fptrunc", "double", v, "float", width)
        v = to_odd(w, v, width)
    elif src in ("f16", "bf16") and dst == "f32":
        return v
    return round_narrow(w, v, dst, width)
