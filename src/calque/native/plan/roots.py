"""Which nodes get a buffer, and until when they are needed.

A value used twice is computed twice when that is cheap; a value that a broadcast or a gather would
compute many times, or that something reads from memory, is stored. Whether a stored value really
reaches memory is decided later, when loops are shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from calque.core.dims import hint_of, surely_equal
from calque.native.lower.cost import element_weight, is_expression
from calque.native.lower.graph import Node
from calque.native.lower.reductions import FOLD_OF
from calque.native.lower.stages import MAKERS, MAX_PIECES
from calque.native.schedule.fuse import CAP

LAYOUT: Final = frozenset(
    [
        "reshape",
        "transpose",
        "squeeze",
        "expand_dims",
        "slice",
        "rev",
        "dynamic_slice",
        "broadcast_in_dim",
    ]
)
PRODUCTS: Final = frozenset(("matmul_tiled", "conv_tiled"))
DEAR: Final = 8  # recomputing less than this is cheaper than storing it
LONGEST: Final = CAP // 3  # an expression heavier than this is cut


class Roots:
    """The nodes that are stored, and for each the position of the last root (or the end) that reads
    it."""

    def __init__(
        self,
        order: Sequence[Node],
        outputs: Iterable[Node],
        in_memory: Callable[[Node], bool],
        barrier: Callable[[Node], bool],
    ) -> None:
        self.order = order
        self.in_memory = in_memory
        self.barrier = barrier
        self.stored: set[Node] = set()
        self.spread = set(self.find_spread())
        self.choose(set(outputs))
        self.last: dict[Node, int] = {}
        self.find_last(outputs)

    def choose(self, outputs: set[Node]) -> None:
        """Walk the program once, with the cost of every unstored value."""
        cost: dict[Node, int] = {}
        readers = self.readers()
        stored = self.stored
        for n in self.order:
            if self.in_memory(n):
                cost[n] = 0
                continue
            if n.op in ("get", "literal", "input", "const"):
                cost[n] = 0
                continue
            if self.barrier(n):
                stored.update(in_memory_for(n, a, cost) for a in n.args if cost.get(a, 0) > 0)
                cost[n] = 0
                if n.aval is not None:
                    stored.add(n)
                continue
            c = element_weight(n, sum([cost.get(a, 0) for a in set(n.args)]))
            root = n in outputs or (n.op in MAKERS and not is_expression(n)) or c > LONGEST
            if (
                not root
                and n in self.spread
                and n.op in FOLD_OF
                and n.args[0].op == "reduce_chunks"
            ):
                root = True  # of a very long axis: once, not once for each of its elements
            if not root and c >= DEAR and (readers.get(n, 0) > 1 or n in self.spread):
                root = True
            if (
                not root
                and n.op == "concatenate"
                and len(n.args) > MAX_PIECES
                and (hint_of(n.aval.size) > 64 or c >= DEAR)
            ):
                root = True
            if root:
                stored.add(n)
            cost[n] = 0 if root else c
            if n.op in ("matmul", "conv") and n in stored:
                stored.update(a for a in n.args if cost.get(a, 0) > 0)
        # reading a stored value costs nothing more: what was counted before it was stored is close
        # enough

    def readers(self) -> dict[Node, int]:
        """How many distinct nodes read each node, seeing through single-use layout operations."""
        out: dict[Node, int] = {}
        for n in self.order:
            for a in set(n.args):
                out[a] = out.get(a, 0) + 1
        return out

    def find_spread(self) -> Iterable[Node]:
        """Operands that an expanding broadcast, a gather or a product reads more often than they
        have elements."""
        for n in self.order:
            if (
                n.op == "broadcast_in_dim"
                and n.args
                and hint_of(n.aval.size) > hint_of(n.args[0].aval.size)
            ):
                if not hoisted(n):
                    yield from through_layout(n.args[0])
            elif n.op == "gather" and hint_of(n.aval.size) > hint_of(n.args[0].aval.size):
                yield from through_layout(n.args[0])
            elif n.op in ("matmul", "conv", "window_terms"):
                for a in n.args:
                    yield from through_layout(a)

    def find_last(self, outputs: Iterable[Node]) -> None:
        """Which stored values each root reads, through the expressions in between."""
        end = len(self.order)
        self.below: dict[Node, frozenset[Node]] = {}
        for i, n in enumerate(self.order):
            below = self.reads(n)
            if n in self.stored or self.barrier(n):
                for b in below:
                    self.last[b] = i
            self.below[n] = below
        for o in outputs:
            self.last[o] = end
            if o not in self.stored:
                for b in self.below.get(o, ()):
                    self.last[b] = end
        self.at = {n: i for i, n in enumerate(self.order)}

    def reads(self, n: Node) -> frozenset[Node]:
        """The stored values that making `n` reads."""
        out: frozenset[Node] = frozenset()
        for a in n.args:
            out |= self.direct(a)
        return out

    def direct(self, a: Node) -> frozenset[Node]:
        """The stored values that reading `a` reads."""
        if (
            a in self.stored
            or self.in_memory(a)
            or a not in self.below
            or a.op in ("get", "input", "const")
        ):
            return frozenset((a,))
        return self.below[a]

    def replaceable(self, n: Node) -> bool:
        """May an update be written over its operand? Not when what is written is computed from
        other places of it."""
        x = n.args[0]
        if not any(x in self.direct(a) for a in n.args[1:]):
            return True
        if n.op == "mark":
            return False
        updates = n.args[1] if n.op == "dynamic_update_slice" else n.args[2]
        return surely_equal(updates.aval.size, 1)


def in_memory_for(n: Node, a: Node, cost: dict[Node, int]) -> Node:
    """What is stored so that `n` can read its operand `a`: products read a transposed matrix where
    it stands."""
    while n.op in PRODUCTS and a.op in ("transpose", "reshape") and cost.get(a.args[0], 0) > 0:
        a = a.args[0]
    return a


def hoisted(n: Node) -> bool:
    """Is the operand of a broadcast computed outside the loops that repeat it? Yes when its
    dimensions come first."""
    dims = [d for k, d in enumerate(n.params["broadcast_dimensions"]) if n.args[0].shape[k] != 1]
    kept = [d for d in range(len(n.shape)) if n.shape[d] != 1]
    return dims == kept[: len(dims)]


def through_layout(n: Node) -> Iterable[Node]:
    """A node and what it is a view of."""
    yield n
    while n.op in LAYOUT and n.args:
        n = n.args[0]
        yield n
