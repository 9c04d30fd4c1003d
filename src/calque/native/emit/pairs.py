"""Complex numbers in memory: both parts written at once, and numbers that are only moved, as words
of which nobody asks what they hold."""

from __future__ import annotations

from typing import Final, NamedTuple

from calque.native.emit.addresses import (
    Index,
    address,
    addresses,
    align,
    lanes_mask,
    memory_type,
    moving_place,
    place,
)
from calque.native.emit.instructions import interleaved, shuffle, splat
from calque.native.emit.lanes import SCALAR, Lanes
from calque.native.emit.loads import contiguous, gathered
from calque.native.emit.narrow import to_memory
from calque.native.emit.stores import guard_of, scattered, store_contiguous
from calque.native.emit.tiles import from_tile
from calque.native.emit.values import operand
from calque.native.emit.writer import Writer
from calque.native.loops.moves import is_pair, moved_pair
from calque.native.loops.tree import Store
from calque.native.scalars.expr import Buffer

WORDS: Final = {"f32": "i64", "f64": "<2 x double>"}  # a complex number of such parts


class Move(NamedTuple):
    """Complex numbers that go from one place to another."""

    source: Buffer
    read: Index
    target: Buffer
    write: Index


def are_pair(w: Writer, a: Store, b: Store, lanes: Lanes) -> bool:
    """Do two stores fill both parts of the same complex numbers, lane after lane?"""
    if not lanes.width or a.buf is not b.buf or a.guard is not b.guard or not a.idx:
        return False
    if a.idx[:-1] != b.idx[:-1] or a.idx[-1] is b.idx[-1]:
        return False
    if not (is_pair(a.buf, a.idx) and is_pair(a.buf, b.idx)):
        return False
    if a.buf.place == "lane" or a.buf in b.value.bufs:
        return False
    return moving_place(a.buf, a.idx, lanes)[1] == 2


def store_pair(w: Writer, a: Store, b: Store, lanes: Lanes) -> None:
    """One wide store of two interleaved vectors."""
    if a.idx[-1].attr:
        a, b = b, a
    W, buf = lanes.width, a.buf
    re, im = [to_memory(w, operand(w, x.value, lanes), x.value.dtype, W) for x in (a, b)]
    v = interleaved(w, memory_type(buf), W, (re, im))
    mask = lanes_mask(w, guard_of(a), lanes)
    if mask is not None:
        mask = shuffle(w, "i1", W, mask, [i // 2 for i in range(2 * W)])
    p = address(w, buf, place(buf, a.idx), lanes)
    store_contiguous(w, buf, p, v, mask, 2 * W)
    w.forget(frozenset((buf,)))


def move_of(w: Writer, a: Store, b: Store, lanes: Lanes) -> Move | None:
    """Two stores as one move of complex numbers, if they are one that words make shorter."""
    found = moved_pair(a, b)
    if found is None or guard_of(a) is not None or found[0] in w.mutable:
        return None
    if a.idx[-1].attr:
        a = b
    move = Move(*found, a.buf, a.idx)
    if not lanes.width:
        return move
    steps = [
        moving_place(buf, idx, lanes)[1]
        for buf, idx in ((move.source, move.read), (move.target, move.write))
    ]
    # vectors of whole numbers that lie beside each other are as good as words
    return None if steps == [2, 2] or a.buf.dtype != "f32" else move


def write_move(w: Writer, m: Move, lanes: Lanes) -> None:
    """One word for each complex number."""
    t = WORDS[m.source.dtype]
    if lanes.width:
        write_words(w, m, read_words(w, m, t, lanes), t, lanes)
    else:
        p = address(w, m.source, place(m.source, m.read), SCALAR)
        v = w.new(f"load {t}, ptr {p}, align {align(m.source)}")
        p = address(w, m.target, place(m.target, m.write), SCALAR)
        w.put(f" store {t} {v}, ptr {p}, align {align(m.target)}")
    w.forget(frozenset((m.target,)))


def read_words(w: Writer, m: Move, t: str, lanes: Lanes) -> str:
    """A word for each lane."""
    W, buf = lanes.width, m.source
    at, step = moving_place(buf, m.read, lanes)
    if lanes.tile is not None and step not in (0, 2):
        turned = from_tile(w, lanes.tile, buf, at, lanes, t, 2)
        if turned is not None:
            return turned
    mask = lanes_mask(w, None, lanes)
    if step == 0:
        p = address(w, buf, at, lanes)
        return splat(w, w.new(f"load {t}, ptr {p}, align {align(buf)}"), t, W)
    if step == 2:
        both = mask and shuffle(w, "i1", W, mask, [i // 2 for i in range(2 * W)])
        wide = contiguous(w, buf, address(w, buf, at, lanes), both, 2 * W)
        return w.new(f"bitcast <{2 * W} x {memory_type(buf)}> {wide} to <{W} x {t}>")
    return gathered(w, t, buf, addresses(w, buf, at, step, lanes), mask, W, word=2)


def write_words(w: Writer, m: Move, v: str, t: str, lanes: Lanes) -> None:
    """Words to where they belong."""
    W, buf = lanes.width, m.target
    at, step = moving_place(buf, m.write, lanes)
    mask = lanes_mask(w, None, lanes)
    if step == 2:
        parts = w.new(f"bitcast <{W} x {t}> {v} to <{2 * W} x {memory_type(buf)}>")
        both = mask and shuffle(w, "i1", W, mask, [i // 2 for i in range(2 * W)])
        store_contiguous(w, buf, address(w, buf, at, lanes), parts, both, 2 * W)
        return
    scattered(w, t, buf, addresses(w, buf, at, step, lanes), v, mask, W)
