"""Does any element hold? A cell of memory that is set where one does: the test stands in the loop
that makes the elements.

A reduction gives its result when its loop ends, so it cannot share the loop of an array that is
written piece by piece, nor one that threads share. A mark is a store of True under a guard: every
loop may do it, in any order, any number of times.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Final

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.dims import hint_of, product, surely_at_most
from calque.native.lower.cost import code_size
from calque.native.lower.graph import EXPANSIONS, GraphBuilder, Node
from calque.native.lower.reductions import expand_reduce, reshape
from calque.native.lower.rules import RULES, Index, Lower, Request, Value, View
from calque.native.lower.stages import MAKERS, Stage, boxes_of, loops_of, parts_of
from calque.native.scalars.expr import FALSE, TRUE, Expr, const, ex

LEAST: Final = (
    9  # fewer elements are always an expression; up to `BAKED` are one where they are in registers
)
HEAVIEST: Final = 64  # nodes of what is written once more, to be tested where it is made
FLAG: Final = ShapedArray((), np.dtype(bool))


def marked(g: GraphBuilder, x: Node) -> Node | None:
    """Does any element of a boolean array hold? As a mark, where it is long enough."""
    size = product(x.shape)
    if surely_at_most(size, LEAST - 1):
        return None
    flat = reshape(g, x, (size,))
    if surely_at_most(x.shape[-1], LEAST - 1):
        x = flat
    false = g.add("literal", (), {"value": np.False_}, FLAG)
    return g.add("mark", (false, x, *written(x)), {"flat": flat}, FLAG)


def expand_test(kind: str) -> Callable[..., list[Node]]:
    """before: reduce_or[axes=(0, 1)] x      after: mark False x
    before: reduce_and[axes=(0, 1)] x     after: not (mark False (not x))"""
    otherwise = expand_reduce(kind)

    def expand(
        g: GraphBuilder, args: Sequence[Node], params: dict[str, Any], avals: Sequence[Any]
    ) -> list[Node]:
        (x,) = args
        if x.dtype != "i1" or len(params["axes"]) != len(x.shape) or x.op == "input":
            return otherwise(g, args, params, avals)
        found = marked(g, x if kind == "or" else opposite(g, x))
        if found is None:
            return otherwise(g, args, params, avals)
        return [found if kind == "or" else opposite(g, found)]

    return expand


def opposite(g: GraphBuilder, x: Node) -> Node:
    return x.args[0] if x.op == "not" else g.add("not", (x,), {}, x.aval)


def written(x: Node) -> Sequence[Node]:
    """The operands of the update of most elements that is tested, if it is one: the test stands in
    the loops that write it.

    Not of a small update: that is made in place, and what lies around it is not written."""
    n = update_below(x)
    return (
        n.args if n is not None and 2 * hint_of(n.args[1].aval.size) > hint_of(n.aval.size) else ()
    )


def update_below(x: Node) -> Node | None:
    """The one update among the arrays of this shape that an elementwise expression reads."""
    found: set[Node] = set()
    todo, seen = [x], {x}
    while todo:
        n = todo.pop()
        if n.op == "dynamic_update_slice":
            found.add(n)
        elif n.op not in CHEAP:
            if n.shape:
                return None
        else:
            fresh = [a for a in n.args if a not in seen]
            seen.update(fresh)
            todo += fresh
    return found.pop() if len(found) == 1 else None


CHEAP: Final = frozenset(
    ["abs", "and", "convert_element_type", "eq", "ge", "gt", "imag", "is_finite", "le", "literal",
    "lt", "ne", "neg", "not", "or", "real"]
)  # fmt: skip


def either(
    g: GraphBuilder, args: Sequence[Node], params: dict[str, Any], avals: Sequence[Any]
) -> list[Node] | None:
    """before: c = or b (mark False x)      after: c = mark b x, in the memory of b"""
    if avals[0].shape:
        return None
    for a, b in (args, args[::-1]):
        test, before = stripped(a), stripped(b)
        if test.op == "mark" and test.args[0].op == "literal" and before.op in ("mark", "input"):
            return [g.add("mark", (before, *test.args[1:]), test.params, FLAG)]
    return None


def stripped(n: Node) -> Node:
    """A truth value without what leaves it as it is: not not b, int(b) != 0."""
    while True:
        inner = n.args[0] if n.args else n
        twice = n.op == "not" and inner.op == "not"
        number = n.op == "ne" and is_zero(n.args[1]) and inner.op == "convert_element_type"
        if not (twice or (number and inner.args[0].dtype == "i1")):
            return n
        n = inner.args[0]


def is_zero(n: Node) -> bool:
    return n.op == "literal" and not n.shape and not n.params["value"]


def mark_stage(low: Lower, n: Node, home: View) -> list[Stage]:
    """The first value of the cell (unless it stands there already), then a guarded store in each
    loop that makes what is tested."""
    before = n.args[0]
    out = []
    if low.view.get(before) != home:
        value = parts_of(low.at(before, ()))
        out.append(Stage(home.buf, (), 0, home.prefix, value, local=False, early=True))
    for x, dims, idx in loops(low, n):
        bad: Expr = low.at(x, idx)
        if bad is not FALSE:
            rank, true = len(dims), parts_of(TRUE)
            out.append(
                Stage(home.buf, dims, rank, home.prefix, true, guard=bad, local=False, marks=True)
            )
    return out


def loops(low: Lower, n: Node) -> Iterator[tuple[Node, tuple[Expr, ...], Index]]:
    """The loops over all elements: those of the boxes where an update writes them, so that each is
    tested where it is made."""
    x, *parts = n.args[1:]
    update = update_below(x) if parts else None
    boxes = (
        boxes_of(low, update)
        if update is not None and low.view.get(update) != low.view.get(update.args[0])
        else []
    )
    if (
        update is None
        or not boxes
        or code_size(e for b in boxes for _, e in parts_of(b.value)) > HEAVIEST * len(boxes)
    ):
        x = n.params["flat"] if only_inputs(low, x) else x
        yield x, *loops_of(low, x.shape)
        return
    for b in boxes:
        low.memo[update, b.to] = b.value
        yield x, b.dims, b.to


def only_inputs(low: Lower, x: Node) -> bool:
    """Is a test made of whole arrays from outside, element by element? Then there is no loop to
    share, and its own may be any."""
    todo, seen = [x], {x}
    while todo:
        n = todo.pop()
        if n in low.view:
            if n.op not in ("input", "const") or n.shape != x.shape or low.view[n].prefix:
                return False
        elif n.op != "literal":
            if n.op in RULES:
                return False
            fresh = [a for a in n.args if a not in seen]
            seen.update(fresh)
            todo += fresh
    return True


def mark_element(low: Lower, n: Node, idx: Index) -> Generator[Request, Value, Value]:
    """The value of a cell that is not stored: few elements, or-ed together."""
    found = yield n.args[0], ()
    for k in itertools.product(*map(range, n.args[1].shape)):
        found = ex("or", found, (yield n.args[1], tuple(map(const, k))))
    return found


EXPANSIONS["or"] = either
RULES["mark"] = mark_element
EXPANSIONS["reduce_or"] = expand_test("or")
EXPANSIONS["reduce_and"] = expand_test("and")
MAKERS["mark"] = mark_stage
