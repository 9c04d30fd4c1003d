"""`jax._src.tree_util`: the names of `calque.tree_util`, and the table of container types."""

from __future__ import annotations

from collections.abc import Callable, Container
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


def prefix_errors(
    prefix_tree: Any, full_tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[Callable[[str], ValueError]]:
    """For each place where `full_tree` does not begin as `prefix_tree` does: its error, given what
    the tree is to be called."""

    def error(i: int) -> Callable[[str], ValueError]:
        def named(name: str) -> ValueError:
            return ValueError(list(pytrees.differences(prefix_tree, full_tree, is_leaf, name))[i])

        return named

    return [error(i) for i, _ in enumerate(pytrees.differences(prefix_tree, full_tree, is_leaf))]
