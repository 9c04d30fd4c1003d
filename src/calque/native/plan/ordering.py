"""Steps in an order that needs little memory.

    before: a = f(x); b = f(y); s = sum(a); t = sum(b)      a and b are needed at the same time
    after:  a = f(x); s = sum(a); b = f(y); t = sum(b)      one lies where the other was

What makes as much as it ends waits until somebody reads it; what ends more than it makes is done as
soon as it can be. Where that is not much better than the order of the program, that stays. One walk
over the steps, each of which is looked at with its neighbours: the time is linear in the program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from calque.machine.records import replace
from calque.native.plan.fusion import read_first
from calque.native.plan.steps import Count, Host, Repeat, Step, walk
from calque.native.scalars.expr import Buffer

LEAST: Final = 1 << 20  # bytes of temporaries that are worth another order
BETTER: Final = 0.95  # of the memory that was needed before, at most


def ordered(
    steps: Sequence[Step], temporaries: Collection[Buffer], nbytes: Mapping[Buffer, int]
) -> Sequence[Step]:
    """The steps, and those of loops among them, in an order that needs less memory."""
    if sum([nbytes[b] for b in temporaries]) < LEAST:
        return steps
    return _ordered(steps, temporaries, nbytes)


def _ordered(
    steps: Sequence[Step], own: Collection[Buffer], nbytes: Mapping[Buffer, int]
) -> Sequence[Step]:
    """The same for a list of steps with temporaries that nobody else needs."""
    touching = Counter([b for s in steps for b in s.reads() | s.writes() if b in own])
    now = [
        _loop_ordered(s, {b for b in s.writes() if touching[b] == 1}, nbytes)
        if isinstance(s, Repeat)
        else s
        for s in steps
    ]
    large = sum([nbytes[b] for b in touching]) >= LEAST
    if len(now) > 2 and large and not any(map(is_fixed, now)):
        work = _Walk(now, touching, nbytes)
        before, order = work.peak(range(len(now))), work.order()
        if work.peak(order) < BETTER * before:
            return [now[i] for i in order]
    return now


def _loop_ordered(loop: Repeat, own: set[Buffer], nbytes: Mapping[Buffer, int]) -> Repeat:
    """A loop with the steps of its round ordered. A round's own is what no other step of the
    program knows, and what no round takes over from the one before."""
    carried = read_first(loop.body).union(*loop.swaps, *[s.reads() for s in loop.test])
    return replace(loop, body=_ordered(loop.body, own - carried, nbytes))


def is_fixed(s: Step) -> bool:
    """Whether what follows a step depends on it by more than buffers."""
    return isinstance(s, Count)


def is_ordered(s: Step) -> bool:
    """Whether a step calls Python, which sees in which order."""
    return any(isinstance(t, Host) for t in walk((s,)))


def dependencies(steps: Sequence[Step]) -> list[set[int]]:
    """For each of the steps of one list the numbers of those that it has to wait for itself."""
    out: list[set[int]] = []
    written: dict[Buffer, int] = {}
    read: dict[Buffer, list[int]] = {}
    last: int | None = None  # that calls Python
    for i, s in enumerate(steps):
        reads, writes = s.reads(), s.writes()
        waits = {written[b] for b in reads | writes if b in written}
        waits.update(k for b in writes for k in read.get(b, ()))
        if is_ordered(s):
            waits.update(() if last is None else (last,))
            last = i
        for b in writes:
            written[b], read[b] = i, []
        for b in reads - writes:
            read.setdefault(b, []).append(i)
        waits.discard(i)
        out.append(waits)
    return out


class _Walk:
    """The steps of one list by their numbers: what each has to wait for, and who touches what."""

    def __init__(
        self, steps: Sequence[Step], own: Collection[Buffer], nbytes: Mapping[Buffer, int]
    ) -> None:
        n = len(steps)
        self.nbytes = nbytes
        self.touched: list[list[Buffer]] = []  # of our own temporaries
        self.readers: dict[Buffer, list[int]] = {b: [] for b in own}
        self.before = dependencies(steps)
        self.after: list[list[int]] = [[] for _ in range(n)]
        for i, s in enumerate(steps):
            for k in self.before[i]:
                self.after[k].append(i)
            mine = [b for b in s.reads() | s.writes() if b in self.readers]
            self.touched.append(mine)
            for b in mine:
                self.readers[b].append(i)

    def peak(self, order: Sequence[int]) -> int:
        """The bytes of temporaries that are needed at the same time."""
        left = {b: len(those) for b, those in self.readers.items()}
        most = live = 0
        for i in order:
            mine = self.touched[i]
            live += sum([self.nbytes[b] for b in mine if left[b] == len(self.readers[b])])
            most = max(most, live)
            for b in mine:
                left[b] -= 1
                live -= 0 if left[b] else self.nbytes[b]
        return most

    def can_wait(self, i: int) -> bool:
        """Does a step make as much as would have to be kept for it until somebody reads what it
        makes?"""
        if not self.after[i]:
            return False
        until = self.after[i][0]
        made = kept = 0
        for b in self.touched[i]:
            those = self.readers[b]
            if those[0] == i:
                made += self.nbytes[b]
            elif those[-1] < until:
                kept += self.nbytes[b]
        return made >= max(kept, 1)

    def order(self) -> list[int]:
        """An order in which steps wait, and are done early, by what they make and end."""
        todo = _Order(self)
        for i in range(len(self.before)):
            if not self.can_wait(i):
                todo.do(i)
        for i in range(len(self.before)):
            todo.do(i)
        return todo.out


class _Order:
    """An order of steps while it is made."""

    def __init__(self, work: _Walk) -> None:
        self.work = work
        self.out: list[int] = []
        self.done = [False] * len(work.before)
        self.waiting = [len(b) for b in work.before]
        # how many still touch a buffer, and the sum of their numbers: which one the last is
        self.left = {b: (len(those), sum(those)) for b, those in work.readers.items()}

    def do(self, first: int) -> None:
        """Do a step, after those that it needs and that have waited for it; then what ends more
        than it makes."""
        todo = [first]
        while todo:
            i = todo[-1]
            missing = () if self.done[i] else [k for k in self.work.before[i] if not self.done[k]]
            if missing:
                todo += sorted(missing, reverse=True)
                continue
            todo.pop()
            if not self.done[i]:
                todo += self.follow(i)

    def follow(self, i: int) -> list[int]:
        """Note that a step is done; gives those to be done at once, the last first."""
        self.done[i] = True
        self.out.append(i)
        near = set(self.work.after[i])
        for k in near:
            self.waiting[k] -= 1
        for b in self.work.touched[i]:
            count, numbers = self.left[b]
            self.left[b] = count - 1, numbers - i
            if count == 2:
                near.add(numbers - i)
        ready = [k for k in near if not (self.waiting[k] or self.done[k]) and self.ends(k)]
        return sorted(ready, reverse=True)

    def ends(self, i: int) -> bool:
        """Does a step end more than it makes, if it is done now?"""
        gain, work = 0, self.work
        for b in work.touched[i]:
            left = self.left[b][0]
            gain += work.nbytes[b] * ((left == 1) - (left == len(work.readers[b])))
        return gain > 0


__all__ = ["dependencies", "is_fixed", "ordered"]
