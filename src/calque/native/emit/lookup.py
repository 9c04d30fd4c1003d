"""Tables of 32 numbers, read at an index that differs from lane to lane: permutations of registers
where there are such, else loads."""

from __future__ import annotations

import hashlib

from calque.native.emit.convert import Convert
from calque.native.emit.scopes import Scope
from calque.native.emit.types import VALUE, float_text, index_list, mangled
from calque.native.scalars.expr import Expr

LANES = 16  # of a register


class Lookup(Convert):
    """The value of a ``lookup`` node: ``attr`` holds the bits of the table, of the index only the
    low five bits count."""

    avx512: bool

    def lookup(self, e: Expr, index: str, width: int, s: Scope) -> str:
        table = [float_text(bits, e.dtype) for bits in e.attr]
        if width and self.avx512 and e.dtype == "f32":
            return self.permuted(table, index, width, s)
        t, i = VALUE[e.dtype], f"<{width} x i32>" if width else "i32"
        full = f"[32 x {t}]"
        text = f"{full} [" + ", ".join([f"{t} {v}" for v in table]) + "]"
        name = "@table." + hashlib.sha256(text.encode()).hexdigest()[:16]
        self.declared.add(f"{name} = private unnamed_addr constant {text}, align 64")
        low = self.new(f"and {i} {index}, {'splat (i32 31)' if width else '31'}", s)
        at = self.new(f"getelementptr inbounds {t}, ptr {name}, {i} {low}", s)
        if not width:
            return self.new(f"load {t}, ptr {at}, align 4", s)
        v, p, b = f"<{width} x {t}>", f"<{width} x ptr>", f"<{width} x i1>"
        suffix = f"{mangled(t, width)}.v{width}p0"
        return self.new(
            self.intrinsic(
                "masked.gather",
                suffix,
                v,
                (p, at),
                ("i32", "4"),
                (b, "splat (i1 true)"),
                (v, "poison"),
            ),
            s,
        )

    def permuted(self, table: list[str], index: str, width: int, s: Scope) -> str:
        """Register by register, a vector that fills less than one made wider."""
        t = f"<{LANES} x float>"
        halves = [
            f"<{', '.join([f'float {v}' for v in part])}>"
            for part in (table[:LANES], table[LANES:])
        ]
        parts = []
        for start in range(0, width, LANES):
            lanes = [min(start + k, width - 1) for k in range(LANES)]
            few = self.new(
                f"shufflevector <{width} x i32> {index}, <{width} x i32> poison,"
                f" {index_list(lanes)}",
                s,
            )
            parts.append(
                self.new(
                    self.intrinsic(
                        "x86.avx512.vpermi2var.ps.512",
                        "",
                        t,
                        (t, halves[0]),
                        (f"<{LANES} x i32>", few),
                        (t, halves[1]),
                    ),
                    s,
                )
            )
        n = LANES
        while len(parts) > 1:
            joined = f"<{n} x float>"
            both = index_list(list(range(2 * n)))
            parts = [
                self.new(f"shufflevector {joined} {a}, {joined} {b}, {both}", s)
                for a, b in zip(parts[::2], parts[1::2], strict=True)
            ]
            n *= 2
        if n == width:
            return parts[0]
        return self.new(
            f"shufflevector <{n} x float> {parts[0]}, <{n} x float> poison,"
            f" {index_list(list(range(width)))}",
            s,
        )
