"""Loops as data: a scan, a while or a fori loop taken apart once, for all the ways there are to run
it."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from functools import cached_property
from typing import Final

from calque.core.jaxprs import ClosedJaxpr, Jaxpr
from calque.machine.code.target import describe
from calque.machine.records import record
from calque.native.lower.dot import LEAST_SUM, block_of_rows, transposed
from calque.native.lower.graph import Graph, GraphBuilder, Node, graph_of
from calque.native.lower.rules import RULES, Index, Lower, Request, Value, View
from calque.native.passes.pipeline import run as run_passes
from calque.native.plan.blocks import CodeBlock, Planner
from calque.native.plan.steps import Step
from calque.native.scalars.expr import Expr, const, ex, is_float, item_size, var
from calque.transforms.primitives.while_loop import scalar_condition

WORTH: Final = 8  # rows of a matrix that are worth transposing it for
# bytes of a matrix that stays near, whatever else a round reads, where the ends of rows are masked
# at no cost; ends of short rows cost more than reading columns elsewhere
NEAR: Final = 1 << 14
NEAR_UNMASKED: Final = 3 << 14
MASKS: Final = 64  # bytes of the vectors of processors that mask at no cost


@record(eq=False)
class LoopParts:
    """A loop: what comes in from outside, what is carried round, what is read and written slice by
    slice.

    body      inputs: consts, carries, slices; outputs: next carries, stacked results
    test      (while) inputs: its consts, carries; output: go on?
    t, at     the loop variable and the index of the slice (turned round for a reversed scan)
    length    the number of rounds, where it is known now; a counted scan has it in memory (`count`)
              and the driver reads it
    gets      the nodes that read its results
    """

    node: Node
    body: Graph
    test: Graph | None
    inner_consts: Sequence[Node]
    init: Sequence[Node]
    carries: Sequence[Node]
    test_carries: Sequence[Node]
    t: Expr
    at: Expr
    length: int | None
    count: Node | None
    gets: dict[int, Node]

    @cached_property
    def next(self) -> Sequence[Node]:
        return self.body.outputs[: len(self.carries)]

    @cached_property
    def stacked(self) -> Sequence[Node]:
        return self.body.outputs[len(self.carries) :]

    @property
    def var(self) -> Expr | None:
        """The loop variable where the number of rounds is known before the first."""
        return None if self.t.attr[1] is None else self.t


def loop_parts(p: Planner, n: Node, order: Sequence[Node], counter: str) -> LoopParts:
    """A scan or while taken apart; `order` has what reads its results."""
    gets = {m.params["index"]: m for m in order if m.op == "get" and m.args[0] is n}
    return (scan_parts if n.op == "scan" else while_parts)(p, n, gets, counter)


def scan_parts(p: Planner, n: Node, gets: dict[int, Node], counter: str) -> LoopParts:
    nc, k = n.params["num_consts"], n.params["num_carry"]
    body = bind(p, n.params["jaxpr"], counter, n in p.opened)
    inner, carries, slices = split(body.inputs, nc, k)
    consts, init, xs = split(n.args, nc, k)
    length = n.params["length"]
    count = n.args[0] if n.params.get("counted") else None
    extent = p.sizes.dim(length) if count is None else var(f"{counter}.n", p.sizes.dim(length + 1))
    t = at = var(counter, extent)
    if n.params["reverse"]:
        if count is not None:
            at = ex("sub", ex("sub", extent, const(1)), t)
        elif length:
            at = ex("sub", p.sizes.dim(length - 1), t)
    alias(p, inner, consts, ())
    alias(p, slices, xs, (at,))
    known = length if count is None else None
    return LoopParts(n, body, None, inner, init, carries, (), t, at, known, count, gets)


def while_parts(p: Planner, n: Node, gets: dict[int, Node], counter: str) -> LoopParts:
    tc, bc = n.params["cond_nconsts"], n.params["body_nconsts"]
    test, body, consts = while_programs(n)
    init = n.args[tc + bc :]
    tested, made = bind(p, test, counter), bind(p, body, counter)
    inner, carries, _ = split(made.inputs, len(consts), len(init))
    alias(p, tested.inputs[:tc], n.args[:tc], ())
    alias(p, inner, consts, ())
    t = var(counter, None)
    test_carries = tested.inputs[tc:]
    return LoopParts(n, made, tested, inner, init, carries, test_carries, t, t, None, None, gets)


def while_programs(
    n: Node,
) -> tuple[ClosedJaxpr | Jaxpr, ClosedJaxpr | Jaxpr, Sequence[Node]]:
    """The condition of a while loop, its body, and the constants of the body."""
    tc, bc = n.params["cond_nconsts"], n.params["body_nconsts"]
    test, body = n.params["cond_jaxpr"], n.params["body_jaxpr"]
    if not test.out_avals[0].shape:
        return test, body, n.args[tc : tc + bc]
    test, body = scalar_condition(test, body, tc, bc)  # a condition for each lane, from vmap
    return test, body, n.args[: tc + bc]


def split(
    xs: Sequence[Node], a: int, b: int
) -> tuple[Sequence[Node], Sequence[Node], Sequence[Node]]:
    return xs[:a], xs[a : a + b], xs[a + b :]


def simplified(closed: ClosedJaxpr | Jaxpr) -> ClosedJaxpr:
    return run_passes(closed if isinstance(closed, ClosedJaxpr) else ClosedJaxpr(closed, ()))


def bind(p: Planner, closed: ClosedJaxpr | Jaxpr, tag: str, opens: bool = False) -> Graph:
    """The graph of a body, its constants known to the planner."""
    simple = simplified(closed)
    g = graph_of(simple, opens)
    p.opened.update(g.opened)
    for n, value in zip(g.consts, simple.consts):
        p.constant_array(n, value)
    return g


def alias(p: Planner, inner: Sequence[Node], outer: Sequence[Node], prefix: Index) -> None:
    """Let the inputs of a body stand for (slices of) nodes outside."""
    for i, o in zip(inner, outer):
        p.alias[i] = (o, prefix)


class NotPointwiseError(Exception):
    """A carry that is held in registers is asked for an element at a place that is not known."""


def input_element(low: Lower, n: Node, idx: Index) -> Generator[Request, Value, Value]:
    """An input of a body is what it stands for; so is a result that a loop leaves as it came."""
    if n in low.in_registers or n not in low.alias:
        raise NotPointwiseError
    outer, prefix = low.alias[n]
    turned = low.turned.get(n)
    if turned is not None:
        return (yield turned, idx[::-1])
    return (yield outer, prefix + idx)


RULES["input"] = RULES["get"] = input_element


def unchanged(loop: LoopParts) -> dict[int, Node]:
    """Carries that every round leaves as they are: they are constants of the loop."""
    return {
        i: init for i, (c, o, init) in enumerate(zip(loop.carries, loop.next, loop.init)) if c is o
    }


def turn_matrices(p: Planner, loop: LoopParts, block: CodeBlock) -> list[Step]:
    """A matrix that every round multiplies with a short vector is transposed once, if it does not
    lie as the product likes it: the sums of a small one beside each other, those of others along
    its rows, which stream past.

    before: loop: h = W @ h, row by row of W      after: V = W.T; loop: h = sum over k of V[k, :]
    h[k]
    """
    steps: list[Step] = []
    constants = set(loop.inner_consts)
    for r in loop.body.nodes:
        for x, axis in factors(r) if r.op == "reduce_sum" else ():
            if x in constants and x not in p.turned and axis != axis_of_sums(p, x, axis):
                outer = p.alias[x][0]
                g = GraphBuilder(max(n.id for n in block.order) + 1)
                t = transposed(g, outer, (1, 0))
                view = View(p.temporary(t))
                steps += p.block(f"matrix of %{loop.node.id}", [(t, view)])
                p.turned[x] = t
    return steps


def factors(r: Node) -> Iterator[tuple[Node, int]]:
    """The matrices of a product that is summed, each with its axis along which that is."""
    (axis,) = r.params["axes"]
    product, axis = behind_transposes(r.args[0], axis)
    if product.op == "mul" and len(product.shape) == 2:
        for a in product.args:
            x, along = behind_transposes(a, axis)
            if len(x.shape) == 2:
                yield x, along


def behind_transposes(x: Node, axis: int) -> tuple[Node, int]:
    """What is transposed, and its axis that becomes this one."""
    while x.op == "transpose":
        x, axis = x.args[0], x.params["permutation"][axis]
    return x, axis


def axis_of_sums(p: Planner, x: Node, axis: int) -> int:
    """The axis of a matrix in memory along which its sums are best; `axis` if it matters little."""
    sums, length = x.shape[1 - axis], x.shape[axis]
    streams = p.sizes.known and is_float(x.dtype)
    if (axis == 0 and not streams) or not sums >= WORTH:
        return axis
    if not streams:
        return 0
    near = NEAR if describe().vector_bytes >= MASKS else NEAR_UNMASKED
    large = sums * length * item_size(x.dtype) > near
    return int(large and block_of_rows(sums) > 0 and length >= LEAST_SUM)
