"""Places for boxes that depend on each other: in rows, each below those that it needs, and ways for
the lines between them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

BETWEEN: Final = 28.0  # boxes of a row
ROWS: Final = 46.0  # apart
WAY: Final = 10.0  # the width of a line that passes a row
LONGEST: Final = 12  # rows that a line goes past on a way of its own
SWEEPS: Final = 4


class Point(NamedTuple):
    x: float
    y: float


@dataclass(eq=False)
class Box:
    """Something of a size; `x` and `y` are its left upper corner, once it has its place."""

    width: float
    height: float
    x: float = 0.0
    y: float = 0.0
    is_way: bool = False
    above: list[Box] = field(default_factory=list)
    below: list[Box] = field(default_factory=list)

    @property
    def centre(self) -> float:
        return self.x + self.width / 2


@dataclass
class Placed:
    """How large the whole is, and for each line the points that it goes through."""

    width: float
    height: float
    lines: list[list[Point]]


def place(boxes: Sequence[Box], edges: Sequence[tuple[int, int]]) -> Placed:
    """Give every box its place; an edge goes from a box to a later one."""
    ranks = ranked(len(boxes), edges)
    rows: list[list[Box]] = [[] for _ in range(max(ranks, default=-1) + 1)]
    for box, rank in zip(boxes, ranks):
        rows[rank].append(box)
    chains = [_chain(boxes[a], boxes[b], ranks[a], ranks[b], rows) for a, b in edges]
    for chain in chains:
        for upper, lower in itertools.pairwise(chain):
            upper.below.append(lower)
            lower.above.append(upper)
    width = _put(rows)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else reversed(rows):
            row.sort(key=lambda b: _middle(b.above if down else b.below, b))
        width = _put(rows)
    height = rows[-1][0].y + max(b.height for b in rows[-1]) if rows else 0.0
    return Placed(width, height, [_points(chain) for chain in chains])


def ranked(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The row of each box: the first that is below all that it needs."""
    ranks = [0] * count
    for a, b in edges:
        if not a < b:
            raise ValueError(f"an edge from box {a} to box {b}, which does not come later")
    needs: list[list[int]] = [[] for _ in range(count)]
    for a, b in edges:
        needs[b].append(a)
    for b in range(count):
        ranks[b] = max([ranks[a] + 1 for a in needs[b]], default=0)
    return ranks


def _chain(a: Box, b: Box, top: int, bottom: int, rows: list[list[Box]]) -> list[Box]:
    """The boxes that a line goes through: in rows between, ways; a very long one goes straight."""
    if bottom - top > LONGEST:
        return [a, b]
    ways = []
    for rank in range(top + 1, bottom):
        ways.append(Box(WAY, 0.0, is_way=True))
        rows[rank].append(ways[-1])
    return [a, *ways, b]


def _middle(neighbours: Sequence[Box], own: Box) -> float:
    return sum(b.centre for b in neighbours) / len(neighbours) if neighbours else own.centre


def _put(rows: Sequence[Sequence[Box]]) -> float:
    """Set the rows in the order that they have, each in the middle; the width of the widest."""
    widths = [sum(b.width for b in row) + sum(map(_gap, row, row[1:])) for row in rows]
    whole = max(widths, default=0.0)
    y = 0.0
    for row, width in zip(rows, widths):
        x = (whole - width) / 2
        tallest = max(b.height for b in row)
        for b, after in zip(row, [*row[1:], None]):
            b.x, b.y = x, y
            x += b.width + (_gap(b, after) if after is not None else 0.0)
            if b.is_way:
                b.height = tallest
        y += tallest + ROWS
    return whole


def _gap(a: Box, b: Box) -> float:
    """Between two boxes of a row; ways may be near each other."""
    return WAY / 2 if a.is_way and b.is_way else BETWEEN / 2 if a.is_way or b.is_way else BETWEEN


def _points(chain: Sequence[Box]) -> list[Point]:
    first, last = chain[0], chain[-1]
    out = [Point(first.centre, first.y + first.height)]
    for way in chain[1:-1]:
        out += [Point(way.centre, way.y), Point(way.centre, way.y + way.height)]
    return [*out, Point(last.centre, last.y)]
