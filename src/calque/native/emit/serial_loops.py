"""Loops of one iteration after the other: counted ones, and those that carry states."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from calque.native.emit.conditions import either, those
from calque.native.emit.flow import Values, counted, guarded
from calque.native.emit.folds import Parts, combine, fold_types, split, start, starts
from calque.native.emit.instructions import any_lane
from calque.native.emit.lanes import SCALAR, Lanes
from calque.native.emit.loads import bring_near
from calque.native.emit.statements import statement, statements, writes
from calque.native.emit.turned_rows import turned_copy
from calque.native.emit.turned_sums import in_squares, row_variable
from calque.native.emit.types import VALUE, vector
from calque.native.emit.values import operand, value
from calque.native.emit.writer import Scope, Writer
from calque.native.loops.asking import DECLARATION
from calque.native.loops.polls import counter, latch, may_take_long
from calque.native.loops.tree import (
    Fold,
    For,
    Recurrence,
    as_fold,
    nodes,
)
from calque.native.loops.tree import statements as statements_of

_TURNS: Final = 4  # of a loop that may write the same place again, written one after the other
_SHORT: Final = 60  # nodes of a body that is written several times


def bind_fold(w: Writer, f: Fold, parts: Parts) -> None:
    for name, v in zip(f.names, parts, strict=True):
        w.bind(name, v)


def serial_loop(w: Writer, f: For, lanes: Lanes) -> None:
    """A counted loop; the outermost one of a parallel kernel runs from ``begin`` to ``end``."""
    if turned_copy(w, f, lanes):
        return
    folds = [as_fold(a) for a in f.accs]
    kinds = [_lanes_of(a, lanes) for a in folds]
    initial = [
        (t, v)
        for a, kind in zip(folds, kinds, strict=True)
        for t, v in zip(fold_types(a, kind.width), starts(w, a, kind), strict=True)
    ]
    n, written, parallel = f.extent, writes(w, f), f.kind == "parallel"
    bounds = ("%begin", "%end") if parallel else ("0", value(w, n, SCALAR))

    def body(phis: Values) -> Values:
        return _serial_body(w, f, folds, kinds, phis, lanes)

    def in_square(square: Lanes, phis: Values) -> Values:
        inside = [_lanes_of(a, square) for a in folds]
        return _serial_body(w, f, folds, inside, phis, square)

    row = row_variable(w, f, lanes)

    def run() -> Values:
        if row is not None:
            return in_squares(w, f, row, lanes, initial, in_square)
        if f.colliding and not lanes.width and _is_short(f):
            return _several(w, f, bounds, lanes)
        return counted(w, f.name, bounds, 1, written, initial, body)

    if n.op == "const" and not parallel:
        out = run() if n.attr > 0 else [v for _, v in initial]
    else:
        more = w.new(f"icmp slt i64 {bounds[0]}, {bounds[1]}")
        out = guarded(w, more, written, initial, run)
    for a, parts in zip(folds, split(out, folds), strict=True):
        bind_fold(w, a, parts)


def _is_short(f: For) -> bool:
    """Is the body worth writing several times?"""
    loops = any(isinstance(s, For | Recurrence) for s in statements_of(f.body))
    return not (loops or f.accs) and len(list(nodes((f,)))) <= _SHORT


def _several(w: Writer, f: For, bounds: tuple[str, str], lanes: Lanes) -> Values:
    """Turns that may write the same place, a few in a row. A processor learns for each instruction
    whether it reads what the turn before has written, and then waits for that in every turn: where
    each turn has instructions of its own, it is seldom so."""
    start, limit = bounds
    written = writes(w, f)
    turns = w.new(f"and i64 {w.new(f'sub i64 {limit}, {start}')}, {-_TURNS}")
    end = w.new(f"add i64 {start}, {turns}")

    def turn(at: str) -> None:
        w.open(w.out.block, written)
        w.bind(f.name, at)
        statements(w, f.body, lanes)
        w.close_inline()

    def several(phis: Values) -> Values:
        first = w.bound[f.name]
        turn(first)
        for k in range(1, _TURNS):
            turn(w.new(f"add i64 {first}, {k}"))
        return []

    def one(phis: Values) -> Values:
        statements(w, f.body, lanes)
        return []

    def loop(bounds: tuple[str, str], step: int, body: Callable[[Values], Values]) -> None:
        more = w.new(f"icmp slt i64 {bounds[0]}, {bounds[1]}")
        run = partial(counted, w, f.name, bounds, step, written, [], body)
        guarded(w, more, written, [], run)

    loop((start, end), _TURNS, several)
    loop((end, limit), 1, one)
    return []


def _lanes_of(a: Fold, lanes: Lanes) -> Lanes:
    return SCALAR if lanes.varying.isdisjoint(a.names) else lanes


def _serial_body(
    w: Writer, f: For, folds: list[Fold], kinds: list[Lanes], phis: Parts, lanes: Lanes
) -> Values:
    parts = split(phis, folds)
    new: list[Parts | None] = [None] * len(folds)

    def folded(j: int) -> Parts:
        values = [operand(w, v, kinds[j]) for v in folds[j].values]
        return combine(w, folds[j], kinds[j], parts[j], values)

    for j, a in enumerate(folds):
        if a.running:
            new[j] = out = folded(j)
            bind_fold(w, a, out)
    for e in f.ahead:
        bring_near(w, e)
    statements(w, f.body, lanes)
    flat: Values = []
    for j in range(len(folds)):
        flat += new[j] or folded(j)
    return flat


# --- loops with states ----------------------------------------------------------------------------


@statement(Recurrence)
def state_loop(w: Writer, s: Recurrence, lanes: Lanes) -> None:
    """Where the condition differs from lane to lane, a lane that has ended keeps its states, for
    which the condition goes on to fail."""
    w.forget(writes(w, s))
    k, outer = w.number(), w.out
    kinds = [lanes.holding(t.name) for t in s.states]
    first = [start(w, t.init, kind) for t, kind in zip(s.states, kinds, strict=True)]
    limit = value(w, s.var.attr[1], SCALAR) if s.var is not None else ""
    phis = [f"%c{k}_{j}" for j in range(len(s.states))]
    head = w.open(f"h{k}", writes(w, s))
    _bind_round(w, s, k, phis)
    statements(w, s.test, lanes)
    tests = [w.new(f"icmp slt i64 %i{k}, {limit}")] if s.var is not None else []
    parting, inside = s.cond is not None and lanes.vary(s.cond), lanes
    if s.cond is not None:
        if parting:
            here = those(w, value(w, s.cond, lanes), lanes)
            inside = lanes.only(here)
        tests.append(any_lane(w, here, lanes.width) if parting else value(w, s.cond, SCALAR))
    go = tests[0] if len(tests) == 1 else w.new(f"and i1 {tests[0]}, {tests[1]}")
    inner = w.open(f"b{k}", writes(w, s), barrier=True)
    _bind_round(w, s, k, phis)  # from here on what depends on states belongs to the body
    statements(w, s.body, inside)
    new = [operand(w, t.next, inside.holding(t.name)) for t in s.states]
    if parting:
        new = [
            either(w, here, x, p, t.init.dtype, lanes.width)
            for t, x, p in zip(s.states, new, phis, strict=True)
        ]
    if s.var is not None:
        w.put(f" %n{k} = add nuw nsw i64 %i{k}, 1")
    w.close()
    w.close()
    types = [
        vector(VALUE[t.init.dtype], kind.width) for t, kind in zip(s.states, kinds, strict=True)
    ]
    carried = list(zip(phis, types, first, new, strict=True))
    _place_loop(w, s, k, (outer, head, inner), carried, go)
    for t, p in zip(s.states, phis, strict=True):
        w.bind(t.name, p)


def _bind_round(w: Writer, s: Recurrence, k: int, phis: list[str]) -> None:
    """The count of rounds and the states, as the innermost scope's own."""
    if s.var is not None:
        w.bind(s.var.attr[0], f"%i{k}")
    for t, p in zip(s.states, phis, strict=True):
        w.bind(t.name, p)


def _place_loop(
    w: Writer,
    s: Recurrence,
    k: int,
    scopes: tuple[Scope, Scope, Scope],
    carried: list[tuple[str, str, str, str]],
    go: str,
) -> None:
    """Head and body in the code around them; ``carried``: name, type, first and next value."""
    outer, head, inner = scopes
    outer.lines.append(f" br label %h{k}\nh{k}:")
    if may_take_long(s):
        lines, inner.block = latch(s, k)
        inner.lines += lines
        w.declared.add(DECLARATION)
        outer.lines += counter(s, k, outer.block, inner.block)
    if s.var is not None:
        carried = [(f"%i{k}", "i64", "0", f"%n{k}"), *carried]
    for p, t, v, x in carried:
        outer.lines.append(f" {p} = phi {t} [{v}, %{outer.block}], [{x}, %{inner.block}]")
    outer.lines += head.lines
    outer.lines.append(f" br i1 {go}, label %b{k}, label %x{k}\nb{k}:")
    outer.lines += inner.lines
    outer.lines.append(f" br label %h{k}\nx{k}:")
    outer.block = f"x{k}"
