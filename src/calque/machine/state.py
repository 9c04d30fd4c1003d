"""The state of the process: numbers that only grow, and what upper floors put in place of a lower
one's.

What changes while calque runs stands here, in caches (`machine.caches`), in the configuration, or
in the objects of the user. `process` owns what is one's own for the process; what belongs to each
thread derives from `PerThread`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Final, Generic, TypeVar

from calque.machine.caches import Caches, Table, caches
from calque.machine.once import Turns

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


class Hook(Generic[F]):
    """A function that a lower floor calls and an upper one provides: `hook.call(...)`."""

    __slots__ = ("_around", "_function", "call", "default", "name")

    def __init__(self, name: str, default: F) -> None:
        self.name, self.default = name, default
        self._function = default
        self._around: dict[str, Callable[..., Any]] = {}
        self.call = default

    def install(self, function: F) -> None:
        """From now on this is called."""
        self._function = function
        self._connect()

    def remove(self) -> None:
        """From now on the default is called."""
        self.install(self.default)

    def intercept(self, who: str, around: Callable[..., Any] | None) -> None:
        """From now on `around(function, ...)` is called in place of `function(...)`; None: no
        longer. Each `who` has one; the first to come stands nearest to the function."""
        if around is None:
            self._around.pop(who, None)
        else:
            self._around[who] = around
        self._connect()

    def _connect(self) -> None:
        call: Any = self._function
        for around in self._around.values():
            call = partial(around, call)
        self.call = call


class Value(Generic[T]):
    """One value of the process."""

    __slots__ = ("name", "value")

    def __init__(self, name: str, value: T) -> None:
        self.name, self.value = name, value


class Listeners(Generic[F]):
    """Functions that are called when something happens, in the order in which they were added."""

    __slots__ = ("_all", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self._all: tuple[F, ...] = ()

    def add(self, listener: F) -> None:
        self._all = (*self._all, listener)

    def remove(self, listener: F) -> None:
        self._all = tuple([x for x in self._all if x is not listener])

    def tell(self, *args: Any) -> None:
        for listener in self._all:
            listener(*args)


class Epochs:
    """Numbers of configurations. A number is given once in the life of a process: what was made
    under it is never taken for something of another configuration, nor for something that was to be
    forgotten."""

    MOST: Final = 10_000  # configurations that keep their number

    def __init__(self) -> None:
        self._numbers: Table[Hashable, int] = Table("epochs of configurations", self.MOST)
        self._last = 0
        self._turns = Turns()

    def number(self, configuration: Hashable) -> int:
        """The number of a configuration, a new one if it has none."""
        known = self._numbers.find(configuration)
        if known is None:
            with self._turns.taken():
                known = self._numbers.get(configuration)
                if known is None:
                    self._last += 1
                    known = self._numbers[configuration] = self._last
        return known

    def renew(self) -> None:
        """Every configuration gets a new number."""
        with self._turns.taken():
            self._numbers.clear()


class PerThread(threading.local):
    """State of which each thread has its own: attributes with defaults."""


class Process:
    """Owns the state of the process; hooks, listeners and values are declared once, by name."""

    def __init__(self) -> None:
        self.caches: Caches = caches
        self.epochs = Epochs()
        self._declared: dict[str, Hook[Any] | Listeners[Any] | Value[Any]] = {}

    def hook(self, name: str, default: F) -> Hook[F]:
        """A new hook."""
        hook = Hook(name, default)
        self._declare(name, hook)
        return hook

    def listeners(self, name: str) -> Listeners[Callable[..., None]]:
        """A new list of listeners."""
        made: Listeners[Callable[..., None]] = Listeners(name)
        self._declare(name, made)
        return made

    def value(self, name: str, initial: T) -> Value[T]:
        """A new value."""
        made = Value(name, initial)
        self._declare(name, made)
        return made

    def _declare(self, name: str, made: Hook[Any] | Listeners[Any] | Value[Any]) -> None:
        if name in self._declared:
            raise ValueError(f"there is a state named {name!r} already")
        self._declared[name] = made

    def declared(self) -> tuple[str, ...]:
        """The names of all hooks, lists of listeners and values."""
        return tuple(sorted(self._declared))


process: Final = Process()
