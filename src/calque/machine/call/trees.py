"""Trees of containers: by machine code where it knows this interpreter, else by plain Python.

Machine code is taken at once where it is on disk or came with the package. Else nobody waits for
LLVM because of a few trees: plain Python serves the first ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from calque.machine.lazy import LazyModule
from calque.machine.objects import plain_trees
from calque.machine.objects.plain_trees import (
    NONE,
    Functions,
    Structure,
    apart,
    is_named,
    kinds,
    sorted_keys,
    together,
)
from calque.machine.objects.pyapi import IS_KNOWN

machine_trees: Any = LazyModule("calque.machine.objects.trees")

IsLeaf = Callable[[Any], bool] | None
PATIENCE = 512  # trees that are worth less than the compiler's time


class Trees:
    """The functions over trees, those that are there now.

    Args:
        known: Whether machine code knows the interpreter."""

    __slots__ = ("_left", "flatten", "follow", "leaves", "unflatten")

    flatten: Callable[[Any, IsLeaf], tuple[list[Any], Structure]]
    leaves: Callable[[Any, IsLeaf], list[Any]]

    def __init__(self, known: bool) -> None:
        self._left = PATIENCE
        self._take(plain_trees.functions)
        if known:
            if machine_trees.unit.at_hand():
                self._take(machine_trees.made())
            else:
                self.flatten, self.leaves = self._counted_flatten, self._counted_leaves

    def _take(self, functions: Functions) -> None:
        self.flatten, self.leaves, self.unflatten, self.follow = functions

    def _count(self) -> None:
        self._left -= 1
        if self._left <= 0:
            self._take(machine_trees.made())

    def _counted_flatten(self, tree: Any, is_leaf: IsLeaf) -> tuple[list[Any], Structure]:
        self._count()
        return plain_trees.tree_flatten(tree, is_leaf)

    def _counted_leaves(self, tree: Any, is_leaf: IsLeaf) -> list[Any]:
        self._count()
        return plain_trees.tree_leaves(tree, is_leaf)


trees = Trees(IS_KNOWN)

__all__ = [
    "NONE",
    "Structure",
    "Trees",
    "apart",
    "is_named",
    "kinds",
    "sorted_keys",
    "together",
    "trees",
]
