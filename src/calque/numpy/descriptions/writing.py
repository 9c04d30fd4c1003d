"""Functions that factories make, written out: what users, editors and type checkers read."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def written(made: Callable[..., Any]) -> Callable[[F], F]:
    """The function that a factory made stands in place of the decorated one, which has no body and
    gives it its signature and its help."""

    def take(text: F) -> F:
        made.__doc__ = text.__doc__
        if made.__code__.co_posonlyargcount:  # whose names the factory does not know
            made.__signature__ = inspect.signature(text)  # type: ignore[attr-defined]
        return made  # type: ignore[return-value]

    return take
