"""Reads along one loop, writes along another: square tiles turned round in registers.

For ``y[i, j] = f(x[j, i])`` a gather along j would touch a cache line per element. Instead a tile
of x is read along i, row by row, transposed by shuffles and kept on the stack; the body then reads
vectors along j from there."""

from __future__ import annotations

from dataclasses import dataclass, field

from calque.native.emit.memory import Index, Memory
from calque.native.emit.scopes import Scope
from calque.native.scalars.expr import Buffer, Expr, const, ex, rewrite, stride, var


@dataclass
class Tile:
    """A loop over i taken in steps of ``size``: ``row`` counts inside the step that begins at
    ``first``."""

    outer: Expr  # the variable i
    first: Expr
    row: Expr
    size: int
    columns: Expr  # the variable of the vector loop inside
    arrays: dict[tuple[Buffer, Expr], str] = field(default_factory=dict)


class Tiles(Memory):
    """Loads from tiles."""

    tile: Tile | None = None

    def load_vector(self, buf: Buffer, idx: Index, guard: Expr | None, s: Scope) -> str:
        tile = self.tile
        if (
            tile is not None
            and guard is None
            and self.mask is None
            and self.width == tile.size
            and buf not in self.mutable
        ):
            at, step = self.place(buf, idx)
            if (
                step not in (0, 1)
                and at.index
                and stride(at, tile.outer.attr[0]) == 1
                and buf.place == "arg"
            ):
                return self.from_tile(tile, buf, at, s)
        return super().load_vector(buf, idx, guard, s)

    def from_tile(self, tile: Tile, buf: Buffer, at: Expr, s: Scope) -> str:
        key = (buf, at)
        array = tile.arrays.get(key)
        full = f"<{tile.size} x {self.memory_type(buf)}>"
        if array is None:
            array = tile.arrays[key] = f"%a{len(self.allocas)}"
            self.allocas[f"tile {array}"] = f" {array} = alloca [{tile.size} x {full}], align 64"
            self.fill_tile(tile, buf, at, array, self.scopes[self.where[tile.columns.attr[0]]])
        p = self.new(
            f"getelementptr {full}, ptr {array}, i64 {self.value(tile.row, lane0=True)}", s
        )
        return self.new(f"load {full}, ptr {p}, align {self.align(buf)}", s)

    def fill_tile(self, tile: Tile, buf: Buffer, at: Expr, array: str, s: Scope) -> None:
        """Rows along i, transposed, in the scope of the vector loop. (In its masked rest a gather
        is less code.)"""
        n, t, align = tile.size, self.memory_type(buf), self.align(buf)
        full = f"<{n} x {t}>"
        rows = []
        for r in range(n):
            column = ex("add", var(tile.columns.attr[0]), const(r))
            here = {tile.columns: column, tile.outer: tile.first}
            p = self.address(buf, rewrite(at, here.get, {}), s)
            rows.append(self.new(f"load {full}, ptr {p}, align {align}", s))
        for r, v in enumerate(self.transposed(rows, t, s)):
            p = self.new(f"getelementptr {full}, ptr {array}, i64 {r}", s)
            s.lines.append(f" store {full} {v}, ptr {p}, align {align}")

    def transposed(self, rows: list[str], t: str, s: Scope) -> list[str]:
        """Blocks of half, a quarter, ... of the tile change places, two rows at a time."""
        n = len(rows)
        d = n // 2
        while d:
            new = list(rows)
            upper = [k if not k & d else n + k - d for k in range(n)]
            lower = [k + d if not k & d else n + k for k in range(n)]
            for a in range(n):
                if not a & d:
                    new[a] = self.shuffle(t, n, rows[a], upper, rows[a + d], s)
                    new[a + d] = self.shuffle(t, n, rows[a], lower, rows[a + d], s)
            rows, d = new, d // 2
        return rows
