"""How much work a step is: operations on numbers, and bytes that it touches."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from calque.core.backends import flops
from calque.core.dims import hint_of
from calque.core.jaxprs import subjaxprs
from calque.native.loops.tree import (
    Body,
    For,
    If,
    Recurrence,
    Statement,
    Store,
    acc_exprs,
    own_exprs,
)
from calque.native.lower.cost import WEIGHTLESS, primitive_weight, turns
from calque.native.lower.graph import Node
from calque.native.lower.sizes import Sizes
from calque.native.scalars.expr import Buffer, Expr, index_and_guard, item_size, walk

PRODUCTS: Final = frozenset(("matmul", "matmul_tiled", "conv", "conv_tiled"))


class Work(NamedTuple):
    """Operations (a product of matrices has two for each of its terms), and the same where an
    operation counts as the additions that it takes the time of."""

    flops: float
    additions: float


def work_of(nodes: Iterable[Node]) -> Work:
    """The work of these nodes."""
    each = [_of_node(n) for n in nodes]
    return Work(sum(w.flops for w in each), sum(w.additions for w in each))


def _of_node(n: Node) -> Work:
    if n.op in WEIGHTLESS or n.op in ("get", "size_value"):
        return Work(0.0, 0.0)
    size = _size(n)
    if n.op in PRODUCTS and n.args:
        geometry = n.params.get("geometry")
        depth = n.args[0].shape[-1] if geometry is None else geometry.depth
        terms = 2.0 * size * hint_of(depth)
        return Work(terms, terms)
    inner = sum(flops(j.eqns) for j in subjaxprs(n.params))
    if inner:
        total = float(inner) * hint_of(n.params.get("length") or 1)
        return Work(total, total)
    most = float(max([size, *map(_size, n.args)]))
    return Work(most, most * primitive_weight(n.op))


def _size(n: Node) -> float:
    return float(math.prod(hint_of(d) for d in n.shape))


class _Access(NamedTuple):
    buffer: Buffer
    place: tuple[Expr, ...]
    loops: Mapping[str, float]


def bytes_touched(body: Body, sizes: Sizes, nbytes: Mapping[Buffer, int]) -> float:
    """The bytes of arrays outside that a kernel reads or writes, no array more than whole."""
    elements: dict[tuple[Buffer, tuple[Expr, ...]], float] = {}
    for a in _accesses(body, sizes):
        if a.buffer.place == "arg":
            names = frozenset[str]().union(*[i.names for i in a.place])
            count = math.prod(n for name, n in a.loops.items() if name in names)
            key = (a.buffer, a.place)
            elements[key] = max(elements.get(key, 0.0), count)
    touched: dict[Buffer, float] = {}
    for (b, _), count in elements.items():
        touched[b] = touched.get(b, 0.0) + count * item_size(b.dtype)
    return sum(min(n, nbytes.get(b, n)) for b, n in touched.items())


def _accesses(body: Body, sizes: Sizes) -> Iterator[_Access]:
    todo: list[tuple[Statement, dict[str, float]]] = [(s, {}) for s in body]
    while todo:
        s, loops = todo.pop()
        exprs = list(own_exprs(s))
        if isinstance(s, For):
            loops = {**loops, s.name: turns(s.extent, sizes)}
            exprs += [e for a in s.accs for e in acc_exprs(a)]
            todo += [(x, loops) for x in s.body]
        elif isinstance(s, Recurrence):
            if s.var is not None:
                loops = {**loops, str(s.var.attr[0]): turns(s.var.attr[1], sizes)}
            exprs += [t.next for t in s.states]
            todo += [(x, loops) for x in (*s.test, *s.body)]
        elif isinstance(s, If):
            todo += [(x, loops) for x in (*s.then, *s.orelse)]
        elif isinstance(s, Store):
            yield _Access(s.buf, s.idx, loops)
        seen: set[Expr] = set()
        for root in exprs:
            for e in walk(root, seen):
                if e.op == "load":
                    yield _Access(e.attr, tuple(index_and_guard(e)[0]), loops)
