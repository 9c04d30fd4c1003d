"""Loops as data: a scan, a while or a fori loop taken apart once, for all the ways there are to run
it."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from calque.core.jaxprs import ClosedJaxpr, Jaxpr
from calque.native.lower.dot import transposed
from calque.native.lower.graph import Graph, GraphBuilder, Node, graph_of
from calque.native.lower.rules import RULES, Index, Lower, Request, Value, View
from calque.native.passes.pipeline import run as run_passes
from calque.native.plan.blocks import Block, Planner
from calque.native.plan.steps import Step
from calque.native.scalars.expr import Expr, const, ex, var
from calque.transforms.primitives.while_loop import scalar_condition

WORTH = 8  # rows of a matrix that are worth transposing it for


class LoopParts:
    """A loop: what comes in from outside, what is carried round, what is read and written slice by
    slice.

    body      inputs: consts, carries, slices; outputs: next carries, stacked results
    test      (while) inputs: its consts, carries; output: go on?
    t, at     the loop variable and the index of the slice (turned round for a reversed scan)
    var       the loop variable where the number of rounds is known before the first
    length    that number, where it is known now; a counted scan has it in memory (`count`) and the
    driver reads it
    """

    def __init__(self, p: Planner, n: Node, order: Sequence[Node], counter: str) -> None:
        self.node = n
        params = n.params
        self.test: Graph | None = None
        self.length: int | None = None
        self.count: Node | None = None
        if n.op == "scan":
            nc, k = params["num_consts"], params["num_carry"]
            self.body = bind(p, params["jaxpr"], counter)
            self.consts, self.init, self.xs = n.args[:nc], n.args[nc : nc + k], n.args[nc + k :]
            self.reverse = params["reverse"]
            if params.get("counted"):
                self.count = n.args[0]
            else:
                self.length = params["length"]
        else:
            tc, bc = params["cond_nconsts"], params["body_nconsts"]
            test, body = params["cond_jaxpr"], params["body_jaxpr"]
            self.consts, self.init, self.xs = n.args[tc : tc + bc], n.args[tc + bc :], ()
            if test.out_avals[0].shape:  # a condition for each lane, from vmap
                test, body = scalar_condition(test, body, tc, bc)
                self.consts = n.args[: tc + bc]
            self.test, self.body = bind(p, test, counter), bind(p, body, counter)
            alias(p, self.test.inputs[:tc], n.args[:tc], ())
            self.test_carries = self.test.inputs[tc:]
            self.reverse = False
        nc, k = len(self.consts), len(self.init)
        self.inner_consts, self.carries, self.slices = split(self.body.inputs, nc, k)
        self.next, self.stacked = self.body.outputs[:k], self.body.outputs[k:]
        extent = p.sizes.dim(self.length) if self.length is not None else None
        if self.count is not None:
            extent = var(f"{counter}.n", p.sizes.dim(params["length"] + 1))
        self.t: Expr = var(counter, extent)
        self.var = None if extent is None else self.t
        self.at: Expr = self.t
        if self.reverse and extent is not None:
            self.at = (
                ex("sub", ex("sub", extent, const(1)), self.t)
                if self.length is None
                else self.turned(p)
            )
        alias(p, self.inner_consts, self.consts, ())
        alias(p, self.slices, self.xs, (self.at,))
        self.gets = {m.params["index"]: m for m in order if m.op == "get" and m.args[0] is n}

    def turned(self, p: Planner) -> Expr:
        """The index of the slice of a reversed scan of known length."""
        return ex("sub", p.sizes.dim(self.length - 1), self.t) if self.length else self.t


def split(
    xs: Sequence[Node], a: int, b: int
) -> tuple[Sequence[Node], Sequence[Node], Sequence[Node]]:
    return xs[:a], xs[a : a + b], xs[a + b :]


def bind(p: Planner, closed: ClosedJaxpr | Jaxpr, tag: str) -> Graph:
    """The graph of a body, its constants known to the planner."""
    simple = run_passes(closed if isinstance(closed, ClosedJaxpr) else ClosedJaxpr(closed, ()))
    g = graph_of(simple)
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


def turn_matrices(p: Planner, loop: LoopParts, block: Block) -> list[Step]:
    """A matrix that every round multiplies with a short vector is transposed once, so that the
    product runs along its rows.

    before: loop: h = W @ h, row by row of W      after: V = W.T; loop: h = sum over k of V[k, :]
    h[k]
    """
    steps: list[Step] = []
    constants = set(loop.inner_consts)
    for r in loop.body.nodes:
        if r.op != "reduce_sum" or r.args[0].op != "mul":
            continue
        for x in r.args[0].args:
            if (
                x in constants
                and x not in p.turned
                and len(x.shape) == 2 == len(r.args[0].shape)
                and x.shape[0] >= WORTH
            ):
                outer = p.alias[x][0]
                g = GraphBuilder(block.order[-1].id + 1)
                t = transposed(g, outer, (1, 0))
                view = View(p.temporary(t))
                steps += p.block(f"matrix of %{loop.node.id}", [(t, view)])
                p.turned[x] = t
    return steps
