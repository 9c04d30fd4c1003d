"""What XLA's passes are told about operations. Calque's own compiler is told nothing."""

from __future__ import annotations

from typing import Any, TypeVar

from calque.experimental import wishes

__all__ = ["set_xla_metadata"]

F = TypeVar("F")


class _Metadata:
    """What `set_xla_metadata` gives without a value: for a `with` block or as a decorator."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None

    def __call__(self, f: F) -> F:
        if not callable(f):
            raise TypeError(f"set_xla_metadata: expected a function to decorate, got {f!r}")
        return f


def set_xla_metadata(x: Any = None, **kwargs: Any) -> Any:
    """Says something about operations to XLA's passes.

    Args:
        x: A tree of values, about whose operations it is said. None says it of all operations
            inside a `with` block, or of a decorated function.
        **kwargs: What is said.

    Returns:
        The same values; without them what can be used in a `with` statement or as a decorator.

    Differs from JAX:
        It has no effect, which the log notes once.

    >>> from calque.experimental.xla_metadata import set_xla_metadata
    >>> with set_xla_metadata(kind="slow"):
    ...     y = set_xla_metadata(jnp.sin(0.0), kind="quick")
    >>> y
    Array(0., dtype=float32, weak_type=True)"""
    for name in kwargs:
        wishes.note(f"the metadata {name!r} speaks to XLA")
    return _Metadata() if x is None else x
