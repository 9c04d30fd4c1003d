"""Short names for the functions of `tree_util`: `calque.tree.map(f, tree)`."""

import dataclasses as _dataclasses
from typing import Any as _Any

from calque.core import guards as _guards
from calque.core.pytrees import PyTreeDef as PyTreeDef
from calque.tree_util import tree_all as all
from calque.tree_util import tree_broadcast as broadcast
from calque.tree_util import tree_flatten as flatten
from calque.tree_util import tree_flatten_with_path as flatten_with_path
from calque.tree_util import tree_leaves as leaves
from calque.tree_util import tree_leaves_with_path as leaves_with_path
from calque.tree_util import tree_map as map
from calque.tree_util import tree_map_with_path as map_with_path
from calque.tree_util import tree_reduce as reduce
from calque.tree_util import tree_reduce_associative as reduce_associative
from calque.tree_util import tree_structure as structure
from calque.tree_util import tree_transpose as transpose
from calque.tree_util import tree_unflatten as unflatten

__all__ = [
    "all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path", "map",
    "map_with_path", "reduce", "reduce_associative",
    "static", "structure", "transpose", "unflatten",
]  # fmt: skip


def static(**kwargs: _Any) -> _Any:
    """Makes a dataclass field that is part of the structure: no leaf, but compared and hashed.

    It is `dataclasses.field` with `static` set in its metadata, for
    `jax.tree_util.register_dataclass`.

    Args:
        **kwargs: The arguments of `dataclasses.field`, such as `default`.

    Returns:
        A field.

    >>> import dataclasses
    >>> @jax.tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     w: float
    ...     name: str = jax.tree.static(default="dense")
    >>> jax.tree.leaves(Layer(1.5))
    [1.5]"""
    metadata = {"static": True, **(kwargs.pop("metadata", None) or {})}
    return _dataclasses.field(metadata=metadata, **kwargs)


_guards.guard_public(globals())
