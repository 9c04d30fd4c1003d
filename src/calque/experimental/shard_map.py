"""shard_map with its older signature."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from calque.transforms.devices import shard_map as _new

if TYPE_CHECKING:
    from calque.core.generics import P, R


def shard_map(
    f: Callable[P, R],
    mesh: Any,
    in_specs: Any,
    out_specs: Any,
    check_rep: bool = True,
    auto: frozenset[Any] = frozenset(),
) -> Callable[P, R]:
    """Maps a function over the shards of its arguments: `calque.shard_map` by its older name.

    Args:
        f: A function of shards.
        mesh: The mesh whose axes the specs name.
        in_specs: A PartitionSpec, or a tree of them, for the arguments.
        out_specs: Likewise for the results.
        check_rep: Whether it is checked that results are the same where `out_specs` say so.
        auto: Axes of the mesh that are not mapped over. None of them by default.

    Returns:
        A function of whole arrays.

    >>> from calque.experimental.shard_map import shard_map
    >>> P = calque.sharding.PartitionSpec
    >>> shard_map(lambda x: 2 * x, calque.make_mesh((1,), ("x",)), P("x"), P("x"))(jnp.arange(3.0))
    Array([0., 2., 4.], dtype=float32)"""
    names = frozenset(mesh.axis_names) - auto
    return _new.shard_map(
        f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep, axis_names=names
    )
