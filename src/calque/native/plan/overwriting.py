"""Making way for updates: what has to be stored, or done earlier, so that an update may be written
over its operand.

    before: y = x.at[i].set(f(x[i - 1]))      z = y + x[0]
    after:  t = f(x[i - 1]); u = x[0]; x.at[i].set(t) over x; z = x + u

Whoever reads the operand and does not need the update is done before it. Who needs both gets what
it reads of the operand stored before the update, when that is little.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

from calque.core.dims import hint_of
from calque.native.lower.graph import Node

SMALLEST: Final = 64  # elements of an operand that is worth a thought
SHARE: Final = 2  # what is stored may be one part in so many of the operand


class Update(NamedTuple):
    """`by` is to be written over its operand number `place`. `alone`: what it reads of other places
    is read before it writes anything."""

    by: Node
    place: int
    alone: bool

    @property
    def over(self) -> Node:
        return self.by.args[self.place]


class Reads(NamedTuple):
    """Who reads what in a piece of program.

    order    its nodes
    at       their positions
    last     the last position at which a value in memory is read
    direct   the values in memory that reading a node reads
    makes    does a node make a value in memory?
    first    what must have been done before a node, besides making its operands
    rigid    nodes whose order among themselves must stay
    """

    order: Sequence[Node]
    at: Mapping[Node, int]
    last: Mapping[Node, int]
    direct: Callable[[Node], frozenset[Node]]
    makes: Callable[[Node], bool]
    first: Mapping[Node, Collection[Node]]
    rigid: Collection[Node]


class Way(NamedTuple):
    """What makes way: nodes to be stored, and the order of the piece."""

    stored: tuple[Node, ...]
    order: list[Node]


def is_free(u: Update, r: Reads) -> bool:
    """Can the update be written over its operand as things are?"""
    return r.last.get(u.over) == r.at[u.by] and (u.alone or not reads_besides(u, r))


def reads_besides(u: Update, r: Reads) -> bool:
    """Does the update read its operand through another one?"""
    return any(u.over in r.direct(a) for k, a in enumerate(u.by.args) if k != u.place)


def way_for(u: Update, r: Reads) -> Way | None:
    """How the update can be written over its operand, if what must be stored for it is little."""
    x, n = u.over, u.by
    begin, end = r.at[n], r.last.get(x, -1)
    if hint_of(x.aval.size) < SMALLEST or end >= len(r.order):
        return None
    late = r.order[begin + 1 : end + 1]
    after = dependents(n, late, r.first)
    cut = frontier(u, [m for m in late if m in after and r.makes(m)], after, r)
    if cut is None or SHARE * sum(hint_of(a.aval.size) for a in cut) > hint_of(x.aval.size):
        return None
    window = r.order[begin : end + 1]
    moved, kept = [m for m in window if m in after], [m for m in window if m not in after]
    if any(m in r.rigid for m in moved) and any(m in r.rigid for m in kept):
        return None
    return Way(tuple(cut), [*r.order[:begin], *kept, *moved, *r.order[begin + len(window) :]])


def dependents(
    n: Node, later: Sequence[Node], first: Mapping[Node, Collection[Node]]
) -> frozenset[Node]:
    """A node, and which of those after it must stay after it."""
    out = {n}
    for m in later:
        if not out.isdisjoint(m.args) or not out.isdisjoint(first.get(m, ())):
            out.add(m)
    return frozenset(out)


def frontier(
    u: Update, readers: Sequence[Node], after: Collection[Node], r: Reads
) -> list[Node] | None:
    """The expressions of the old value that the update and what depends on it read; None when one
    of them reads the old value itself."""
    x, out = u.over, list[Node]()
    seen: set[Node] = set()
    todo = [*readers] if u.alone else [u.by, *readers]
    while todo:
        m = todo.pop()
        for k, a in enumerate(m.args):
            if a in seen or (m is u.by and k == u.place) or x not in r.direct(a):
                continue
            if a is x:
                return None
            seen.add(a)
            if a in after:
                todo.append(a)
            elif (small := smallest(a, x, r)) not in out:
                out.append(small)
    return out


def smallest(a: Node, x: Node, r: Reads) -> Node:
    """The smallest on the way from an expression to the value that it reads."""
    best = a
    while True:
        on = [b for b in a.args if x in r.direct(b)]
        if len(on) != 1 or on[0] is x or len(r.direct(a)) != len(r.direct(on[0])):
            return best
        (a,) = on
        if hint_of(a.aval.size) < hint_of(best.aval.size):
            best = a
