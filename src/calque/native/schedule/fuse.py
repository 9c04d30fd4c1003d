"""Stages to loop nests: which stages share loops, which values never reach memory.

One rule decides: stages share loop k when every value that passes between them is read at the very
index of that loop. It gives pointwise kernels with several outputs, row-wise softmax and layer
norm, and keeps apart what must stay apart; equal extents alone do not join stages. Stages without
folds may turn their loops for it: so softmax of columns is a loop over columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Final

from calque.machine.records import replace
from calque.native.loops.tree import (
    NEAR,
    Acc,
    Accumulator,
    Body,
    For,
    Let,
    Statement,
    Store,
    bodies,
    map_acc,
    own_exprs,
    statements,
)
from calque.native.lower.cost import nanoseconds, step_along, turns
from calque.native.lower.dot import MANY
from calque.native.lower.sizes import Sizes
from calque.native.lower.stages import Stage
from calque.native.scalars.expr import (
    Buffer,
    Expr,
    const,
    index_and_guard,
    is_const,
    linear,
    load,
    ref,
    rewrite,
    var,
    walk,
)
from calque.native.schedule.forwarding import may_read
from calque.native.schedule.threads import PARALLEL_NS

# weight of the expressions of one nest: beyond it compiling costs more than another pass over
# memory
CAP: Final = 700
LOOK_BACK: Final = 8  # how many runs before the last one a stage may join
STACK_BYTES: Final = 1 << 17  # a row that lives inside one iteration may take so much of the stack

COLUMNS: Final = 64  # of a block
MOST_ROWS: Final = 1 << 14  # of a block of columns
FEW_ROWS: Final = 1 << 10  # a block of them needs no second thread
ENOUGH: Final = 16  # blocks for threads to share


class Run:
    """Stages that share a loop (or, without one, a scalar statement), in order."""

    __slots__ = ("colliding", "depth", "loads", "made", "read", "stages", "var", "weight")

    def __init__(self, first: Stage, depth: int) -> None:
        self.depth, self.stages = depth, [first]
        self.var = first.dims[depth] if len(first.dims) > depth else None
        self.colliding = first.colliding > depth
        self.made: dict[Buffer, Stage] = {first.buf: first}
        self.loads: set[Expr] = set(first.reads)
        self.read: set[Buffer] = {e.attr for e in self.loads}
        self.weight = first.weight

    def join(self, s: Stage) -> None:
        self.stages.append(s)
        self.made[s.buf] = s
        self.loads |= s.reads
        self.read |= {e.attr for e in s.reads}
        self.weight += s.weight

    def accepts(self, s: Stage, sizes: Sizes) -> bool:
        """May `s` share the loop of this run? It must have something to do with it, and read what
        it makes at the loop's own index, and not take it from the threads."""
        return (
            self.fits(s)
            and not self.takes_from_threads(s, sizes)
            and not self.takes_squares(s, sizes)
        )

    def takes_squares(self, s: Stage, sizes: Sizes) -> bool:
        """Are there sums of rows, here or in `s`, whose lanes are the turns of this loop, while
        others have loops of their own inside? What is made of a sum may follow it."""
        k = self.depth
        if sums_rows(s, k, sizes):
            return any(len(p.dims) > k + 1 for p in self.stages)
        sums = [p for p in self.stages if sums_rows(p, k, sizes)]
        return any(not goes_on(s, p) for p in sums)

    def takes_from_threads(self, s: Stage, sizes: Sizes) -> bool:
        """Would a fold keep threads from sharing a long loop whose turns hold loops? Behind it, it
        reads one element of each turn again, which is little."""
        k = self.depth
        if k or not sizes.known or not folds(s, k) or any(folds(p, k) for p in self.stages):
            return False
        if all(len(p.dims) <= k + 1 for p in self.stages) or self.colliding:
            return False
        if any(not p.local or p.rank > k + 1 for p in self.between(s)):
            return False
        return nanoseconds(tuple(loop(self.stages, k, sizes)), sizes) > PARALLEL_NS

    def between(self, s: Stage) -> list[Stage]:
        """The stages of this run that `s` reads."""
        return [p for p in (self.made.get(e.attr) for e in s.reads) if p is not None]

    def fits(self, s: Stage) -> bool:
        """Does `s` read what this run makes at the loop's own index?"""
        k = self.depth
        if self.var is None or len(s.dims) <= k or s.dims[k] is not self.var:
            return False
        if self.colliding != (s.colliding > k) or self.breaks_blocks(s) or self.takes_lanes(s):
            return False
        if self.weight + s.weight > CAP or (
            not self.commutes(s) and (s.buf in self.made or s.buf in self.read)
        ):
            return False
        if folds(s, k) and any(folds(p, k) and p.running != s.running for p in self.stages):
            return False  # a running fold and a sum go over the loop in blocks of different sizes
        if folds(s, k) and any(folds(p, k) and rounds(p) != rounds(s) for p in self.stages):
            return False  # sums in rounds of different length
        if folds(s, k) and any(folds(p, k) and other_order(p, s) for p in self.stages):
            return False
        related = False
        for e in s.reads:
            p = self.made.get(e.attr)
            if p is not None:
                if not p.local or k >= p.rank or e.args[p.idx.index(p.dims[k])] is not self.var:
                    return False
                related = True
            elif not related and e in self.loads:
                related = True
        return related and not (folds(s, k) and s.running and self.comes_late(s))

    def comes_late(self, s: Stage) -> bool:
        """Does `s` depend on what a turn of this loop stores, where reads are not the stored value?
        A running fold is known before the statements of its turn."""
        todo, seen = self.between(s), set[int]()
        while todo:
            p = todo.pop()
            if id(p) in seen:
                continue
            seen.add(id(p))
            if folds(p, self.depth) and p.running:
                continue  # known by then, as its own fold is
            own = any(may_read(v, p.buf, (*p.idx, *suffix)) for suffix, v in p.parts)
            if len(p.dims) > self.depth + 1 or p.guard is not None or own:
                return True
            todo += self.between(p)
        return False

    def breaks_blocks(self, s: Stage) -> bool:
        """Would a fold in blocks share its loop with loops inside? That loop is a vector."""
        stages, k = (*self.stages, s), self.depth
        inside = any(len(p.dims) > k + 1 for p in stages)
        return inside and any(folds(p, k) and in_blocks(p) for p in stages)

    def takes_lanes(self, s: Stage) -> bool:
        """Would a sum in the order of its loop, whose lanes can be the turns of this one, share it
        with loops inside that are vectors themselves? Turn by turn it waits for each addition."""
        stages = [p for p in (*self.stages, s) if len(p.dims) > self.depth + 1]
        sums = [has_lanes(p, self.depth) for p in stages]
        return any(sums) and not all(sums)

    def conflicts(self, s: Stage) -> bool:
        """Must `s` stay behind this run?"""
        return (
            (s.buf in self.made and not self.commutes(s))
            or s.buf in self.read
            or any(e.attr in self.made for e in s.reads)
        )

    def commutes(self, s: Stage) -> bool:
        """Does `s` mark a cell that this run does nothing with, or only marks as well?"""
        made = self.made.get(s.buf)
        return s.marks and (made is None or made.marks) and s.buf not in self.read


def folds(s: Stage, k: int) -> bool:
    """Does a stage fold over loop k?"""
    return bool(s.accs) and len(s.dims) == k + 1


def in_blocks(s: Stage) -> bool:
    """Is the result of a stage known by the blocks in which it was folded?"""
    return any(a.ordered and a.order == "blocked" for a in s.accs)


def has_lanes(s: Stage, k: int) -> bool:
    """Does a stage sum, in the order of its loop, what lies side by side for the turns of the loop
    around it, loop k?"""
    if len(s.dims) != k + 2 or s.rank != k + 1 or not all(map(in_order, s.accs)):
        return False
    name = s.dims[k].attr[0]
    steps = {step_along(e.attr.shape, index_and_guard(e)[0], name) for e in s.reads}
    return bool(s.accs) and steps <= {0, 1} and 1 in steps


def goes_on(s: Stage, p: Stage) -> bool:
    """Is `s` made element by element of what `p` sums, in the same loops?"""
    own = all(e.args == p.idx for e in s.reads if e.attr is p.buf)
    return own and not s.accs and s.dims == p.dims[: p.rank]


def sums_rows(s: Stage, k: int, sizes: Sizes) -> bool:
    """Does a stage sum, in the order of its loop, what lies in memory one behind the other, another
    row for each of many turns of loop k?"""
    if len(s.dims) < k + 2 or not s.accs or not all(map(in_order, s.accs)):
        return False
    row, turn = s.dims[-1], s.dims[k]
    if turns(row.attr[1], sizes) <= NEAR or turns(turn.attr[1], sizes) < MANY:
        return False
    for e in s.reads:
        idx = index_and_guard(e)[0]
        along, across = (step_along(e.attr.shape, idx, d.attr[0]) for d in (row, turn))
        if along == 1 and across not in (0, 1):
            return True
    return False


def in_order(a: Accumulator) -> bool:
    return isinstance(a, Acc) and a.order == "sequential"


def other_order(s: Stage, p: Stage) -> bool:
    """Does one of them sum in the order of its loop, the other one in blocks?"""

    def sequential(x: Stage) -> bool:
        return any(a.ordered and a.order == "sequential" for a in x.accs)

    return any(in_blocks(a) and sequential(b) for a, b in ((s, p), (p, s)))


def rounds(s: Stage) -> set[int]:
    """In rounds of how many turns does a stage fold?"""
    return {a.round if isinstance(a, Acc) else 0 for a in s.accs}


def group(stages: Sequence[Stage], k: int, sizes: Sizes) -> list[Run]:
    """Runs of stages that share loop k, in an order of execution."""
    runs: list[Run] = []
    for s in stages:
        if len(s.dims) == k and not (s.accs and s.running):
            runs.append(Run(s, k))
            continue
        for r in reversed(runs if s.marks else runs[-LOOK_BACK:]):
            if r.accepts(s, sizes):
                r.join(s)
                break
            other = turned(s, k, r, sizes)
            if other is not None and r.accepts(other, sizes):
                r.join(other)
                break
            if r.conflicts(s):
                runs.append(Run(s, k))
                break
        else:
            runs.append(Run(s, k))
    return runs


def turned(s: Stage, k: int, r: Run, sizes: Sizes) -> Stage | None:
    """A stage with its loops in the order of what it reads of a run: columns outside, the rows that
    the run folds inside.

    before: for j: (for i: m = max(x[i, j]); m[j] = m); for i: for j: y[i, j] = x[i, j] - m[j]
    after:  for j: (for i: m = max(x[i, j]); for i: y[i, j] = x[i, j] - m)"""
    plain = s.marks or (s.local and s.guard is None)
    if len(s.dims) < k + 2 or s.accs or s.colliding or not plain:
        return None
    for e in s.reads:
        p = r.made.get(e.attr)
        if p is None or not p.local or p.rank <= k:
            continue
        outer = [e.args[p.idx.index(d)] for d in p.dims[: p.rank]]
        inner = [d for d in s.dims if d not in outer]
        if outer[:k] != list(s.dims[:k]) or len(outer) + len(inner) != len(s.dims):
            return None
        if not inner:  # as what it reads, when that has been turned
            return reordered(s, outer) if not p.accs and p.idx[-1] is not p.dims[-1] else None
        short = any(q.accs and not q.running for q in r.stages) or is_const(
            inner[0].attr[1]
        )  # or written out
        if (
            len(inner) > 1
            or not short
            or outer[-1] is not s.dims[-1]
            or not worth_turning(outer, inner[0], sizes)
        ):
            return None
        return reordered(s, [*outer, *inner])
    return None


def worth_turning(outer: Sequence[Expr], inner: Expr, sizes: Sizes) -> bool:
    """Are there few rows, or blocks of columns enough for threads to share?"""
    if not sizes.known or sizes.interval(inner.attr[1])[1] > MOST_ROWS:
        return False

    def most(d: Expr) -> int:
        return sizes.hinted.interval(d.attr[1])[1]

    return (
        most(inner) <= FEW_ROWS or prod(map(most, outer[:-1])) * most(outer[-1]) >= ENOUGH * COLUMNS
    )


def reordered(s: Stage, dims: Sequence[Expr]) -> Stage:
    """The same stage with its loops in another order."""
    new = {d: var(f"d{k}", d.attr[1]) for k, d in enumerate(dims)}
    memo: dict[Expr, Expr] = {}

    def fix(e: Expr) -> Expr:
        return rewrite(e, new.get, memo)

    return replace(
        s,
        dims=tuple([new[d] for d in dims]),
        idx=tuple(map(fix, s.idx)),
        parts=tuple([(tuple(map(fix, suffix)), fix(v)) for suffix, v in s.parts]),
        guard=fix(s.guard) if s.guard is not None else None,
    )


def nest(stages: Sequence[Stage], k: int, sizes: Sizes) -> list[Statement]:
    """The statements of stages that already share their loops 0..k-1."""
    out: list[Statement] = []
    for r in group(stages, k, sizes):
        out += loop(r.stages, k, sizes) if r.var is not None else stores(r.stages[0])
    return out


def stores(s: Stage) -> list[Statement]:
    """The parts of an element; all are known before the first is stored where they read what they
    replace."""
    parts = list(s.parts)
    if len(parts) > 1 and any(
        e.op == "load" and e.attr is s.buf for _, v in parts for e in walk(v, set())
    ):
        lets = [Let(f"part{k}.{s.buf.name}", v) for k, (_, v) in enumerate(parts)]
        kept = [(suffix, ref(x.name, v.dtype)) for (suffix, v), x in zip(parts, lets)]
        return [*lets, *(Store(s.buf, s.idx + suffix, value, s.guard) for suffix, value in kept)]
    return [Store(s.buf, s.idx + suffix, value, s.guard) for suffix, value in parts]


def loop(stages: Sequence[Stage], k: int, sizes: Sizes) -> list[Statement]:
    """One shared loop, and the stores of what it folded."""
    folded = [s for s in stages if folds(s, k)]
    body = nest([s for s in stages if not folds(s, k)], k + 1, sizes)
    accs: list[Accumulator] = []
    first: list[
        Statement
    ] = []  # a running fold is known before the statements of its turn, which may read it
    after: list[Statement] = []
    for s in folded:
        accs += s.accs
        (first if s.running else after).extend(stores(s))
    var, colliding = stages[0].dims[k], stages[0].colliding > k
    return [For(var, (*first, *body), tuple(accs), colliding=colliding), *after]


# --- what nobody reads ----------------------------------------------------------------------------


def prune(body: Body, kept: Callable[[Buffer], bool]) -> Body:
    """Drop stores that nobody reads, and loops that do nothing."""
    while True:
        read = {b for s in statements(body) for e in own_exprs(s) for b in e.bufs}
        refs = {n for s in statements(body) for e in own_exprs(s) for n in e.names}
        less = _prune(body, lambda b: b in read or kept(b), refs)
        if less == body:
            return body
        body = less


def _prune(body: Body, alive: Callable[[Buffer], bool], refs: set[str]) -> Body:
    out: list[Statement] = []
    for s in body:
        if isinstance(s, For):
            accs = tuple(a for a in s.accs if any(n in refs for n in a.names))
            inner = _prune(s.body, alive, refs)
            if inner or accs:
                out.append(replace(s, body=inner, accs=accs))
        elif not isinstance(s, Store) or alive(s.buf):
            out.append(s)
    return tuple(out)


# --- rows instead of matrices ---------------------------------------------------------------------


def shrink(body: Body, temporary: Callable[[Buffer], bool], sizes: Sizes) -> Body:
    """A temporary whose writes and reads all share the outer loops lives on the stack, without
    those dimensions.

    before: for i: for j: t[i, j] = ...; for j: y[i, j] = t[i, j]      after: t[j]"""
    shared: dict[
        Buffer, tuple[For, ...]
    ] = {}  # loops are told apart by identity: two may have the same variable

    def note(buf: Buffer, idx: Sequence[Expr], path: tuple[For, ...]) -> None:
        old = shared.get(buf, path)
        n = 0
        while (
            n < min(len(old), len(path), len(idx)) and old[n] is path[n] and path[n].var is idx[n]
        ):
            n += 1
        shared[buf] = path[:n]

    def visit(body: Body, path: tuple[For, ...]) -> None:
        for s in body:
            here = (*path, s) if isinstance(s, For) else path
            seen: set[Expr] = set()
            for e in own_exprs(s):
                if any(temporary(b) for b in e.bufs):
                    for x in walk(e, seen):
                        if x.op == "load" and temporary(x.attr):
                            note(x.attr, x.args, here)
            if isinstance(s, Store) and temporary(s.buf):
                note(s.buf, s.idx, path)
            for b in bodies(s):
                visit(b, here)

    visit(body, ())
    small = {
        b: r
        for b, outer in shared.items()
        if outer and (r := _row(b, len(outer), sizes)) is not None
    }
    return _relocate(body, small) if small else body


Row = tuple[Buffer, int]


def _row(b: Buffer, outer: int, sizes: Sizes) -> Row | None:
    """The stack buffer for the inner dimensions of `b`: sized to a power of two, so that the kernel
    serves many sizes."""
    n = 1
    for d in b.shape[outer:]:
        n *= sizes.interval(d)[1]
        if n * 8 > STACK_BYTES:
            return None
    inner = b.shape[outer:]
    if not all(is_const(d) for d in inner):
        inner = (const(1 << max(n - 1, 1).bit_length()),)
    return Buffer(b.name, inner, b.dtype, "stack"), outer


def _relocate(body: Body, small: dict[Buffer, Row]) -> Body:
    memo: dict[Expr, Expr] = {}

    def index(b: Buffer, idx: Sequence[Expr]) -> tuple[Expr, ...]:
        new, outer = small[b]
        rest = tuple(idx[outer:])
        return rest if len(rest) == len(new.shape) else (linear(b.shape[outer:], rest),)

    def rule(e: Expr) -> Expr | None:
        if e.op != "load" or e.attr not in small:
            return None
        n = len(e.attr.shape)
        idx = [rewrite(i, rule, memo) for i in e.args[:n]]
        guard = rewrite(e.args[n], rule, memo) if len(e.args) > n else None
        return load(small[e.attr][0], index(e.attr, idx), guard)

    def fix(e: Expr) -> Expr:
        return rewrite(e, rule, memo)

    def go(body: Body) -> Body:
        out: list[Statement] = []
        for s in body:
            if isinstance(s, For):
                accs = tuple(map_acc(a, fix) for a in s.accs)
                out.append(replace(s, body=go(s.body), accs=accs))
            elif isinstance(s, Store):
                idx = tuple(map(fix, s.idx))
                guard = fix(s.guard) if s.guard is not None else None
                if s.buf in small:
                    out.append(Store(small[s.buf][0], index(s.buf, idx), fix(s.value), guard))
                else:
                    out.append(Store(s.buf, idx, fix(s.value), guard))
            elif isinstance(s, Let):
                out.append(Let(s.name, fix(s.value)))
            else:
                out.append(s)
        return tuple(out)

    return go(body)
