"""In which order the dimensions of an array lie in memory.

Arrays of calque lie in row-major order where programs meet; inside of a program the compiler
chooses. A layout that says so is a fact, another one a wish that changes no value."""

from __future__ import annotations

from typing import Any

from calque.core import pytrees
from calque.core.trace import typeof
from calque.experimental import wishes
from calque.transforms.devices.layouts import Format, Layout

__all__ = ["Format", "Layout", "with_layout_constraint"]


def with_layout_constraint(x: Any, layouts: Any) -> Any:
    """Gives the same values, with the wish that they lie in memory in some order.

    Args:
        x: A tree of arrays.
        layouts: A Layout, or a tree of them that `x` begins with.

    Returns:
        The same values.

    Differs from JAX:
        Another order than row-major is noted in the log once, and has no effect.

    >>> from calque.experimental.layout import Layout, with_layout_constraint
    >>> with_layout_constraint(jnp.ones((2, 3)), Layout((1, 0))).shape
    (2, 3)"""
    leaves, treedef = pytrees.flatten(x)
    orders = pytrees.prefix_broadcast(layouts, x, is_leaf=lambda v: isinstance(v, Layout))
    for leaf, layout in zip(leaves, orders, strict=True):
        rank = len(typeof(leaf).shape)
        if layout is not Layout.AUTO and len(layout.major_to_minor) != rank:
            raise ValueError(f"with_layout_constraint: {layout} for an array of {rank} dimensions")
        if layout.major_to_minor != tuple(range(rank)):
            wishes.note(f"{layout} (the compiler chooses how arrays lie inside of programs)")
    return pytrees.unflatten(treedef, leaves)
