"""The table of all rules: who is elementwise, and that nobody stands in it twice."""

import ast
import pathlib

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.primitives import REGISTRY
from calque.native.lower import graph, rules, stages, table
from calque.native.lower.graph import Node
from calque.native.scalars import elements

# what lowering writes for itself
OWN = {
    "matmul", "threefry_word", "size_value", "windows", "get", "input", "literal", "tile",
    "empty", "reduce_chunks", "conv",
}  # fmt: skip


def node(op: str, *avals: ShapedArray, out: ShapedArray) -> Node:
    args = tuple(Node("input", (), {}, a, k) for k, a in enumerate(avals))
    return Node(op, args, {}, out, len(args))


def test_one_rule_for_each_operation() -> None:
    """Elementwise ones have none here; every name is a primitive, or one that lowering writes."""
    for rule_table in (rules.RULES, stages.MAKERS):
        assert not {n for n in rule_table if elements.supports(n)} - {"copy"}
    known = set(REGISTRY) | OWN
    found = {*rules.RULES, *graph.EXPANSIONS, *rules.LIMITS, *stages.MAKERS}
    assert {n for n in found if n not in known and not n.startswith(("mark", "matmul"))} <= set(
        node_names()
    )


def node_names() -> set[str]:
    """The operations that some module of the room adds to a graph."""
    out = set()
    for path in pathlib.Path(table.__file__).parent.glob("*.py"):
        for n in ast.walk(ast.parse(path.read_text())):
            if isinstance(n, ast.Constant) and isinstance(n.value, str):
                out.add(n.value)
    return out


def test_every_module_of_rules_is_imported() -> None:
    """One that fills a table and is not named here would fill it by accident, or never."""
    names = {m.__name__.rpartition(".")[2] for m in table.MODULES}
    filling = set()
    for path in pathlib.Path(table.__file__).parent.glob("*.py"):
        for n in ast.parse(path.read_text()).body:
            text = ast.unparse(n)
            if (
                text.startswith(("RULES", "EXPANSIONS", "LIMITS", "for _name"))
                and "Final" not in text
            ):
                filling.add(path.stem)
    assert filling - {"rules", "stages"} <= names and len(names) == len(table.MODULES)


def test_who_is_elementwise() -> None:
    f4, i4, i2 = (ShapedArray((3,), np.dtype(d)) for d in ("f4", "i4", "i2"))
    assert table.elementwise(node("add", f4, f4, out=f4))
    assert not table.elementwise(node("reduce_sum", f4, out=f4))
    assert table.elementwise(node("bitcast_convert_type", f4, out=i4))
    wide = ShapedArray((3, 2), np.dtype("i2"))
    assert not table.elementwise(node("bitcast_convert_type", f4, out=wide))
    c8 = ShapedArray((3,), np.dtype("c8"))
    assert not table.elementwise(node("atan2", c8, c8, out=c8)) and i2.shape == (3,)
