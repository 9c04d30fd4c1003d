"""Nests to calls of kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from calque.machine.records import replace
from calque.native.loops.tree import NO_NUMBERS, Body, For, Statement, Store, own_exprs, statements
from calque.native.lower.sizes import Sizes
from calque.native.plan.repeated import Pieces, Repeated
from calque.native.plan.steps import (
    NO_NAMES,
    Call,
    Names,
    Nest,
    Numbers,
    Repeat,
    Step,
    Switch,
)
from calque.native.scalars.expr import Buffer, Expr, walk
from calque.native.schedule.nests import Schedule, distributed, schedule
from calque.native.schedule.threads import AWAKE_NS, PARALLEL_NS


def scheduled(
    steps: Sequence[Step],
    sizes: Sizes,
    ready: Mapping[Nest, Schedule] = MappingProxyType({}),
    worth: float = PARALLEL_NS,
    told: Callable[[Sequence[Step]], None] | None = None,
    repeated: Repeated | None = None,
) -> list[Step]:
    """The steps with calls in place of nests. Threads share what takes longer than `worth`
    nanoseconds; in loops of steps they are awake, and share what is shorter, too. Some schedules
    may be `ready`. Whoever is `told` sees all steps each time there are some more.

    before: nest (for i: y[i] = exp x[i])      after: call (for i @vector(64): y[i] = exp x[i])"""
    out: list[Step] = []
    known = dict(ready)
    again = repeated or Repeated(sizes)

    def inside(steps: Sequence[Step], worth: float) -> list[Step]:
        return scheduled(steps, sizes, ready, worth, repeated=again)

    for s in steps:
        if isinstance(s, Repeat):
            out.append(replace(s, body=inside(s.body, AWAKE_NS), test=inside(s.test, AWAKE_NS)))
        elif isinstance(s, Switch):
            out.append(replace(s, cases=[inside(c, worth) for c in s.cases]))
        elif not isinstance(s, Nest):
            out.append(s)
        elif s.vectors:
            made = known[s] = known.get(s) or chosen(s, sizes, known, worth)
            names = s.names if s.like is not None and known.get(s.like) is made else NO_NAMES
            out += calls(made, s.body if s.in_order else None, s.stands_in, names)
        else:
            make = partial(pieces, s.body, sizes, worth)
            parts, names, numbers = again.served(s.body, worth, make)
            for part, made in parts:
                nest = part if s.in_order else None
                out += calls(made, nest, s.stands_in, names, numbers)
            if told is not None:
                told(out)
    return out


def products(
    steps: Sequence[Step],
    sizes: Sizes,
    ready: Mapping[Nest, Schedule] = MappingProxyType({}),
    worth: float = PARALLEL_NS,
) -> dict[Nest, Schedule]:
    """The schedules of the nests that stay what they are, whatever the stages around them become.
    Some may be `ready`."""
    out: dict[Nest, Schedule] = {}
    known = dict(ready)
    for s in steps:
        if isinstance(s, Repeat):
            out |= products((*s.body, *s.test), sizes, ready, AWAKE_NS)
        elif isinstance(s, Switch):
            out |= products([x for c in s.cases for x in c], sizes, ready, worth)
        elif isinstance(s, Nest) and s.vectors:
            out[s] = known[s] = known.get(s) or chosen(s, sizes, known, worth)
    return out


def chosen(
    s: Nest, sizes: Sizes, ready: Mapping[Nest, Schedule], worth: float = PARALLEL_NS
) -> Schedule:
    """The schedule of a nest whose vectors are chosen, which may be that of one that is like it."""
    shared = ready.get(s.like) if s.like is not None else None
    if shared is not None and shared.rest is None:
        return shared
    return distributed(s.body, sizes, s.slower, worth=worth)


def calls(
    made: Schedule,
    nest: Body | None,
    stands_in: bool,
    names: Names = NO_NAMES,
    numbers: Numbers = NO_NUMBERS,
) -> list[Step]:
    """The calls of a kernel that was made of a piece of a nest, and of the one behind it."""
    if made.rest is None:
        return [Call(made, nest, stands_in, names, numbers)]
    return [Call(made, None, stands_in), Call(made.rest, None, stands_in)]


def pieces(body: Body, sizes: Sizes, worth: float = PARALLEL_NS) -> Pieces:
    """A nest as one kernel; or where one of its loops is long enough for threads, and only those
    beside it are in the way, as several."""
    whole = schedule(body, sizes, worth)
    loops = [s for s in body if isinstance(s, For)]
    apart = len(loops) == len(body) > 1 and whole.extent is None and whole.ns > worth
    if not apart or hand_on_scalars(loops):
        return [(body, whole)]
    singles = [((s,), schedule((s,), sizes, worth)) for s in loops]
    if all(made.extent is None for _, made in singles):
        return [(body, whole)]
    out: Pieces = []
    waiting: tuple[Statement, ...] = ()
    for single, made in singles:
        if made.extent is None:
            waiting += single
            continue
        if waiting:
            out.append((waiting, schedule(waiting, sizes, worth)))
            waiting = ()
        out.append((single, made))
    return [*out, (waiting, schedule(waiting, sizes, worth))] if waiting else out


def hand_on_scalars(body: Sequence[For]) -> bool:
    """Does a loop read what an earlier one folded, or a row on the stack that it wrote?"""
    folded: set[str] = set()
    rows: set[Buffer] = set()
    for s in body:
        mine: set[Buffer] = set()
        seen: set[Expr] = set()
        for t in statements((s,)):
            if isinstance(t, Store) and t.buf.place == "stack":
                mine.add(t.buf)
            for root in own_exprs(t):
                for e in walk(root, seen):
                    if e.op == "ref" and e.attr[0] in folded:
                        return True
                    if e.op == "load" and e.attr.place == "stack":
                        mine.add(e.attr)
        if not rows.isdisjoint(mine):
            return True
        rows |= mine
        folded.update(n for a in s.accs for n in a.names)
    return False
