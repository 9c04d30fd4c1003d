"""shard_map with its older signature."""

from collections.abc import Callable
from typing import Any

from calque.transforms.devices import shard_map as _new


def shard_map(
    f: Callable[..., Any],
    mesh: Any,
    in_specs: Any,
    out_specs: Any,
    check_rep: bool = True,
    auto: frozenset[Any] = frozenset(),
) -> Callable[..., Any]:
    """`calque.shard_map` with the mesh in second place; `auto` are the mesh axes that are not
    mapped.

    >>> from calque.experimental.shard_map import shard_map
    >>> P = calque.sharding.PartitionSpec
    >>> shard_map(lambda x: 2 * x, calque.make_mesh((1,), ("x",)), P("x"), P("x"))(jnp.arange(3.0))
    Array([0., 2., 4.], dtype=float32)"""
    names = frozenset(mesh.axis_names) - auto
    return _new.shard_map(
        f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep, axis_names=names
    )
