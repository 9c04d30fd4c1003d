"""How a program's time is shared among its kernels: those that together take next to none of it are
worth little of LLVM's time, and none is worth more of it than one call gains, while nobody knows
whether there will be a second one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

from calque.native.lower.cost import turns
from calque.native.lower.sizes import Sizes
from calque.native.plan.steps import Call, Repeat, Routine, Step, Switch
from calque.native.schedule.nests import Schedule

LITTLE: Final = 5e-3  # of a program's time
ROUNDS: Final = 16.0  # of a loop that ends when it says so
SAVED_NS: Final = 2000.0  # of a first call where LLVM is quick, by letters of a kernel's key
SLOWER: Final = 1.0  # code takes so much longer then, by the time that it takes
# ... that of products a tenth, as their inner loops are made with care; but their time is guessed
# ten times too high
PRODUCTS_SLOWER: Final = 0.01


def brief(steps: Sequence[Step], sizes: Sizes) -> set[Schedule]:
    """The shortest kernels, as many as take little of the program's time all together."""
    times: dict[Schedule, float] = {}
    total = _add_times(times, steps, 1.0, sizes)
    out, taken = set(), 0.0
    for s, ns in sorted(times.items(), key=lambda item: item[1]):
        taken += ns
        if taken > LITTLE * total:
            break
        out.add(s)
    return out


def hasty(
    steps: Sequence[Step],
    sizes: Sizes,
    products: Collection[Schedule],
    length: Callable[[Schedule], int],
) -> set[Schedule]:
    """The kernels that one call is over sooner with if LLVM makes them quickly; `length` is that of
    the key of one."""
    times: dict[Schedule, float] = {}
    _add_times(times, steps, 1.0, sizes)
    return {
        s
        for s, ns in times.items()
        if ns * (PRODUCTS_SLOWER if s in products else SLOWER) <= SAVED_NS * length(s)
    }


def _add_times(
    times: dict[Schedule, float], steps: Sequence[Step], rounds: float, sizes: Sizes
) -> float:
    """Note the time of each kernel, wherever it is called; gives that of the steps, in which
    the longest of several cases is taken."""
    total = 0.0
    for s in steps:
        if isinstance(s, Call):
            ns = rounds * s.schedule.ns
            times[s.schedule] = times.get(s.schedule, 0.0) + ns
            total += ns
        elif isinstance(s, Routine):
            total += rounds * s.ns
        elif isinstance(s, Repeat):
            often = rounds * (ROUNDS if s.count is None else turns(s.count, sizes))
            total += _add_times(times, s.body, often, sizes)
            total += _add_times(times, s.test, often, sizes)
        elif isinstance(s, Switch):
            total += max([_add_times(times, c, rounds, sizes) for c in s.cases], default=0.0)
    return total
