"""`jax._src.tree_util`: the names of `calque.tree_util`, and the table of container types."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from calque.core import pytrees
from calque.tree_util import *  # noqa: F403


class _Registry(Container[Any]):
    """`cls in _registry`: whether instances of the class are containers."""

    def __contains__(self, cls: object) -> bool:
        return isinstance(cls, type) and pytrees.is_registered(cls)


_registry = _Registry()


def flatten_one_level(tree: Any) -> tuple[list[Any], Any]:  # type: ignore[no-redef]
    """The children of a container, and the rest of it."""
    children, aux, _ = pytrees.one_level(tree)
    return children, aux
