"""How the nodes of a straight piece of program are read: how often, and in which order, as far as
the graph shows it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from calque.core.dims import hint_of
from calque.native.lower.cost import LAYOUT, is_expression
from calque.native.lower.graph import Node
from calque.native.lower.reductions import FOLD_OF
from calque.native.lower.stages import MAX_PIECES
from calque.native.lower.table import elementwise

MANY: Final = 1 << 20  # bytes of an array for which it matters whether it is in memory
STRIDED: Final = 8  # windows for which those count that take steps along rows: vectors read rows


class Readings:
    """What reads the nodes of a piece.

    readers   how many distinct nodes read each node
    spread    what an expanding broadcast, a gather or a product reads more often than it has
              elements
    windows   how many windows overlap at an element
    steps     which part of a node is read in steps along rows, in all
    in_turn   stacks whose elements become one row in turn
    picked    what is stacked of many arrays and read by short reductions of that axis alone, each
              of whose terms is one of the arrays"""

    def __init__(self, order: Sequence[Node], results: Collection[Node]) -> None:
        self.order, self.results = order, results
        self.readers: dict[Node, int] = {}
        self.spread: set[Node] = set()
        self.windows: dict[Node, int] = {}
        self.steps: dict[Node, float] = {}
        self.in_turn: set[Node] = set()
        for n in order:
            for a in set(n.args):
                self.readers[a] = self.readers.get(a, 0) + 1
            self.look_at(n)
        self.picked = self.find_picked()

    def look_at(self, n: Node) -> None:
        """How a node reads its operands."""
        if n.op == "broadcast_in_dim":
            if n.args and expands(n) and not hoisted(n):
                self.spread.update(through_layout(n.args[0]))
        elif n.op == "gather":
            if expands(n):
                self.spread.update(through_layout(n.args[0]))
        elif n.op in ("matmul", "matmul_axes", "conv", "window_terms"):
            for a in n.args:
                self.spread.update(through_layout(a))
        elif n.op == "windows":
            overlap = overlapping(n)
            for a in through_layout(n.args[0]):
                self.windows[a] = max(self.windows.get(a, 0), overlap)
        elif n.op == "slice" and (n.params["strides"] or (1,))[-1] > 1:
            for a in through_layout(n.args[0]):
                self.steps[a] = self.steps.get(a, 0.0) + 1 / n.params["strides"][-1]
        elif n.op == "reshape" and is_in_turn(n.args[0], n.shape):
            self.in_turn.add(n.args[0])

    def rows_for(self, copies: Callable[[Node], bool]) -> set[Node]:
        """Many rows that are gathered for products alone, which copy them."""
        gathered: set[Node] = set()
        for n in self.order:
            moves = n.op in ("concatenate", "transpose") or elementwise(n)
            if n.op == "gather" or (moves and any([a in gathered for a in n.args])):
                gathered.add(n)
        if not gathered:
            return gathered
        rows: set[Node] = set()
        others = set(self.results)
        for n in reversed(self.order):
            copied = n.op == "matmul_tiled" and n.args[0] in gathered and copies(n)
            turned = n.op == "transpose" and n in rows and n not in others
            for k, a in enumerate(n.args):
                (rows if turned or (copied and k == 0) else others).add(a)
        return {n for n in rows - others if n in gathered and bytes_of(n) >= MANY}

    def find_picked(self) -> set[Node]:
        """What is stacked, and never asked for a place that is not known."""
        stacked = [n for n in self.order if n.op == "concatenate" and len(n.args) > MAX_PIECES]
        if not stacked:
            return set()
        readers: dict[Node, set[Node]] = {}
        for n in self.order:
            for a in n.args:
                readers.setdefault(a, set()).add(n)

        def picks(n: Node, axis: int) -> bool:
            if n.op in FOLD_OF:
                return is_expression(n) and n.params["axes"] == (axis,)
            alone = elementwise(n) and len(readers.get(n, ())) == 1 and n not in self.results
            return alone and all(picks(u, axis) for u in readers[n])

        return {
            n
            for n in stacked
            if n not in self.results
            and all(a.shape[n.params["dimension"]] == 1 for a in n.args)
            and all(picks(u, n.params["dimension"]) for u in readers.get(n, ()))
        }


def bytes_of(n: Node) -> int:
    """How long an array is."""
    return hint_of(n.aval.size) * n.aval.dtype.itemsize


def expands(n: Node) -> bool:
    """Are there more elements than the operand has?"""
    return hint_of(n.aval.size) > hint_of(n.args[0].aval.size)


def overlapping(n: Node) -> int:
    """How many windows read an element; more where they take steps along rows, but read most of
    them."""
    width, stride = hint_of(n.shape[-1]), n.params["stride"]
    along_rows = n.params["axis"] == n.aval.ndim - 2
    overlap = -(-width // stride)
    return overlap * STRIDED if along_rows and 1 < stride < 2 * width else overlap


def hoisted(n: Node) -> bool:
    """Is the operand of a broadcast computed outside the loops that repeat it? Yes when its
    dimensions come first."""
    dims = [d for k, d in enumerate(n.params["broadcast_dimensions"]) if n.args[0].shape[k] != 1]
    kept = [d for d in range(len(n.shape)) if n.shape[d] != 1]
    return dims == kept[: len(dims)]


def is_in_turn(x: Node, shape: Sequence[int]) -> bool:
    """Is this a stack along its last axis, which becomes part of the one before it?"""
    if x.op != "concatenate" or x.params["dimension"] != len(x.shape) - 1 or len(x.shape) < 2:
        return False
    return (
        bool(shape) and all(a.shape[-1] == 1 for a in x.args) and hint_of(shape[-1]) > len(x.args)
    )


def through_layout(n: Node) -> Iterable[Node]:
    """A node and what it is a view of."""
    yield n
    while n.op in LAYOUT and n.args:
        n = n.args[0]
        yield n
