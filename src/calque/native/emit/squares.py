"""Squares of elements, as many rows as columns, turned round in registers: one function for all
kernels where LLVM would take longer for a square than for the rest of a kernel."""

from __future__ import annotations

from typing import Final, NamedTuple

from calque.native.emit.instructions import shuffle
from calque.native.emit.writer import NOTHING, CodeOptions, Writer

LARGE: Final = 16  # rows of a square that is not turned in line


class Square(NamedTuple):
    """The function that reads rows of elements of a type, ``step`` bytes from each to the next, and
    writes the columns one behind the other."""

    t: str
    size: int

    def symbol(self, tag: str) -> str:
        return f"turned_{self.t}_{self.size}{tag}"


def call(w: Writer, square: Square, source: str, step: str, to: str) -> None:
    """Turn the square at a pointer."""
    symbol = square.symbol(w.options.tag)
    w.shared[symbol] = square
    w.declared.add(f"declare void @{symbol}(ptr, i64, ptr)")
    w.put(f" call void @{symbol}(ptr {source}, i64 {step}, ptr {to})")


def write(square: Square, options: CodeOptions) -> str:
    """The text of the function."""
    symbol, full = square.symbol(options.tag), f"<{square.size} x {square.t}>"
    w, rows = Writer(symbol, options, NOTHING), []
    for r in range(square.size):
        row = w.new(f"getelementptr i8, ptr %from, i64 {w.new(f'mul i64 %step, {r}')}")
        rows.append(w.new(f"load {full}, ptr {row}, align 1"))
    for r, v in enumerate(turned(w, rows, square.t)):
        p = w.new(f"getelementptr {full}, ptr %to, i64 {r}")
        w.put(f" store {full} {v}, ptr {p}, align 1")
    return w.text(f"define void @{symbol}(ptr %from, i64 %step, ptr %to)", "ret void")


def turned(w: Writer, rows: list[str], t: str) -> list[str]:
    """Blocks of half, a quarter, ... of the square change places, two rows at a time."""
    n = len(rows)
    d = n // 2
    while d:
        new = list(rows)
        upper = [k if not k & d else n + k - d for k in range(n)]
        lower = [k + d if not k & d else n + k for k in range(n)]
        for a in range(n):
            if not a & d:
                new[a] = shuffle(w, t, n, rows[a], upper, rows[a + d])
                new[a + d] = shuffle(w, t, n, rows[a], lower, rows[a + d])
        rows, d = new, d // 2
    return rows
