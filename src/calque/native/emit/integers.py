"""Operations on integers, bools and indices."""

from __future__ import annotations

from functools import partial
from typing import Final

from calque.native.emit.instructions import intrinsic, of_one_type, shuffle, splat
from calque.native.emit.lanes import SCALAR, Lanes
from calque.native.emit.types import INT_BINARY, INT_COMPARE, VALUE, mangled, splat_text, vector
from calque.native.emit.values import INTEGER_OPERATIONS, operand, operation, value
from calque.native.emit.writer import Writer
from calque.native.scalars.expr import SIGNED, Expr, stride
from calque.native.scalars.ranges import interval
from calque.native.scalars.sums import sub

of_integers: Final = partial(operation, table=INTEGER_OPERATIONS)
DIVISIONS: Final = frozenset({"sdiv", "srem", "udiv", "urem"})
_TURNED: Final = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le", "eq": "eq", "ne": "ne"}
_COUNTS: Final = {"clz": "ctlz", "ctz": "cttz"}


def _operands(w: Writer, e: Expr, lanes: Lanes) -> tuple[str, list[str]]:
    """The operands' full type and their values."""
    return vector(VALUE[e.args[0].dtype], lanes.width), [operand(w, x, lanes) for x in e.args]


@of_integers(*INT_BINARY)
def binary(w: Writer, e: Expr, lanes: Lanes) -> str:
    t, (a, b) = _operands(w, e, lanes)
    if lanes.exist is not None and e.op in DIVISIONS:  # lanes that do not exist must not trap
        ones = splat_text(VALUE[e.dtype], "1", lanes.width)
        b = w.new(f"select <{lanes.width} x i1> {lanes.exist}, {t} {b}, {t} {ones}")
    return w.new(f"{INT_BINARY[e.op]} {t} {a}, {b}")


@of_integers(*INT_COMPARE)
def compare(w: Writer, e: Expr, lanes: Lanes) -> str:
    among = among_lanes(w, e, lanes)
    if among is not None:
        return among
    t, (a, b) = _operands(w, e, lanes)
    sign = "s" if e.args[0].dtype in SIGNED else "u"
    return w.new(f"icmp {sign}{e.op} {t} {a}, {b}")


@of_integers("eq", "ne")
def equal(w: Writer, e: Expr, lanes: Lanes) -> str:
    among = among_lanes(w, e, lanes)
    if among is not None:
        return among
    t, (a, b) = _operands(w, e, lanes)
    return w.new(f"icmp {e.op} {t} {a}, {b}")


def among_lanes(w: Writer, e: Expr, lanes: Lanes) -> str | None:
    """A comparison of indices that part by one from lane to lane, by the numbers of lanes, which
    have 32 bits: a vector of 64 bits takes twice as many instructions, and more to be compiled.

    before: d + lane < bound        after: lane < bound - d, of which what is beyond all lanes is
                                    cut off"""
    a, b = e.args
    if not (lanes.width and lanes.variable and a.index and b.index):
        return None
    if lanes.varying & (a.names | b.names) != {lanes.variable}:
        return None
    step = stride(sub(a, b), lanes.variable)
    if step not in (1, -1):
        return None
    if step < 0:
        a, b = b, a
    name = e.op if step > 0 else _TURNED[e.op]
    apart = of_one_type(w, "smax", "i64", 0, value(w, sub(b, a), SCALAR), "-1")
    apart = of_one_type(w, "smin", "i64", 0, apart, str(lanes.width))
    apart = splat(w, w.new(f"trunc i64 {apart} to i32"), "i32", lanes.width)
    numbers = ", ".join([f"i32 {k}" for k in range(lanes.width)])
    sign = "" if name in ("eq", "ne") else "s"
    return w.new(f"icmp {sign}{name} <{lanes.width} x i32> <{numbers}>, {apart}")


@of_integers("min", "max")
def extreme(w: Writer, e: Expr, lanes: Lanes) -> str:
    _, (a, b) = _operands(w, e, lanes)
    sign = "s" if e.dtype in SIGNED else "u"
    return of_one_type(w, f"{sign}{e.op}", VALUE[e.dtype], lanes.width, a, b)


@of_integers("not")
def invert(w: Writer, e: Expr, lanes: Lanes) -> str:
    t, (a,) = _operands(w, e, lanes)
    ones = splat_text(VALUE[e.dtype], "true" if e.dtype == "i1" else "-1", lanes.width)
    return w.new(f"xor {t} {a}, {ones}")


@of_integers("neg")
def negative(w: Writer, e: Expr, lanes: Lanes) -> str:
    t, (a,) = _operands(w, e, lanes)
    return w.new(f"sub {t} {'zeroinitializer' if lanes.width else '0'}, {a}")


@of_integers("abs")
def absolute(w: Writer, e: Expr, lanes: Lanes) -> str:
    t, (a,) = _operands(w, e, lanes)
    if e.dtype not in SIGNED:
        return a
    name = mangled(VALUE[e.dtype], lanes.width)
    return intrinsic(w, "abs", name, t, (t, a), ("i1", "false"))


@of_integers("clz", "ctz")
def zeros(w: Writer, e: Expr, lanes: Lanes) -> str:
    t, (a,) = _operands(w, e, lanes)
    name = mangled(VALUE[e.dtype], lanes.width)
    return intrinsic(w, _COUNTS[e.op], name, t, (t, a), ("i1", "false"))


@of_integers("ctpop")
def ones(w: Writer, e: Expr, lanes: Lanes) -> str:
    _, (a,) = _operands(w, e, lanes)
    return of_one_type(w, "ctpop", VALUE[e.dtype], lanes.width, a)


@of_integers("mulhi")
def high_product(w: Writer, e: Expr, lanes: Lanes) -> str:
    full, a = _operands(w, e, lanes)
    bits, width = int(VALUE[e.dtype][1:]), lanes.width
    wide, extend = vector(f"i{2 * bits}", width), "sext" if e.dtype in SIGNED else "zext"
    x, y = [w.new(f"{extend} {full} {v} to {wide}") for v in a]
    product = w.new(f"mul {wide} {x}, {y}")
    high = w.new(f"lshr {wide} {product}, {splat_text(f'i{2 * bits}', str(bits), width)}")
    return w.new(f"trunc {wide} {high} to {full}")


@of_integers("dot2")
def product_of_pairs(w: Writer, e: Expr, lanes: Lanes) -> str:
    """Two numbers of 16 bits stand in each element: the products of the lower ones and of the upper
    ones, added."""
    full, (a, b) = _operands(w, e, lanes)
    t, width = VALUE[e.dtype], lanes.width
    size = w.options.pairs // 4
    if t == "i32" and size and width % size == 0 and width:
        parts = [_pairs_of_register(w, a, b, width, k, size) for k in range(0, width, size)]
        return _joined(w, parts, size)
    half = splat_text(t, str(int(t[1:]) // 2), width)
    upper = [w.new(f"ashr {full} {v}, {half}") for v in (a, b)]
    lower = [w.new(f"ashr {full} {w.new(f'shl {full} {v}, {half}')}, {half}") for v in (a, b)]
    products = [w.new(f"mul {full} {x}, {y}") for x, y in (lower, upper)]
    return w.new(f"add {full} {products[0]}, {products[1]}")


_PAIRS: Final = {4: "sse2.pmadd.wd", 8: "avx2.pmadd.wd", 16: "avx512.pmaddw.d.512"}


def _pairs_of_register(w: Writer, a: str, b: str, width: int, first: int, size: int) -> str:
    """One instruction, for so many lanes from the first on."""
    t, part = f"<{2 * size} x i16>", list(range(first, first + size))
    own = [v if width == size else shuffle(w, "i32", width, v, part) for v in (a, b)]
    x, y = [w.new(f"bitcast <{size} x i32> {v} to {t}") for v in own]
    name = f"llvm.x86.{_PAIRS[size]}"
    w.declared.add(f"declare <{size} x i32> @{name}({t}, {t})")
    return w.new(f"call <{size} x i32> @{name}({t} {x}, {t} {y})")


def _joined(w: Writer, parts: list[str], size: int) -> str:
    """Vectors of one size behind each other; there are a power of two of them."""
    while len(parts) > 1:
        order = list(range(2 * size))
        parts = [shuffle(w, "i32", size, a, order, b) for a, b in zip(parts[::2], parts[1::2])]
        size *= 2
    return parts[0]


# --- indices --------------------------------------------------------------------------------------


@of_integers("floordiv", "mod")
def index_division(w: Writer, e: Expr, lanes: Lanes) -> str:
    """Division of indices (never negative). A divisor of 0 gives any value, but no trap: such a
    value is never used."""
    full, (a, b) = _operands(w, e, lanes)
    (x, n), width = e.args, lanes.width
    name = "udiv" if e.op == "floordiv" else "urem"
    if n.op == "const":
        small = interval(x)[1] < 1 << 31 and n.attr < 1 << 31
        # vector division by a constant is multiplication; 32 bits have the instructions for it
        if width and small:
            narrow = f"<{width} x i32>"
            v = w.new(f"trunc {full} {a} to {narrow}")
            q = w.new(f"{name} {narrow} {v}, splat (i32 {n.attr})")
            return w.new(f"zext {narrow} {q} to {full}")
        return w.new(f"{name} {full} {a}, {b}")
    safe = of_one_type(w, "umax", "i64", width, b, splat_text("i64", "1", width))
    if not width:
        return w.new(f"{name} i64 {a}, {safe}")
    return _float_division(w, e.op, a, safe, width)


def _float_division(w: Writer, op: str, a: str, b: str, width: int) -> str:
    """There is no vector division of integers; below 2**52 the quotient in double, truncated, is
    the right one."""
    i, f = f"<{width} x i64>", f"<{width} x double>"
    x, y = [w.new(f"uitofp {i} {v} to {f}") for v in (a, b)]
    q = w.new(f"fptosi {f} {w.new(f'fdiv {f} {x}, {y}')} to {i}")
    if op == "floordiv":
        return q
    return w.new(f"sub {i} {a}, {w.new(f'mul {i} {q}, {b}')}")
