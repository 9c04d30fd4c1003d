"""A program as a drawing: what it is given at the top, its steps below what they need, loops and
branches as boxes around theirs."""

from __future__ import annotations

import html
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from calque.core.notebooks import file_name
from calque.explaining.layout import Box, Placed, Point, place
from calque.native.lower.graph import Node
from calque.native.plan.steps import Call, Copy, Host, Repeat, Routine, Step, Switch
from calque.native.scalars.expr import Buffer, show
from calque.profiling.steps import KINDS, SHOWN, Facts

CHARACTER: Final = 6.65  # width of a letter
LINE: Final = 15.0
MARGIN: Final = 9.0
MOST_OPERATIONS: Final = 8  # that a box lists
MOST_GIVEN: Final = 24  # arguments that have boxes of their own
LONGEST: Final = 46  # letters of a line
_COLOURS: Final = {
    "given": "#8a8a8a",
    "kernel": "#3f7fd1",
    "routine": "#3a8f6f",
    "host call": "#d0453b",
    "copy": "#b08a30",
    "block": "#b0609c",
    "result": "#8a8a8a",
}
_HEAD: Final = ' class="head"'
Key = tuple[str, int]
Marks = Callable[[Any], set[str]]


@dataclass
class Item:
    """One box of the drawing: its lines, what it reads and writes, and perhaps what is in it."""

    kind: str
    lines: list[str]
    reads: frozenset[Buffer] = frozenset()
    writes: frozenset[Buffer] = frozenset()
    marks: frozenset[str] = frozenset()
    key: Key | None = None
    parts: list[Drawing] = field(default_factory=list)

    def box(self) -> Box:
        width = max([len(x) for x in self.lines], default=0) * CHARACTER
        height = LINE * len(self.lines)
        if self.parts:
            inner = sum(p.width for p in self.parts) + MARGIN * (len(self.parts) - 1)
            width, height = max(width, inner), height + MARGIN + max(p.height for p in self.parts)
        return Box(width + 2 * MARGIN, height + 1.5 * MARGIN)


class Drawing:
    """Items with their places, ready to be written."""

    def __init__(self, items: Sequence[Item], known: Mapping[Buffer, str]) -> None:
        self.items, self.known = items, known
        self.boxes = [i.box() for i in items]
        self.edges = list(_edges(items))
        self.placed: Placed = place(self.boxes, [(e.start, e.end) for e in self.edges])
        self.width, self.height = self.placed.width, self.placed.height

    def svg(self) -> str:
        """The drawing as an element of a page."""
        width, height = self.width + 2 * MARGIN, self.height + 2 * MARGIN
        return (
            f'<svg class="graph" width="{width:.0f}" height="{height:.0f}"'
            f' viewBox="{-MARGIN} {-MARGIN} {width:.0f} {height:.0f}">{self.content()}</svg>'
        )

    def content(self) -> str:
        out = []
        for e, points in zip(self.edges, self.placed.lines):
            about = ", ".join(sorted(self.known.get(b, b.name) for b in e.buffers))
            title = f"<title>{_text(about)}</title>"
            out.append(f'<path class="edge" d="{_curve(points)}">{title}</path>')
        out += [self._item(i, b) for i, b in zip(self.items, self.boxes)]
        return "".join(out)

    def _item(self, i: Item, b: Box) -> str:
        colour = _COLOURS[i.kind]
        mark = f' data-line="{" ".join(sorted(i.marks))}"' if i.marks else ""
        key = f' data-step="{i.key[0]}-{i.key[1]}"' if i.key else ""
        dash = ' stroke-dasharray="5 4"' if i.parts else ""
        rows = "".join(
            f'<text x="{b.x + MARGIN:.1f}" y="{b.y + MARGIN + LINE * (k + 0.7):.1f}"'
            f"{_HEAD if k == 0 else ''}>{_text(x)}</text>"
            for k, x in enumerate(i.lines)
        )
        inner, x = "", b.x + MARGIN
        for part in i.parts:
            y = b.y + MARGIN + LINE * len(i.lines)
            inner += f'<g transform="translate({x:.1f} {y:.1f})">{part.content()}</g>'
            x += part.width + MARGIN
        return (
            f'<g class="box"{mark}{key}><rect x="{b.x:.1f}" y="{b.y:.1f}" width="{b.width:.1f}"'
            f' height="{b.height:.1f}" rx="6" stroke="{colour}" fill="{colour}"'
            f' fill-opacity="{0.04 if i.parts else 0.13}"{dash}/>{rows}</g>{inner}'
        )


class Edge(NamedTuple):
    """Memory that one item writes and a later one reads."""

    start: int
    end: int
    buffers: frozenset[Buffer]


def _edges(items: Sequence[Item]) -> Iterator[Edge]:
    writer: dict[Buffer, int] = {}
    for k, i in enumerate(items):
        found: dict[int, set[Buffer]] = {}
        for b in i.reads:
            if b in writer:
                found.setdefault(writer[b], set()).add(b)
        for start in sorted(found):
            yield Edge(start, k, frozenset(found[start]))
        writer |= dict.fromkeys(i.writes, k)


def draw(
    planned: Any,
    facts: Mapping[Key, Facts],
    notes: Mapping[Key, str],
    names: Sequence[str],
    marks: Marks,
) -> Drawing:
    """The drawing of a planned program: `notes` stand below the steps, `names` are those of its
    arguments, `marks` the lines of the source that a place belongs to."""
    return _Drawer(planned, facts, notes, marks).whole(names)


class _Drawer:
    def __init__(
        self, planned: Any, facts: Mapping[Key, Facts], notes: Mapping[Key, str], marks: Marks
    ) -> None:
        self.planned, self.facts, self.notes, self.marks = planned, facts, notes, marks
        self.counts: dict[str, int] = {}
        self.known = {b: f"{b.name}: {_type(b)}" for b in planned.planner.bytes}

    def whole(self, names: Sequence[str]) -> Drawing:
        p = self.planned
        given = []
        for k, (b, aval) in enumerate(zip(p.inputs, p.in_avals)):
            name = names[k] if k < len(names) else b.name
            self.known[b] = f"{name}: {aval.str_short()}"
            given.append(Item("given", [name, aval.str_short()], writes=frozenset([b])))
        steps = self.items(p.steps)
        read = frozenset().union(*[i.reads for i in steps], [b for b, _ in p.outputs])
        given = together([i for i in given if i.writes & read])
        results = [
            Item("result", [f"result {k}", aval.str_short()], reads=frozenset([p.homes.get(b, b)]))
            for k, (b, aval) in enumerate(p.outputs)
        ]
        return Drawing([*given, *steps, *results], self.known)

    def items(self, steps: Sequence[Step]) -> list[Item]:
        """One for each step that does something worth a box."""
        return [i for s in steps if (i := self.item(s)) is not None]

    def item(self, s: Step) -> Item | None:
        match s:
            case Repeat():
                return self.repeat(s)
            case Switch():
                parts = [Drawing(self.items(c), self.known) for c in s.cases]
                index = s.index.name if isinstance(s.index, Buffer) else show(s.index)
                head = f"one of {len(parts)}, by {index}"
                return Item("block", [head], s.reads(), s.writes(), parts=parts)
            case Call() | Routine() | Copy() | Host():
                return self.step(s)
        return None

    def repeat(self, s: Repeat) -> Item:
        parts = [Drawing(self.items(x), self.known) for x in (s.test, s.body) if x]
        how = "repeat while the first says so"
        if s.count is not None:
            sizes = self.planned.planner.sizes.hinted
            known = s.count.names <= sizes.values.keys()
            how = f"repeat {sizes.value(s.count):,} times" if known else f"repeat {show(s.count)}"
        return Item("block", [how], s.reads(), s.writes(), parts=parts)

    def step(self, s: Any) -> Item:
        kind = KINDS[type(s)]
        number = self.counts.get(kind, 0)
        self.counts[kind] = number + 1
        facts = self.facts[kind, number]
        lines = [clipped(facts.name or facts.kind)]
        lines += [clipped(x) for x in operations(facts.nodes)]
        if facts.sources:
            lines.append(f"{file_name(facts.sources[0].file)}:{facts.sources[0].line}")
        if (kind, number) in self.notes:
            lines.append(self.notes[kind, number])
        marks = frozenset().union(*[self.marks(x) for x in facts.sources])
        return Item(facts.kind, lines, s.reads(), s.writes(), marks, (kind, number))


def operations(nodes: Sequence[Node]) -> list[str]:
    """What is computed, a line for each operation with the type of what it gives."""
    shown = [
        f"  {SHOWN.get(n.op, n.op)} {n.aval.str_short()}"
        for n in nodes
        if n.aval is not None and n.op != "get"
    ]
    if len(shown) > MOST_OPERATIONS:
        more = len(shown) - MOST_OPERATIONS + 1
        shown = [*shown[: MOST_OPERATIONS - 1], f"  and {more} more"]
    return shown


def together(given: list[Item]) -> list[Item]:
    """Arguments, those beyond the first few as one box."""
    if len(given) <= MOST_GIVEN:
        return given
    rest = given[MOST_GIVEN - 1 :]
    writes = frozenset[Buffer]().union(*[i.writes for i in rest])
    return [*given[: MOST_GIVEN - 1], Item("given", [f"{len(rest)} more arguments"], writes=writes)]


def clipped(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _type(b: Buffer) -> str:
    return f"{b.dtype}[{','.join(map(show, b.shape))}]"


def _text(x: str) -> str:
    return html.escape(x)


def _curve(points: Sequence[Point]) -> str:
    """A line through the points that leaves and arrives from above."""
    out = [f"M{points[0].x:.1f} {points[0].y:.1f}"]
    for a, b in itertools.pairwise(points):
        if a.x == b.x:
            out.append(f"L{b.x:.1f} {b.y:.1f}")
        else:
            half = (a.y + b.y) / 2
            out.append(f"C{a.x:.1f} {half:.1f} {b.x:.1f} {half:.1f} {b.x:.1f} {b.y:.1f}")
    return "".join(out)
