"""Statements that only move elements: what they write is what they read elsewhere."""

from __future__ import annotations

from calque.native.loops.tree import Body, For, Store, loaded, statements, stored
from calque.native.scalars.expr import Buffer, Expr, index_and_guard, is_const

PARTS = ("f32", "f64")  # of complex numbers


def is_move(body: Body) -> bool:
    """Does the body write elements of one array as they are read, and read nothing that it writes?
    What it did may then be done once more. Of two arrays one may have taken the memory of what the
    other is read from: read once more, that would be overwritten."""
    for s in statements(body):
        if isinstance(s, For) and not s.accs:
            continue
        if not isinstance(s, Store) or s.guard is not None or s.buf.place != "arg":
            return False
        if s.value.op != "load" or s.value.attr.dtype != s.buf.dtype:
            return False
        if index_and_guard(s.value)[1] is not None:
            return False
    return len(stored(body)) == 1 and stored(body).isdisjoint(loaded(body))


def moved_pair(a: Store, b: Store) -> tuple[Buffer, tuple[Expr, ...]] | None:
    """From where, if two stores write a complex number that is read as it is: the place of its
    first part."""
    if a.buf is not b.buf or a.guard is not b.guard or a.buf.place != "arg":
        return None
    if not (is_pair(a.buf, a.idx) and is_pair(b.buf, b.idx)) or a.idx[:-1] != b.idx[:-1]:
        return None
    x, y = a.value, b.value
    if x.op != "load" or y.op != "load" or x.attr is not y.attr or x.attr.place != "arg":
        return None
    source: Buffer = x.attr
    if source is a.buf or source.dtype != a.buf.dtype or a.buf.dtype not in PARTS:
        return None
    (read, guard), (other, other_guard) = index_and_guard(x), index_and_guard(y)
    if guard is not None or other_guard is not None:
        return None
    if not (is_pair(source, read) and is_pair(source, other)) or read[:-1] != other[:-1]:
        return None
    if read[-1] is not a.idx[-1] or other[-1] is not b.idx[-1] or read[-1] is other[-1]:
        return None
    return source, tuple(other if read[-1].attr else read)


def moved_pairs(body: Body) -> int:
    """How many elements a step from one number to the next is in a body that stores: 2 where it
    moves complex numbers that are words, else 1."""
    stores = [s for s in body if isinstance(s, Store) and s.buf.dtype == "f32"]
    if not stores or len(stores) != len(body) or len(body) % 2:
        return 1
    pairs = zip(stores[::2], stores[1::2])
    return 2 if all(moved_pair(a, b) is not None for a, b in pairs) else 1


def is_pair(buf: Buffer, idx: tuple[Expr, ...]) -> bool:
    """A part of a complex number: the last dimension is 2 and its index 0 or 1."""
    return (
        len(buf.shape) > 1
        and is_const(buf.shape[-1], 2)
        and idx[-1].op == "const"
        and idx[-1].attr in (0, 1)
    )
