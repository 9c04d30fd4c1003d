"""How the calls of a library function are served: marks that its definition carries.

A function of the namespace has a call path of its own: machine code serves the kinds of calls that
came before. That is not for every function, and not always worth it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from calque.core.lazy import LazyModule

cached: Any = LazyModule("calque.numpy.calls.cached")
F = TypeVar("F", bound=Callable[..., Any])
_MARK: Final = "_calque_calls"


def python_only(f: F) -> F:
    """Every call runs Python: the result is no array, or depends on values of the arguments; or a
    Python value among them decides what is computed."""
    setattr(f, _MARK, python_only)
    return f


def seldom_taught(f: F) -> F:
    """Machine code learns a call only when it has come often: Python is quick, and there are many
    kinds of calls."""
    setattr(f, _MARK, seldom_taught)
    return f


def with_numbers(f: Callable[..., Any]) -> Any:
    """A function with a call path of its own, to which Python's integers and floats are arrays that
    differ from call to call."""
    return cached.cached(f, (int, float))


def is_python_only(f: object) -> bool:
    return getattr(f, _MARK, None) is python_only


def is_seldom_taught(f: object) -> bool:
    return getattr(f, _MARK, None) is seldom_taught
