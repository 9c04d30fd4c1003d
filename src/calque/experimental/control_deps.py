"""In which order XLA runs operations that do not need each other."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from calque.experimental import wishes

__all__ = ["control_dep", "schedule"]


def control_dep(src: Any, dst: Any) -> None:
    """Asks that one value is computed before another.

    Args:
        src: The first value.
        dst: The second one.

    Returns:
        None.

    Differs from JAX:
        It has no effect, which the log notes once.

    >>> from calque.experimental.control_deps import control_dep
    >>> control_dep(jnp.ones(2), jnp.zeros(2))"""
    for x in (src, dst):
        if not hasattr(x, "aval"):
            raise TypeError(f"control_dep takes arrays, got {x!r} of type {type(x).__name__}")
    wishes.note("control_dep orders XLA's operations")


def schedule(ops: Sequence[Any]) -> None:
    """Asks that values are computed in this order.

    Args:
        ops: The values.

    Returns:
        None.

    Differs from JAX:
        It has no effect, which the log notes once.

    >>> from calque.experimental.control_deps import schedule
    >>> schedule([jnp.ones(2), jnp.zeros(2)])"""
    for src, dst in itertools.pairwise(ops):
        control_dep(src, dst)
