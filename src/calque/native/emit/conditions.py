"""``If``: one of two bodies, or both where lanes part."""

from __future__ import annotations

from functools import partial

from calque.native.emit.flow import Values, guarded
from calque.native.emit.instructions import any_lane
from calque.native.emit.lanes import SCALAR, Lanes
from calque.native.emit.statements import statement, statements, writes
from calque.native.emit.types import VALUE, vector
from calque.native.emit.values import operand, value
from calque.native.emit.writer import Writer
from calque.native.loops.tree import Body, If
from calque.native.scalars.expr import Expr


def those(w: Writer, which: str, lanes: Lanes) -> str:
    """The lanes in a mask that are here."""
    if lanes.active is None:
        return which
    return w.new(f"and <{lanes.width} x i1> {which}, {lanes.active}")


def either(w: Writer, which: str, a: str, b: str, dtype: str, width: int) -> str:
    """``a`` in the lanes in ``which``, ``b`` in the others."""
    t = vector(VALUE[dtype], width)
    return w.new(f"select <{width} x i1> {which}, {t} {a}, {t} {b}")


@statement(If)
def if_(w: Writer, s: If, lanes: Lanes) -> None:
    if lanes.vary(s.cond):
        _lanes_part(w, s, lanes)
    else:
        _branch(w, s, lanes)


def _branch(w: Writer, s: If, lanes: Lanes) -> None:
    k = w.number()
    cond = value(w, s.cond, SCALAR)
    kinds = [lanes.holding(o.name) for o in s.outs]
    sides = []
    for label, body, exprs in (
        ("t", s.then, [o.then for o in s.outs]),
        ("e", s.orelse, [o.orelse for o in s.outs]),
    ):
        scope = w.open(f"{label}{k}", writes(w, s), lazy=True)
        statements(w, body, lanes)
        values = [operand(w, e, kind) for e, kind in zip(exprs, kinds, strict=True)]
        w.close()
        sides.append((scope, values))
    out = w.out
    out.lines.append(f" br i1 {cond}, label %t{k}, label %e{k}")
    for label, (scope, _) in zip("te", sides, strict=True):
        out.lines.append(f"{label}{k}:")
        out.lines += scope.lines
        out.lines.append(f" br label %x{k}")
    out.lines.append(f"x{k}:")
    out.block = f"x{k}"
    (then, a), (orelse, b) = sides
    for j, (o, kind) in enumerate(zip(s.outs, kinds, strict=True)):
        t = vector(VALUE[o.then.dtype], kind.width)
        w.bind(o.name, w.new(f"phi {t} [{a[j]}, %{then.block}], [{b[j]}, %{orelse.block}]"))


def _lanes_part(w: Writer, s: If, lanes: Lanes) -> None:
    """Each side runs if any lane takes it, for those that do."""
    cond, width = value(w, s.cond, lanes), lanes.width
    other = w.new(f"xor <{width} x i1> {cond}, splat (i1 true)")
    initial = [(vector(VALUE[o.then.dtype], width), "zeroinitializer") for o in s.outs]
    masks = (those(w, cond, lanes), those(w, other, lanes))
    found = []
    for mask, body, exprs in (
        (masks[0], s.then, [o.then for o in s.outs]),
        (masks[1], s.orelse, [o.orelse for o in s.outs]),
    ):
        side = partial(_side, w, body, exprs, lanes.only(mask))
        some = any_lane(w, mask, width)
        found.append(guarded(w, some, writes(w, s), initial, side, lazy=True))
    for o, a, b in zip(s.outs, *found, strict=True):
        w.bind(o.name, either(w, cond, a, b, o.then.dtype, width))


def _side(w: Writer, body: Body, exprs: list[Expr], lanes: Lanes) -> Values:
    statements(w, body, lanes)
    return [operand(w, e, lanes) for e in exprs]
