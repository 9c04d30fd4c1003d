"""Reads: contiguous, reversed, interleaved, spread, gathered; masked in tails and under guards;
never beyond what is asked for."""

from __future__ import annotations

from calque.native.emit.addresses import (
    MOST_ZEROS,
    Index,
    address,
    addresses,
    align,
    element_type,
    lanes_mask,
    memory_type,
    moving_place,
    place,
)
from calque.native.emit.instructions import any_lane, masked, reverse, shuffle, splat, words
from calque.native.emit.lanes import SCALAR, Lanes
from calque.native.emit.narrow import from_memory
from calque.native.emit.tiles import from_tile
from calque.native.emit.types import mangled
from calque.native.emit.values import operand, operation, value
from calque.native.emit.writer import Writer
from calque.native.loops.moves import is_pair
from calque.native.scalars.expr import (
    Buffer,
    Expr,
    const,
    ex,
    index_and_guard,
    make,
    rewrite,
    scalar_dtype,
    stride,
    terms,
    walk,
)
from calque.native.scalars.sums import total


@operation("load")
def load(w: Writer, e: Expr, lanes: Lanes) -> str:
    buf: Buffer = e.attr
    idx, guard = index_and_guard(e)
    if buf.place == "lane":
        raw = _load_lanes(w, buf, idx, guard, lanes)
    elif lanes.width:
        raw = load_vector(w, buf, idx, guard, lanes)
    else:
        raw = load_scalar(w, buf, idx, guard)
    return from_memory(w, raw, e.dtype, lanes.width)


def either_load(w: Writer, e: Expr, lanes: Lanes) -> str | None:
    """``select`` of two reads by what is the same for all lanes, as one read of the one place or
    the other; None if it is no such selection. What each guards must hold where it is chosen, or
    be the same for all lanes as well."""
    cond, *reads = e.args
    places = []
    for x in reads:
        if x.op != "load" or x.attr.place == "lane":
            return None
        idx, guard = index_and_guard(x)
        at, step = moving_place(x.attr, idx, lanes)
        size = lanes.width * align(x.attr)
        if step != 1 or size > MOST_ZEROS or (guard is not None and lanes.vary(guard)):
            return None
        places.append((x.attr, at, guard, size))
    if memory_type(places[0][0]) != memory_type(places[1][0]):
        return None
    c = value(w, cond, SCALAR)
    pointers: list[str] = []
    for buf, at, guard, size in places:
        p = address(w, buf, at, lanes)
        if guard is not None and not (guard is cond and not pointers):
            p = _allowed(w, value(w, guard, SCALAR), p, size)
        pointers.append(p)
    p = w.new(f"select i1 {c}, ptr {pointers[0]}, ptr {pointers[1]}")
    raw = contiguous(w, reads[0].attr, p, lanes_mask(w, None, lanes), lanes.width)
    return from_memory(w, raw, e.dtype, lanes.width)


def _load_lanes(w: Writer, buf: Buffer, idx: Index, guard: Expr | None, lanes: Lanes) -> str:
    """An element for each lane that lie side by side; what differs from lane to lane is the guard
    alone."""
    p, t = address(w, buf, place(buf, idx), lanes), element_type(buf, lanes)
    if guard is None:
        return w.new(f"load {t}, ptr {p}, align {align(buf)}")
    varies = lanes.vary(guard)
    g = operand(w, guard, lanes) if varies else value(w, guard, SCALAR)
    some = any_lane(w, g, lanes.width) if varies else g
    p = _allowed(w, some, p, max(lanes.width, 1) * align(buf))
    v = w.new(f"load {t}, ptr {p}, align {align(buf)}")
    return w.new(f"select <{lanes.width} x i1> {g}, {t} {v}, {t} zeroinitializer") if varies else v


def load_scalar(w: Writer, buf: Buffer, idx: Index, guard: Expr | None) -> str:
    p = address(w, buf, place(buf, idx), SCALAR)
    if guard is not None and not _holds(w, guard):
        p = _allowed(w, value(w, guard, SCALAR), p, align(buf))
    return w.new(f"load {memory_type(buf)}, ptr {p}, align {align(buf)}")


def _holds(w: Writer, guard: Expr) -> bool:
    """Does code that is written now run only where the guard holds?"""
    return any(x.only is guard for x in w.scopes[: w.scopes.index(w.out) + 1])


def _allowed(w: Writer, cond: str, p: str, size: int) -> str:
    """The pointer where reading is allowed, else one to as many zeros."""
    return w.new(f"select i1 {cond}, ptr {p}, ptr {w.zeros(size)}")


def load_vector(w: Writer, buf: Buffer, idx: Index, guard: Expr | None, lanes: Lanes) -> str:
    """A value for each lane, in its form in memory."""
    at, step = moving_place(buf, idx, lanes)
    if lanes.tile is not None and guard is None and step not in (0, 1):
        turned = from_tile(w, lanes.tile, buf, at, lanes, memory_type(buf), 1)
        if turned is not None:
            return turned
    if step == 0:
        return _same(w, buf, at, guard, lanes)
    if step in (1, -1):
        return _next(w, buf, at, guard, lanes, back=step == -1)
    if step == 2 and is_pair(buf, idx):
        return _pair(w, buf, at, idx, guard, lanes)
    near = step is not None and 2 <= step <= 4
    wide = w.options.avx512 or (w.options.register_bytes >= 32 and align(buf) >= 4)
    if near and guard is None and lanes.active is None and wide:
        assert step is not None
        return _spread(w, buf, at, step, lanes)
    p = addresses(w, buf, at, step, lanes)
    mask = lanes_mask(w, guard, lanes)
    return gathered(w, memory_type(buf), buf, p, mask, lanes.width)


def _same(w: Writer, buf: Buffer, at: Expr, guard: Expr | None, lanes: Lanes) -> str:
    """The same element for all lanes: only the guard varies."""
    W, t = lanes.width, memory_type(buf)
    p = address(w, buf, at, lanes)
    varies = guard is not None and lanes.vary(guard)
    if guard is not None:  # reading where no lane may read is not allowed
        g = operand(w, guard, lanes) if varies else value(w, guard, SCALAR)
        p = _allowed(w, any_lane(w, g, W) if varies else g, p, align(buf))
    v = splat(w, w.new(f"load {t}, ptr {p}, align {align(buf)}"), t, W)
    if not varies:
        return v
    full = f"<{W} x {t}>"
    return w.new(f"select <{W} x i1> {g}, {full} {v}, {full} zeroinitializer")


def _next(w: Writer, buf: Buffer, at: Expr, guard: Expr | None, lanes: Lanes, back: bool) -> str:
    """One element after the other, or before."""
    W = lanes.width
    p = address(w, buf, at, lanes, 1 - W if back else 0)
    size = W * align(buf)
    uniform = guard is not None and not lanes.vary(guard)
    if guard is not None and uniform and size <= MOST_ZEROS:
        p = _allowed(w, value(w, guard, SCALAR), p, size)
        guard = None
    mask = lanes_mask(w, guard, lanes)
    if mask is not None and guard is not None and size <= MOST_ZEROS:
        # a read that no lane makes takes a processor long where there is no memory
        perhaps = _perhaps(w, guard, lanes)
        p = _allowed(w, perhaps if perhaps is not None else any_lane(w, mask, W), p, size)
    if mask is not None and back:
        mask = reverse(w, mask, "i1", W)
    v = contiguous(w, buf, p, mask, W)
    return reverse(w, v, memory_type(buf), W) if back else v


def _perhaps(w: Writer, guard: Expr, lanes: Lanes) -> str | None:
    """Whether the guard may hold for some lane, by what its comparisons of places say at the first
    lane and the last, between which they change once at most; None if there are none."""
    found: str | None = None
    todo = [guard]
    while todo:
        e = todo.pop()
        if e.op == "and":
            todo += e.args
        elif (last := _at_last_lane(e, lanes)) is not None:
            first, end = (value(w, x, SCALAR) for x in (e, last))
            either = w.new(f"or i1 {first}, {end}")
            found = either if found is None else w.new(f"and i1 {found}, {either}")
    return found


def _at_last_lane(e: Expr, lanes: Lanes) -> Expr | None:
    """A comparison of places that move evenly from lane to lane, as it is for the last one."""
    if e.op not in ("lt", "le", "gt", "ge") or not all(a.index for a in e.args):
        return None
    of_lanes = [x for x in walk(e, set()) if x.op == "var" and x.attr[0] == lanes.variable]
    if len(of_lanes) != 1 or len(lanes.varying & e.names) != 1:
        return None
    if stride(ex("sub", *e.args), of_lanes[0].attr[0]) is None:
        return None
    last = {of_lanes[0]: ex("add", of_lanes[0], const(lanes.width - 1))}
    return rewrite(e, last.get, {})


def contiguous(w: Writer, buf: Buffer, p: str, mask: str | None, n: int) -> str:
    """``n`` elements from a pointer on; zeros where the mask is false."""
    return words(w, memory_type(buf), align(buf), p, mask, n)


def _pair(w: Writer, buf: Buffer, at: Expr, idx: Index, guard: Expr | None, lanes: Lanes) -> str:
    """Every second element out of a wide load, which both parts share."""
    W, part = lanes.width, idx[-1].attr
    parts, c = terms(at)
    whole = total(parts, c - part)
    args = (whole,) if guard is None else (whole, guard)
    key = (make("load", args, scalar_dtype(buf.dtype), buf), W, "pair", lanes.active)
    wide = w.known.get(key)
    if wide is None:
        mask = lanes_mask(w, guard, lanes)
        if mask is not None:
            mask = shuffle(w, "i1", W, mask, [i // 2 for i in range(2 * W)])
        wide = contiguous(w, buf, address(w, buf, whole, lanes), mask, 2 * W)
        w.keep(key, wide)
    return shuffle(w, memory_type(buf), 2 * W, wide, list(range(part, 2 * W, 2)))


def _spread(w: Writer, buf: Buffer, at: Expr, step: int, lanes: Lanes) -> str:
    """Every step-th element out of a wide load that ends with the last one wanted."""
    n = lanes.width * step
    wanted = step * (lanes.width - 1)
    bits = ", ".join([f"i1 {'true' if i <= wanted else 'false'}" for i in range(n)])
    wide = contiguous(w, buf, address(w, buf, at, lanes), f"<{bits}>", n)
    return shuffle(w, memory_type(buf), n, wide, list(range(0, n, step)))


def gathered(
    w: Writer, t: str, buf: Buffer, p: str, mask: str | None, n: int, word: int = 1
) -> str:
    """``n`` elements of an array, or words of so many, from a place each. Where the processor has
    no masked vectors, LLVM would write a jump for each lane: what may not be read is read from
    zeros."""
    if mask is not None and not w.options.avx512:
        zeros = splat(w, w.zeros(word * align(buf)), "ptr", n)
        p = w.new(f"select <{n} x i1> {mask}, <{n} x ptr> {p}, <{n} x ptr> {zeros}")
        mask = None
    full, where = f"<{n} x {t}>", mask or "splat (i1 true)"
    args = f"<{n} x ptr> {p}, i32 {align(buf)}, <{n} x i1> {where}, {full} zeroinitializer"
    types = f"<{n} x ptr>, i32, <{n} x i1>, {full}"
    return w.new(masked(w, "gather", f"{mangled(t, n)}.v{n}p0", full, args, types))


def bring_near(w: Writer, e: Expr) -> None:
    """Have the memory of an element brought near, which reads nothing and waits for nothing."""
    p = address(w, e.attr, place(e.attr, index_and_guard(e)[0]), SCALAR)
    w.declared.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    w.put(f" call void @llvm.prefetch.p0(ptr {p}, i32 0, i32 3, i32 1)")
