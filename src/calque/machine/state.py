"""The state of the process: numbers that only grow, and what upper floors put in place of a lower
one's.

What changes while calque runs stands here, in caches (`machine.caches`), in the configuration, or
in the objects of the user. `process` owns what is one's own for the process; what belongs to each
thread derives from `PerThread`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Final, Generic, Self, TypeVar

from calque.machine.caches import Caches, Table, caches
from calque.machine.once import Turns

T = TypeVar("T")
C = TypeVar("C")
F = TypeVar("F", bound=Callable[..., Any])


class Hook(Generic[F]):
    """A function that a lower floor calls and an upper one provides: `hook.call(...)`."""

    __slots__ = ("_around", "_function", "call", "default", "name")

    def __init__(self, name: str, default: F) -> None:
        self.name, self.default = name, default
        self._function = default
        self._around: dict[str, Callable[..., Any]] = {}
        self.call = default

    @property
    def installed(self) -> F:
        """What is called where nobody intercepts."""
        return self._function

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


class ProcessValue(Generic[T]):
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
        self._all = tuple([x for x in self._all if x != listener])

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
        self._latest: tuple[object, int] = (object(), 0)  # mostly the same object is asked for
        self._turns = Turns()

    def number(self, configuration: Hashable) -> int:
        """The number of a configuration, a new one if it has none."""
        latest, known = self._latest
        return known if latest is configuration else self._found(configuration)

    def _found(self, configuration: Hashable) -> int:
        with self._turns.taken():
            known = self._numbers.find(configuration)
            if known is None:
                self._last += 1
                known = self._numbers[configuration] = self._last
            self._latest = (configuration, known)
        return known

    def renew(self) -> None:
        """Every configuration gets a new number."""
        with self._turns.taken():
            self._latest = (object(), 0)
            self._numbers.clear()


class PerThread(threading.local):
    """State of which each thread has its own: attributes with defaults. A class of such state is
    declared by name as all state is: `class _Scope(PerThread, name="names of axes in scope")`."""

    def __init_subclass__(cls, *, name: str) -> None:
        process.declare(name, cls)

    def inside(self, **values: Any) -> Inside[Self]:
        """A `with` block in which these attributes have these values; then they have again those
        from before."""
        return Inside(self, values)


P = TypeVar("P", bound=PerThread)


class Inside(Generic[P]):
    """Attributes of a thread's state that hold for a `with` block, which is given the state."""

    __slots__ = ("_before", "_state", "_values")

    def __init__(self, state: P, values: dict[str, Any]) -> None:
        self._state, self._values = state, values

    def __enter__(self) -> P:
        state = self._state
        self._before = [(name, getattr(state, name)) for name in self._values]
        try:
            for name, value in self._values.items():
                setattr(state, name, value)
        except BaseException:  # an interrupt may come after any of them
            self.__exit__()
            raise
        return state

    def __exit__(self, *error: object) -> None:
        for name, value in self._before:
            setattr(self._state, name, value)


class Process:
    """Owns the state of the process; hooks, listeners, values, containers and what belongs to each
    thread are declared once, by name."""

    def __init__(self) -> None:
        self.caches: Caches = caches
        self.epochs = Epochs()
        self._declared: dict[str, object] = {}

    def hook(self, name: str, default: F) -> Hook[F]:
        """A new hook."""
        hook = Hook(name, default)
        self.declare(name, hook)
        return hook

    def listeners(self, name: str) -> Listeners[Callable[..., None]]:
        """A new list of listeners."""
        made: Listeners[Callable[..., None]] = Listeners(name)
        self.declare(name, made)
        return made

    def value(self, name: str, initial: T) -> ProcessValue[T]:
        """A new value."""
        made = ProcessValue(name, initial)
        self.declare(name, made)
        return made

    def container(self, name: str, made: C) -> C:
        """The dict, list, set or counter itself, from now on declared: what modules and users
        register, what lives as long as the process."""
        self.declare(name, made)
        return made

    def declare(self, name: str, made: object) -> None:
        """From now on the name stands for this state."""
        if name in self._declared:
            raise ValueError(f"there is a state named {name!r} already")
        self._declared[name] = made

    def declared(self) -> tuple[str, ...]:
        """The names of all hooks, lists of listeners, values, containers and states of threads."""
        return tuple(sorted(self._declared))


process: Final = Process()
