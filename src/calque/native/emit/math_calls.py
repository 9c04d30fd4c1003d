"""Uses of math functions: the definition in line, or a call of the one copy that all kernels
share."""

from __future__ import annotations

from calque.native.emit.lanes import Lanes
from calque.native.emit.math_functions import NAMES, MathFunction, inline_math
from calque.native.emit.types import VALUE, vector
from calque.native.emit.values import operand, operation
from calque.native.emit.writer import Writer
from calque.native.scalars.expr import Expr


@operation(*NAMES)
def math(w: Writer, e: Expr, lanes: Lanes) -> str:
    """In the rest of a loop always a call."""
    w.math_calls += 1
    if not w.options.outline and not lanes.rest:
        return operand(w, inline_math(e), lanes)
    f = MathFunction(e.op, tuple([x.dtype for x in e.args]), e.dtype, lanes.width)
    symbol = f.symbol(w.options.tag)
    w.shared[symbol] = f
    types = [vector(VALUE[d], lanes.width) for d in f.dtypes]
    result = vector(VALUE[e.dtype], lanes.width)
    w.declared.add(f"declare {result} @{symbol}({', '.join(types)})")
    args = [f"{t} {operand(w, x, lanes)}" for t, x in zip(types, e.args, strict=True)]
    return w.new(f"call {result} @{symbol}({', '.join(args)})")
