"""All the rules of lowering in one place, and which equations are elementwise.

Importing this module fills the tables `RULES`, `EXPANSIONS` and `LIMITS`."""

from __future__ import annotations

from calque.native.lower import branches as lower_cond
from calque.native.lower import convolution as lower_conv
from calque.native.lower import dot as lower_dot
from calque.native.lower import indexing as lower_index
from calque.native.lower import largest as lower_select
from calque.native.lower import layout as lower_layout
from calque.native.lower import marks as lower_marks
from calque.native.lower import random as lower_random
from calque.native.lower import reductions as lower_reduce
from calque.native.lower import renamed as lower_simple
from calque.native.lower import windows as lower_pool
from calque.native.lower.graph import Node
from calque.native.scalars import elements


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
