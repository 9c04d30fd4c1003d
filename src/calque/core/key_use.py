"""Which random keys have been used, while `calque_debug_key_reuse` is on: a key used a second time is an error that names both places."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from calque.core.config import config
from calque.core.errors import KeyReuseError
from calque.core.source import here

MOST: Final = 100_000  # keys that are remembered


class Use(NamedTuple):
    """A key, kept so that its address stays its own, and how and where it was used up."""

    key: Any
    how: str
    where: str


_used: OrderedDict[int, Use] = OrderedDict()


def consume(key: Any, how: str, where: str | None = None) -> None:
    """`how` uses the key up, at the user's line unless told otherwise."""
    where = str(here()) if where is None else where
    before = _used.get(id(key))
    if before is not None:
        raise KeyReuseError(
            f"A random key is reused: {before.how} used it at {before.where}, and now {how} at {where}. The same key gives the same"
            " numbers. Split it first, key, sub = random.split(key), and use each part once; random.clone(key) says that reuse is meant."
        )
    if len(_used) >= MOST:
        _used.popitem(last=False)
    _used[id(key)] = Use(key, how, where)


def consume_again(uses: Sequence[tuple[int, Use]], arguments: Sequence[Any], function: str) -> None:
    """A traced function runs: the arguments that it uses up are used up now."""
    if config.debug_key_reuse:
        for i, use in uses:
            consume(arguments[i], f"{use.how} in {function}")


def use_of(key: Any) -> Use | None:
    """How a key was used up, if it was."""
    return _used.get(id(key))
