"""All the rules of lowering in one place, and which equations are elementwise.

Importing this module fills the tables `RULES`, `EXPANSIONS` and `LIMITS`."""

from __future__ import annotations

from calque.native import (
    elements,
    lower_cond,
    lower_conv,
    lower_dot,
    lower_index,
    lower_layout,
    lower_marks,
    lower_pool,
    lower_random,
    lower_reduce,
    lower_select,
    lower_simple,
)
from calque.native.lower_graph import Node


def elementwise(n: Node) -> bool:
    """Is one element of the result a function of one element of each operand?"""
    if n.op == "bitcast_convert_type":
        return n.shape == n.args[0].shape
    return elements.supports(n.op, [a.dtype for a in n.args])


MODULES = (
    lower_cond,
    lower_conv,
    lower_dot,
    lower_index,
    lower_layout,
    lower_marks,
    lower_pool,
    lower_random,
    lower_reduce,
    lower_select,
    lower_simple,
)
