"""A simplified program as a graph of array nodes: the form that lowering reads.

A node is one result of one equation. Higher-order equations keep their jaxprs; what has several
results is a node with one `get` node per result. Nodes are numbered in program order, which is an
order of evaluation."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from calque.core.config import config
from calque.core.dtypes import ExtendedDType
from calque.core.jaxprs import Atom, ClosedJaxpr, Jaxpr, Literal, Var
from calque.machine.records import record
from calque.machine.state import process
from calque.native.lower.numbers import TAKERS, Number, open_numbers, opened_body
from calque.native.passes.dead_code import has_effect
from calque.native.scalars import elements

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
Numbers = Mapping[int, Number]  # by the identities of the values of literals
NO_NUMBERS: Final[Numbers] = MappingProxyType({})
REAL_PART: Final = {"c64": "f32", "c128": "f64"}


def kind_of(dtype: Any) -> str:
    """The name of an element type in the loop language: f32, i1, c64, bf16, or the ml_dtypes
    name."""
    k = KIND.get(dtype)
    if k is None:
        k = KIND[dtype] = "bf16" if dtype.name == "bfloat16" else dtype.name
    return k


@record(eq=False)
class Node:
    """One array of the program: the result of one equation."""

    op: str
    args: tuple[Node, ...]
    params: dict[str, Any]
    aval: Any
    id: int
    source: Any = None
    shape: tuple[int, ...] = field(init=False)
    dtype: str = field(init=False)

    def __post_init__(self) -> None:
        shape, dtype = memory_type(self.aval) if self.aval is not None else ((), "")
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "dtype", dtype)

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


@record(eq=False)
class Graph:
    """The nodes of one program. `inputs`, `consts` and `outputs` are nodes; an output may stand
    there more than once.

    `effects` are the nodes that must run though nobody may read them; `opened` the loops whose
    bodies open their numbers, as the graph does."""

    nodes: tuple[Node, ...]
    inputs: tuple[Node, ...]
    consts: tuple[Node, ...]
    outputs: tuple[Node, ...]
    effects: tuple[Node, ...]
    opened: tuple[Node, ...] = ()


class GraphBuilder:
    """Writes the nodes of a graph, in program order."""

    __slots__ = ("effects", "next", "nodes", "opened", "source")

    def __init__(self, first: int = 0) -> None:
        self.nodes: list[Node] = []
        self.effects: list[Node] = []
        self.opened: list[Node] = []
        self.next = first
        self.source: Any = None  # of the equation that is being written

    def add(
        self, op: str, args: Sequence[Node], params: dict[str, Any], aval: Any, source: Any = None
    ) -> Node:
        n = Node(
            op, tuple(args), params, aval, self.next, source if source is not None else self.source
        )
        self.next += 1
        self.nodes.append(n)
        return n


# Equations that are written in other terms before anything else happens: name -> f(graph, args,
# params, avals) -> results, or None where this equation has to stay as it is. Filled by the modules
# that know them.
EXPANSIONS: Final[dict[str, Any]] = process.container("expansions of primitives", {})


def graph_of(closed: ClosedJaxpr | Jaxpr, opens: bool = False) -> Graph:
    """The graph of a program. In one that `opens` its numbers, those that nothing depends on are
    marked."""
    jaxpr = closed.jaxpr if isinstance(closed, ClosedJaxpr) else closed
    g = GraphBuilder()
    consts = tuple([g.add("const", (), {}, v.aval) for v in jaxpr.constvars])
    inputs = tuple([g.add("input", (), {}, v.aval) for v in jaxpr.invars])
    outputs = tuple(extend(g, jaxpr, [*consts, *inputs], opens))
    out = Graph(tuple(g.nodes), inputs, consts, outputs, tuple(g.effects), tuple(g.opened))
    if config.verify_kernels:
        verify_graph(out)
    return out


def extend(
    g: GraphBuilder, jaxpr: Jaxpr, inputs: Sequence[Node], opens: bool = False
) -> list[Node]:
    """Write a program into a graph, its constants and inputs being these nodes; gives its
    results."""
    env: dict[Var, Node] = dict(zip((*jaxpr.constvars, *jaxpr.invars), inputs, strict=True))
    literals: dict[Any, Node] = {}
    numbers = open_numbers(jaxpr) if opens else NO_NUMBERS
    for e in jaxpr.eqns:
        name, g.source = e.primitive.name, e.source
        taken = numbers if name in TAKERS else NO_NUMBERS
        args = [
            _literal(g, a, literals, taken) if a.__class__ is Literal else env[a]  # type: ignore[arg-type,index]
            for a in e.invars
        ]
        expand = EXPANSIONS.get(name)
        avals = [v.aval for v in e.outvars]
        results = expand(g, args, e.params, avals) if expand is not None else None
        if results is None:
            if e.primitive.multiple_results:
                base = g.add(name, args, e.params, None, e.source)
                if opens and opened_body(e) is not None:
                    g.opened.append(base)
                results = [
                    g.add("get", (base,), {"index": i}, aval) for i, aval in enumerate(avals)
                ]
            else:
                results = [g.add(name, args, e.params, avals[0], e.source)]
            if has_effect(e):
                g.effects.append(base if e.primitive.multiple_results else results[0])
        env.update(zip(e.outvars, results))
    return [_atom(g, a, env, literals) for a in jaxpr.outvars]


def _atom(g: GraphBuilder, a: Atom, env: dict[Var, Node], literals: dict[Any, Node]) -> Node:
    return _literal(g, a, literals, NO_NUMBERS) if isinstance(a, Literal) else env[a]


def _literal(g: GraphBuilder, a: Literal, literals: dict[Any, Node], numbers: Numbers) -> Node:
    number = numbers.get(id(a.val))
    key = number or (a.aval.dtype, a.val.tobytes())
    n = literals.get(key)
    if n is None:
        params = {"value": a.val} if number is None else {"value": a.val, "open": number}
        n = literals[key] = g.add("literal", (), params, a.aval)
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


# --- verifying ------------------------------------------------------------------------------------


class MalformedGraph(ValueError):
    """A graph that means nothing."""


def verify_graph(g: Graph) -> None:
    """Raise ``MalformedGraph`` unless every node is of the type it says, reads what stands before
    it, and what comes in and goes out are nodes of the graph."""
    seen: set[Node] = set()
    last = -1
    for n in g.nodes:
        _need(n.id > last, n, "is not numbered in program order")
        last = n.id
        _verify_node(n, seen)
        seen.add(n)
    for n in (*g.inputs, *g.consts, *g.outputs, *g.effects):
        _need(n in seen, n, "is no node of the graph")
    leaves = {"input": g.inputs, "const": g.consts}
    for n in g.nodes:
        _need(n.op not in leaves or n in leaves[n.op], n, "comes from nowhere")


def _verify_node(n: Node, seen: Container[Node]) -> None:
    for a in n.args:
        _need(a in seen, n, f"reads %{a.id}, which does not stand before it")
        _need((a.aval is None) == (n.op == "get"), n, "takes several results for one")
    if n.aval is None:
        return
    _need((n.shape, n.dtype) == memory_type(n.aval), n, "has another type than its aval")
    if n.op != "bitcast_convert_type" and n.args and n.op != "get":
        if elements.supports(n.op, [a.dtype for a in n.args]):
            for a in n.args:
                # a random key is several words, and chosen as a whole
                fits = a.shape in ((), n.shape, n.aval.shape)
                _need(fits, n, f"is elementwise, but %{a.id} is {a.shape}")


def _need(ok: bool, n: Node, what: str) -> None:
    if not ok:
        raise MalformedGraph(f"{node_text(n)}: {what}")


# --- printing -------------------------------------------------------------------------------------


def graph_text(g: Graph) -> str:
    """A node a line, in program order."""
    lines = [node_text(n) for n in g.nodes]
    effects = f" and do {', '.join(f'%{n.id}' for n in g.effects)}" if g.effects else ""
    return "\n".join([*lines, f"return {', '.join(f'%{n.id}' for n in g.outputs)}{effects}"])


def node_text(n: Node) -> str:
    kind = f"{n.dtype}[{','.join(map(str, n.shape))}]" if n.aval is not None else "several"
    params = [f"{k}={_param_text(v)}" for k, v in n.params.items() if v is not None]
    given = f"[{' '.join(params)}]" if params else ""
    operands = " ".join(f"%{a.id}" for a in n.args)
    return f"%{n.id}: {kind} = {n.op}{given} {operands}".rstrip()


def _param_text(value: Any) -> str:
    """A parameter on one line; programs are programs of their own."""
    if isinstance(value, (ClosedJaxpr, Jaxpr)):
        return "program"
    if isinstance(value, tuple):
        return f"({', '.join(map(_param_text, value))})"
    if isinstance(value, np.dtype):
        return str(value.name)
    return str(getattr(value, "__name__", value))
