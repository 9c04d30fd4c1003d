"""What a vector loop folds, worked out in portions: a few lanes at a time, kept on the stack, and
folded as the whole vector that the order of a sum asks for.

A vector of 64 lanes is half of all registers of a processor with AVX2, and all of them without.
Written at once, a heavy body spills nearly every value that it makes; and where there is no
instruction that gathers, or masks, LLVM writes each lane by itself, in blocks of its own: seconds
of its time for one loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from calque.native.emit.addresses import Index, before, moving_place
from calque.native.emit.flow import Values, counted
from calque.native.emit.lanes import SCALAR, Lanes
from calque.native.emit.math_functions import NAMES
from calque.native.emit.statements import writes
from calque.native.emit.types import VALUE
from calque.native.emit.values import operand
from calque.native.emit.writer import Writer
from calque.native.loops.moves import is_pair
from calque.native.loops.tree import For, Recurrence, Store, nodes, statements
from calque.native.scalars.expr import LANE, Buffer, Expr, index_and_guard, item_size, stride

LIGHT: Final = 50  # weight of a body that is soon compiled for all lanes
AT_ONCE: Final = 2  # registers of a portion: one alone waits for what it has just computed
_MASKED: Final = (32, 4)  # bytes of the registers, and of the elements, that can be masked
_WORTH: Final = 6  # additions for each masked store, from which on it pays
_FUNCTION: Final = 10  # additions that a math function is counted as
_SIGNED: Final = ("mul", "neg")  # what an addition outside may become one instruction with


def lanes_at_once(w: Writer, f: For, lanes: Lanes) -> int:
    """How many lanes the body of a loop with folds is written for: all of them, or a portion. In
    the rest of a loop it is one where LLVM would write one lane after the other."""
    values = [e for a in f.accs for e in a.values]
    if w.options.avx512 or lanes.tile is not None or any(a.running for a in f.accs):
        return f.width
    if not values or any(e.dtype == "i1" for e in values) or not kept(values, lanes):
        return f.width
    is_apart = _is_apart(w, f, lanes)
    if _weight(f) <= LIGHT and not is_apart:
        return f.width
    if is_apart and lanes.rest:
        return 1
    register = w.options.register_bytes // max([4, *[item_size(e.dtype) for e in values]])
    return min(f.width, AT_ONCE * register)


def takes_masks(w: Writer, f: For, lanes: Lanes) -> bool:
    """Is the rest of a map written for a few lanes at a time, some of which do not exist? Without
    AVX-512 a masked store is slow (12 cycles on AMD's processors): it takes as much to compute."""
    if w.options.avx512:
        return True
    if _is_apart(w, f, lanes):
        return False
    inside = list(statements(f.body))
    stores = sum([isinstance(s, Store) for s in inside])
    return any([isinstance(s, For | Recurrence) for s in inside]) or _weight(f) >= _WORTH * stores


def _weight(f: For) -> int:
    """What there is to compute in a body, in additions."""
    return sum([_FUNCTION if e.op in NAMES else bool(e.args) and not e.index for e in nodes((f,))])


def _is_apart(w: Writer, f: For, lanes: Lanes) -> bool:
    """Does the loop touch memory in a way for which LLVM writes one lane after the other?"""
    reads = [(e.attr, *index_and_guard(e)) for e in nodes((f,)) if e.op == "load"]
    writes = [(s.buf, s.idx, s.guard) for s in statements(f.body) if isinstance(s, Store)]
    return any([_one_by_one(w, b, idx, g, lanes) for b, idx, g in (*reads, *writes)])


def _one_by_one(w: Writer, b: Buffer, idx: Index, guard: Expr | None, lanes: Lanes) -> bool:
    names = {n for e in (*idx, *([guard] if guard is not None else [])) for n in e.names}
    if b.place == "lane" or lanes.varying.isdisjoint(names):
        return False
    registers, elements = _MASKED
    step = moving_place(w, b, idx, lanes)[1]
    if step not in (-1, 0, 1) and not (step == 2 and is_pair(b, idx)):
        return True
    masked = lanes.rest or (guard is not None and lanes.vary(guard))
    maskable = w.options.register_bytes >= registers and item_size(b.dtype) >= elements
    return masked and step != 0 and not maskable


def kept(values: Iterable[Expr], lanes: Lanes) -> list[Expr]:
    """What is kept of the values of folds. A product is taken only when it is folded, so that it
    becomes one instruction with the addition as it would elsewhere; indices cost nothing."""
    out: dict[Expr, None] = {}
    todo = list(values)
    while todo:
        e = todo.pop()
        if not lanes.vary(e) or (e.index and stride(e, lanes.variable or "") is not None):
            continue
        if e.op in _SIGNED:
            todo += e.args
        else:
            out[e] = None
    return list(out)


def in_portions(
    w: Writer, f: For, lanes: Lanes, part: int, left: str | None, body: Callable[[Lanes], None]
) -> None:
    """The body for a few lanes at a time, after which the values of the folds are known for all.
    ``left``: how many of the lanes there are, if not all."""
    first, at, all_lanes = w.bound[f.name], f"{f.name}.portion", lanes.width
    values = kept([e for a in f.accs for e in a.values], lanes)
    places = [
        (w.array((e, "kept", all_lanes), f"[{all_lanes} x {VALUE[e.dtype]}]"), e) for e in values
    ]

    def portion(phis: Values) -> Values:
        start = w.bound[at]
        w.bind(f.name, w.new(f"add i64 {first}, {start}"))
        w.where[LANE] = w.where[f.name]
        if part > 1:
            exist = None if left is None else before(w, start, left, part)
            some = lanes._replace(width=part, exist=exist)
        else:
            some = SCALAR
        body(some)
        for place, e in places:
            v, t = operand(w, e, some), VALUE[e.dtype]
            p = w.new(f"getelementptr {t}, ptr {place}, i64 {start}")
            kind = f"<{part} x {t}>" if part > 1 else t
            w.put(f" store {kind} {v}, ptr {p}, align {item_size(e.dtype)}")
        return []

    counted(w, at, ("0", left or str(all_lanes)), part, writes(w, f), [], portion)
    for name in lanes.varying:  # what the body binds is known here by what was kept
        if w.where.get(name, 0) >= len(w.scopes):
            w.where[name] = len(w.scopes) - 1
    w.bind(f.name, first)
    for place, e in places:
        w.keep(
            (e, all_lanes), w.new(f"load <{all_lanes} x {VALUE[e.dtype]}>, ptr {place}, align 64")
        )
