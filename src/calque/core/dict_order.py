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
        known, to_be_kept = _made(spec)
        if to_be_kept:
            _in_order[spec] = known
    return known


def _made(spec: Any) -> tuple[Any, bool]:
    """The structure, and whether structures that are equal to it are the same: those of objects
    may not be, and keep them alive."""
    nodes, *rest = spec.__getstate__()
    keys = [_keys(node) for node in nodes]
    ordered = tuple(
        [
            node if k is None else (*node[:_ORDER], dict.fromkeys(k), *node[_ORDER + 1 :])
            for node, k in zip(nodes, keys)
        ]
    )
    plain = all(
        node[_CLASS] is None and node[0] != _DEFAULT and all(type(name) is str for name in k or ())
        for node, k in zip(nodes, keys)
    )
    if all(k is None or list(node[_ORDER]) == k for node, k in zip(nodes, keys)):
        return spec, plain
    made = optree.PyTreeSpec.__new__(optree.PyTreeSpec)
    made.__setstate__((ordered, *rest))  # type: ignore[attr-defined]
    return made, plain


def _keys(node: Any) -> list[Any] | None:
    """The keys of a dict in the order of its children."""
    if node[_ORDER] is None:
        return None
    kind, data = node[0], node[2]
    return data if kind == _DICT else data[1] if kind == _DEFAULT else None
