"""A nest of loops becomes a kernel: short loops are unrolled, loops are made vectors, the outermost
one is shared out among threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calque.native.loops.tree import Body, For
from calque.native.lower.cost import nanoseconds
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import Expr
from calque.native.schedule.guards import with_conditions_outside
from calque.native.schedule.rounds import in_rounds
from calque.native.schedule.threads import PARALLEL_NS, shared_out
from calque.native.schedule.unroll import unrolled
from calque.native.schedule.vectors import vectorized


@dataclass(frozen=True, eq=False)
class Schedule:
    """How a kernel is run: its body; the range of its outermost loop where threads share that, and
    how many turns are worth a thread; a guess of the time on one core; and why it is so."""

    body: Body
    ns: float
    reasons: tuple[str, ...] = ()
    extent: Expr | None = None
    grain: int | Expr = 0


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
    ns = slower * nanoseconds(body, sizes)
    if len(body) == 1 and isinstance(body[0], For):
        shared = shared_out(body[0], ns, sizes, worth)
        if shared is not None:
            why = (*reasons, shared.reason)
            body = with_conditions_outside((shared.loop,), sizes)
            return Schedule(body, ns, why, shared.loop.extent, shared.grain)
    return Schedule(with_conditions_outside(body, sizes), ns, tuple(reasons))
