"""Sums beside each other whose summands lie in memory one behind the other: rows of a matrix times
a vector. Each lane sums a row; squares of the matrix are read along the rows and turned in
registers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from calque.native.emit.addresses import before, moving_place
from calque.native.emit.flow import Typed, Values, counted, guarded
from calque.native.emit.lanes import SCALAR, Lanes, TiledLoop
from calque.native.emit.statements import writes
from calque.native.emit.values import value
from calque.native.emit.whole import whole_vectors
from calque.native.emit.writer import Writer
from calque.native.loops.tree import NEAR, SQUARE, Acc, For
from calque.native.scalars.expr import Expr, index_and_guard, is_const, stride, var, walk

Body = Callable[[Lanes, Values], Values]


def row_variable(w: Writer, f: For, lanes: Lanes) -> Expr | None:
    """The variable that lanes differ in, if each sums what lies in memory one behind the other."""
    width, n = lanes.width, f.extent
    if f.body or f.kind != "serial" or not 4 <= width <= SQUARE or width & (width - 1):
        return None
    if lanes.active is not None or lanes.tile is not None or lanes.vary(n):
        return None
    if n.op == "const" and n.attr < (NEAR + 1 if masks_rows(w, width) else 2 * width):
        return None
    for a in f.accs:
        for e in walk(a.value, set()) if isinstance(a, Acc) else ():
            if e.op == "load" and e.attr.place == "arg" and e.attr not in w.mutable:
                at, step = moving_place(e.attr, index_and_guard(e)[0], lanes)
                if at.index and step not in (0, 1) and stride(at, f.name) == 1:
                    return next(
                        x for x in walk(at, set()) if x.op == "var" and x.attr[0] == lanes.variable
                    )
    return None


def masks_rows(w: Writer, width: int) -> bool:
    """Can a part of a row be read under a mask?"""
    return w.options.register_bytes >= 32 and width <= w.options.register_bytes // 4


def in_squares(w: Writer, f: For, row: Expr, lanes: Lanes, initial: Typed, body: Body) -> Values:
    """The loop in steps of whole squares; what is left of it is a square of fewer columns, or goes
    one by one where rows cannot be read in part."""
    size, written = lanes.width, writes(w, f)
    limit = value(w, f.extent, SCALAR)
    whole = whole_vectors(w, f.extent, size)
    end = value(w, whole, SCALAR)
    first, inside = var(f"{f.name}.first"), var(f"{f.name}.row", size)

    def one(square: Lanes, phis: Values) -> Values:
        begin, at = value(w, first, SCALAR), value(w, inside, SCALAR)
        w.bind(f.name, w.new(f"add i64 {begin}, {at}"))
        return body(square, phis)

    def step(columns: str, mask: str | None, phis: Values) -> Values:
        square = lanes._replace(tile=TiledLoop(f.var, first, inside, size, row, mask))
        carried = [(t, x) for (t, _), x in zip(initial, phis, strict=True)]
        return counted(w, inside.attr[0], ("0", columns), 1, written, carried, partial(one, square))

    def squares() -> Values:
        each = partial(step, str(size), None)
        return counted(w, first.attr[0], ("0", end), size, written, initial, each)

    values = [x for _, x in initial]
    if not is_const(whole, 0):
        values = guarded(w, w.new(f"icmp sgt i64 {end}, 0"), written, initial, squares)
    if whole is f.extent:
        return values
    rest = [(t, x) for (t, _), x in zip(initial, values, strict=True)]

    def others() -> Values:
        if not masks_rows(w, size):
            return counted(w, f.name, (end, limit), 1, written, rest, partial(body, lanes))
        left, mask = w.new(f"sub i64 {limit}, {end}"), before(w, end, limit, size)
        w.bind(first.attr[0], end)
        return step(left, mask, [x for _, x in rest])

    return guarded(w, w.new(f"icmp slt i64 {end}, {limit}"), written, rest, others)
