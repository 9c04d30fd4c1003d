"""What lowering finds out in an attempt is its own until it is kept."""

from typing import Any

import numpy as np

from calque.core.avals import ShapedArray
from calque.native.control.emitters import EMITTERS
from calque.native.lower.graph import Node
from calque.native.lower.rules import Layer, Lower, View, buffer_of
from calque.native.lower.sizes import Sizes
from calque.native.plan.blocks import Planner
from calque.native.scalars.expr import const, ref

ROW = ShapedArray((4,), np.dtype("float32"))


def node(op: str, *args: Node) -> Node:
    return Node(op, args, {}, ROW, len(args))


def test_a_table_on_top_of_another() -> None:
    below = {"a": 1, "b": 2}
    top: Layer[str, int] = Layer(below)
    top["b"] = 3
    assert top["a"] == 1 and top["b"] == 3 and below["b"] == 2
    assert top.get("a") == 1 and top.get("b") == 3 and top.get("c") is None and top.get("c", 4) == 4
    assert "a" in top and "b" in top and "c" not in top
    assert dict(top) == {"b": 3}  # what is its own
    del top["b"]
    assert top["b"] == 2


def test_attempts_are_forgotten_or_kept() -> None:
    low, idx = Lower(Sizes()), (const(0),)
    x = node("input")
    y = node("sin", x)
    low.view[x] = View(buffer_of("x", (const(4),), "f32"))
    value: Any = low.attempt().at(y, idx)
    assert value.op == "sin" and (y, idx) not in low.memo

    attempt = low.attempt()
    attempt.memo[x, idx] = ref("held", "f32")
    assert attempt.at(y, idx).args[0].op == "ref"
    attempt.in_registers.add(x)
    assert low.at(y, idx) is value and x not in low.in_registers

    other = low.attempt()
    z = node("cos", x)
    kept = other.at(z, idx)
    low.keep(other)
    assert low.memo[z, idx] is kept


def test_what_an_attempt_allocates_is_gone_with_it() -> None:
    p = Planner(Sizes(), EMITTERS)
    attempt = p.attempt()
    b = attempt.temporary(node("sin"))
    attempt.constant_array(node("const"), np.zeros(4, np.float32))
    assert b not in p.mutable and b not in p.bytes and not p.consts and p.count == 0
    p.keep(attempt)
    assert b in p.mutable and p.bytes[b] == 16 and len(p.consts) == 1 and p.count == 2
