"""Reads along one loop, writes along another: square tiles turned round in registers.

For ``y[i, j] = f(x[j, i])`` a gather along j would touch a cache line per element. Instead a tile
of x is read along i, row by row, transposed by shuffles and kept on the stack; the body then reads
vectors along j from there."""

from __future__ import annotations

from calque.native.emit.addresses import address, align
from calque.native.emit.instructions import words
from calque.native.emit.lanes import SCALAR, Lanes, TiledLoop
from calque.native.emit.transposing import transposed
from calque.native.emit.values import value
from calque.native.emit.writer import Writer
from calque.native.scalars.expr import Buffer, Expr, const, ex, rewrite, stride, var


def from_tile(
    w: Writer, tile: TiledLoop, buf: Buffer, at: Expr, lanes: Lanes, t: str, unit: int
) -> str | None:
    """The row of a turned tile, if the buffer is read along the tile's outer loop: elements of a
    type, which take so many of the buffer's."""
    if (
        lanes.exist is not None
        or lanes.width != tile.size
        or buf in w.mutable
        or buf.place != "arg"
        or not at.index
        or stride(at, tile.outer.attr[0]) != unit
    ):
        return None
    full = f"<{tile.size} x {t}>"
    array = tile.arrays.get((buf, at))
    if array is None:
        array = w.array((tile, buf, at), f"[{tile.size} x {full}]")
        tile.arrays[buf, at] = array
        inner = max(w.where[x.attr[0]] for x in (tile.columns, tile.first))
        with w.at(w.scopes[inner]):
            _fill(w, tile, buf, at, array, t)
    p = w.new(f"getelementptr {full}, ptr {array}, i64 {value(w, tile.row, SCALAR)}")
    return w.new(f"load {full}, ptr {p}, align {align(buf)}")


def _fill(w: Writer, tile: TiledLoop, buf: Buffer, at: Expr, array: str, t: str) -> None:
    """Rows along the outer loop, transposed. (In the masked rest of the vector loop a gather is
    less code.)"""
    n = tile.size
    full = f"<{n} x {t}>"
    rows = []
    for r in range(n):
        column = ex("add", var(tile.columns.attr[0]), const(r))
        here = {tile.columns: column, tile.outer: tile.first}
        p = address(w, buf, rewrite(at, here.get, {}), SCALAR)
        rows.append(words(w, t, align(buf), p, tile.mask, n))
    for r, v in enumerate(transposed(w, rows, t)):
        p = w.new(f"getelementptr {full}, ptr {array}, i64 {r}")
        w.put(f" store {full} {v}, ptr {p}, align {align(buf)}")
