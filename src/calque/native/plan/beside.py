"""Routines that do not wait for each other run beside each other, each by one thread.

    before: u = fft(a); b = f(y); v = fft(b); w = g(u, v)
    after:  b = f(y); u, v = fft(a) beside fft(b); w = g(u, v)

Threads that share one routine hand what it reads and writes from core to core, which takes as long
as a short one. What each of several does by itself stays with its core.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from calque.machine.records import replace
from calque.native.plan.ordering import dependencies, is_fixed
from calque.native.plan.steps import Repeat, Routine, Step, Switch
from calque.native.routines import begun

SHORT_NS: Final = 100_000  # what takes longer is worth sharing where there are more threads
MOST: Final = 8  # at the same time
FAR: Final = 100  # steps between the first and the last of them


def beside(steps: Sequence[Step], threads: int) -> list[Step]:
    """The steps, with those routines that may run beside each other as one, at any depth."""
    if threads < 2:
        return list(steps)
    out: list[Step] = []
    for s in steps:
        if isinstance(s, Repeat):
            s = replace(s, body=beside(s.body, threads), test=beside(s.test, threads))
        elif isinstance(s, Switch):
            s = replace(s, cases=[beside(c, threads) for c in s.cases])
        out.append(s)
    able = sum(isinstance(s, Routine) and s.beside for s in out)
    return out if able < 2 or any(map(is_fixed, out)) else _beside(out, threads)


def _beside(steps: Sequence[Step], threads: int) -> list[Step]:
    """The same for one list of steps: the first routine waits for the others, and what needs it
    waits, too."""
    waits = dependencies(steps)
    order = [*range(len(steps))]
    groups: dict[int, list[int]] = {}  # by the last one
    at = 0
    while at < len(order):
        group, late = _group(steps, waits, order[at : at + FAR], min(threads, MOST))
        if len(group) < 2 or (len(group) < threads and _ns(steps, group) > SHORT_NS):
            at += 1
            continue
        last = order.index(group[-1], at)
        between = [i for i in order[at : last + 1] if i not in late and i not in group]
        order[at : last + 1] = [*between, group[-1], *[i for i in late if i not in group]]
        groups[group[-1]] = group
        at += len(between) + 1
    return [_one([steps[k] for k in groups[i]]) if i in groups else steps[i] for i in order]


def _group(
    steps: Sequence[Step], waits: Sequence[set[int]], order: Sequence[int], most: int
) -> tuple[list[int], list[int]]:
    """The first of the steps and those that may run beside it; with them, in their order, what has
    to wait for any of them and stands before the last."""
    group: list[int] = []
    late: list[int] = []
    behind = 0  # how many of `late` stand before the last of the group
    for i in order:
        if not waits[i].isdisjoint(late):
            late.append(i)
        elif _fits(steps[i], [steps[k] for k in group]):
            group.append(i)
            late.append(i)
            behind = len(late)
        if len(group) == most or not group:
            break
    return group, late[:behind]


def _fits(s: Step, others: Sequence[Any]) -> bool:
    """Whether a step may run beside others."""
    return (
        isinstance(s, Routine)
        and s.beside
        and all(s.name == o.name and s.ns <= 2 * o.ns and o.ns <= 2 * s.ns for o in others)
    )


def _ns(steps: Sequence[Any], group: Sequence[int]) -> int:
    """How long one of them takes."""
    return max([steps[i].ns for i in group])


def _one(routines: Sequence[Any]) -> Routine:
    """Several routines as one, each of which is a turn."""
    longest = max([len(r.words) for r in routines])
    words: list[Any] = []
    for r in routines:
        words += [r.address, r.turns, 0, *r.words, *[0] * (longest - len(r.words))]
    return Routine(
        " beside ".join([r.name for r in routines]),
        begun("beside", ["calque_beside"])[0],
        [len(words) // len(routines), *words],
        [b for r in routines for b in r.args],
        [b for r in routines for b in r.outs],
        max([r.ns for r in routines]),
        turns=len(routines),
    )
