"""Where elements are: addresses of buffers, how they move from lane to lane, and which lanes may
touch them."""

from __future__ import annotations

from math import prod
from typing import Final

from calque.native.emit.instructions import splat
from calque.native.emit.lanes import SCALAR, Lanes
from calque.native.emit.types import MEMORY, vector
from calque.native.emit.values import operand, value
from calque.native.emit.writer import Writer
from calque.native.scalars.expr import (
    Buffer,
    Expr,
    is_const,
    item_size,
    linear,
    scalar_dtype,
    stride,
)
from calque.native.scalars.sums import summands, total

MOST_ZEROS: Final = 1024  # at most so many bytes of zeros for reads that a uniform guard forbids
_FAR: Final = 1 << 28  # elements from the first lane to the last
Index = tuple[Expr, ...]


def place(buf: Buffer, idx: Index) -> Expr:
    """The address in elements."""
    return linear(buf.shape, idx)


def moving_place(buf: Buffer, idx: Index, lanes: Lanes) -> tuple[Expr, int | None]:
    """The address in elements, and how far it moves from lane to lane, if that is a constant."""
    at = place(buf, idx)
    if lanes.variable is None:
        return at, 0
    moving = lanes.varying & at.names
    others = len(moving) > 1 or (moving and lanes.variable not in moving)
    return at, None if others else stride(at, lanes.variable)


def memory_type(buf: Buffer, width: int = 0) -> str:
    return vector(MEMORY[scalar_dtype(buf.dtype)], width)


def element_type(buf: Buffer, lanes: Lanes) -> str:
    """What one element of a buffer is: of a lane buffer a vector."""
    return memory_type(buf, lanes.width if buf.place == "lane" else 0)


def pointer(w: Writer, buf: Buffer, lanes: Lanes) -> str:
    """To the first element. A lane buffer has another array for each width it is used at."""
    p = w.pointers.get(buf)
    if p is not None:
        return p
    if buf.data is not None:
        return w.constant(buf.name, buf.data)
    n = prod([d.attr for d in buf.shape])
    key = (buf, lanes.width if buf.place == "lane" else 0)
    return w.array(key, f"[{max(n, 1)} x {element_type(buf, lanes)}]")


def address(w: Writer, buf: Buffer, at: Expr, lanes: Lanes, offset: int = 0) -> str:
    """A pointer to the element; what the innermost scope does not change is added outside of
    it."""
    t, base = element_type(buf, lanes), pointer(w, buf, lanes)
    parts, c = summands(at)
    c += offset
    depth = w.depth(at)
    outer = {e: k for e, k in parts.items() if w.depth(e) < depth}
    if outer or (c and len(parts) > len(outer)):
        base = _row(w, total(outer, c), base, t)
        at = total({e: k for e, k in parts.items() if e not in outer}, 0)
    elif offset:
        at = total(parts, c)
    if is_const(at, 0):
        return base
    return w.new(f"getelementptr {t}, ptr {base}, i64 {value(w, at, SCALAR)}")


def addresses(w: Writer, buf: Buffer, at: Expr, step: int | None, lanes: Lanes) -> str:
    """A pointer for each lane. Where the way from lane to lane is a constant, it is one pointer and
    constants, which all reads of that way share."""
    W, t = lanes.width, memory_type(buf)
    if step is None or abs(step) * W > _FAR:
        return w.new(
            f"getelementptr {t}, ptr {pointer(w, buf, lanes)}, <{W} x i64> {operand(w, at, lanes)}"
        )
    offsets = ", ".join([f"i32 {k * step}" for k in range(W)])
    return w.new(f"getelementptr {t}, ptr {address(w, buf, at, lanes)}, <{W} x i32> <{offsets}>")


def _row(w: Writer, at: Expr, base: str, t: str) -> str:
    key = (at, base, t)
    row = w.known.get(key)
    if row is None:
        before, w.out = w.out, w.scopes[w.home(at)]
        row = w.keep(key, w.new(f"getelementptr {t}, ptr {base}, i64 {value(w, at, SCALAR)}"))
        w.out = before
    return row


def align(buf: Buffer) -> int:
    return item_size(buf.dtype)


def lanes_mask(w: Writer, guard: Expr | None, lanes: Lanes) -> str | None:
    """The lanes that may touch memory: those that are here, and a statement's own guard."""
    if guard is None:
        return lanes.active
    g = operand(w, guard, lanes)
    return g if lanes.active is None else w.new(f"and <{lanes.width} x i1> {g}, {lanes.active}")


def before(w: Writer, first: str, limit: str, width: int) -> str:
    """Which lanes of the vector at ``first`` lie before ``limit``."""
    left = w.new(f"trunc i64 {w.new(f'sub i64 {limit}, {first}')} to i32")
    lanes = ", ".join([f"i32 {i}" for i in range(width)])
    return w.new(f"icmp slt <{width} x i32> <{lanes}>, {splat(w, left, 'i32', width)}")
