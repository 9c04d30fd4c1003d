"""Values that are laid out over devices in the same way."""

from __future__ import annotations

from typing import Any

from calque.core import pytrees
from calque.core.trace import typeof
from calque.core.trace_state import Tracer
from calque.device_functions import device_put

__all__ = ["shard_alike"]


def shard_alike(x: Any, y: Any) -> tuple[Any, Any]:
    """Lays two trees of arrays out alike: where one of two arrays is placed, the other follows.

    Args:
        x: A tree of arrays.
        y: A tree of the same structure and shapes. Where both are placed, differently, it is laid
            out as `x` is.

    Returns:
        The two trees.

    Differs from JAX:
        Of traced values it is a wish that has no effect: how they lie follows from what they are
        computed of.

    >>> from calque.experimental.shard_alike import shard_alike
    >>> x = jax.device_put(jnp.ones(2), jax.NamedSharding(jax.make_mesh((1,), ("i",)), jax.P("i")))
    >>> shard_alike(x, jnp.zeros(2))[1].sharding.spec
    P('i',)"""
    xs, x_tree = pytrees.flatten(x)
    ys, y_tree = pytrees.flatten(y)
    if x_tree != y_tree:
        raise ValueError(f"Trees should be equal. Got x_tree: {x_tree}, y_tree: {y_tree}")
    for a, b in zip(xs, ys):
        if typeof(a).shape != typeof(b).shape:
            raise ValueError(
                "shard_alike: the shapes of `x` and `y` must be the same, got"
                f" {typeof(a).shape} and {typeof(b).shape}"
            )
    pairs = [_alike(a, b) for a, b in zip(xs, ys)]
    firsts, seconds = [p[0] for p in pairs], [p[1] for p in pairs]
    return pytrees.unflatten(x_tree, firsts), pytrees.unflatten(y_tree, seconds)


def _alike(a: Any, b: Any) -> tuple[Any, Any]:
    if isinstance(a, Tracer) or isinstance(b, Tracer):
        return a, b
    a, b = device_put(a), device_put(b)
    if a.committed or not b.committed:
        return a, device_put(b, a.sharding) if a.committed else b
    return device_put(a, b.sharding), b
