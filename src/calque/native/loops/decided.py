"""Stores whose conditions are known by now."""

from __future__ import annotations

from calque.machine.records import replace
from calque.native.loops.tree import Body, For, If, Recurrence, Statement, Store
from calque.native.scalars.expr import FALSE, TRUE


def decided(body: Body) -> Body:
    """Stores that always store have no guard; those that never do are gone, and loops of which
    nothing is left."""
    return tuple([made for s in body if (made := _decided(s)) is not None])


def _decided(s: Statement) -> Statement | None:
    if isinstance(s, Store):
        return None if s.guard is FALSE else replace(s, guard=None) if s.guard is TRUE else s
    if isinstance(s, For):
        inside = decided(s.body)
        return replace(s, body=inside) if inside or s.accs else None
    if isinstance(s, Recurrence):
        return replace(s, body=decided(s.body), test=decided(s.test))
    if isinstance(s, If):
        return replace(s, then=decided(s.then), orelse=decided(s.orelse))
    return s
