"""smap: shard_map over a single axis of the current mesh, with axes in place of specs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, overload

from calque.core import pytrees
from calque.transforms.devices.shard_map import Infer, shard_map
from calque.transforms.devices.specs import PartitionSpec

if TYPE_CHECKING:
    from calque.core.generics import P, R


@overload
def smap(
    f: Callable[P, R],
    /,
    *,
    in_axes: Any = Infer,
    out_axes: Any,
    axis_name: Hashable,
) -> Callable[P, R]: ...


@overload
def smap(
    f: None = None,
    /,
    *,
    in_axes: Any = Infer,
    out_axes: Any,
    axis_name: Hashable,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def smap(
    f: Callable[..., Any] | None = None,
    /,
    *,
    in_axes: Any = Infer,
    out_axes: Any,
    axis_name: Hashable,
) -> Any:
    """Makes a function that runs `f` on the parts along one mesh axis, with axes in place of specs.

    The mesh is that of `set_mesh`.

    Args:
        f: The function of one device's parts. Left out, a decorator with the other arguments is
            returned.
        in_axes: Which dimension of each argument is cut: an int, None for none, or a tree of these.
            Left out, the types of the arguments say it.
        out_axes: Along which dimension the parts of the results are joined, likewise; None for
            results that are the same everywhere.
        axis_name: The mesh axis.

    Returns:
        A function of whole arrays.

    >>> with jax.set_mesh(jax.make_mesh((1,), ("x",))):
    ...     jax.smap(lambda v: v * 2, in_axes=0, out_axes=0, axis_name="x")(jnp.arange(3.0))
    Array([0., 2., 4.], dtype=float32)"""
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    if isinstance(axis_name, (tuple, list)):
        raise TypeError(
            f"smap maps over a single axis: axis_name must be one name, got {axis_name!r}"
        )
    specs = Infer if in_axes is Infer else _specs("in_axes", in_axes, axis_name)
    return shard_map(
        f, in_specs=specs, out_specs=_specs("out_axes", out_axes, axis_name), axis_names={axis_name}
    )


def _specs(what: str, spec: Any, name: Hashable) -> Any:
    """A tree of dimensions as a tree of partition specs."""
    if isinstance(spec, list):
        spec = tuple(spec)

    def one(d: Any) -> PartitionSpec:
        if d is None:
            return PartitionSpec()
        if not isinstance(d, int) or isinstance(d, bool) or d < 0:
            raise TypeError(
                f"smap {what} must be None, a dimension from 0 on, or a tree of these, got {spec!r}"
            )
        return PartitionSpec(*[None] * d, name)

    leaves, tree = pytrees.flatten(spec, is_leaf=lambda x: x is None)
    return pytrees.unflatten(tree, [one(d) for d in leaves])
