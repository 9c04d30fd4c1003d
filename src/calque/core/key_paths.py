"""Where a leaf stands in a tree: the keys of the containers above it, as JAX prints them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


class SequenceKey:
    """The key of a child of a tuple or a list.

    Args:
        idx: Its position.

    >>> str(jax.tree_util.SequenceKey(0))
    '[0]'"""

    __slots__ = ("idx",)
    __match_args__ = ("idx",)

    def __init__(self, idx: int):
        self.idx = idx

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def __repr__(self) -> str:
        return f"SequenceKey(idx={self.idx!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SequenceKey) and self.idx == other.idx

    def __hash__(self) -> int:
        return hash(self.idx)


class DictKey:
    """The key of a child of a dict.

    Args:
        key: The key in the dict.

    >>> str(jax.tree_util.DictKey("w"))
    "['w']"
    """

    __slots__ = ("key",)
    __match_args__ = ("key",)

    def __init__(self, key: Hashable):
        self.key = key

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def __repr__(self) -> str:
        return f"DictKey(key={self.key!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DictKey) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


class GetAttrKey:
    """The key of a child that is an attribute.

    Args:
        name: The name of the attribute.

    >>> str(jax.tree_util.GetAttrKey("x"))
    '.x'"""

    __slots__ = ("name",)
    __match_args__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __str__(self) -> str:
        return f".{self.name}"

    def __repr__(self) -> str:
        return f"GetAttrKey(name={self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GetAttrKey) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


class FlattenedIndexKey:
    """The key of a child of a container that names none.

    Args:
        key: Its position among the children.

    >>> str(jax.tree_util.FlattenedIndexKey(0))
    '[<flat index 0>]'"""

    __slots__ = ("key",)
    __match_args__ = ("key",)

    def __init__(self, key: int):
        self.key = key

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"

    def __repr__(self) -> str:
        return f"FlattenedIndexKey(key={self.key!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FlattenedIndexKey) and self.key == other.key

    def __hash__(self) -> int:
        return hash(("flat index", self.key))


KeyPath = tuple[Any, ...]


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """Gives a path as text.

    Args:
        keys: The path, a tuple of keys.
        simple: Whether each key is shown without brackets and quotes.
        separator: What stands between two keys.

    Returns:
        A string.

    >>> path = jax.tree.leaves_with_path({"w": [5]})[0][0]
    >>> jax.tree_util.keystr(path), jax.tree_util.keystr(path, simple=True, separator="/")
    ("['w'][0]", 'w/0')"""
    if not simple:
        return separator.join(map(str, keys))
    return separator.join(
        str(next((getattr(k, f) for f in ("idx", "key", "name") if hasattr(k, f)), k)) for k in keys
    )
