"""How many bytes the elements of a loop take."""

from __future__ import annotations

from typing import Final

from calque.native.loops.tree import For, Store, own_exprs, statements
from calque.native.lower.cost import step_along
from calque.native.scalars.expr import Expr, index_and_guard, item_size, walk

PLACE_BYTES: Final = 8  # of an index that is an element of a vector


def element_bytes(f: For) -> int:
    """The widest element that the vector handles; where places differ from lane to lane, or
    decide, they count, too."""
    size = memory_bytes(f)
    return PLACE_BYTES if size < 4 and handles_places(f) else size


def memory_bytes(f: For) -> int:
    """The widest element that is read, computed or written."""
    size = 1
    for s in statements((f,)):
        if isinstance(s, Store):
            size = max(size, item_size(s.buf.dtype))
        for e in own_exprs(s):
            if e.dtype != "i64":
                size = max(size, item_size(e.dtype))
            for b in e.bufs:
                size = max(size, item_size(b.dtype))
    return size


def handles_places(f: For) -> bool:
    """Are indices themselves vectors: gathered at, or compared?"""
    seen: set[Expr] = set()
    for s in statements((f,)):
        for root in own_exprs(s):
            for e in walk(root, seen):
                if f.name not in e.names:
                    continue
                if e.op == "load":
                    step = step_along(e.attr.shape, index_and_guard(e)[0], f.name)
                    if step not in (-1, 0, 1):
                        return True
                if e.dtype == "i1" and e.args and e.args[0].dtype == "i64":
                    return True
    return False
