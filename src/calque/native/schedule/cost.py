"""What a nest costs when one of its loops is a vector: a count of instructions, expressions counted
where they are hoisted to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from calque.native.loops.tree import Acc, For, If, Let, Loop, Statement, Store, acc_exprs, own_exprs
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import Buffer, Expr, index_and_guard, linear, stride, walk
from calque.native.scalars.weights import HEAVY

UNKNOWN: Final = 128.0  # turns of a loop of which nothing is known
GATHER: Final = 0.7  # a strided lane, in instructions
SCATTER: Final = 1.5
FOLD: Final = 14.0  # a vector of partial sums made one number
BESIDE: Final = 1.6  # a sum kept in memory, lane by lane, against one in a register
LETTING: Final = 24.0  # what folding such sums costs per vector
_FREE: Final = frozenset(("var", "ref", "const", "param"))

Loops = tuple[tuple[str, float], ...]  # enclosing loops, outermost first: name and turns


class Steps:
    """How far memory accesses move when a loop variable grows by one; addresses are worked out
    once."""

    def __init__(self) -> None:
        self.places: dict[tuple[Buffer, tuple[Expr, ...]], Expr] = {}

    def __call__(self, buf: Buffer, idx: tuple[Expr, ...], name: str) -> int | None:
        if not any(name in i.names for i in idx):
            return 0
        at = self.places.get((buf, idx))
        if at is None:
            at = self.places[buf, idx] = linear(buf.shape, idx)
        return stride(at, name)


class Cost:
    """Counts for one choice: `vector` is the name of the loop that is a vector, or None: every
    innermost loop is one."""

    def __init__(self, sizes: Sizes, lanes: int, vector: str | None, steps: Steps) -> None:
        self.sizes, self.lanes, self.vector, self.steps = sizes, lanes, vector, steps

    def turns(self, e: Expr) -> float:
        hi = self.sizes.hinted.interval(e)[1]
        return float(hi) if hi < 1 << 40 else UNKNOWN

    def body(
        self, body: Sequence[Statement], loops: Loops, vector: str | None, seen: set[Expr]
    ) -> float:
        total = 0.0
        for s in body:
            total += self.statement(s, loops, vector, seen)
        return total

    def statement(self, s: Statement, loops: Loops, vector: str | None, seen: set[Expr]) -> float:
        if isinstance(s, For):
            return self.loop(s, loops, vector, seen)
        if isinstance(s, Loop):
            inner = (
                *loops,
                (s.var.attr[0], self.turns(s.var.attr[1])) if s.var is not None else ("", UNKNOWN),
            )
            exprs = [st.next for st in s.states] + ([s.cond] if s.cond is not None else [])
            return self.exprs(exprs, inner, vector, seen) + self.body(
                (*s.test, *s.body), inner, vector, seen
            )
        if isinstance(s, Store):
            return self.exprs(own_exprs(s), loops, vector, seen) + self.access(
                s.buf, s.idx, loops, vector, SCATTER
            )
        if isinstance(s, (Let, If)):
            return self.exprs(own_exprs(s), loops, vector, seen)
        return 0.0

    def loop(self, f: For, loops: Loops, vector: str | None, seen: set[Expr]) -> float:
        inner = (*loops, (f.name, self.turns(f.extent)))
        leaf = not any(isinstance(s, For) for s in f.body)
        if (self.vector is None and vector is None and leaf) or f.name == self.vector:
            vector = f.name
        mine = set(seen)  # a sibling loop does its own work again
        total = self.body(f.body, inner, vector, mine)
        for a in f.accs:
            once = self.exprs(acc_exprs(a), inner, vector, mine) + self.times(inner, vector)
            ordered = isinstance(a, Acc) and a.ordered and a.order == "blocked"
            if vector == f.name:
                total += once + FOLD * self.times(loops, None)
            elif ordered and vector is not None:
                total += once * BESIDE + LETTING * self.times(loops, vector)
            else:
                total += once
        return total

    def times(self, loops: Loops, vector: str | None) -> float:
        """How often something in these loops is done."""
        n = 1.0
        for name, turns in loops:
            n *= max(turns / self.lanes, 1.0) if name == vector else turns
        return n

    def exprs(
        self, roots: Sequence[Expr], loops: Loops, vector: str | None, seen: set[Expr]
    ) -> float:
        total = 0.0
        for root in roots:
            for e in walk(root, seen):
                if e.op in _FREE or (e.dtype == "i64" and e.index):
                    continue
                at = loops[: self.depth(e, loops)]
                if e.op == "load":
                    total += self.access(e.attr, index_and_guard(e)[0], at, vector, GATHER)
                else:
                    total += HEAVY.get(e.op, 1) * self.times(at, vector)
        return total

    def depth(self, e: Expr, loops: Loops) -> int:
        """How many of the loops an expression stands in: up to the last whose variable it depends
        on, or all when it reads what changes."""
        known = {name: k + 1 for k, (name, _) in enumerate(loops)}
        depth = 0
        for n in e.names:
            k = known.get(n)
            if k is not None:
                depth = max(depth, k)
            elif n not in self.sizes.values:  # a state, an accumulator: what loops change
                depth = len(loops)
        return depth

    def access(
        self, buf: Buffer, idx: Sequence[Expr], loops: Loops, vector: str | None, apart: float
    ) -> float:
        n = self.times(loops, vector)
        if vector is None or self.steps(buf, tuple(idx), vector) in (0, 1):
            return n
        return n * max(apart * min(self.lanes, self.turns_of(loops, vector)), 1.0)

    @staticmethod
    def turns_of(loops: Loops, name: str) -> float:
        return next((t for n, t in loops if n == name), 1.0)


def cost(s: For, sizes: Sizes, lanes: int, vector: str | None, steps: Steps) -> float:
    """The cost of a nest with `vector` as its vector loop; None: each innermost loop."""
    return Cost(sizes, lanes, vector, steps).statement(s, (), None, set())
