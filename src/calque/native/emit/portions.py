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
from calque.native.emit.flow import Values, counted, guarded
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
    apart = is_apart(w, f, lanes)
    register = w.options.register_bytes // max([4, *[item_size(e.dtype) for e in values]])
    if lanes.rest and not apart and _ends_singly(f):
        return min(f.width, register)
    if _weight(f) <= LIGHT and not apart:
        return f.width
    if apart and lanes.rest:
        return 1
    return min(f.width, AT_ONCE * register)


def _ends_singly(f: For) -> bool:
    """Are the last few lanes of a fold done one by one? Without AVX-512 each access under a mask
    takes as long as a few of them, on AMD's processors (12 cycles)."""
    return _weight(f) < _FUNCTION


def takes_masks(w: Writer, f: For, lanes: Lanes) -> bool:
    """Is the rest of a map written for a few lanes at a time, some of which do not exist? Without
    AVX-512 a masked store is slow (12 cycles on AMD's processors): it takes as much to compute."""
    if w.options.avx512:
        return True
    if is_apart(w, f, lanes):
        return False
    inside = list(statements(f.body))
    stores = sum([isinstance(s, Store) for s in inside])
    return any([isinstance(s, For | Recurrence) for s in inside]) or _weight(f) >= _WORTH * stores


def _weight(f: For) -> int:
    """What there is to compute in a body, in additions."""
    return sum([_FUNCTION if e.op in NAMES else bool(e.args) and not e.index for e in nodes((f,))])


def is_apart(w: Writer, f: For, lanes: Lanes) -> bool:
    """Does the loop touch memory in a way for which LLVM writes one lane after the other?"""
    reads = [(e.attr, *index_and_guard(e)) for e in nodes((f,)) if e.op == "load"]
    writes = [(s.buf, s.idx, s.guard) for s in statements(f.body) if isinstance(s, Store)]
    return any([_one_by_one(w, b, idx, g, lanes) for b, idx, g in (*reads, *writes)])


def _one_by_one(w: Writer, b: Buffer, idx: Index, guard: Expr | None, lanes: Lanes) -> bool:
    names = {n for e in (*idx, *([guard] if guard is not None else [])) for n in e.names}
    if b.place == "lane" or lanes.varying.isdisjoint(names):
        return False
    registers, elements = _MASKED
    step = moving_place(b, idx, lanes)[1]
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
    values = [e for a in f.accs for e in a.values]
    singly = left is not None and part > 1 and _ends_singly(f)
    # what lanes that do not exist are replaced in is no part of one instruction with its addition
    values = [e for e in dict.fromkeys(values) if lanes.vary(e)] if singly else kept(values, lanes)
    places = [
        (w.array((e, "kept", all_lanes), f"[{all_lanes} x {VALUE[e.dtype]}]"), e) for e in values
    ]

    def loop(part: int, bounds: tuple[str, str], masked: bool = False) -> Values:
        """Portions of one size, of which the last may be masked."""

        def portion(phis: Values) -> Values:
            start = w.bound[at]
            w.bind(f.name, w.new(f"add i64 {first}, {start}"))
            w.where[LANE] = w.where[f.name]
            exist = before(w, start, bounds[1], part) if masked else None
            some = lanes._replace(width=part, exist=exist) if part > 1 else SCALAR
            body(some)
            for place, e in places:
                v, t = operand(w, e, some), VALUE[e.dtype]
                p = w.new(f"getelementptr {t}, ptr {place}, i64 {start}")
                kind = f"<{part} x {t}>" if part > 1 else t
                w.put(f" store {kind} {v}, ptr {p}, align {item_size(e.dtype)}")
            return []

        return counted(w, at, bounds, part, writes(w, f), [], portion)

    if left is None:
        loop(part, ("0", str(all_lanes)))
    elif singly:
        whole = w.new(f"and i64 {left}, {-part}")
        some, more = [w.new(f"icmp slt i64 {x}") for x in (f"0, {whole}", f"{whole}, {left}")]
        guarded(w, some, writes(w, f), [], lambda: loop(part, ("0", whole)))
        guarded(w, more, writes(w, f), [], lambda: loop(1, (whole, left)))
    else:
        loop(part, ("0", left), masked=part > 1)
    for name in lanes.varying:  # what the body binds is known here by what was kept
        if w.where.get(name, 0) >= len(w.scopes):
            w.where[name] = len(w.scopes) - 1
    w.bind(f.name, first)
    for place, e in places:
        w.keep(
            (e, all_lanes), w.new(f"load <{all_lanes} x {VALUE[e.dtype]}>, ptr {place}, align 64")
        )
