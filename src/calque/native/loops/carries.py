"""What a running fold carries from block to block: in the next wider float, since a long row has so
many blocks that their roundings would add up.

A fold of float64 carries float64, and what rounds nothing (a maximum) carries its own type."""

from __future__ import annotations

from typing import Final

from calque.machine.records import replace
from calque.native.loops.tree import Fold
from calque.native.scalars.expr import Expr, cast, const, const_value, ex, ref, walk

WIDER: Final = {"f16": "f32", "bf16": "f32", "f32": "f64"}
ROUNDING: Final = {"add", "sub", "mul", "exp", "log1p"}  # operations that are the same in any float
EXACT: Final = {"ref", "const", "max", "min", "neg", "abs", "ne", "select"}


def carry_of(f: Fold) -> Fold:
    """The fold of what is carried (its left parts) with what blocks make (its right ones)."""
    seen: set[Expr] = set()
    found = {x.op for e in f.combine for x in walk(e, seen)}
    if not found <= ROUNDING | EXACT or found <= EXACT:
        return f
    if not {v.dtype for v in f.values} <= WIDER.keys():
        return f

    wide: dict[Expr, Expr] = {}
    for e in (*f.left, *f.right):
        wide[e] = ref(e.attr[0], WIDER[e.dtype]) if e in f.left else _wider(e)

    return replace(
        f,
        init=tuple([_wider(e) for e in f.init]),
        values=tuple([_wider(e) for e in f.values]),
        left=tuple([wide[e] for e in f.left]),
        combine=tuple([_computed_wide(e, wide) for e in f.combine]),
        neutral=(),
    )


def _computed_wide(e: Expr, wide: dict[Expr, Expr]) -> Expr:
    if e not in wide:
        args = [_computed_wide(a, wide) for a in e.args]
        wide[e] = _wider(e) if e.op == "const" else ex(e.op, *args)
    return wide[e]


def _wider(e: Expr) -> Expr:
    if e.op == "const":
        return const(const_value(e), WIDER[e.dtype])
    return cast(e, WIDER[e.dtype])
