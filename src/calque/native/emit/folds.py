"""Accumulators: parts of a fold put together, in one lane and over many."""

from __future__ import annotations

from collections.abc import Iterable

from calque.machine.records import replace
from calque.native.emit.instructions import shuffle
from calque.native.emit.lanes import SCALAR, Lanes
from calque.native.emit.types import VALUE, const_text, splat_text, vector
from calque.native.emit.values import operand
from calque.native.emit.writer import Writer
from calque.native.loops.tree import Fold
from calque.native.scalars.expr import Expr, cast

Parts = list[str]  # the SSA values of a fold: one for each of its names


def combine(w: Writer, f: Fold, lanes: Lanes, left: Parts, right: Parts) -> Parts:
    """What two parts make; each has a value for every lane."""
    names = [r.attr[0] for r in (*f.left, *f.right)]
    inside = lanes.seeing(names)
    w.open(w.out.block, lazy=True)  # the parts' names are known here only
    for name, ssa in zip(names, (*left, *right), strict=True):
        w.bind(name, ssa)
    out = [operand(w, e, inside) for e in f.combine]
    w.close_inline()
    return out


def narrowed(w: Writer, f: Fold, carried: Fold, parts: Parts) -> Parts:
    """What was carried, as values of the fold."""
    wide = replace(carried, combine=tuple(map(cast, carried.left, [v.dtype for v in f.values])))
    return combine(w, wide, SCALAR, parts, parts)


def fold_types(f: Fold, width: int) -> list[str]:
    return [vector(VALUE[v.dtype], width) for v in f.values]


def starts(w: Writer, f: Fold, lanes: Lanes) -> Parts:
    return [start(w, e, lanes) for e in f.init]


def start(w: Writer, e: Expr, lanes: Lanes) -> str:
    if e.op == "const":
        return splat_text(VALUE[e.dtype], const_text(e), lanes.width)
    return operand(w, e, lanes)


def split(values: Iterable[str], folds: list[Fold]) -> list[Parts]:
    """The flat list of carried values, fold by fold."""
    it = iter(values)
    return [[next(it) for _ in f.names] for f in folds]


# --- over lanes -----------------------------------------------------------------------------------


def filled_up(w: Writer, f: Fold, values: Parts, lanes: Lanes) -> Parts:
    """Values of lanes that do not exist are the identity."""
    if lanes.exist is None:
        return values
    out = []
    for v, e in zip(values, f.init, strict=True):
        t, bools = vector(VALUE[e.dtype], lanes.width), f"<{lanes.width} x i1>"
        out.append(w.new(f"select {bools} {lanes.exist}, {t} {v}, {t} {start(w, e, lanes)}"))
    return out


def halves(w: Writer, f: Fold, values: Parts, lanes: Lanes, until: int) -> Parts:
    """Fold the upper half of the lanes onto the lower one, down to ``until`` lanes."""
    width = lanes.width
    while width > until:
        half = width // 2
        low, high = [
            [
                shuffle(w, VALUE[e.dtype], width, v, order)
                for v, e in zip(values, f.values, strict=True)
            ]
            for order in (list(range(half)), list(range(half, width)))
        ]
        values, width = combine(w, f, lanes.parts(half), low, high), half
    return values


def lane(w: Writer, f: Fold, values: Parts, width: int, k: int) -> Parts:
    """The values of one lane."""
    return [
        w.new(f"extractelement <{width} x {VALUE[e.dtype]}> {v}, i64 {k}")
        for v, e in zip(values, f.values, strict=True)
    ]


def prefix(w: Writer, f: Fold, values: Parts, lanes: Lanes) -> Parts:
    """Inclusive running fold inside a vector: in each step the last element of every lower half
    joins its upper half."""
    d, width, lanes = 1, lanes.width, lanes.parts(lanes.width)
    while d < width:
        if f.neutral:
            order = [i // d * d - 1 if i & d else width for i in range(width)]
            left = [
                shuffle(w, VALUE[e.dtype], width, v, order, start(w, e, lanes))
                for v, e in zip(values, f.neutral, strict=True)
            ]
            values = combine(w, f, lanes, left, values)
        else:
            values = _joined(w, f, values, lanes, d)
        d *= 2
    return values


def _joined(w: Writer, f: Fold, values: Parts, lanes: Lanes, d: int) -> Parts:
    """One step where no constant is neutral: the lower halves keep what they have."""
    width = lanes.width
    order = [i // d * d - 1 if i & d else i for i in range(width)]
    upper = ", ".join([f"i1 {'true' if i & d else 'false'}" for i in range(width)])
    left = [
        shuffle(w, VALUE[e.dtype], width, v, order) for v, e in zip(values, f.values, strict=True)
    ]
    joined = combine(w, f, lanes, left, values)
    return [
        w.new(f"select <{width} x i1> <{upper}>, {t} {j}, {t} {v}")
        for j, v, t in zip(joined, values, fold_types(f, width), strict=True)
    ]
