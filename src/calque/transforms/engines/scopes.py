"""Names for parts of a program: `named_scope` and `named_call`. Equations made inside say them in
`source_info.name_stack`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from calque.core import source, trace_state
from calque.transforms.engines.signatures import check_callable
from calque.transforms.engines.trees import name_of, wrapping

if TYPE_CHECKING:
    from calque.core.generics import P, R


_AS_IT_IS: Final = contextlib.nullcontext()


def transformed(name: str) -> contextlib.AbstractContextManager[Any]:
    """Equations made inside say that they come out of a transformation of this name."""
    return _AS_IT_IS if trace_state.is_evaluating() else source.transformed(name)


class named_scope(contextlib.ContextDecorator):
    """Names a part of a program: a context manager, or a decorator of a function.

    Equations made inside carry the name in `source_info.name_stack`; names nest, and what
    transformations make of an equation names them, too: `transpose(jvp(outer))`.

    Args:
        name: The name.

    >>> def f(x):
    ...     with jax.named_scope("outer"):
    ...         return jnp.sin(x)
    >>> jax.make_jaxpr(f)(1.0).eqns[0].source_info.name_stack
    'outer'"""

    def __init__(self, name: str):
        if not isinstance(name, str):
            raise TypeError("named_scope name argument must be a string.")
        self.name = name
        self.scopes: list[Any] = []  # one scope may be entered again within itself

    def __enter__(self) -> None:
        scope = source.scope(self.name)
        scope.__enter__()
        self.scopes.append(scope)

    def __exit__(self, *error: Any) -> None:
        self.scopes.pop().__exit__(*error)


def named_call(fun: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """Makes a function whose equations carry a name.

    Args:
        fun: The function.
        name: The name; None takes that of the function.

    Returns:
        A function of the same arguments and results.

    >>> f = jax.named_call(jnp.sin, name="wave")
    >>> jax.make_jaxpr(f)(1.0).eqns[0].source_info.name_stack
    'wave'"""
    check_callable(fun, "named_call")
    if name is not None and not isinstance(name, str):
        raise TypeError(f"named_call: the name must be a string, got {name!r}")

    def call(*args: Any, **kwargs: Any) -> Any:
        with source.scope(name_of(fun) if name is None else name):
            return fun(*args, **kwargs)

    return wrapping(call, fun)
