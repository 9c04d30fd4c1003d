"""Writes: the mirror of reads, and single elements under a condition."""

from __future__ import annotations

from calque.native.emit.addresses import (
    address,
    addresses,
    align,
    element_type,
    lanes_mask,
    memory_type,
    moving_place,
    place,
)
from calque.native.emit.instructions import any_lane, masked, reverse, shuffle, words_to
from calque.native.emit.lanes import SCALAR, Lanes
from calque.native.emit.narrow import to_memory
from calque.native.emit.types import MEMORY, mangled
from calque.native.emit.values import operand, value
from calque.native.emit.writer import Writer
from calque.native.loops.tree import Store
from calque.native.scalars.expr import Buffer, Expr, is_const


def store(w: Writer, s: Store, lanes: Lanes) -> None:
    buf, d, guard = s.buf, s.value.dtype, guard_of(s)
    if buf.place == "lane":
        v = to_memory(w, operand(w, s.value, lanes), d, lanes.width)
        p = address(w, buf, place(buf, s.idx), lanes)
        w.put(f" store {element_type(buf, lanes)} {v}, ptr {p}, align {align(buf)}")
    else:
        at, step = moving_place(buf, s.idx, lanes)
        if step == 0 and (guard is None or not lanes.vary(guard)):
            _store_scalar(w, s, at, guard)
        elif step == 0 and not lanes.vary(s.value):
            _store_scalar(w, s, at, guard, _some_lane(w, guard, lanes))
        else:
            v = to_memory(w, operand(w, s.value, lanes), d, lanes.width)
            _store_vector(w, buf, at, step, v, lanes_mask(w, guard, lanes), lanes)
    w.forget(frozenset((buf,)))


def guard_of(s: Store) -> Expr | None:
    return None if s.guard is None or is_const(s.guard, True) else s.guard


# --- one element ----------------------------------------------------------------------------------


def _store_scalar(
    w: Writer, s: Store, at: Expr, guard: Expr | None, some: str | None = None
) -> None:
    """Store once. ``some``: if this holds, which says whether the guard does for any lane."""
    if some is None and guard is not None:
        some, only = value(w, guard, SCALAR), guard
    else:
        only = None
    k, outer = w.number(), w.out
    if some is not None:
        w.open(f"s{k}", lazy=True, only=only)
    v = to_memory(w, value(w, s.value, SCALAR), s.value.dtype, 0)
    p = address(w, s.buf, at, SCALAR)
    w.put(f" store {memory_type(s.buf)} {v}, ptr {p}, align {align(s.buf)}")
    if some is not None:
        inner = w.out
        w.close()
        outer.lines.append(f" br i1 {some}, label %s{k}, label %k{k}\ns{k}:")
        outer.lines += inner.lines
        outer.lines.append(f" br label %k{k}\nk{k}:")
        outer.block = f"k{k}"


def _some_lane(w: Writer, guard: Expr | None, lanes: Lanes) -> str:
    """Does a guard hold in any lane that is here?"""
    if guard is not None and lanes.active is None:
        halves = _unordered(w, guard, lanes)
        if halves is not None:
            return any_lane(w, halves, lanes.width // 2)
    return any_lane(w, str(lanes_mask(w, guard, lanes)), lanes.width)


def _unordered(w: Writer, guard: Expr, lanes: Lanes) -> str | None:
    """before: x != x in every lane      after: one comparison of the two halves of x: it finds a
    nan in either"""
    x, W = guard.args[0] if guard.args else guard, lanes.width
    if guard.op != "ne" or guard.args[1] is not x or x.dtype not in ("f32", "f64"):
        return None
    if W < 2 or not lanes.vary(x):
        return None
    t, v = MEMORY[x.dtype], operand(w, x, lanes)
    low, high = (shuffle(w, t, W, v, list(range(k, k + W // 2))) for k in (0, W // 2))
    return w.new(f"fcmp uno <{W // 2} x {t}> {low}, {high}")


# --- vectors --------------------------------------------------------------------------------------


def _store_vector(
    w: Writer, buf: Buffer, at: Expr, step: int | None, v: str, mask: str | None, lanes: Lanes
) -> None:
    W, t = lanes.width, memory_type(buf)
    if step == -1:
        v = reverse(w, v, t, W)
        mask = None if mask is None else reverse(w, mask, "i1", W)
        store_contiguous(w, buf, address(w, buf, at, lanes, 1 - W), v, mask, W)
        return
    if step == 1:
        store_contiguous(w, buf, address(w, buf, at, lanes), v, mask, W)
        return
    scattered(w, t, buf, addresses(w, buf, at, step, lanes), v, mask, W)


def scattered(w: Writer, t: str, buf: Buffer, p: str, v: str, mask: str | None, n: int) -> None:
    """``n`` elements of an array, or words of several, to a place each."""
    full, where = f"<{n} x {t}>", mask or "splat (i1 true)"
    args = f"{full} {v}, <{n} x ptr> {p}, i32 {align(buf)}, <{n} x i1> {where}"
    types = f"{full}, <{n} x ptr>, i32, <{n} x i1>"
    w.put(" " + masked(w, "scatter", f"{mangled(t, n)}.v{n}p0", "void", args, types))


def store_contiguous(w: Writer, buf: Buffer, p: str, v: str, mask: str | None, n: int) -> None:
    """Write ``n`` elements from a pointer on, where the mask is true."""
    words_to(w, memory_type(buf), align(buf), v, p, mask, n)
