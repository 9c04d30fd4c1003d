"""Objects that live beside the devices of the arguments of their methods."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from calque.experimental.colocated_python.func import ColocatedFunction, Specialization
from calque.machine.once import Turns


class _Instance:
    """What an object of a wrapped class is made of; it is made when a method is called first."""

    def __init__(self, cls: type, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._making = (cls, args, kwargs)
        self._made: list[Any] = []
        self._turns = Turns()

    def get(self) -> Any:
        """The object."""
        with self._turns.taken():
            if not self._made:
                cls, args, kwargs = self._making
                self._made.append(cls(*args, **kwargs))
        return self._made[0]


def colocated_python_class(cls: type) -> type:
    """Makes a class one whose objects live beside the devices of the arguments of their methods.

    Args:
        cls: The class. Its methods take and give arrays.

    Returns:
        A class with the same methods, each with `specialize`. An object is made when one of its
        methods is called for the first time.

    >>> from calque.experimental import colocated_python
    >>> @colocated_python.colocated_python_class
    ... class Sum:
    ...     def __init__(self):
    ...         self.total = 0
    ...     def add(self, x):
    ...         self.total = self.total + x
    ...         return self.total
    >>> s = Sum()
    >>> s.add(1.0), s.add(2.0)
    (Array(1., dtype=float32, weak_type=True), Array(3., dtype=float32, weak_type=True))"""

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        self._instance = _Instance(cls, args, kwargs)

    def method(name: str, plain: Callable[..., Any]) -> property:
        def bound(self: Any) -> ColocatedFunction:
            instance = self._instance

            def call(*args: Any, **kwargs: Any) -> Any:
                return getattr(instance.get(), name)(*args, **kwargs)

            call.__name__, call.__doc__ = name, plain.__doc__
            return ColocatedFunction(call, Specialization())

        return property(bound)

    methods = {
        name: method(name, plain)
        for name, plain in inspect.getmembers(cls, inspect.isfunction)
        if not name.startswith("__") or name == "__call__"
    }
    if "__call__" in methods:
        whole = methods["__call__"]
        methods["__call__"] = lambda self, *args, **kwargs: whole.fget(self)(*args, **kwargs)  # type: ignore[assignment, misc]
    return type(cls.__name__, (), {"__init__": init, "__doc__": cls.__doc__, **methods})
