"""Parts of a program that XLA is to run together. Calque's compiler orders programs itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from calque.experimental import wishes
from calque.transforms.engines.signatures import check_callable

__all__ = ["scheduling_group", "xla_metadata_call"]


def scheduling_group(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a decorator of functions whose operations XLA runs as a group.

    Args:
        name: The name of the group.

    Returns:
        A decorator.

    Differs from JAX:
        It has no effect, which the log notes once.

    >>> from calque.experimental.scheduling_groups import scheduling_group
    >>> scheduling_group("first")(jnp.sin)(0.0)
    Array(0., dtype=float32, weak_type=True)"""
    decorator: Callable[[Callable[..., Any]], Callable[..., Any]]
    decorator = xla_metadata_call(scheduling_group=name)
    return decorator


def xla_metadata_call(f: Callable[..., Any] | None = None, **meta: str) -> Any:
    """Makes a function whose operations say something to XLA's passes.

    Args:
        f: The function. Left out, a decorator is returned.
        **meta: What is said: strings.

    Returns:
        A function of the same arguments.

    Differs from JAX:
        It has no effect, which the log notes once.

    >>> from calque.experimental.scheduling_groups import xla_metadata_call
    >>> xla_metadata_call(jnp.sin, kind="slow")(0.0)
    Array(0., dtype=float32, weak_type=True)"""
    for name, value in meta.items():
        if not isinstance(value, str):
            raise NotImplementedError(
                f"xla_metadata_call: {name} must be a string, got {value!r} of type {type(value)}"
            )
        wishes.note(f"the metadata {name!r} speaks to XLA")
    if f is None:
        return lambda g: xla_metadata_call(g, **meta)
    check_callable(f)
    return f
