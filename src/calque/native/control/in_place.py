"""Carries of loops and operands of branches that are only ever updated: they are updated where they
lie, so that a round costs what it writes, not the size of the array.

    before: loop: y = x.at[i].set(...); x = y      two buffers that change places, and a copy
    after:  loop: x.at[i].set(...) over x          one buffer

The updates may stand under branches and in loops inside: what they are given ends there and they
hand it back, updated in the same place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from calque.core.jaxprs import ClosedJaxpr, Jaxpr
from calque.native.control.loops import simplified, while_programs
from calque.native.lower.graph import Graph, Node, graph_of
from calque.native.plan.blocks import Planner
from calque.native.plan.homes import IN_PLACE, Homes, Owner, homes_of, needed

Pairs = Mapping[int, tuple[Node, Node]]  # number -> what comes in, what goes out in its place
FIRST_OPERAND: Final = 1  # of a choice, after the index


class InPlace(NamedTuple):
    """Which pairs share memory, and the homes of the piece with that."""

    pairs: frozenset[int]
    homes: Homes | None


def takes(p: Planner, n: Node) -> Mapping[int, int]:
    """Which results of a loop or choice can be made in the memory of which operands, if these end
    there."""
    find = _TAKEN.get(n.op)
    if find is None:
        return {}
    found = p.taken.get(n)
    if found is None:
        found = p.taken[n] = find(p, n)
    return found


def in_place(
    p: Planner,
    name: str,
    pairs: Pairs,
    outputs: Sequence[Node],
    effects: Sequence[Node],
    ours: frozenset[Node] = frozenset(),
) -> InPlace:
    """The pairs of which every value on the way is read for the last time by its own update.
    `ours` are other nodes in memory that may be overwritten."""
    links = {i: c for i, (x, o) in pairs.items() if (c := chain(p, o, x)) is not None}
    around = p.around(())
    outputs = list(dict.fromkeys(outputs))
    while links:
        promised = frozenset([pairs[i][0] for i in links])

        def memory(n: Node) -> Owner:
            if n in promised:
                return "promised"
            return "ours" if n in ours else around.memory(n)

        def given(n: Node) -> bool:
            return n in promised or n in ours or around.given(n)

        everything = frozenset([n for c in links.values() for n in c])
        known = around._replace(given=given, memory=memory, links=everything)
        order = needed([*outputs, *effects], p.view)
        homes = homes_of(name, order, outputs, known, effects)
        bad = [i for i, c in links.items() if any(homes.of[n].place != "over" for n in c)]
        if not bad:
            return InPlace(frozenset(links), homes)
        for i in bad:
            del links[i]
    return InPlace(frozenset(), None)


def chain(p: Planner, out: Node, first: Node) -> list[Node] | None:
    """The updates that lead from one value to another, first to last; None when there is anything
    else between."""
    links: list[Node] = []
    if (out.shape, out.dtype) != (first.shape, first.dtype):
        return None
    while out is not first:
        links.append(out)
        if out.op in IN_PLACE:
            out = out.args[0]
            continue
        place = takes(p, out.args[0]).get(out.params["index"]) if out.op == "get" else None
        if place is None:
            return None
        out = out.args[0].args[place]
    return links[::-1]


def taken_by_cond(p: Planner, n: Node) -> Mapping[int, int]:
    """Every branch hands on an operand, or updates it."""
    graphs = [graph_of(simplified(b)) for b in n.params["branches"]]
    found: dict[int, int] = {}
    for k in range(len(graphs[0].outputs)):
        origins = {origin(p, g, g.outputs[k]) for g in graphs}
        if len(origins) == 1 and None not in origins and origins.isdisjoint(found.values()):
            found[k] = next(j for j in origins if j is not None)
    for g in graphs:
        pairs = {k: (g.inputs[j], g.outputs[k]) for k, j in found.items()}
        kept = in_place(p, "updates", pairs, g.outputs, g.effects).pairs
        found = {k: j for k, j in found.items() if k in kept}
    return {k: FIRST_OPERAND + j for k, j in found.items()}


def origin(p: Planner, g: Graph, out: Node) -> int | None:
    """The number of the input that a chain of updates began with."""
    while out not in g.inputs:
        if out.op in IN_PLACE:
            out = out.args[0]
            continue
        place = takes(p, out.args[0]).get(out.params["index"]) if out.op == "get" else None
        if place is None:
            return None
        out = out.args[0].args[place]
    return g.inputs.index(out)


def taken_by_rounds(
    p: Planner, body: ClosedJaxpr | Jaxpr, consts: int, carries: int, first: int
) -> Mapping[int, int]:
    """The carries that are only updated; the operands they start from stand at `first`."""
    g = graph_of(simplified(body))
    inputs, after = g.inputs[consts : consts + carries], g.outputs[:carries]
    pairs = updated_pairs(inputs, after, range(carries))
    kept = in_place(p, "updates", pairs, g.outputs, g.effects, frozenset(inputs)).pairs
    return {i: first + i for i in kept}


def updated_pairs(
    carries: Sequence[Node], after: Sequence[Node], which: Iterable[int]
) -> dict[int, tuple[Node, Node]]:
    """The carries that may be only updated."""
    return {
        i: (carries[i], after[i])
        for i in which
        if carries[i] is not after[i] and after.count(after[i]) == 1
    }


def taken_by_scan(p: Planner, n: Node) -> Mapping[int, int]:
    first, carries = n.params["num_consts"], n.params["num_carry"]
    return taken_by_rounds(p, n.params["jaxpr"], first, carries, first)


def taken_by_while(p: Planner, n: Node) -> Mapping[int, int]:
    _, body, consts = while_programs(n)
    first = n.params["cond_nconsts"] + n.params["body_nconsts"]
    return taken_by_rounds(p, body, len(consts), len(n.args) - first, first)


_TAKEN: Final[dict[str, Callable[[Planner, Node], Mapping[int, int]]]] = {
    "cond": taken_by_cond,
    "scan": taken_by_scan,
    "while": taken_by_while,
}
