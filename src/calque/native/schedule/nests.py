"""A nest of loops becomes a kernel: short loops are unrolled, loops are made vectors, the outermost
one is shared out among threads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

from calque.machine.records import record
from calque.native.loops.tree import Acc, Body, For, Touched, touched
from calque.native.lower.cost import nanoseconds, turns
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import Buffer, Expr
from calque.native.schedule.guards import with_conditions_outside
from calque.native.schedule.rounds import in_rounds
from calque.native.schedule.shared_sums import SharedSums, shared_sums
from calque.native.schedule.threads import PARALLEL_NS, shared_out
from calque.native.schedule.unroll import unrolled
from calque.native.schedule.vectors import vectorized

ADDITION_NS: Final = 1.0


@record(eq=False)
class Schedule:
    """How a kernel is run: its body; the range of its outermost loop where threads share that, and
    how many turns are worth a thread; a guess of the time on one core; and why it is so.

    `rest` is a kernel that is run behind it, which finds its partial results in `left`."""

    body: Body
    ns: float
    reasons: tuple[str, ...] = ()
    extent: Expr | None = None
    grain: int | Expr = 0
    rest: Schedule | None = None
    left: tuple[Buffer, ...] = ()

    @cached_property
    def touched(self) -> Touched:
        return touched(self.body)


def schedule(nest: Body, sizes: Sizes, worth: float = PARALLEL_NS) -> Schedule:
    """The kernel of a nest whose loops are serial."""
    body, reasons = vectorized(unrolled(nest), sizes)
    return distributed(body, sizes, reasons=reasons, worth=worth)


def distributed(
    body: Body,
    sizes: Sizes,
    slower: float = 1.0,
    reasons: Sequence[str] = (),
    worth: float = PARALLEL_NS,
) -> Schedule:
    """The kernel of a body whose vectors are there already, for these reasons; it takes `slower`
    times as long as its operations say, and threads share it if that is longer than `worth`."""
    body = in_rounds(body, sizes)
    ns = slower * max(nanoseconds(body, sizes), waiting(body, sizes))
    if len(body) == 1 and isinstance(body[0], For):
        shared = shared_out(body[0], ns, sizes, worth)
        if shared is not None:
            why = (*reasons, shared.reason)
            body = with_conditions_outside((shared.loop,), sizes)
            return Schedule(body, ns, why, shared.loop.extent, shared.grain)
    elif ns > worth and (parted := shared_sums(body, sizes)) is not None:
        return in_two(parted, ns, sizes, reasons)
    return Schedule(with_conditions_outside(body, sizes), ns, tuple(reasons))


def waiting(body: Body, sizes: Sizes) -> float:
    """The nanoseconds that additions in the order of a loop wait for the one before, however little
    there is to do in each turn."""
    ns = 0.0
    for s in body:
        if isinstance(s, For) and s.kind == "serial":
            if any(isinstance(a, Acc) and a.order == "sequential" and a.ordered for a in s.accs):
                ns += turns(s.extent, sizes) * ADDITION_NS
            ns += turns(s.extent, sizes) * waiting(s.body, sizes)
    return ns


def in_two(parted: SharedSums, ns: float, sizes: Sizes, reasons: Sequence[str]) -> Schedule:
    """Partial sums that threads share, and a kernel that adds them up."""
    after = nanoseconds(parted.rest, sizes)
    rest = Schedule(with_conditions_outside(parted.rest, sizes), after, ("adds up partial sums",))
    loop, extent = parted.loop, parted.loop.extent
    why = f"{loop.name}: threads: about {ns / 1000:.0f} us of work, each some of the partial sums"
    first = with_conditions_outside((loop,), sizes)
    return Schedule(first, ns - after, (*reasons, why), extent, 1, rest, parted.sums)
