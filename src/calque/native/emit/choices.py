"""One of two values: both computed, or the second only where it is needed."""

from __future__ import annotations

from calque.native.emit.instructions import any_lane
from calque.native.emit.lanes import Lanes
from calque.native.emit.loads import either_load
from calque.native.emit.types import VALUE, vector
from calque.native.emit.values import operand, operation
from calque.native.emit.writer import Writer
from calque.native.scalars.expr import Expr


@operation("select")
def select(w: Writer, e: Expr, lanes: Lanes) -> str:
    if lanes.width and not lanes.vary(e.args[0]):
        read = either_load(w, e, lanes)
        if read is not None:
            return read
    c, a, b = [operand(w, x, lanes) for x in e.args]
    t = vector(VALUE[e.dtype], lanes.width)
    return w.new(f"select {vector('i1', lanes.width)} {c}, {t} {a}, {t} {b}")


@operation("rare")
def rare(w: Writer, e: Expr, lanes: Lanes) -> str:
    """``select(cond, seldom, common)``, where ``seldom`` costs nothing unless some lane needs
    it."""
    cond, common, seldom = e.args
    width, out = lanes.width, w.out
    bools, t = vector("i1", width), vector(VALUE[e.dtype], width)
    c, v = operand(w, cond, lanes), operand(w, common, lanes)
    if out is not w.scopes[-1]:
        return w.new(f"select {bools} {c}, {t} {operand(w, seldom, lanes)}, {t} {v}")
    some = any_lane(w, c, width) if width else c
    if lanes.exist is not None:
        c = w.new(f"and {bools} {c}, {lanes.exist}")
        some = any_lane(w, c, width)
    k = w.number()
    start = out.block
    inner = w.open(f"r{k}", lazy=True)
    seldom_value = operand(w, seldom, lanes)
    r = w.new(f"select {bools} {c}, {t} {seldom_value}, {t} {v}")
    w.close()
    out.lines.append(f" br i1 {some}, label %r{k}, label %j{k}\nr{k}:")
    out.lines += inner.lines
    out.lines.append(f" br label %j{k}\nj{k}:")
    out.block = f"j{k}"
    return w.new(f"phi {t} [{v}, %{start}], [{r}, %{inner.block}]")
