"""`jax._src.frozen_dict`: a mapping that can be a key, where its values can be."""

from collections.abc import Iterator, Mapping
from typing import Any


class FrozenDict(Mapping[Any, Any]):
    """A mapping that nothing is written to.

    Args:
        d: The mapping whose items it has.

    >>> from calque.compat.private.helpers.frozen_dict import FrozenDict
    >>> {FrozenDict({"a": 1}): 2}[FrozenDict({"a": 1})]
    2"""

    __slots__ = ("_d",)

    def __init__(self, d: Mapping[Any, Any]):
        self._d = dict(d)

    def __repr__(self) -> str:
        return f"FrozenDict({self._d!r})"

    def __getitem__(self, key: Any) -> Any:
        return self._d[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._d)

    def __len__(self) -> int:
        return len(self._d)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrozenDict) and self._d == other._d

    def __hash__(self) -> int:
        return hash(frozenset(self._d.items()))
