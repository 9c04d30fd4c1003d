"""Vector loops: whole vectors, then a masked rest; and loops over tiles, which surround them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from calque.machine.records import record, replace
from calque.native.emit.addresses import before
from calque.native.emit.flow import Typed, Values, counted, guarded, one_of, stepping
from calque.native.emit.folds import (
    Parts,
    combine,
    filled_up,
    fold_types,
    halves,
    lane,
    narrowed,
    prefix,
    split,
    starts,
)
from calque.native.emit.inside import Inside, inside_of, lies_inside
from calque.native.emit.instructions import splat
from calque.native.emit.lanes import SCALAR, Lanes, TiledLoop
from calque.native.emit.portions import in_portions, is_apart, lanes_at_once, takes_masks
from calque.native.emit.serial_loops import bind_fold, serial_loop
from calque.native.emit.statements import statement, statements, writes
from calque.native.emit.types import VALUE
from calque.native.emit.values import operand, value
from calque.native.emit.whole import whole_vectors
from calque.native.emit.writer import Writer
from calque.native.loops.carries import carry_of
from calque.native.loops.moves import is_move
from calque.native.loops.tree import (
    LANES,
    Acc,
    Accumulator,
    Fold,
    For,
    Recurrence,
    Store,
    as_fold,
    stored,
    vector_names,
)
from calque.native.loops.tree import statements as statements_of
from calque.native.scalars.expr import LANE, Buffer, Expr, ex, is_const, item_size, var

REST_LANES: Final = 16  # at most so many lanes in the masked rest of a map


@statement(For)
def for_(w: Writer, f: For, lanes: Lanes) -> None:
    w.forget(writes(w, f))
    if f.kind == "vector":
        body = partial(statements, w, f.body)
        vector_loop(w, _VectorLoop(f, writes(w, f), _varying(f), lanes.tile, body, is_move(f.body)))
    elif f.kind == "tile":
        tile_loop(w, f, lanes)
    else:
        serial_loop(w, f, lanes)


def _varying(f: For) -> frozenset[str]:
    """The names that are vectors in the body of a vector loop."""
    known = {f.name, LANE, *[name for a in f.accs if a.running for name in a.names]}
    return frozenset(known | vector_names(f, known))


@record
class _VectorLoop:
    """``body`` writes the statements for given lanes."""

    loop: For
    writes: frozenset[Buffer]
    varying: frozenset[str]
    tile: TiledLoop | None
    body: Callable[[Lanes], None]
    moves: bool = False  # nothing but elements from one place to another

    @property
    def folds(self) -> list[Fold]:
        return [_from_identity(a) for a in self.loop.accs]

    def lanes(self, width: int, exist: str | None = None) -> Lanes:
        """What the body is written for."""
        rest = exist is not None
        return Lanes(width, self.loop.name, self.varying, exist, None, self.tile, rest)


def _from_identity(a: Accumulator) -> Fold:
    """The fold with its identity as start (a given start is folded in at the end)."""
    return as_fold(replace(a, init=None) if isinstance(a, Acc) else a)


def _kept(f: For) -> int:
    """How many partial results a vector loop keeps."""
    return min(LANES, f.width)


def vector_loop(w: Writer, v: _VectorLoop) -> None:
    f, folds = v.loop, v.folds
    n, initial = f.extent, []
    given: list[Parts] = []
    for acc, a in zip(f.accs, folds, strict=True):
        given.append(starts(w, as_fold(acc), SCALAR))
        kept = SCALAR if a.running else Lanes(_kept(f))
        of = carry_of(as_fold(acc)) if a.running else a
        initial += list(zip(fold_types(of, kept.width), starts(w, of, kept), strict=True))
    if n.op == "const":
        values = _parts(w, v, folds, initial) if n.attr > 0 else [x for _, x in initial]
    else:
        more = w.new(f"icmp sgt i64 {value(w, n, SCALAR)}, 0")
        values = guarded(w, more, v.writes, initial, partial(_parts, w, v, folds, initial))
    for acc, a, part, first in zip(f.accs, folds, split(values, folds), given, strict=True):
        if a.running:
            part = narrowed(w, a, carry_of(a), part)
        else:
            part = lane(w, a, halves(w, a, part, Lanes(_kept(f)), 1), 1, 0)
            if isinstance(acc, Acc) and acc.init is not None:
                part = combine(w, a, SCALAR, first, part)
        bind_fold(w, a, part)


def _parts(w: Writer, v: _VectorLoop, folds: list[Fold], initial: Typed) -> Values:
    """The main loop and the rest of a loop that is not empty."""
    f, n, W = v.loop, v.loop.extent, v.loop.width
    limit = value(w, n, SCALAR)
    main = whole_vectors(w, n, W)
    end = value(w, main, SCALAR)
    values = [x for _, x in initial]
    calls = w.math_calls

    edges = None if w.options.avx512 or v.tile is not None else inside_of(f, v.varying)
    part = _register(w, f)
    if edges is not None and not folds and part < W and not is_apart(w, f, v.lanes(part)):
        return _map_with_edges(w, v, edges, limit, part)

    def whole(phis: Values) -> Values:
        general = partial(_turn, w, v, folds, phis, v.lanes(W))
        if edges is None:
            return general()
        plain = _inner(w, v, edges)
        inside = partial(_turn, w, plain, plain.folds, phis, v.lanes(W))
        where = lies_inside(w, edges, w.bound[f.name], W)
        return one_of(w, where, v.writes, [t for t, _ in initial], inside, general)

    def loop() -> Values:
        return counted(w, f.name, ("0", end), W, v.writes, initial, whole)

    if main is n:
        return loop()
    if v.moves and not folds:
        return _moved(w, v, main, limit)
    if main.op != "const":
        enough = w.new(f"icmp sge i64 {limit}, {W}")
        values = guarded(w, enough, v.writes, initial, loop, barrier=False)
    elif main.attr:
        values = loop()
    rest = ex("sub", n, main)
    if is_const(rest, 0):
        return values
    carried = [(t, x) for (t, _), x in zip(initial, values, strict=True)]
    bounds = (end, limit)
    # loops and math functions inside are worth one more turn only
    heavy = w.math_calls > calls or any(isinstance(s, (For, Recurrence)) for s in f.body)

    def tail() -> Values:
        if folds:
            return _rest_of_folds(w, v, folds, carried, bounds)
        narrower = v.tile is None and edges is None and part < W and _is_repeated(w)
        if narrower and not is_apart(w, f, v.lanes(part)):
            return _rest_by_registers(w, v, bounds, part)
        wide = heavy and w.options.avx512
        return _rest_of_map(w, v, bounds, f.width if wide else min(REST_LANES, f.width))

    if rest.op == "const":
        return tail()
    more = w.new(f"icmp slt i64 {end}, {limit}")
    return guarded(w, more, v.writes, carried, tail, barrier=False)


def _register(w: Writer, f: For) -> int:
    """How many elements of what a map stores are a register."""
    sizes = [item_size(s.buf.dtype) for s in statements_of(f.body) if isinstance(s, Store)]
    return w.options.register_bytes // max([4, *sizes])


def _inner(w: Writer, v: _VectorLoop, edges: Inside) -> _VectorLoop:
    """The loop for vectors that lie inside."""
    return replace(v, loop=edges.loop, body=partial(statements, w, edges.loop.body))


def _map_with_edges(w: Writer, v: _VectorLoop, edges: Inside, limit: str, part: int) -> Values:
    """A map whose vectors lie inside, but for those at edges, which go register by register, as the
    rest does: a row of an array may be two vectors long, each at one edge."""
    name, width = v.loop.name, v.loop.width
    plain = _inner(w, v, edges)
    end = w.new(f"and i64 {limit}, {-part}")
    last = w.new(f"sub i64 {limit}, {width}")

    def turn(x: _VectorLoop, lanes: int) -> Values:
        _turn(w, x, [], [], x.lanes(lanes))
        return [str(lanes)]

    def register() -> Values:
        where = lies_inside(w, edges, w.bound[name], part)
        sides = [partial(turn, x, part) for x in (plain, v)]
        return one_of(w, where, v.writes, ["i64"], *sides)

    def step() -> str:
        at = w.bound[name]
        there = w.new(f"icmp sle i64 {at}, {last}")
        inside = w.new(f"and i1 {there}, {lies_inside(w, edges, at, width)}")
        whole = partial(turn, plain, width)
        return one_of(w, inside, v.writes, ["i64"], whole, register)[0]

    def loop() -> Values:
        stepping(w, name, ("0", end), v.writes, step)
        return []

    def few() -> Values:
        return _rest_of_map(w, v, (end, limit), part)

    guarded(w, w.new(f"icmp slt i64 0, {end}"), v.writes, [], loop, barrier=False)
    return guarded(w, w.new(f"icmp slt i64 {end}, {limit}"), v.writes, [], few, barrier=False)


def _moved(w: Writer, v: _VectorLoop, main: Expr, limit: str) -> Values:
    """A loop that moves elements, and may move some twice: its last vector ends with the last one.
    What is less than a vector goes element by element."""
    name, width = v.loop.name, v.loop.width

    def one() -> Values:
        return _turn(w, v, [], [], v.lanes(width))

    def whole() -> Values:
        return overlapping(w, name, limit, width, v.writes, one)

    def few() -> Values:
        return _rest_of_map(w, v, ("0", limit), min(REST_LANES, width))

    if main.op == "const":
        return whole() if main.attr else few()
    guarded(w, w.new(f"icmp sge i64 {limit}, {width}"), v.writes, [], whole, barrier=False)
    return guarded(w, w.new(f"icmp slt i64 {limit}, {width}"), v.writes, [], few, barrier=False)


def overlapping(
    w: Writer,
    name: str,
    limit: str,
    step: int,
    writes: frozenset[Buffer],
    body: Callable[[], Values],
) -> Values:
    """``for name = 0, step, ...``, in which the last round ends at the limit, which is no less than
    a step."""
    last = w.new(f"sub i64 {limit}, {step}")

    def one(phis: Values) -> Values:
        at = w.bound[counter]
        is_before = w.new(f"icmp slt i64 {at}, {last}")
        w.bind(name, w.new(f"select i1 {is_before}, i64 {at}, i64 {last}"))
        return body()

    counter = f"{name}.from"
    return counted(w, counter, ("0", limit), step, writes, [], one)


def _turn(
    w: Writer,
    v: _VectorLoop,
    folds: list[Fold],
    phis: Values,
    lanes: Lanes,
    bounds: tuple[str, str] | None = None,
) -> Values:
    """The body once, and what the folds are after it. ``bounds``: where it begins and where it
    ends, if not all lanes exist."""
    w.where[LANE] = w.where[v.loop.name]
    kept = _kept(v.loop)
    parts = split(phis, folds)
    new: list[Parts | None] = [None] * len(folds)
    for j, a in enumerate(folds):
        if a.running:
            new[j] = _running(w, a, parts[j], lanes)
    part = lanes_at_once(w, v.loop, lanes)
    if part < lanes.width:
        left = None if bounds is None else w.new(f"sub i64 {bounds[1]}, {bounds[0]}")
        in_portions(w, v.loop, lanes, part, left, v.body)
    else:
        v.body(lanes)
    flat: Values = []
    for j, a in enumerate(folds):
        out = new[j]
        if out is None:
            values = filled_up(w, a, [operand(w, x, lanes) for x in a.values], lanes)
            values = halves(w, a, values, lanes, kept)
            out = combine(w, a, lanes.parts(kept), parts[j], values)
        flat += out
    return flat


def _running(w: Writer, a: Fold, carry: Parts, lanes: Lanes) -> Parts:
    """The running fold inside the vector, after all before it; gives what is carried on."""
    width, carried = lanes.width, carry_of(a)
    values = filled_up(w, a, [operand(w, x, lanes) for x in a.values], lanes)
    inside = prefix(w, a, values, lanes)
    before = narrowed(w, a, carried, carry)
    spread = [splat(w, c, VALUE[x.dtype], width) for c, x in zip(before, a.values, strict=True)]
    bind_fold(w, a, combine(w, a, lanes.parts(width), spread, inside))
    return combine(w, carried, SCALAR, carry, lane(w, a, inside, width, width - 1))


# --- the rest -------------------------------------------------------------------------------------


def _rest_of_folds(
    w: Writer, v: _VectorLoop, folds: list[Fold], carried: Typed, bounds: tuple[str, str]
) -> Values:
    """One more block, in which what does not exist is the identity."""
    w.open(w.out.block, v.writes)
    w.bind(v.loop.name, bounds[0])
    exist = before(w, *bounds, v.loop.width)
    new = _turn(w, v, folds, [x for _, x in carried], v.lanes(v.loop.width, exist), bounds)
    w.close_inline()
    return new


def _is_repeated(w: Writer) -> bool:
    """Is the rest of a loop written over and over, and by a processor that is slow with masks?"""
    return not w.options.avx512 and any([s.block.startswith("b") for s in w.scopes])


def _rest_by_registers(w: Writer, v: _VectorLoop, bounds: tuple[str, str], part: int) -> Values:
    """The rest of a short row, which comes again and again: register by register, then what is less
    than one."""
    start, limit = bounds
    left = w.new(f"sub i64 {limit}, {start}")
    end = w.new(f"add i64 {start}, {w.new(f'and i64 {left}, {-part}')}")

    def register(phis: Values) -> Values:
        return _turn(w, v, [], phis, v.lanes(part))

    def registers() -> Values:
        return counted(w, v.loop.name, (start, end), part, v.writes, [], register)

    def few() -> Values:
        return _rest_of_map(w, v, (end, limit), part)

    guarded(w, w.new(f"icmp slt i64 {start}, {end}"), v.writes, [], registers, barrier=False)
    return guarded(w, w.new(f"icmp slt i64 {end}, {limit}"), v.writes, [], few, barrier=False)


def _rest_of_map(w: Writer, v: _VectorLoop, bounds: tuple[str, str], width: int) -> Values:
    """A few lanes at a time: masked where the processor can and that pays, else one by one."""
    masked = takes_masks(w, v.loop, v.lanes(width, "exist"))

    def some(phis: Values) -> Values:
        w.where[LANE] = w.where[v.loop.name]
        if masked:
            first = w.bound[v.loop.name]
            v.body(v.lanes(width, before(w, first, bounds[1], width)))
        else:
            v.body(SCALAR._replace(tile=v.tile))
        return []

    return counted(w, v.loop.name, bounds, width if masked else 1, v.writes, [], some)


# --- tiles ----------------------------------------------------------------------------------------


def tile_loop(w: Writer, f: For, around: Lanes) -> None:
    """Steps of whole tiles; what is left of the outer loop goes element by element."""
    (inner,) = f.body
    assert isinstance(inner, For)
    columns, size, n, written = inner, f.width, f.extent, writes(w, f)
    plain = For(inner.var, inner.body)
    limit = value(w, n, SCALAR)
    whole = whole_vectors(w, n, size)
    end = value(w, whole, SCALAR)
    tile = TiledLoop(f.var, var(f"{f.name}.first"), var(f"{f.name}.row", size), size, inner.var)
    moves = is_move(columns.body)

    def step() -> Values:
        loop = For(columns.var, (), (), "vector", size)
        rows = partial(_tile_rows, w, f.name, columns)
        vector_loop(w, _VectorLoop(loop, written, _varying(columns), tile, rows, moves))
        return []

    def tiles() -> Values:
        if moves and whole is not n:
            return overlapping(w, tile.first.attr[0], limit, size, written, step)
        return counted(w, tile.first.attr[0], ("0", end), size, written, [], lambda _: step())

    def one(phis: Values) -> Values:
        for_(w, plain, around)
        return phis

    def rest() -> Values:
        return counted(w, f.name, (end, limit), 1, written, [], one)

    guarded(w, w.new(f"icmp sgt i64 {end}, 0"), written, [], tiles)
    if whole is not n:
        left = w.new(f"icmp slt i64 {end}, {limit}")
        if moves:
            left = w.new(f"and i1 {left}, {w.new(f'icmp eq i64 {end}, 0')}")
        guarded(w, left, written, [], rest)


def _tile_rows(w: Writer, name: str, columns: For, lanes: Lanes) -> None:
    """The body of the columns for each row of a tile; ``name`` is the variable of the loop that
    the rows belong to."""
    assert lanes.tile is not None
    tile = replace(lanes.tile, arrays={})
    inside = lanes._replace(tile=tile if lanes.width == tile.size else None)

    def one(phis: Values) -> Values:
        first, row = value(w, tile.first, SCALAR), value(w, tile.row, SCALAR)
        w.bind(name, w.new(f"add i64 {first}, {row}"))
        statements(w, columns.body, inside)
        return []

    changed = stored(columns.body)
    w.forget(changed)
    counted(w, tile.row.attr[0], ("0", str(tile.size)), 1, changed & w.mutable, [], one)
