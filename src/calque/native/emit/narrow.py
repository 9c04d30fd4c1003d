"""Halves and bfloat16: carried as ``float``, rounded after each operation; and the form that every
dtype has in memory. A width of 0 is a scalar."""

from __future__ import annotations

from calque.native.emit.instructions import convert, of_one_type
from calque.native.emit.types import splat_text, vector
from calque.native.emit.writer import Writer


def round_narrow(w: Writer, v: str, dtype: str, width: int) -> str:
    """A float rounded to the narrow dtype it stands for; others pass."""
    if dtype == "f16":
        return from_half(w, to_half(w, v, width), width)
    if dtype == "bf16":
        t, high = vector("i32", width), splat_text("i32", "-65536", width)
        bits = w.new(f"and {t} {bf16_bits(w, v, width)}, {high}")
        return convert(w, "bitcast", "i32", bits, "float", width)
    return v


def to_odd(w: Writer, v: str, width: int) -> str:
    """double to float, truncated, with an odd last bit when inexact: rounding that to a narrow
    type then rounds once."""
    f, d, i = vector("float", width), vector("double", width), vector("i32", width)
    near = convert(w, "fptrunc", "double", v, "float", width)
    back = convert(w, "fpext", "float", near, "double", width)
    magnitude = of_one_type(w, "fabs", "double", width, v)
    magnitude_back = of_one_type(w, "fabs", "double", width, back)
    over = w.new(f"fcmp ogt {d} {magnitude_back}, {magnitude}")
    inexact = w.new(f"fcmp one {d} {magnitude_back}, {magnitude}")
    bits = convert(w, "bitcast", "float", near, "i32", width)
    one = w.new(f"zext {vector('i1', width)} {over} to {i}")
    down = w.new(f"sub {i} {bits}, {one}")
    odd = w.new(f"zext {vector('i1', width)} {inexact} to {i}")
    return w.new(f"bitcast {i} {w.new(f'or {i} {down}, {odd}')} to {f}")


# --- halves ---------------------------------------------------------------------------------------


class _Ints:
    """Arithmetic on i32 with constants, at one width."""

    def __init__(self, w: Writer, width: int) -> None:
        self.w, self.width = w, width

    def text(self, v: str | int) -> str:
        return v if isinstance(v, str) else splat_text("i32", str(v), self.width)

    def op(self, name: str, a: str, b: str | int) -> str:
        return self.w.new(f"{name} {vector('i32', self.width)} {a}, {self.text(b)}")

    def select(self, cond: str, a: str | int, b: str | int) -> str:
        bools, t = vector("i1", self.width), vector("i32", self.width)
        return self.w.new(f"select {bools} {cond}, {t} {self.text(a)}, {t} {self.text(b)}")

    def as_float(self, v: str) -> str:
        return convert(self.w, "bitcast", "i32", v, "float", self.width)

    def bits(self, v: str) -> str:
        return convert(self.w, "bitcast", "float", v, "i32", self.width)


def to_half(w: Writer, v: str, width: int) -> str:
    """The nearest half (ties to even)."""
    if w.options.half:
        return convert(w, "fptrunc", "float", v, "half", width)
    i, full = _Ints(w, width), vector("float", width)
    bits = i.bits(v)
    size = i.op("and", bits, 0x7FFFFFFF)
    nan = i.select(i.op("icmp ugt", size, 0x7F800000), 0x7E00, 0x7C00)
    odd = i.op("and", i.op("lshr", size, 13), 1)
    normal = i.op("lshr", i.op("add", i.op("add", size, 0xFFF - (112 << 23)), odd), 13)
    magic = splat_text("float", "0x3FE0000000000000", width)
    scaled = w.new(f"fadd {full} {i.as_float(size)}, {magic}")
    small = i.op("sub", i.bits(scaled), 126 << 23)
    o = i.select(i.op("icmp ult", size, 113 << 23), small, normal)
    o = i.select(i.op("icmp uge", size, 143 << 23), nan, o)
    o = i.op("or", o, i.op("and", i.op("lshr", bits, 16), 0x8000))
    return convert(w, "bitcast", "i16", convert(w, "trunc", "i32", o, "i16", width), "half", width)


def from_half(w: Writer, v: str, width: int) -> str:
    if w.options.half:
        return convert(w, "fpext", "half", v, "float", width)
    i, full = _Ints(w, width), vector("float", width)
    raw = convert(w, "zext", "i16", convert(w, "bitcast", "half", v, "i16", width), "i32", width)
    o = i.op("shl", i.op("and", raw, 0x7FFF), 13)
    exponent = i.op("and", o, 0x7C00 << 13)
    normal = i.op("add", o, 112 << 23)
    special = i.op("add", normal, 112 << 23)
    tiny = i.as_float(i.op("add", normal, 1 << 23))
    magic = splat_text("float", "0x3F10000000000000", width)
    small = w.new(f"fsub {full} {tiny}, {magic}")
    o = i.select(i.op("icmp eq", exponent, 0), i.bits(small), normal)
    o = i.select(i.op("icmp eq", exponent, 0x7C00 << 13), special, o)
    return i.as_float(i.op("or", o, i.op("shl", i.op("and", raw, 0x8000), 16)))


def bf16_bits(w: Writer, v: str, width: int) -> str:
    """An i32 whose upper half is the nearest bfloat16 (ties to even); a nan stays one."""
    t = vector("i32", width)

    def k(n: int) -> str:
        return splat_text("i32", str(n), width)

    bits = convert(w, "bitcast", "float", v, "i32", width)
    last = w.new(f"and {t} {w.new(f'lshr {t} {bits}, {k(16)}')}, {k(1)}")
    rounded = w.new(f"add {t} {w.new(f'add {t} {bits}, {k(0x7FFF)}')}, {last}")
    nan = w.new(f"fcmp uno {vector('float', width)} {v}, {v}")
    quiet = w.new(f"or {t} {bits}, {k(0x400000)}")
    return w.new(f"select {vector('i1', width)} {nan}, {t} {quiet}, {t} {rounded}")


# --- the form in memory ---------------------------------------------------------------------------


def to_memory(w: Writer, v: str, dtype: str, width: int) -> str:
    """The form of a value in memory (exact: narrow floats hold narrow values already)."""
    if dtype == "i1":
        return convert(w, "zext", "i1", v, "i8", width)
    if dtype == "f16":
        return to_half(w, v, width)
    if dtype == "bf16":
        t = vector("i32", width)
        bits = convert(w, "bitcast", "float", v, "i32", width)
        high = w.new(f"lshr {t} {bits}, {splat_text('i32', '16', width)}")
        return convert(w, "trunc", "i32", high, "i16", width)
    return v


def from_memory(w: Writer, v: str, dtype: str, width: int) -> str:
    if dtype == "i1":
        return w.new(f"icmp ne {vector('i8', width)} {v}, {splat_text('i8', '0', width)}")
    if dtype == "f16":
        return from_half(w, v, width)
    if dtype == "bf16":
        t = vector("i32", width)
        wide = convert(w, "zext", "i16", v, "i32", width)
        bits = w.new(f"shl {t} {wide}, {splat_text('i32', '16', width)}")
        return convert(w, "bitcast", "i32", bits, "float", width)
    return v
