"""A simplified program as a graph of array nodes: the form that lowering reads.

A node is one result of one equation. Higher-order equations keep their jaxprs; what has several
results is a node with one `get` node per result. Nodes are numbered in program order, which is an
order of evaluation."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any, Final

import numpy as np

from calque.core.dtypes import ExtendedDType
from calque.core.jaxprs import Atom, ClosedJaxpr, Jaxpr, Literal, Var
from calque.native.passes.dead_code import has_effect

KIND: Final[dict[Any, str]] = {
    np.dtype(name): short
    for name, short in {
        "bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8",
        "uint16": "u16",
        "uint32": "u32", "uint64": "u64", "float16": "f16", "float32": "f32", "float64": "f64",
        "complex64": "c64",
        "complex128": "c128",
    }.items()
}  # fmt: skip
REAL_PART: Final = {"c64": "f32", "c128": "f64"}


def kind_of(dtype: Any) -> str:
    """The name of an element type in the loop language: f32, i1, c64, bf16, or the ml_dtypes
    name."""
    k = KIND.get(dtype)
    if k is None:
        k = KIND[dtype] = "bf16" if dtype.name == "bfloat16" else dtype.name
    return k


class Node:
    """One array of the program."""

    __slots__ = ("args", "aval", "dtype", "id", "op", "params", "shape", "source", "users")

    def __init__(
        self,
        op: str,
        args: Sequence[Node],
        params: dict[str, Any],
        aval: Any,
        number: int,
        source: Any = None,
    ) -> None:
        self.op, self.params, self.aval, self.source = op, params, aval, source
        self.args: tuple[Node, ...] = tuple(args)
        self.shape: tuple[int, ...]
        self.shape, self.dtype = memory_type(aval) if aval is not None else ((), "")
        self.id = number
        self.users = 0  # how many nodes (outputs included) read this one

    def __repr__(self) -> str:
        operands = ", ".join(f"%{a.id}" for a in self.args)
        return f"%{self.id}:{self.dtype}{list(self.shape)}={self.op}({operands})"


def memory_type(aval: Any) -> tuple[tuple[int, ...], str]:
    """Shape and element type in memory. An extended dtype (a random key) is an array of what it is
    made of."""
    if isinstance(aval.dtype, ExtendedDType):
        inner = aval.dtype.storage[0]  # type: ignore[attr-defined]
        return aval.shape + inner.shape, kind_of(inner.base)
    return aval.shape, kind_of(aval.dtype)


class Graph:
    """The nodes of one program. `inputs`, `consts` and `outputs` are nodes; an output may stand
    there more than once.

    `effects` are the nodes that must run though nobody may read them."""

    __slots__ = ("consts", "effects", "inputs", "next", "nodes", "outputs", "source")

    def __init__(self, first: int = 0) -> None:
        self.nodes: list[Node] = []
        self.inputs: list[Node] = []
        self.consts: list[Node] = []
        self.outputs: list[Node] = []
        self.effects: list[Node] = []
        self.next = first
        self.source: Any = None  # of the equation that is being written

    def add(
        self, op: str, args: Sequence[Node], params: dict[str, Any], aval: Any, source: Any = None
    ) -> Node:
        n = Node(op, args, params, aval, self.next, source if source is not None else self.source)
        self.next += 1
        self.nodes.append(n)
        return n


# Equations that are written in other terms before anything else happens: name -> f(graph, args,
# params, avals) -> results, or None where this equation has to stay as it is. Filled by the modules
# that know them.
EXPANSIONS: Final[dict[str, Any]] = {}


def graph_of(closed: ClosedJaxpr | Jaxpr) -> Graph:
    """The graph of a program."""
    jaxpr = closed.jaxpr if isinstance(closed, ClosedJaxpr) else closed
    g = Graph()
    g.consts = [g.add("const", (), {}, v.aval) for v in jaxpr.constvars]
    g.inputs = [g.add("input", (), {}, v.aval) for v in jaxpr.invars]
    g.outputs = extend(g, jaxpr, [*g.consts, *g.inputs])
    for n in g.nodes:
        for a in n.args:
            a.users += 1
    for n in g.outputs:
        n.users += 1
    return g


def extend(g: Graph, jaxpr: Jaxpr, inputs: Sequence[Node]) -> list[Node]:
    """Write a program into a graph, its constants and inputs being these nodes; gives its
    results."""
    env: dict[Var, Node] = dict(zip((*jaxpr.constvars, *jaxpr.invars), inputs, strict=True))
    literals: dict[Any, Node] = {}
    for e in jaxpr.eqns:
        args = [
            _literal(g, a, literals) if a.__class__ is Literal else env[a]  # type: ignore[arg-type,index]
            for a in e.invars
        ]
        name, g.source = e.primitive.name, e.source
        expand = EXPANSIONS.get(name)
        avals = [v.aval for v in e.outvars]
        results = expand(g, args, e.params, avals) if expand is not None else None
        if results is None:
            if e.primitive.multiple_results:
                base = g.add(name, args, e.params, None, e.source)
                results = [
                    g.add("get", (base,), {"index": i}, aval) for i, aval in enumerate(avals)
                ]
            else:
                results = [g.add(name, args, e.params, avals[0], e.source)]
            if has_effect(e):
                g.effects.append(base if e.primitive.multiple_results else results[0])
        env.update(zip(e.outvars, results))
    return [_atom(g, a, env, literals) for a in jaxpr.outvars]


def _atom(g: Graph, a: Atom, env: dict[Var, Node], literals: dict[Any, Node]) -> Node:
    return _literal(g, a, literals) if isinstance(a, Literal) else env[a]


def _literal(g: Graph, a: Literal, literals: dict[Any, Node]) -> Node:
    key = (a.aval.dtype, a.val.tobytes())
    n = literals.get(key)
    if n is None:
        n = literals[key] = g.add("literal", (), {"value": a.val}, a.aval)
    return n


def reachable(outputs: Iterable[Node], known: Container[Node] = ()) -> list[Node]:
    """The nodes that the outputs need, in program order; not what only `known` nodes need, which
    are there already."""
    seen: set[Node] = set()
    todo = list(outputs)
    while todo:
        n = todo.pop()
        if n not in seen:
            seen.add(n)
            if n not in known:
                todo += n.args
    return sorted(seen, key=lambda n: n.id)
