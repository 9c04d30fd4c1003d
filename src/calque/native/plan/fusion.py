"""Stages to nests: which stages make one kernel, and which temporaries never reach memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain
from math import inf
from typing import Final

from calque.machine.records import replace
from calque.native.loops.tree import Body, For, Statement, own_exprs, statements, stored
from calque.native.lower.cost import nanoseconds
from calque.native.lower.sizes import Sizes
from calque.native.lower.stages import Stage
from calque.native.plan.steps import Compute, Nest, Repeat, Step, Switch
from calque.native.scalars.expr import Buffer
from calque.native.schedule import fuse
from calque.native.schedule.forwarding import StoreForwarding
from calque.native.schedule.short_rows import without_short_rows
from calque.native.schedule.threads import PARALLEL_NS

# How much the scalar statements of one kernel may weigh together, and what each adds to that which
# stores in memory: LLVM takes more than twice as long for a block that is twice as long, most of
# all where it reads and writes memory.
SCALARS: Final = 2048
STORE: Final = 16


def fused(
    steps: Sequence[Step],
    temporaries: Collection[Buffer],
    sizes: Sizes,
    wanted: Collection[Buffer] = (),
    before: Collection[Buffer] = (),
) -> list[Step]:
    """The steps with nests in place of stages. `wanted` are the temporaries that are read later;
    what is stored in no temporary always is. `before` are those touched by what stands before.

    before: compute (t[i] = exp x[i]; y[i] = t[i] + 1)
    after:  nest (for i: y[i] = exp x[i] + 1)
    """
    out: list[Step] = []
    later = set(wanted)
    for k, s in reversed(list(enumerate(steps))):
        if isinstance(s, Compute):
            gone = {b for b in s.writes() if b in temporaries and b not in later}
            out += reversed(nests(s.stages, gone, sizes))
        elif isinstance(s, Repeat):
            first = touched(steps[:k]).union(before, touched(s.test), *s.swaps)
            test = fused(s.test, temporaries, sizes, later | s.reads(), before)
            # what the body alone touches is written anew in every round before it is read
            inside = later | (s.reads() & first) | read_first(s.body)
            body = fused(s.body, temporaries, sizes, inside, first)
            out.append(replace(s, body=body, test=test))
        elif isinstance(s, Switch):
            first = touched(steps[:k]).union(before)
            cases = [fused(c, temporaries, sizes, later, first) for c in s.cases]
            out.append(replace(s, cases=cases))
        else:
            out.append(s)
        later |= s.reads()
    return out[::-1]


def touched(steps: Sequence[Step]) -> set[Buffer]:
    """What the steps read or write."""
    return {b for s in steps for b in (*s.reads(), *s.writes())}


def read_first(steps: Sequence[Step]) -> set[Buffer]:
    """What the steps read before any of them writes it."""
    out: set[Buffer] = set()
    written: set[Buffer] = set()
    for s in steps:
        if isinstance(s, Compute):
            for stage in s.stages:
                out |= stage.buffers_read - written
                written.add(stage.buf)
            continue
        if isinstance(s, Repeat):
            around = {*chain.from_iterable(s.swaps), *(() if s.flag is None else (s.flag,))}
            reads = read_first((*s.test, *s.body)) | around
        elif isinstance(s, Switch):
            index = (s.index,) if isinstance(s.index, Buffer) else ()
            reads = {b for c in s.cases for b in read_first(c)}.union(index)
        else:
            reads = set(s.reads())
        out |= reads - written
        written |= s.writes()
    return out


def nests(stages: Sequence[Stage], gone: Collection[Buffer], sizes: Sizes) -> list[Nest]:
    """The kernels of stages. Nothing after them reads the buffers in `gone`."""
    bodies = kernels_of(stages, sizes, gone)
    readers: dict[Buffer, int] = {}
    for body in bodies:
        for b in read_in(body):
            readers[b] = readers.get(b, 0) + 1
    local = frozenset(s.buf for s in stages if s.local)
    return [Nest(forwarded(body, local, gone, readers, sizes), in_order=True) for body in bodies]


def read_in(body: Body) -> set[Buffer]:
    return {b for s in statements(body) for e in own_exprs(s) for b in e.bufs}


def forwarded(
    body: Body,
    local: frozenset[Buffer],
    gone: Collection[Buffer],
    readers: dict[Buffer, int],
    sizes: Sizes,
) -> Body:
    """One kernel with its values forwarded and its temporaries gone, where no other kernel wants
    them."""
    makes = stored(body)
    if len(makes) < 2:
        return body
    read_here = read_in(body)
    if makes.isdisjoint(read_here):
        return body

    def is_wanted(b: Buffer) -> bool:
        return b not in gone or readers.get(b, 0) > (b in read_here)

    def is_row(b: Buffer) -> bool:
        return b in makes and b.place == "arg" and not is_wanted(b)

    rows = fuse.shrink(fuse.prune(StoreForwarding(local).body(body), is_wanted), is_row, sizes)
    return without_short_rows(rows)


def kernels_of(stages: Sequence[Stage], sizes: Sizes, gone: Collection[Buffer] = ()) -> list[Body]:
    """The bodies of kernels: one per run of loops; scalar statements go with the run before them,
    and short runs with what they read."""
    out: list[Piece] = []
    for r in fuse.group(stages, 0, sizes):
        body = fuse.stores(r.stages[0]) if r.var is None else fuse.loop(r.stages, 0, sizes)
        scalars = scalar_work(r, gone)
        if out and out[-1].admits(r, body, scalars, sizes):
            out[-1].append(r, body, scalars)
        else:
            out.append(Piece(r, body, scalars))
    return [tuple(p.body) for p in out]


class Piece:
    """A kernel to be: statements that one thread runs one after the other, or one nest that threads
    may share."""

    def __init__(self, run: fuse.Run, body: Sequence[Statement], scalars: int) -> None:
        self.body = list(body)
        self.made, self.weight = set(run.made), run.weight
        self.scalars = scalars  # the work of compiling its scalar statements
        self.ns: float | None = None  # how long it takes, when that has been asked

    def shared(self) -> bool:
        """Could threads share this nest?"""
        return len(self.body) == 1 and isinstance(self.body[0], For) and not self.body[0].accs

    def append(self, run: fuse.Run, body: Sequence[Statement], scalars: int) -> None:
        self.body += body
        self.made |= set(run.made)
        self.weight += run.weight
        self.scalars += scalars

    def admits(self, run: fuse.Run, body: Sequence[Statement], scalars: int, sizes: Sizes) -> bool:
        """Does a run read or go on with what is made here, and is all of it together too short for
        a second thread? Scalars may go with any loop that one thread runs."""
        if run.var is None and not (sizes.known and self.shared()):
            return self.scalars + scalars <= SCALARS
        related = not self.made.isdisjoint(run.read) or not self.made.isdisjoint(run.made)
        if self.weight + run.weight > fuse.CAP or not related or not sizes.known:
            return False
        if self.ns is None:
            self.ns = short(self.body, sizes)
        total = self.ns + short(body, sizes)
        if total > PARALLEL_NS:
            return False
        self.ns = total
        return True


def scalar_work(r: fuse.Run, gone: Collection[Buffer]) -> int:
    """What the scalar statements of a run add to the work of compiling its kernel. Scalars that
    nothing later reads stay in registers."""
    if r.var is not None:
        return 0
    return r.weight + STORE * sum(bool(b.shape) or b not in gone for b in r.made)


def short(body: Sequence[Statement], sizes: Sizes) -> float:
    """A guess of the nanoseconds that statements take; loops that may be longer in another call
    take forever."""
    if any(isinstance(s, For) and sizes.may_grow(s.extent) for s in statements(tuple(body))):
        return inf
    return nanoseconds(tuple(body), sizes)
