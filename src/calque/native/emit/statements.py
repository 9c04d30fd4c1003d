"""Statements -> code: each by the function that its type has in ``STATEMENTS``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from calque.machine.state import process
from calque.native.emit.lanes import Lanes
from calque.native.emit.pairs import are_pair, move_of, store_pair, write_move
from calque.native.emit.stores import store
from calque.native.emit.values import operand
from calque.native.emit.weaving import woven
from calque.native.emit.writer import NOTHING, Writer
from calque.native.loops.tree import Body, Let, Statement, Store, stored
from calque.native.scalars.expr import Buffer

Rule = Callable[[Writer, Any, Lanes], None]
# filled by the modules of their subjects
STATEMENTS: Final[dict[type, Rule]] = process.container("rules of statements", {})


def statement(kind: type) -> Callable[[Rule], Rule]:
    """Enter the function that writes a type of statement."""

    def enter(f: Rule) -> Rule:
        STATEMENTS[kind] = f
        return f

    return enter


def statements(w: Writer, body: Body, lanes: Lanes) -> None:
    i = 0
    while i < len(body):
        s = body[i]
        together = woven(w, body[i:], lanes)
        if together:
            i += together
            continue
        i += 1
        if isinstance(s, Store):
            after = body[i] if i < len(body) else None
            if isinstance(after, Store) and stored_together(w, s, after, lanes):
                i += 1
            else:
                store(w, s, lanes)
        else:
            STATEMENTS[type(s)](w, s, lanes)


def stored_together(w: Writer, a: Store, b: Store, lanes: Lanes) -> bool:
    """Write two stores that fill complex numbers as one; False if they do not."""
    move = move_of(w, a, b, lanes)
    if move is not None:
        write_move(w, move, lanes)
    elif are_pair(w, a, b, lanes):
        store_pair(w, a, b, lanes)
    else:
        return False
    return True


@statement(Let)
def let(w: Writer, s: Let, lanes: Lanes) -> None:
    w.bind(s.name, operand(w, s.value, lanes.holding(s.name)))


def writes(w: Writer, s: Statement) -> frozenset[Buffer]:
    """The buffers, read elsewhere in the kernel, that a statement writes."""
    if not w.mutable:
        return NOTHING
    known = w.written.get(id(s))
    if known is None:  # the statement is kept, so that its id stays its own
        known = w.written[id(s)] = (s, stored((s,)) & w.mutable)
    return known[1]
