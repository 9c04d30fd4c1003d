"""Values that stay in registers: a read of what the same body has stored is the stored value.

before: for i: t[i] = a; y[i] = t[i] + 1      after: t[i] = a; y[i] = a + 1, and t is not read"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from calque.machine.records import replace
from calque.native.loops.tree import (
    Accumulator,
    Body,
    For,
    Let,
    Statement,
    Store,
    map_acc,
    stored,
)
from calque.native.scalars.expr import (
    Buffer,
    Expr,
    const,
    index_and_guard,
    is_const,
    load,
    rewrite,
    select,
    walk,
)


class StoreForwarding:
    """Replace a read, at the index at which the same body made the value, by the value."""

    def __init__(self, local: frozenset[Buffer]) -> None:
        self.local = local
        self.visible: dict[Expr, Expr] = {}
        self.touching: dict[Buffer, set[Expr]] = {}  # places in a buffer, or with values from it

    def body(self, body: Iterable[Statement]) -> Body:
        added: list[Expr] = []
        memo: dict[Expr, Expr] = {}

        def fix(e: Expr) -> Expr:
            return self.seen(e, memo)

        out: list[Statement] = []
        for s in body:
            if isinstance(s, For):
                if self.visible and self.overwritten(stored((s,))):
                    memo.clear()
                inner = self.body(s.body)
                out.append(replace(s, body=inner, accs=tuple(self.accs(s, fix))))
            elif isinstance(s, Store):
                value = fix(s.value)
                idx = s.idx if s.buf in self.local else tuple(map(fix, s.idx))
                out.append(Store(s.buf, idx, value, fix(s.guard) if s.guard is not None else None))
                if self.spoil(s.buf, idx):
                    memo.clear()
                if s.buf in self.local and s.guard is None and not may_read(value, s.buf, idx):
                    place = load(s.buf, idx)
                    self.show(place, value)
                    added.append(place)
            elif isinstance(s, Let):
                out.append(Let(s.name, fix(s.value)))
            else:
                out.append(s)
        self.last = {e: self.visible.pop(e) for e in added if e in self.visible}
        return tuple(out)

    def accs(self, s: For, fix: Callable[[Expr], Expr]) -> Iterable[Accumulator]:
        """What a loop folds may read what its body made."""
        if not self.last:
            return [map_acc(a, fix) for a in s.accs]
        self.visible |= self.last
        memo: dict[Expr, Expr] = {}
        out = [map_acc(a, lambda e: self.seen(e, memo)) for a in s.accs]
        for e in self.last:
            self.visible.pop(e, None)
        return out

    def seen(self, e: Expr, memo: dict[Expr, Expr]) -> Expr:
        """An expression that reads the values themselves; what is read under a guard is 0 where
        that does not hold."""

        def rule(x: Expr) -> Expr | None:
            value = self.visible.get(x)
            if value is not None or x.op != "load":
                return value
            idx, guard = index_and_guard(x)
            if guard is None:
                return None
            value = self.visible.get(load(x.attr, idx))
            if value is None:
                return None
            return select(rewrite(guard, rule, memo), value, const(0, value.dtype))

        return rewrite(e, rule, memo)

    def overwritten(self, bufs: frozenset[Buffer]) -> bool:
        """Before a loop: what its turns write is not what it was when they began."""
        return self.hide([e for buf in bufs for e in self.touched(buf)])

    def spoil(self, buf: Buffer, idx: Sequence[Expr]) -> bool:
        """After a store, values read from that buffer are values no more, and what it held there
        may be gone."""
        return self.hide(
            [
                e
                for e in self.touched(buf)
                if e.attr is not buf or not apart(e.args, idx) or buf in self.visible[e].bufs
            ]
        )

    def show(self, place: Expr, value: Expr) -> None:
        """Let a value take the place of reads of where it was stored."""
        self.visible[place] = value
        for buf in {place.attr, *value.bufs}:
            self.touching.setdefault(buf, set()).add(place)

    def touched(self, buf: Buffer) -> set[Expr]:
        """The visible places that a store to this buffer may spoil."""
        those = self.touching.get(buf)
        if not those:
            return set()
        now = self.visible
        those = {e for e in those if e in now and (e.attr is buf or buf in now[e].bufs)}
        self.touching[buf] = those
        return those

    def hide(self, stale: Sequence[Expr]) -> bool:
        for e in stale:
            self.visible.pop(e, None)
        return bool(stale)


def apart(a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    """Are these certainly two places of a buffer?"""
    return any(is_const(x) and is_const(y) and x.attr != y.attr for x, y in zip(a, b))


def may_read(value: Expr, buf: Buffer, idx: Sequence[Expr]) -> bool:
    """May a value read a place, so that it is another one when that is written?"""
    if buf not in value.bufs:
        return False
    reads = (e for e in walk(value, set()) if e.op == "load" and e.attr is buf)
    return any(not apart(index_and_guard(e)[0], idx) for e in reads)
