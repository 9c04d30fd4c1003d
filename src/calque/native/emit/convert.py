"""Conversions between dtypes, and between the value of an expression and its form in memory."""

from __future__ import annotations

from calque.native.emit.scopes import Scope, Scopes
from calque.native.emit.types import MEMORY, VALUE, mangled, vector
from calque.native.scalars.expr import FLOAT_BITS, SIGNED


def splat_text(t: str, text: str, width: int) -> str:
    """A constant in every lane."""
    return f"splat ({t} {text})" if width else text


class Ints:
    """Arithmetic on i32 with constants, at one width."""

    def __init__(self, to: Convert, width: int, s: Scope) -> None:
        self.to, self.width, self.scope = to, width, s

    def text(self, v: str | int) -> str:
        return v if isinstance(v, str) else splat_text("i32", str(v), self.width)

    def op(self, name: str, a: str, b: str | int) -> str:
        return self.to.new(f"{name} {vector('i32', self.width)} {a}, {self.text(b)}", self.scope)

    def select(self, cond: str, a: str | int, b: str | int) -> str:
        t = vector("i32", self.width)
        return self.to.new(
            f"select {vector('i1', self.width)} {cond}, {t} {self.text(a)}, {t} {self.text(b)}",
            self.scope,
        )

    def as_float(self, v: str) -> str:
        return self.to.cast_text("bitcast", "i32", v, "float", self.width, self.scope)


class Convert(Scopes):
    """``width`` 0 is a scalar throughout."""

    half = True  # has the processor conversions from and to half?

    def cast_text(self, op: str, src: str, v: str, dst: str, width: int, s: Scope) -> str:
        return self.new(f"{op} {vector(src, width)} {v} to {vector(dst, width)}", s)

    def cast(self, v: str, src: str, dst: str, width: int, fast: bool, s: Scope) -> str:
        """By value: JAX's meaning of ``convert_element_type``."""
        a, b = VALUE[src], VALUE[dst]
        if dst == "i1":
            zero = splat_text(a, "0x0000000000000000" if src in FLOAT_BITS else "0", width)
            return self.new(
                f"{'fcmp une' if src in FLOAT_BITS else 'icmp ne'} {vector(a, width)} {v}, {zero}",
                s,
            )
        if src in FLOAT_BITS:
            return (
                self.float_to_float(v, src, dst, width, s)
                if dst in FLOAT_BITS
                else self.float_to_int(v, src, dst, width, fast, s)
            )
        if dst in FLOAT_BITS:
            wide = self.cast_text("sitofp" if src in SIGNED else "uitofp", a, v, b, width, s)
            return self.round_narrow(wide, dst, width, s)
        if a == b:
            return v
        bits_a, bits_b = int(a[1:]), int(b[1:])
        op = "trunc" if bits_b < bits_a else "sext" if src in SIGNED else "zext"
        return self.cast_text(op, a, v, b, width, s)

    def float_to_int(self, v: str, src: str, dst: str, width: int, fast: bool, s: Scope) -> str:
        a, b = VALUE[src], VALUE[dst]
        op = "fptosi" if dst in SIGNED else "fptoui"
        if fast:
            return self.cast_text(op, a, v, b, width, s)
        suffix = f"{mangled(b, width)}.{mangled(a, width)}"
        return self.new(
            self.intrinsic(f"{op}.sat", suffix, vector(b, width), (vector(a, width), v)), s
        )

    def float_to_float(self, v: str, src: str, dst: str, width: int, s: Scope) -> str:
        if dst == "f64":
            return self.cast_text("fpext", "float", v, "double", width, s)
        if src == "f64":
            if dst == "f32":
                return self.cast_text("fptrunc", "double", v, "float", width, s)
            v = self.to_odd(v, width, s)
        elif src in ("f16", "bf16") and dst == "f32":
            return v
        return self.round_narrow(v, dst, width, s)

    def to_odd(self, v: str, width: int, s: Scope) -> str:
        """double to float, truncated, with an odd last bit when inexact: rounding that to a narrow
        type then rounds once."""
        f, d, i = vector("float", width), vector("double", width), vector("i32", width)
        near = self.cast_text("fptrunc", "double", v, "float", width, s)
        back = self.cast_text("fpext", "float", near, "double", width, s)
        magnitude = self.new(self.unary("fabs", "double", width, v), s)
        magnitude_back = self.new(self.unary("fabs", "double", width, back), s)
        over = self.new(f"fcmp ogt {d} {magnitude_back}, {magnitude}", s)
        inexact = self.new(f"fcmp one {d} {magnitude_back}, {magnitude}", s)
        bits = self.cast_text("bitcast", "float", near, "i32", width, s)
        one = self.new(f"zext {vector('i1', width)} {over} to {i}", s)
        down = self.new(f"sub {i} {bits}, {one}", s)
        odd = self.new(f"zext {vector('i1', width)} {inexact} to {i}", s)
        return self.new(f"bitcast {i} {self.new(f'or {i} {down}, {odd}', s)} to {f}", s)

    def round_narrow(self, v: str, dtype: str, width: int, s: Scope) -> str:
        """A float rounded to the narrow dtype it stands for; others pass."""
        if dtype == "f16":
            return self.from_half(self.to_half(v, width, s), width, s)
        if dtype == "bf16":
            t = vector("i32", width)
            bits = self.new(
                f"and {t} {self.bf16_bits(v, width, s)}, {splat_text('i32', '-65536', width)}", s
            )
            return self.cast_text("bitcast", "i32", bits, "float", width, s)
        return v

    def to_half(self, v: str, width: int, s: Scope) -> str:
        """The nearest half (ties to even)."""
        if self.half:
            return self.cast_text("fptrunc", "float", v, "half", width, s)
        i = Ints(self, width, s)
        bits = self.cast_text("bitcast", "float", v, "i32", width, s)
        size = i.op("and", bits, 0x7FFFFFFF)
        nan = i.select(i.op("icmp ugt", size, 0x7F800000), 0x7E00, 0x7C00)
        odd = i.op("and", i.op("lshr", size, 13), 1)
        normal = i.op("lshr", i.op("add", i.op("add", size, 0xFFF - (112 << 23)), odd), 13)
        scaled = self.new(
            f"fadd {vector('float', width)} {i.as_float(size)},"
            f" {splat_text('float', '0x3FE0000000000000', width)}",
            s,
        )
        small = i.op("sub", self.cast_text("bitcast", "float", scaled, "i32", width, s), 126 << 23)
        o = i.select(i.op("icmp ult", size, 113 << 23), small, normal)
        o = i.select(i.op("icmp uge", size, 143 << 23), nan, o)
        o = i.op("or", o, i.op("and", i.op("lshr", bits, 16), 0x8000))
        return self.cast_text(
            "bitcast", "i16", self.cast_text("trunc", "i32", o, "i16", width, s), "half", width, s
        )

    def from_half(self, v: str, width: int, s: Scope) -> str:
        if self.half:
            return self.cast_text("fpext", "half", v, "float", width, s)
        i = Ints(self, width, s)
        raw = self.cast_text(
            "zext", "i16", self.cast_text("bitcast", "half", v, "i16", width, s), "i32", width, s
        )
        o = i.op("shl", i.op("and", raw, 0x7FFF), 13)
        exponent = i.op("and", o, 0x7C00 << 13)
        normal = i.op("add", o, 112 << 23)
        special = i.op("add", normal, 112 << 23)
        tiny = i.as_float(i.op("add", normal, 1 << 23))
        full = vector("float", width)
        small = self.new(
            f"fsub {full} {tiny}, {splat_text('float', '0x3F10000000000000', width)}", s
        )
        o = i.select(
            i.op("icmp eq", exponent, 0),
            self.cast_text("bitcast", "float", small, "i32", width, s),
            normal,
        )
        o = i.select(i.op("icmp eq", exponent, 0x7C00 << 13), special, o)
        return i.as_float(i.op("or", o, i.op("shl", i.op("and", raw, 0x8000), 16)))

    def bf16_bits(self, v: str, width: int, s: Scope) -> str:
        """An i32 whose upper half is the nearest bfloat16 (ties to even); a nan stays one."""
        t = vector("i32", width)

        def k(n: int) -> str:
            return splat_text("i32", str(n), width)

        bits = self.cast_text("bitcast", "float", v, "i32", width, s)
        last = self.new(f"and {t} {self.new(f'lshr {t} {bits}, {k(16)}', s)}, {k(1)}", s)
        rounded = self.new(f"add {t} {self.new(f'add {t} {bits}, {k(0x7FFF)}', s)}, {last}", s)
        nan = self.new(f"fcmp uno {vector('float', width)} {v}, {v}", s)
        quiet = self.new(f"or {t} {bits}, {k(0x400000)}", s)
        return self.new(f"select {vector('i1', width)} {nan}, {t} {quiet}, {t} {rounded}", s)

    def bitcast(self, v: str, src: str, dst: str, width: int, s: Scope) -> str:
        """Same bits; narrow floats pass through their form in memory."""
        raw = self.to_memory(v, src, width, s)
        a, b = MEMORY[src], MEMORY[dst]
        return self.from_memory(
            raw if a == b else self.cast_text("bitcast", a, raw, b, width, s), dst, width, s
        )

    def to_memory(self, v: str, dtype: str, width: int, s: Scope) -> str:
        """The form of a value in memory (exact: narrow floats hold narrow values already)."""
        if dtype == "i1":
            return self.cast_text("zext", "i1", v, "i8", width, s)
        if dtype == "f16":
            return self.to_half(v, width, s)
        if dtype == "bf16":
            t = vector("i32", width)
            bits = self.cast_text("bitcast", "float", v, "i32", width, s)
            high = self.new(f"lshr {t} {bits}, {splat_text('i32', '16', width)}", s)
            return self.cast_text("trunc", "i32", high, "i16", width, s)
        return v

    def from_memory(self, v: str, dtype: str, width: int, s: Scope) -> str:
        if dtype == "i1":
            return self.new(f"icmp ne {vector('i8', width)} {v}, {splat_text('i8', '0', width)}", s)
        if dtype == "f16":
            return self.from_half(v, width, s)
        if dtype == "bf16":
            t = vector("i32", width)
            wide = self.cast_text("zext", "i16", v, "i32", width, s)
            bits = self.new(f"shl {t} {wide}, {splat_text('i32', '16', width)}", s)
            return self.cast_text("bitcast", "i32", bits, "float", width, s)
        return v
