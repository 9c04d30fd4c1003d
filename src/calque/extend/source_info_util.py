"""Where equations are said to be made: files that messages leave out, the user's place, scopes."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from calque.core import source
from calque.core.source import Source, register_exclusion

__all__ = [
    "NameStack", "current", "current_name_stack", "extend_name_stack", "new_name_stack",
    "register_exclusion", "summarize", "transform_name_stack", "user_context",
]  # fmt: skip


class NameStack(str):
    """Scopes and transformations as text, outermost first. Stacks are joined by `+`.

    Args:
        scopes: Their names; that of a transformation ends in "(".

    >>> from calque import extend
    >>> extend.source_info_util.NameStack(("outer",)) + "inner"
    'outer/inner'"""

    __slots__ = ("scopes",)
    scopes: tuple[str, ...]

    def __new__(cls, scopes: Iterable[str] = ()) -> NameStack:
        names = tuple(scopes)
        self = str.__new__(cls, source.written(names))
        self.scopes = names
        return self

    def __add__(self, other: str) -> NameStack:
        return NameStack((*self.scopes, *scopes_of(other)))

    def extend(self, name: str) -> NameStack:
        """The stack with one more scope."""
        return NameStack((*self.scopes, name))

    def transform(self, name: str) -> NameStack:
        """The stack with one more transformation."""
        return NameStack((*self.scopes, f"{name}("))


def scopes_of(stack: str) -> tuple[str, ...]:
    """The scopes that a stack, or its text, stands for."""
    if isinstance(stack, NameStack):
        return stack.scopes
    return (stack,) if stack else ()


def user_context(
    traceback: Source | None, *, name_stack: str | None = None
) -> AbstractContextManager[Any]:
    """A `with` block whose operations are said to be made at another place.

    Args:
        traceback: The place, as `source_info.traceback` of an equation gives it; None for the
            line that runs.
        name_stack: The scopes, instead of those around; None keeps these.

    Returns:
        A context manager.

    >>> from calque import extend
    >>> place = jax.make_jaxpr(jnp.sin)(1.0).eqns[0].source_info.traceback
    >>> def f(x):
    ...     with extend.source_info_util.user_context(place):
    ...         return jnp.cos(x)
    >>> jax.make_jaxpr(f)(1.0).eqns[0].source_info.traceback == place
    True"""
    if traceback is not None:
        scopes = source.scopes() if name_stack is None else scopes_of(name_stack)
        return source.at(traceback._replace(scopes=tuple(scopes)))
    return nullcontext() if name_stack is None else source.only_scopes(scopes_of(name_stack))


def current() -> Source | None:
    """Gives the place in the user's code that is running.

    Returns:
        A place, or None where there is none.

    >>> from calque import extend
    >>> extend.source_info_util.current() is None
    False"""
    return source.here()


def summarize(source_info: Source | None) -> str:
    """Gives a place as text.

    Args:
        source_info: The place.

    Returns:
        File, line and function.

    >>> from calque import extend
    >>> extend.source_info_util.summarize(None)
    'unknown'"""
    return "unknown" if source_info is None else str(source_info)


def current_name_stack() -> NameStack:
    """Gives the scopes and transformations here.

    Returns:
        A NameStack.

    >>> from calque import extend
    >>> with jax.named_scope("outer"):
    ...     extend.source_info_util.current_name_stack()
    'outer'"""
    return NameStack(source.scopes())


def new_name_stack(name: str = "") -> NameStack:
    """Makes a stack of one scope, or of none.

    Args:
        name: The name of the scope; an empty one stands for none.

    Returns:
        A NameStack.

    >>> from calque import extend
    >>> extend.source_info_util.new_name_stack("a").extend("b")
    'a/b'"""
    return NameStack((name,) if name else ())


def extend_name_stack(name: str) -> AbstractContextManager[Any]:
    """A `with` block that is one more scope.

    Args:
        name: Its name.

    Returns:
        A context manager.

    >>> from calque import extend
    >>> with extend.source_info_util.extend_name_stack("outer"):
    ...     extend.source_info_util.current_name_stack()
    'outer'"""
    return source.scope(name)


def transform_name_stack(name: str) -> AbstractContextManager[Any]:
    """A `with` block whose operations are said to come out of a transformation.

    Args:
        name: The name of the transformation.

    Returns:
        A context manager.

    >>> from calque import extend
    >>> with extend.source_info_util.transform_name_stack("transpose"):
    ...     extend.source_info_util.current_name_stack() + "f"
    'transpose(f)'"""
    return source.transformed(name)
