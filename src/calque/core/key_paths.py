"""Where a leaf stands in a tree: the keys of the containers above it, as JAX prints them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


class SequenceKey:
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
    """The path as text: `['w'][0].x`."""
    if not simple:
        return separator.join(map(str, keys))
    return separator.join(
        str(next((getattr(k, f) for f in ("idx", "key", "name") if hasattr(k, f)), k)) for k in keys
    )
