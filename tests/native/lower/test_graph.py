"""Graphs: what they hold, how they print, and which mean nothing."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core.avals import ShapedArray
from calque.native.lower.graph import (
    Graph,
    GraphBuilder,
    MalformedGraph,
    Node,
    graph_of,
    graph_text,
    reachable,
    verify_graph,
)

F32 = np.dtype("float32")
ROW, ONE = ShapedArray((4,), F32), ShapedArray((), F32)


def graph(*nodes: Node, inputs: Any = (), outputs: Any = ()) -> Graph:
    return Graph(nodes, inputs, (), outputs, ())


def node(op: str, args: Any, number: int, aval: Any = ROW, **params: Any) -> Node:
    return Node(op, tuple(args), params, aval, number)


X = node("input", (), 0)
S = node("input", (), 1, ONE)


def test_the_graph_of_a_program() -> None:
    g = graph_of(calque.make_jaxpr(lambda x: jnp.sin(x) * 2.0)(np.ones(4, np.float32)))
    assert graph_text(g).splitlines() == [
        "%0: f32[4] = input",
        "%1: f32[4] = sin %0",
        "%2: f32[] = literal[value=2.0]",
        "%3: f32[4] = mul %1 %2",
        "return %3",
    ]
    assert [n.op for n in reachable(g.outputs)] == ["input", "sin", "literal", "mul"]


def test_nodes_are_numbered_from_where_the_writer_starts() -> None:
    g = GraphBuilder(10)
    assert g.add("sin", (X,), {}, ROW).id == 10 and g.add("cos", (X,), {}, ROW).id == 11


def test_well_formed() -> None:
    y = node("mul", (X, S), 2)
    verify_graph(graph(X, S, y, inputs=(X, S), outputs=(y, y)))


@pytest.mark.parametrize(
    "message, make",
    [
        ("program order", lambda: graph(S, X, inputs=(X, S))),
        ("does not stand before it", lambda: graph(node("sin", (X,), 3), outputs=())),
        ("is no node of the graph", lambda: graph(X, inputs=(X,), outputs=(S,))),
        ("comes from nowhere", lambda: graph(X)),
        ("comes from nowhere", lambda: graph(node("const", (), 0))),
        (
            "is elementwise, but",
            lambda: graph(X, node("sin", (X,), 1, ShapedArray((5,), F32)), inputs=(X,)),
        ),
        (
            "several results for one",
            lambda: graph(X, (b := node("sort", (X,), 1, None)), node("sin", (b,), 2), inputs=(X,)),
        ),
        ("several results for one", lambda: graph(X, node("get", (X,), 1, index=0), inputs=(X,))),
    ],
)
def test_malformed_graphs(message: str, make: Any) -> None:
    with pytest.raises(MalformedGraph, match=message):
        verify_graph(make())
