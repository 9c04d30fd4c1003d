"""Nests that repeat: layers of a model and updates of its parameters have the same loops over other
buffers and numbers, and what was scheduled once serves them all.

Nests are told apart by an outline first, which costs next to nothing; those whose outline was seen
before by the canonical key of their loops."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator

from calque.native.loops.canonical import Canonical, canonical
from calque.native.loops.tree import NO_NUMBERS, Body, For, Let, Store, statements
from calque.native.lower.sizes import Sizes
from calque.native.plan.steps import NO_NAMES, Names, Numbers
from calque.native.schedule.nests import Schedule

Pieces = list[tuple[Body, Schedule]]  # parts of a nest, each with its kernel


class Repeated:
    """What was scheduled, for nests that come later. Sizes must be known: what is decided for some
    sizes need not suit others."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.first: dict[Hashable, tuple[Body, Pieces] | None] = {}  # by outline, while it is alone
        self.made: dict[Hashable, tuple[Canonical, Schedule]] = {}

    def served(
        self, body: Body, worth: float, make: Callable[[], Pieces]
    ) -> tuple[Pieces, Names, Numbers]:
        """The kernels of a nest, which are made if no earlier nest has the same loops; and what
        this one has in the place of that one's buffers and parameters."""
        if not self.sizes.known:
            return make(), NO_NAMES, NO_NUMBERS
        outline = (worth, *outline_of(body))
        if outline not in self.first:
            made = make()
            self.first[outline] = body, made
            return made, NO_NAMES, NO_NUMBERS
        if (alone := self.first[outline]) is not None:
            self.keep(canonical(alone[0]), worth, alone[1])
            self.first[outline] = None
        order = canonical(body)
        found = self.made.get(key_of(order, worth))
        if found is None:
            made = make()
            self.keep(order, worth, made)
            return made, NO_NAMES, NO_NUMBERS
        other, schedule = found
        names = {b: own for b, own in zip(other.buffers, order.buffers) if b is not own}
        numbers = {p: own for p, own in zip(other.params, order.params) if p is not own}
        return [(body, schedule)], names, numbers

    def keep(self, order: Canonical, worth: float, made: Pieces) -> None:
        """Know what became of a nest, if that is one kernel without memory of its own."""
        if len(made) == 1 and made[0][1].rest is None:
            self.made[key_of(order, worth)] = order, made[0][1]


def key_of(order: Canonical, worth: float) -> Hashable:
    """What the schedule of a nest depends on: its loops, all extents of its buffers, and which
    sizes of the program it reads."""
    extents = tuple([b.shape[:1] for b in order.buffers])
    return order.key, extents, tuple(order.sizes), worth


def outline_of(body: Body) -> Iterator[Hashable]:
    """The statements of a nest, and the operations at the top of what they store."""
    for s in statements(body):
        if isinstance(s, For):
            yield s.extent, len(s.body), len(s.accs)
        elif isinstance(s, (Store, Let)):
            yield s.value.op, s.value.dtype, s.value.depth
        else:
            yield type(s).__name__
