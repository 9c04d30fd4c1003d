"""Which random keys have been used, while `calque_debug_key_reuse` is on: a key used a second time
is an error that names both places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from calque.core.config import config
from calque.core.errors import KeyReuseError
from calque.core.source import here
from calque.machine.caches import Table

MOST: Final = 100_000  # keys that are remembered


class Use(NamedTuple):
    """A key, kept so that its address stays its own, and how and where it was used up."""

    key: Any
    how: str
    where: str


_used: Final[Table[int, Use]] = Table("random keys that are used up", MOST)


def consume(key: Any, how: str, where: str | None = None) -> None:
    """`how` uses the key up, at the user's line unless told otherwise."""
    where = str(here()) if where is None else where
    before = _used.find(id(key))
    if before is not None:
        raise KeyReuseError(
            f"A random key is reused: {before.how} used it at {before.where}, and now {how} at"
            f" {where}. The same key gives the same numbers. Split it first, key, sub ="
            " random.split(key), and use each part once; random.clone(key) says that reuse is"
            " meant."
        )
    _used[id(key)] = Use(key, how, where)


def consume_again(uses: Sequence[tuple[int, Use]], arguments: Sequence[Any], function: str) -> None:
    """A traced function runs: the arguments that it uses up are used up now."""
    if config.debug_key_reuse:
        for i, use in uses:
            consume(arguments[i], f"{use.how} in {function}")


def one_of(parts: Sequence[Callable[[], Any]]) -> list[Any]:
    """Record parts of which only one will run: each finds the keys as if the others were not there.
    Used up is what any of them uses."""
    if not config.debug_key_reuse:
        return [part() for part in parts]
    before, found, out = dict(_used), dict(_used), []
    try:
        for part in parts:
            _used.clear()
            _used.update(before)
            out.append(part())
            found.update(_used)
    finally:
        _used.clear()
        _used.update(found)
    return out


def in_rounds(record: Callable[[], Any], carried: int) -> Any:
    """Record the body of a loop with so many carried values: a key that is not made in the round is
    used in every one."""
    if not config.debug_key_reuse:
        return record()
    before = set(_used)
    part = record()
    jaxpr, captured = part.closed.jaxpr, {id(c) for c in part.consts}
    own = jaxpr.invars[len(part.consts) :][:carried]
    passed_on = {id(v) for v, out in zip(own, jaxpr.outvars) if v is out}
    for use in [u for i, u in _used.items() if i not in before]:
        if id(use.key) in captured or id(getattr(use.key, "_var", None)) in passed_on:
            raise KeyReuseError(
                f"A random key is reused: {use.how} uses it at {use.where} in every round of a"
                " loop. The same key gives the same numbers. Carry a key and split it in each"
                " round, go through random.split(key, n), or use fold_in with the counter."
            )
    return part


def use_of(key: Any) -> Use | None:
    """How a key was used up, if it was."""
    return _used.get(id(key))
