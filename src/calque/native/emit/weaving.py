"""Stores that fill rows of two to four elements, lane after lane: one wide store of what is woven
together."""

from __future__ import annotations

from collections.abc import Sequence

from calque.native.emit.addresses import address, memory_type, moving_place
from calque.native.emit.instructions import MOST_WOVEN, interleaved
from calque.native.emit.lanes import Lanes
from calque.native.emit.narrow import to_memory
from calque.native.emit.pairs import WORDS, move_of, read_words
from calque.native.emit.stores import guard_of, store_contiguous
from calque.native.emit.values import operand
from calque.native.emit.writer import Writer
from calque.native.loops.moves import is_pair
from calque.native.loops.tree import Body, Statement, Store
from calque.native.scalars.expr import Buffer, Expr, terms


def woven(w: Writer, body: Body, lanes: Lanes) -> int:
    """Write the stores with which a body begins as one, if they fill rows: how many there are."""
    s = body[0]
    if not isinstance(s, Store) or not lanes.width or lanes.active is not None:
        return 0
    step = moving_place(s.buf, s.idx, lanes)[1]
    if step is None or not 2 <= step <= 2 * MOST_WOVEN or s.buf.place != "arg":
        return 0
    run = body[:step]
    if len(run) < step or not in_row(w, run, s.buf, lanes):
        return 0
    if step == 2 and is_pair(s.buf, s.idx):
        return 0  # the parts of complex numbers are written as such
    stores = [x for x in run if isinstance(x, Store)]
    moves = [move_of(w, a, b, lanes) for a, b in zip(stores[::2], stores[1::2])]
    if step % 2 == 0 and all(m is not None for m in moves):
        t = WORDS[s.buf.dtype]
        values = [read_words(w, m, t, lanes) for m in moves if m is not None]
    elif step <= MOST_WOVEN:
        t = memory_type(s.buf)
        values = [
            to_memory(w, operand(w, x.value, lanes), x.value.dtype, lanes.width) for x in stores
        ]
    else:
        return 0
    row = interleaved(w, t, lanes.width, values)
    n = len(values) * lanes.width
    if t != memory_type(s.buf):
        row = w.new(f"bitcast <{n} x {t}> {row} to <{step * lanes.width} x {memory_type(s.buf)}>")
    p = address(w, s.buf, moving_place(s.buf, s.idx, lanes)[0], lanes)
    store_contiguous(w, s.buf, p, row, None, step * lanes.width)
    w.forget(frozenset((s.buf,)))
    return step


def in_row(w: Writer, run: Sequence[Statement], buf: Buffer, lanes: Lanes) -> bool:
    """Do stores fill places one after the other, as many as there are from lane to lane?"""
    first: tuple[dict[Expr, int], int] | None = None
    for k, s in enumerate(run):
        if not isinstance(s, Store) or s.buf is not buf or guard_of(s) is not None:
            return False
        at, step = moving_place(buf, s.idx, lanes)
        parts, c = terms(at)
        first = first or (parts, c)
        if step != len(run) or parts != first[0] or c != first[1] + k or buf in s.value.bufs:
            return False
    return first is not None
