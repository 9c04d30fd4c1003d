"""Tables of 32 numbers, read at an index that differs from lane to lane: permutations of registers
where there are such, else loads."""

from __future__ import annotations

import hashlib
from typing import Final

from calque.native.emit.instructions import intrinsic
from calque.native.emit.lanes import Lanes
from calque.native.emit.types import VALUE, float_text, index_list, mangled
from calque.native.emit.values import operand, operation
from calque.native.emit.writer import Writer
from calque.native.scalars.expr import Expr

REGISTER: Final = 16  # lanes of a register


@operation("lookup")
def lookup(w: Writer, e: Expr, lanes: Lanes) -> str:
    """``attr`` holds the bits of the table; of the index only the low five bits count."""
    index, width = operand(w, e.args[0], lanes), lanes.width
    table = [float_text(bits, e.dtype) for bits in e.attr]
    if width and w.options.avx512 and e.dtype == "f32":
        return _permuted(w, table, index, width)
    t, i = VALUE[e.dtype], f"<{width} x i32>" if width else "i32"
    full = f"[32 x {t}]"
    text = f"{full} [" + ", ".join([f"{t} {v}" for v in table]) + "]"
    name = "@table." + hashlib.sha256(text.encode()).hexdigest()[:16]
    w.declared.add(f"{name} = private unnamed_addr constant {text}, align 64")
    low = w.new(f"and {i} {index}, {'splat (i32 31)' if width else '31'}")
    at = w.new(f"getelementptr inbounds {t}, ptr {name}, {i} {low}")
    if not width:
        return w.new(f"load {t}, ptr {at}, align 4")
    v, mask = f"<{width} x {t}>", (f"<{width} x i1>", "splat (i1 true)")
    suffix = f"{mangled(t, width)}.v{width}p0"
    pointers = (f"<{width} x ptr>", at)
    return intrinsic(w, "masked.gather", suffix, v, pointers, ("i32", "4"), mask, (v, "poison"))


def _permuted(w: Writer, table: list[str], index: str, width: int) -> str:
    """Register by register, a vector that fills less than one made wider."""
    t, indices = f"<{REGISTER} x float>", f"<{REGISTER} x i32>"
    low, high = [
        f"<{', '.join([f'float {v}' for v in part])}>"
        for part in (table[:REGISTER], table[REGISTER:])
    ]
    parts = []
    for start in range(0, width, REGISTER):
        order = index_list([min(start + k, width - 1) for k in range(REGISTER)])
        few = w.new(f"shufflevector <{width} x i32> {index}, <{width} x i32> poison, {order}")
        name = "x86.avx512.vpermi2var.ps.512"
        parts.append(intrinsic(w, name, "", t, (t, low), (indices, few), (t, high)))
    n = REGISTER
    while len(parts) > 1:
        joined = f"<{n} x float>"
        both = index_list(list(range(2 * n)))
        parts = [
            w.new(f"shufflevector {joined} {a}, {joined} {b}, {both}")
            for a, b in zip(parts[::2], parts[1::2], strict=True)
        ]
        n *= 2
    if n == width:
        return parts[0]
    first = index_list(list(range(width)))
    return w.new(f"shufflevector <{n} x float> {parts[0]}, <{n} x float> poison, {first}")
