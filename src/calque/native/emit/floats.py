"""Operations on floats. Narrow ones are done in ``float`` and rounded."""

from __future__ import annotations

from functools import partial
from typing import Final

from calque.native.emit.instructions import intrinsic, of_one_type
from calque.native.emit.lanes import Lanes
from calque.native.emit.math_functions import CONTRACTED, strict
from calque.native.emit.narrow import round_narrow
from calque.native.emit.types import (
    FLOAT_BINARY,
    FLOAT_COMPARE,
    FLOAT_INTRINSIC,
    ROUNDED,
    VALUE,
    mangled,
    vector,
)
from calque.native.emit.values import FLOAT_OPERATIONS, operand, operation
from calque.native.emit.writer import Writer
from calque.native.scalars.expr import Expr
from calque.native.scalars.vmath.base import ldexp_by_parts

of_floats: Final = partial(operation, table=FLOAT_OPERATIONS)
_INFINITY: Final = {
    "f16": (15, 0x7C00),
    "bf16": (15, 0x7F80),
    "f32": (31, 0x7F800000),
    "f64": (63, 0x7FF0000000000000),
}


@of_floats(*FLOAT_BINARY)
def binary(w: Writer, e: Expr, lanes: Lanes) -> str:
    a, b = [operand(w, x, lanes) for x in e.args]
    op, d = e.op, e.args[0].dtype
    free = op in CONTRACTED and not w.options.exact and e.attr is None and d in ("f32", "f64")
    how = f"{FLOAT_BINARY[op]} contract" if free else FLOAT_BINARY[op]
    v = w.new(f"{how} {vector(VALUE[d], lanes.width)} {a}, {b}")
    return round_narrow(w, v, d, lanes.width)


@of_floats(*FLOAT_COMPARE)
def compare(w: Writer, e: Expr, lanes: Lanes) -> str:
    a, b = [operand(w, x, lanes) for x in e.args]
    t = vector(VALUE[e.args[0].dtype], lanes.width)
    return w.new(f"fcmp {FLOAT_COMPARE[e.op]} {t} {a}, {b}")


@of_floats(*FLOAT_INTRINSIC)
def function(w: Writer, e: Expr, lanes: Lanes) -> str:
    a = [operand(w, x, lanes) for x in e.args]
    d = e.args[0].dtype
    v = of_one_type(w, FLOAT_INTRINSIC[e.op], VALUE[d], lanes.width, *a)
    return round_narrow(w, v, d, lanes.width) if e.op in ROUNDED else v


@of_floats("neg")
def negative(w: Writer, e: Expr, lanes: Lanes) -> str:
    (a,) = [operand(w, x, lanes) for x in e.args]
    return w.new(f"fneg {vector(VALUE[e.dtype], lanes.width)} {a}")


@of_floats("min", "max")
def extreme(w: Writer, e: Expr, lanes: Lanes) -> str:
    """NumPy's maximum and minimum: a nan in either operand passes, of two zeros the first is
    taken. One instruction for a constant."""
    a, b = [operand(w, x, lanes) for x in e.args]
    t, bools = vector(VALUE[e.dtype], lanes.width), vector("i1", lanes.width)
    better = w.new(f"fcmp {'uge' if e.op == 'max' else 'ule'} {t} {a}, {b}")
    r = w.new(f"select {bools} {better}, {t} {a}, {t} {b}")
    if e.args[1].op == "const" and not is_nan(e.args[1]):
        return r
    nan = w.new(f"fcmp uno {t} {b}, {b}")
    return w.new(f"select {bools} {nan}, {t} {b}, {t} {r}")


@of_floats("ldexp")
def ldexp(w: Writer, e: Expr, lanes: Lanes) -> str:
    a = [operand(w, x, lanes) for x in e.args]
    if w.options.avx512:
        t, width = VALUE[e.dtype], lanes.width
        full = vector(t, width)
        name = f"{mangled(t, width)}.{mangled('i32', width)}"
        v = intrinsic(w, "ldexp", name, full, (full, a[0]), (vector("i32", width), a[1]))
    else:  # LLVM would call the C library for each lane
        v = operand(w, strict(ldexp_by_parts(*e.args)), lanes)
    return round_narrow(w, v, e.dtype, lanes.width)


def is_nan(e: Expr) -> bool:
    """Is a float constant a nan?"""
    sign, infinity = _INFINITY[e.dtype]
    return bool(e.attr & ((1 << sign) - 1) > infinity)
