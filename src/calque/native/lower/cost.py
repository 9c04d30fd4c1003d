"""What things cost: the one model that every decision asks.

weight        of operations, equations and expressions, in additions
nest_cost     of a nest of which one loop is a vector: a count of instructions, expressions
              counted where they are hoisted to
nanoseconds   of statements on one core
code_size     of statements and expressions, in distinct nodes
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Final

from calque.core.dims import hint_of, surely_at_most
from calque.machine.caches import memo
from calque.native.loops.moves import is_pair
from calque.native.loops.tree import (
    Acc,
    Accumulator,
    Body,
    For,
    If,
    Let,
    Recurrence,
    Statement,
    Store,
    acc_exprs,
    nodes,
    own_exprs,
    statements,
)
from calque.native.lower.dot import small as is_small_product
from calque.native.lower.graph import Node
from calque.native.lower.reductions import FOLD_OF
from calque.native.lower.reductions import small as is_small_reduction
from calque.native.lower.sizes import BAKED, Sizes
from calque.native.scalars.expr import LANE, Buffer, Expr, index_and_guard, linear, stride, walk
from calque.native.scalars.vmath import OF_COMPLEX
from calque.native.scalars.vmath.power_roots import FUNCTIONS

UNKNOWN_TURNS: Final = 128.0  # of a loop of which nothing is known
_UNBOUNDED: Final = 1 << 40

# --- operations -----------------------------------------------------------------------------------

_WEIGHTS: Final = {
    **dict.fromkeys(("exp", "drawn_exp", "exp2", "sqrt", "rsqrt", "cbrt", "div", "sdiv", "srem",
    "udiv", "urem"), 10),
    **dict.fromkeys(("sin", "cos", "log", "log1p", "expm1", "tanh", "logistic", "log2",
    "drawn_log", "drawn_log1p", "drawn_erf"), 20),
    **dict.fromkeys(FUNCTIONS, 10),
    **dict.fromkeys(("tan", "atan2", "pow", "drawn_tan", "drawn_pow", "erf",
    "erf_inv", "normal_erf_inv", "lgamma",
    "digamma", "asin", "acos",
    "atan", "sinh", "cosh"), 40),
    **dict.fromkeys(("asinh", "acosh", "atanh", "erfc", "igamma", "igammac",
    "bessel_i0e", "bessel_i1e"), 60),
    **dict.fromkeys(OF_COMPLEX, 40),
}  # fmt: skip
# Primitives that are no operations of the loop language, or more than the one of their name.
_PRIMITIVE_WEIGHTS: Final = {
    "integer_pow": 4,
    "rem": 10,
    "threefry2x32": 100,
    "erf_inv": 40,
    "normal_erf_inv": 40,
    "clamp": 2,
    "multiply_add": 2,
    "select_n": 1,
    "gather": 4,
}
# Views: what only says which element is meant.
LAYOUT: Final = frozenset(
    [
        "broadcast_in_dim",
        "reshape",
        "transpose",
        "squeeze",
        "expand_dims",
        "slice",
        "rev",
        "dynamic_slice",
    ]
)
# What costs nothing for an element: views, and what says where one is.
WEIGHTLESS: Final = LAYOUT | frozenset(
    ["iota", "literal", "pad", "concatenate", "get", "input", "const", "copy", "copy_p"]
)


def operation_weight(op: str) -> int:
    """The weight of an operation on scalars."""
    return _WEIGHTS.get(op, 1)


def primitive_weight(name: str) -> int:
    """The weight of an equation for one element of its result."""
    if name in WEIGHTLESS:
        return 0
    return _WEIGHTS.get(name) or _PRIMITIVE_WEIGHTS.get(name, 1)


# --- expressions ----------------------------------------------------------------------------------

_NAMES: Final = frozenset(("var", "ref", "const", "param"))


def operations(exprs: Iterable[Expr], seen: set[Expr]) -> list[Expr]:
    """The nodes that cost anything: not names and constants, nor the arithmetic of places, which
    addresses and loop counters do by the way."""
    out = []
    for root in exprs:
        todo = [root]
        while todo:
            e = todo.pop()
            # below an index there is nothing but indices
            if e not in seen and not e.index:
                seen.add(e)
                todo += e.args
                if e.op not in _NAMES:
                    out.append(e)
    return out


def weight(exprs: Iterable[Expr]) -> int:
    """The weight of expressions, each distinct operation once."""
    return sum([_WEIGHTS.get(e.op, 1) for e in operations(exprs, set())])


def body_weight(body: Body) -> int:
    """The weight of one turn of everything in a body."""
    return weight(e for s in statements(body) for e in own_exprs(s))


def code_size(exprs: Iterable[Expr]) -> int:
    """Distinct nodes of expressions: what there is to compile."""
    seen: set[Expr] = set()
    return sum(1 for root in exprs for _ in walk(root, seen))


def body_size(body: Body) -> int:
    """Distinct nodes of a body."""
    return sum(1 for _ in nodes(body))


# --- nodes of a graph -----------------------------------------------------------------------------


def is_expression(n: Node) -> bool:
    """Is a reduction, a mark or a product so small that it is an expression rather than loops?"""
    if n.op == "mark":
        return surely_at_most(n.args[1].aval.size, BAKED)
    return is_small_reduction(n) if n.op in FOLD_OF else n.op == "matmul" and is_small_product(n)


def element_weight(n: Node, operands: int) -> int:
    """The weight of one element of a node, its operands weighing so much."""
    if n.op in WEIGHTLESS:
        return operands
    if is_expression(n):
        if n.op == "mark":
            terms = n.args[1].aval.size
        elif n.op == "matmul":
            terms = n.args[0].shape[-1]
        else:
            terms = n.args[0].shape[n.params["axes"][0]]
        return (operands + 1) * hint_of(terms)
    if n.op == "matmul_axes":
        x, (_, _, contracted) = n.args[0], n.params["left"]
        return (operands + 1) * prod([x.shape[d] for d in contracted])
    return operands + primitive_weight(n.op)


# --- nests with a vector --------------------------------------------------------------------------

_GATHER: Final = 0.7  # a strided lane, in instructions for vectors of many lanes
_MANY: Final = 16  # lanes; vectors of fewer are done sooner, while a strided lane takes as long
_SCATTER: Final = 1.5
_SHUFFLED: Final = 1.5  # what is read in one piece, but for the order
_SQUARE: Final = 4.5  # a row for each lane, turned in registers: shuffles and the store of a column
_FOLD: Final = 14.0  # a vector of partial sums made one number
_NEXT_FOLD: Final = 5.0  # ... while those of other rows are
_NEXT_LARGEST: Final = 20.0  # ... the largest one, looking for NaN at each step
_BESIDE: Final = 1.6  # a sum kept in memory, lane by lane, against one in a register
_LETTING: Final = 24.0  # what folding such sums costs per vector

Index = tuple[Expr, ...]
_Around = tuple[tuple[str, float], ...]  # enclosing loops, outermost first: name and turns


def turns(extent: Expr, sizes: Sizes) -> float:
    """How often a loop goes round, as far as can be told."""
    most = sizes.hinted.interval(extent)[1]
    return float(most) if most < _UNBOUNDED else UNKNOWN_TURNS


@memo("strides of loops", 1 << 12)
def step_along(shape: Index, idx: Index, name: str) -> int | None:
    """How far a memory access moves when a loop variable grows by one, if that is a constant."""
    moved = 0
    row: int | None = 1  # how far apart the elements of this dimension are
    for d, i in zip(reversed(shape), reversed(idx)):
        if name in i.names:
            step = stride(i, name)
            if step is None or row is None:
                # only the whole address can tell: quotient and remainder of a loop variable, rows
                # of a length that is not known
                return stride(linear(shape, idx), name)
            moved += step * row
        row = row * d.attr if row is not None and d.op == "const" else None
    return moved


class _NestCost:
    """Counts for one choice: `vector` is the name of the loop that is a vector, or None: every
    innermost loop is one."""

    def __init__(self, sizes: Sizes, lanes: int, vector: str | None, rows: bool) -> None:
        self.sizes, self.lanes, self.vector = sizes, lanes, vector
        self.rows = rows  # are there many rows beside each other, or one after the other?
        self.summing: str | None = None  # the loop of sums in whose order something is read

    def body(
        self, body: Sequence[Statement], loops: _Around, vector: str | None, seen: set[Expr]
    ) -> float:
        total = 0.0
        for s in body:
            total += self.statement(s, loops, vector, seen)
        return total

    def statement(self, s: Statement, loops: _Around, vector: str | None, seen: set[Expr]) -> float:
        if isinstance(s, For):
            return self.loop(s, loops, vector, seen)
        if isinstance(s, Recurrence):
            own = ("", UNKNOWN_TURNS)
            if s.var is not None:
                own = (s.var.attr[0], turns(s.var.attr[1], self.sizes))
            inner = (*loops, own)
            exprs = [st.next for st in s.states] + ([s.cond] if s.cond is not None else [])
            return self.exprs(exprs, inner, vector, seen) + self.body(
                (*s.test, *s.body), inner, vector, seen
            )
        if isinstance(s, Store):
            if vector is not None and is_turned(s, vector):
                return _SQUARE * self.times(loops, vector) + self.times(loops[:-1], None)
            return self.exprs(own_exprs(s), loops, vector, seen) + self.access(
                s.buf, s.idx, loops, vector, _SCATTER
            )
        if isinstance(s, (Let, If)):
            return self.exprs(own_exprs(s), loops, vector, seen)
        return 0.0

    def loop(self, f: For, loops: _Around, vector: str | None, seen: set[Expr]) -> float:
        inner = (*loops, (f.name, turns(f.extent, self.sizes)))
        leaf = not any(isinstance(s, For) for s in f.body)
        leaf = leaf and not (self.rows and sums_in_order(f))  # which is no vector
        if (self.vector is None and vector is None and leaf) or f.name == self.vector:
            vector = f.name
        mine = set(seen)  # a sibling loop does its own work again
        total = self.body(f.body, inner, vector, mine)
        self.summing = f.name if self.rows and sums_in_order(f) else None
        for a in f.accs:
            once = self.exprs(acc_exprs(a), inner, vector, mine) + self.times(inner, vector)
            ordered = isinstance(a, Acc) and a.ordered and a.order == "blocked"
            if vector == f.name:
                total += once + self.fold_of(a) * self.times(loops, None)
            elif ordered and vector is not None:
                total += once * _BESIDE + _LETTING * self.times(loops, vector)
            else:
                total += once
        return total

    def fold_of(self, a: Accumulator) -> float:
        """What making one number of a vector of partial results costs."""
        if not self.rows:
            return _FOLD
        largest = isinstance(a, Acc) and a.op in ("max", "min") and a.value.dtype in ("f32", "f64")
        return _NEXT_LARGEST if largest else _NEXT_FOLD

    def times(self, loops: _Around, vector: str | None) -> float:
        """How often something in these loops is done."""
        n = 1.0
        for name, count in loops:
            n *= max(count / self.lanes, 1.0) if name == vector else count
        return n

    def exprs(
        self, roots: Sequence[Expr], loops: _Around, vector: str | None, seen: set[Expr]
    ) -> float:
        total = 0.0
        depths = {name: k + 1 for k, (name, _) in enumerate(loops)}
        for e in operations(roots, seen):
            at = loops[: self.depth(e, depths, len(loops))]
            if e.op == "load":
                total += self.access(e.attr, index_and_guard(e)[0], at, vector, _GATHER)
            else:
                total += _WEIGHTS.get(e.op, 1) * self.times(at, vector)
        return total

    def depth(self, e: Expr, depths: dict[str, int], every: int) -> int:
        """How many of the loops an expression stands in: up to the last whose variable it depends
        on, or all when it reads what changes."""
        depth = 0
        for n in e.names:
            k = depths.get(self.vector or "" if n == LANE else n)
            if k is not None:
                depth = max(depth, k)
            elif n not in self.sizes.values:  # a state, an accumulator: what loops change
                return every
        return depth

    def access(
        self, buf: Buffer, idx: tuple[Expr, ...], loops: _Around, vector: str | None, apart: float
    ) -> float:
        n = self.times(loops, vector)
        step = step_along(buf.shape, idx, vector) if vector is not None else 0
        if step in (0, 1):
            return n
        if self.summing is not None and step_along(buf.shape, idx, self.summing) == 1:
            return n * (_SQUARE + 1)
        if step == -1 or (step == 2 and is_pair(buf, idx)):  # one wide read, and shuffles
            return n * _SHUFFLED
        count = next((t for name, t in loops if name == vector), 1.0)
        short = max(_MANY / self.lanes, 1.0) if self.lanes > 1 else 1.0
        return n * max(short * apart * min(self.lanes, count), 1.0)


def sums_in_order(f: For) -> bool:
    """A loop of nothing but sums, each in the order of the loop."""
    ordered = all(isinstance(a, Acc) and a.order == "sequential" for a in f.accs)
    return f.kind == "serial" and not f.body and ordered


def is_turned(s: Store, vector: str) -> bool:
    """Does it copy an element of a row in memory into the lanes, or back?"""
    if s.value.op != "load" or {s.buf.place, s.value.attr.place} != {"lane", "arg"}:
        return False
    buf, idx = (s.buf, s.idx) if s.buf.place == "arg" else (s.value.attr, s.value.args)
    return step_along(buf.shape, idx, vector) not in (0, 1)


def nest_cost(nest: For, sizes: Sizes, lanes: int, vector: str | None, rows: bool = False) -> float:
    """The cost of a nest with `vector` as its vector loop; None: each innermost loop. With `rows`
    there are many rows, which are folded side by side, and squares of which are turned."""
    return _NestCost(sizes, lanes, vector, rows).statement(nest, (), None, set())


# --- time -----------------------------------------------------------------------------------------

_NS: Final = 0.02  # of an addition, in a vector


def nanoseconds(body: Body, sizes: Sizes) -> float:
    """A guess of the time that statements take on one core."""
    total = 0.0
    todo: list[tuple[Statement, float]] = [(s, 1.0) for s in body]
    while todo:
        s, times = todo.pop()
        if isinstance(s, For):
            times *= turns(s.extent, sizes)
            total += times * sum(_once(acc_exprs(a)) for a in s.accs)
            todo += [(x, times) for x in s.body]
        elif isinstance(s, Recurrence):
            times *= turns(s.var.attr[1], sizes) if s.var is not None else UNKNOWN_TURNS
            total += times * _once([t.next for t in s.states])
            todo += [(x, times) for x in (*s.test, *s.body)]
        else:
            total += times * _once(own_exprs(s))
            if isinstance(s, If):
                todo += [(x, times) for x in (*s.then, *s.orelse)]
    return total


def _once(exprs: Iterable[Expr]) -> float:
    return _NS * (weight(exprs) + 1)
