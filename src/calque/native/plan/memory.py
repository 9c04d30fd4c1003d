"""Where temporaries lie: in results that are written later, and at places in one arena, shared by
those that are never needed at the same time."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Sequence
from heapq import heappop, heappush
from itertools import accumulate, chain
from typing import Final

from calque.native.plan.steps import Repeat, Step, Swap, Switch, walk
from calque.native.scalars.expr import Buffer

ALIGN: Final = 64
LEAST: Final = 4096  # bytes of a temporary that is worth a place in a result
MUCH: Final = 1 << 16  # bytes of an arena whose gaps matter
GAPS: Final = 1.02  # ... where it is so much larger than what is needed at the same time
LARGE: Final = 64  # the part of that which a large buffer takes at least
MOST_LARGE: Final = 200  # of them that are compared with each other
MOST_RESULTS: Final = 16  # that are looked at for a temporary


class Lifetimes:
    """First and last step that touches each temporary. What lives in a loop and outside, or is
    carried round, lives through all of it."""

    def __init__(
        self,
        steps: Sequence[Step],
        temporaries: set[Buffer],
        before: Iterable[Buffer] = (),
        after: Iterable[Buffer] = (),
    ) -> None:
        self.temporaries = temporaries
        self.at: dict[Step, int] = {}
        self.first: dict[Buffer, int] = {}
        self.last: dict[Buffer, int] = {}
        self.clock = 0
        self.pairs: list[
            tuple[Buffer, Buffer]
        ] = []  # after an unknown number of rounds either may be the other's memory
        self.loops: list[tuple[int, int]] = []
        self.touch(before, 0)
        self.visit(steps)
        self.touch(after, self.clock + 1)
        self.kept()
        self.unite()
        self.kept()

    def touch(self, buffers: Iterable[Buffer], at: int) -> None:
        for b in buffers:
            if b in self.temporaries:
                self.first[b] = min(self.first.get(b, at), at)
                self.last[b] = max(self.last.get(b, at), at)

    def visit(self, steps: Sequence[Step]) -> None:
        for s in steps:
            self.clock += 1
            start = self.at[s] = self.clock
            if isinstance(s, Repeat):
                self.pairs += [
                    (a, b) for a, b in s.swaps if a in self.temporaries and b in self.temporaries
                ]
                self.visit(s.test)
                self.visit(s.body)
                self.clock += 1
                self.through(s, start, self.clock)
                self.loops.append((start, self.clock))
            elif isinstance(s, Switch):
                for c in s.cases:
                    self.visit(c)
                if isinstance(s.index, Buffer):
                    self.touch((s.index,), start)
            else:
                self.touch(s.reads(), start)
                self.touch(s.writes(), start)

    def kept(self) -> None:
        """What a loop writes piece by piece (a stacked result) and leaves to later steps is alive
        in all of its rounds."""
        for start, end in self.loops:
            for b, first in self.first.items():
                if start < first <= end < self.last[b]:
                    self.first[b] = start

    def unite(self) -> None:
        """Buffers that change places live as long as each other."""
        changed = True
        while changed:
            changed = False
            for a, b in self.pairs:
                first, last = min(self.first[a], self.first[b]), max(self.last[a], self.last[b])
                for x in (a, b):
                    changed |= (self.first[x], self.last[x]) != (first, last)
                    self.first[x], self.last[x] = first, last

    def through(self, s: Repeat, start: int, end: int) -> None:
        """Stretch what the loop carries, and what it reads before writing it, over all rounds."""
        written: set[Buffer] = set()
        carried: set[Buffer] = {b for pair in s.swaps for b in pair}
        if s.flag is not None:
            carried.add(s.flag)
        for step in (*s.test, *s.body):
            carried |= {b for b in step.reads() if b not in written}
            written |= step.writes()
        touched = {b for step in (*s.test, *s.body) for b in (*step.reads(), *step.writes())}
        outside = {b for b in touched if self.first.get(b, start) < start}
        for b in carried | outside:
            self.touch((b,), start)
            self.touch((b,), end)


def arrange(
    steps: Sequence[Step], temporaries: set[Buffer], nbytes: dict[Buffer, int]
) -> tuple[dict[Buffer, int], int]:
    """(offset of every temporary, size of the arena): first fit, in order of first use; or where
    that leaves gaps, the large ones first, the largest before all others."""
    if not temporaries:
        return {}, 0
    life = Lifetimes(steps, temporaries)
    order = in_order(life, nbytes)
    offsets, size = first_fit(order, life, nbytes)
    needed = most_alive(life, nbytes)
    if size >= MUCH and size > GAPS * needed:
        large = [b for b in order if LARGE * nbytes[b] >= needed]
        if len(large) <= MOST_LARGE:
            placed, high = largest_first(large, life, nbytes)
            rest, more = first_fit([b for b in order if b not in placed], life, nbytes)
            if high + more < size:
                return placed | {b: high + at for b, at in rest.items()}, high + more
    return offsets, size


def first_fit(
    order: Sequence[Buffer], life: Lifetimes, nbytes: dict[Buffer, int]
) -> tuple[dict[Buffer, int], int]:
    """Each at the first place that is free at its first use."""
    room = _Room(_Gaps())
    return {b: room.take(b, life, nbytes) for b in order}, room.gaps.most


def largest_first(
    buffers: Sequence[Buffer], life: Lifetimes, nbytes: dict[Buffer, int]
) -> tuple[dict[Buffer, int], int]:
    """Each at the lowest place that no larger one has during its life."""
    offsets: dict[Buffer, int] = {}
    top = 0
    for b in sorted(buffers, key=lambda b: (-nbytes[b], life.first[b], b.name)):
        at, size = 0, size_of(b, nbytes)
        beside = [
            (begin, begin + size_of(x, nbytes))
            for x, begin in offsets.items()
            if life.first[x] <= life.last[b] and life.first[b] <= life.last[x]
        ]
        for begin, end in sorted(beside):
            if begin - at >= size:
                break
            at = max(at, end)
        offsets[b] = at
        top = max(top, at + size)
    return offsets, top


def most_alive(life: Lifetimes, nbytes: dict[Buffer, int]) -> int:
    """The bytes of what is needed at the same time, at most."""
    changes = [0] * (life.clock + 3)
    for b, first in life.first.items():
        size = size_of(b, nbytes)
        changes[first] += size
        changes[life.last[b] + 1] -= size
    return max(accumulate(changes))


def in_order(life: Lifetimes, nbytes: dict[Buffer, int]) -> list[Buffer]:
    """Buffers by their first use."""
    return sorted(life.first, key=lambda b: (life.first[b], -nbytes[b], b.name))


def lent(
    steps: Sequence[Step],
    temporaries: set[Buffer],
    results: Collection[Buffer],
    nbytes: dict[Buffer, int],
) -> dict[Buffer, tuple[Buffer, int]]:
    """Temporaries that lie in a result, which is written when they are needed no more; each with
    the result and its offset there. A result lends its memory to what is needed until shortly
    before: so the longest lives find a place.

    before: t = f(x); y = g(t); z = h(y)      two results, y and z, and a temporary
    after:  t lies in z
    """
    small = all(nbytes[b] < LEAST for b in temporaries)
    if small or all(nbytes[b] < LEAST for b in results):
        return {}
    life = Lifetimes(steps, temporaries | set(results), after=results)
    fixed = {b for s in walk(steps) for b in swapped(s)}
    lenders = sorted(
        (life.first[b], b.name, b)
        for b in results
        if nbytes[b] >= LEAST and b not in fixed and life.first[b] <= life.clock
    )
    begins = [first for first, _, _ in lenders]
    rooms = [_Room(_Gaps.within(nbytes[b])) for _, _, b in lenders]
    out: dict[Buffer, tuple[Buffer, int]] = {}
    for b in in_order(life, nbytes):
        if b not in temporaries or nbytes[b] < LEAST or b in fixed:
            continue
        k = bisect_right(begins, life.last[b])
        for room, (_, _, result) in zip(rooms[k : k + MOST_RESULTS], lenders[k:]):
            at = room.find(b, life, nbytes)
            if at is not None:
                out[b] = result, at
                break
    return out


def swapped(s: Step) -> tuple[Buffer, ...]:
    """What changes places in a step."""
    if isinstance(s, Swap):
        return (s.a, s.b)
    return tuple(chain.from_iterable(s.swaps)) if isinstance(s, Repeat) else ()


class _Room:
    """Memory in which buffers lie, each until its last use."""

    def __init__(self, gaps: _Gaps) -> None:
        self.gaps = gaps
        self.living: list[tuple[int, int, int]] = []  # last step, offset, size: a heap

    def take(self, b: Buffer, life: Lifetimes, nbytes: dict[Buffer, int]) -> int:
        """A place, for which the room grows if it must."""
        at = self.find(b, life, nbytes)
        return self.put(b, self.gaps.grow(size_of(b, nbytes)), life, nbytes) if at is None else at

    def find(self, b: Buffer, life: Lifetimes, nbytes: dict[Buffer, int]) -> int | None:
        """A place in what is free; None if there is none."""
        while self.living and self.living[0][0] < life.first[b]:
            _, at, size = heappop(self.living)
            self.gaps.give(at, size)
        found = self.gaps.take(size_of(b, nbytes))
        return None if found is None else self.put(b, found, life, nbytes)

    def put(self, b: Buffer, at: int, life: Lifetimes, nbytes: dict[Buffer, int]) -> int:
        heappush(self.living, (life.last[b], at, size_of(b, nbytes)))
        return at


def size_of(b: Buffer, nbytes: dict[Buffer, int]) -> int:
    """The bytes that a buffer takes."""
    return max(-(-nbytes[b] // ALIGN) * ALIGN, ALIGN)


class _Gaps:
    """What is free below the highest place in use, by offset, neighbours joined; so programs of any
    length are arranged in time about linear in it."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.top = self.most = 0

    @staticmethod
    def within(size: int) -> _Gaps:
        """Memory of so many bytes that does not grow."""
        made = _Gaps()
        made.starts, made.ends, made.top = [0], [size], -1
        return made

    def take(self, size: int) -> int | None:
        """The first place of this size."""
        for k, (start, end) in enumerate(zip(self.starts, self.ends)):
            if end - start >= size:
                if end - start == size:
                    del self.starts[k], self.ends[k]
                else:
                    self.starts[k] += size
                return start
        return None

    def grow(self, size: int) -> int:
        """A place behind all others."""
        at, self.top = self.top, self.top + size
        self.most = max(self.most, self.top)
        return at

    def give(self, start: int, size: int) -> None:
        """A place is free again."""
        end = start + size
        k = bisect_left(self.starts, start)
        if k < len(self.starts) and self.starts[k] == end:
            end = self.ends[k]
            del self.starts[k], self.ends[k]
        if k and self.ends[k - 1] == start:
            k -= 1
            start = self.starts[k]
            del self.starts[k], self.ends[k]
        if end == self.top:
            self.top = start
        else:
            self.starts.insert(k, start)
            self.ends.insert(k, end)
