"""One of two values: both computed, or the second only where it is needed; one of many."""

from __future__ import annotations

from calque.native.emit import scratch
from calque.native.emit.instructions import any_lane
from calque.native.emit.lanes import SCALAR, Lanes
from calque.native.emit.loads import either_load
from calque.native.emit.types import VALUE, vector
from calque.native.emit.values import operand, operation, value
from calque.native.emit.writer import Writer
from calque.native.loops.rows import PICK
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


@operation(PICK)
def pick(w: Writer, e: Expr, lanes: Lanes) -> str:
    """One of several values, by its number: read from memory, where a loop that kernels share may
    have left them."""
    number, *those = e.args
    t = vector(VALUE[e.dtype], lanes.width)
    values = tuple([operand(w, x, lanes) for x in those])
    array = w.in_memory.get(values)
    if array is None:
        array = w.array((PICK, values), f"[{len(values)} x {t}]")
        with w.at(w.scopes[max(map(w.depth, those))]):
            for k, v in enumerate(values):
                place = w.new(f"getelementptr {t}, ptr {array}, i64 {k}")
                w.put(f" store {t} {v}, ptr {place}, align {scratch.alignment(t)}")
    place = w.new(f"getelementptr {t}, ptr {array}, i64 {value(w, number, SCALAR)}")
    return w.new(f"load {t}, ptr {place}, align {scratch.alignment(t)}")


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
