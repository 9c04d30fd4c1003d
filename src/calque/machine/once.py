"""Threads that take turns, and what happens once in a process, also when many threads ask for it
first at the same moment."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, ParamSpec, TypeVar

from calque.machine.caches import Counters, caches

P = ParamSpec("P")
T = TypeVar("T")


class Turns:
    """A lock that a thread may take again while it has it.

    A forked child gets a new one, since the thread that held it does not exist there: what is
    guarded must be right at every moment, so publish what is done, not what is begun."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    def taken(self) -> AbstractContextManager[Any]:
        """One thread at a time."""
        return self._lock

    def _renew(self) -> None:
        self._lock = threading.RLock()


class _Once:
    """What a function that runs once has made: known to the caches, and never forgotten."""

    programs = False

    def __init__(self, module: str, name: str, made: dict[Any, Any]) -> None:
        self.name, self._made = f"{module.removeprefix('calque.')}.{name}", made

    def counters(self) -> Counters:
        n = len(self._made)
        return Counters(self.name, None, n, n, "what a process needs once", 0)

    def clear(self) -> None:
        raise AssertionError(f"{self.name} is made once")


making: Final = Turns()  # one for all: what is made once makes other things once, in any order


def once(function: Callable[P, T]) -> Callable[P, T]:
    """Decorator: as `functools.cache`, but no two threads run the function for the same
    arguments."""
    made: dict[Any, T] = {}
    if "<locals>" not in function.__qualname__:
        caches.declare(_Once(function.__module__, function.__qualname__, made))

    @functools.wraps(function)
    def found(*args: P.args, **kwargs: P.kwargs) -> T:
        key = (args, *kwargs.items()) if kwargs else args
        try:
            return made[key]
        except KeyError:
            pass
        with making.taken():
            if key not in made:
                made[key] = function(*args, **kwargs)
            return made[key]

    return found
