"""Dicts that are made of a structure have their keys in the order in which they are flattened:
sorted, whatever order the dict had that the structure was taken of."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

import optree

from calque.machine.caches import Table

_DICT, _DEFAULT = 5, 8  # kinds of nodes, as optree numbers them
_CLASS = 4  # the place in a node of the class that somebody registered
_ORDER = 7  # the place in a node of the keys as the dict had them
_PLAIN: Final = frozenset((tuple, list, dict, defaultdict))
_in_order: Final[Table[Any, Any]] = Table("structures with the keys of dicts in order", 1024)


def in_order(spec: Any) -> Any:
    """The structure whose dicts have sorted keys when they are made; as a structure it is the
    same."""
    kind, nodes = spec.type, spec.num_nodes
    if nodes == 1 or (kind in (tuple, list) and nodes == spec.num_leaves + 1):
        return spec
    if kind not in _PLAIN:  # of a class that hashes in Python, as long as it likes
        return _made(spec)[0]
    try:
        known = _in_order.find(spec)
    except TypeError:  # something inside cannot be hashed
        return _made(spec)[0]
    if known is None:
        known, nodes = _made(spec)
        if all(_is_plain(node) for node in nodes):
            _in_order[spec] = known
    return known


def _made(spec: Any) -> tuple[Any, Any]:
    """The structure, and its nodes."""
    nodes, *rest = spec.__getstate__()
    dicts = [node for node in nodes if node[_ORDER] is not None]
    if not dicts or all([list(node[_ORDER]) == _keys(node) for node in dicts]):
        return spec, nodes
    ordered = tuple(
        [
            node
            if node[_ORDER] is None
            else (*node[:_ORDER], dict.fromkeys(_keys(node)), *node[_ORDER + 1 :])
            for node in nodes
        ]
    )
    made = optree.PyTreeSpec.__new__(optree.PyTreeSpec)
    made.__setstate__((ordered, *rest))  # type: ignore[attr-defined]
    return made, nodes


def _is_plain(node: Any) -> bool:
    """Whether nodes that are equal to it are the same: those of objects may not be, and keep them
    alive."""
    if node[_ORDER] is None:
        return node[_CLASS] is None
    return node[0] == _DICT and all([type(name) is str for name in _keys(node)])


def _keys(node: Any) -> list[Any]:
    """The keys of a dict in the order of its children."""
    keys: list[Any] = node[2] if node[0] == _DICT else node[2][1]
    return keys
