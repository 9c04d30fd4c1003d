"""What every round of a loop does alike is done once, before the first.

    before: loop: pack W; h = h @ W        after: pack W; loop: h = h @ W

That is what writes memory that no other step of the loop writes, and reads only what no round
changes: panels of a matrix, values of constants, factors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from calque.native.loops.tree import nodes
from calque.native.lower.stages import Stage
from calque.native.plan.steps import Compute, Count, Nest, Routine, Step, walk
from calque.native.scalars.expr import Buffer, Expr


def taken_out(
    steps: Sequence[Step], carried: Collection[Buffer], counter: str
) -> tuple[list[Step], list[Step]]:
    """What is done before the loop, and what is left for a round. `carried`: what the loop takes
    from round to round and what it hands on; `counter`: the name of the number of the round."""
    if any(isinstance(s, Count) for s in walk(steps)):  # sizes that only a round knows
        return [], [*steps]
    writers = Counter([b for s in steps for b in written(s)])
    changing = {*writers, *carried}

    def alike(reads: Iterable[Buffer], writes: Collection[Buffer], names: Collection[str]) -> bool:
        out = (
            changing.isdisjoint(reads)
            and all(writers[b] == 1 and b not in carried for b in writes)
            and counter not in names
        )
        if out:
            changing.difference_update(writes)
        return out

    before: list[Step] = []
    left: list[Step] = []
    for s in steps:
        if isinstance(s, Compute):
            once = [x for x in s.stages if alike(x.buffers_read, (x.buf,), names_of(x))]
            rest = tuple([x for x in s.stages if x not in once])
            before += [Compute(tuple(once))] if once else []
            left += [Compute(rest)] if rest else []
        elif isinstance(s, Nest | Routine) and alike(s.reads(), s.writes(), names_of(s)):
            before.append(s)
        else:
            left.append(s)
    return before, left


def written(s: Step) -> list[Buffer]:
    """What a step writes, once for each time."""
    return [x.buf for x in s.stages] if isinstance(s, Compute) else [*s.writes()]


def names_of(s: Stage | Nest | Routine) -> Collection[str]:
    """The variables that a stage or a step depends on."""
    if isinstance(s, Nest):
        found: Iterable[Expr] = nodes(s.body)
    elif isinstance(s, Routine):
        found = [w for w in (*s.words, s.turns) if isinstance(w, Expr)]
    else:
        guard = () if s.guard is None else (s.guard,)
        found = (*s.values(), *s.idx, *guard, *[d for d in s.dims], *extents(s))
    return {n for e in found for n in e.names}


def extents(s: Stage) -> list[Expr]:
    """How far the loops of a stage go."""
    return [d.attr[1] for d in s.dims if isinstance(d.attr[1], Expr)]
