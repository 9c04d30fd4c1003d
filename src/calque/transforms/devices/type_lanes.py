"""Lanes of `vmap` over values whose types say that the mapped dimension is split over a mesh: so is
that of the results, and the lanes do not see these axes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from calque.core.arrays import ArrayImpl
from calque.core.trace import placed_typeof
from calque.core.trace_state import Tracer
from calque.transforms.devices.abstract_mesh import AbstractMesh
from calque.transforms.devices.sharding import NamedSharding
from calque.transforms.devices.sharding_arrays import constraint
from calque.transforms.devices.sharding_arrays import placed as put_on
from calque.transforms.devices.specs import PartitionSpec, names_in, names_of_spec
from calque.transforms.devices.types import MeshPlace

Names = tuple[Hashable, ...]


def _place(x: Any) -> MeshPlace | None:
    """What the type of a value says of explicit axes."""
    if isinstance(x, Tracer):
        place = x.aval.place
    elif isinstance(x, ArrayImpl) and x._extra is not None:
        place = placed_typeof(x).place
    else:
        return None
    return place if isinstance(place, MeshPlace) and place.mesh.explicit_axes else None


def lane_axes(
    values: Sequence[Any], dims: Sequence[int | None], spmd: Names
) -> tuple[Names, AbstractMesh] | None:
    """The explicit axes over which the mapped dimension is split, and their mesh; None if it is not
    split."""
    places = [_place(x) for x in values]
    mapped = [(p, d) for p, d in zip(places, dims) if p is not None and d is not None]
    found = {p.spec.partitions[d] for p, d in mapped}
    if len(found) > 1:
        raise ValueError(
            "Mapped away dimension of inputs passed to vmap should be sharded the same. Got"
            f" inconsistent axis specs: {' vs '.join(sorted(map(str, found)))}"
        )
    names = names_in(next(iter(found), None))
    if not names:
        return None
    if spmd and set(spmd) != set(names):
        raise ValueError(
            "Only one of spmd_axis_name or arrays sharded on `Explicit` mesh axis type is allowed."
            f" Got spmd_axis_name={spmd} and arrays sharded on {names}"
        )
    for p, d in zip(places, dims):
        if d is None and p is not None and names_of_spec(p.spec) & set(names):
            raise ValueError(
                "Unmapped values passed to vmap cannot be sharded along the axes over which the"
                f" mapped dimension of others is. Got an unmapped value with the spec {p.spec} and"
                f" mapped ones sharded on {names}"
            )
    return names, mapped[0][0].mesh


def on_lanes(x: Any, dim: int, lanes: tuple[Names, AbstractMesh]) -> Any:
    """A result with its mapped dimension split as that of the arguments."""
    names, mesh = lanes
    aval = placed_typeof(x)
    place = aval.place
    spec = place.spec if isinstance(place, MeshPlace) else PartitionSpec(*[None] * aval.ndim)
    entries = spec.partitions
    if names_in(entries[dim]) == names or names_of_spec(spec) & set(names):
        return x
    sharding = NamedSharding(
        mesh, spec.update(partitions=(*entries[:dim], names, *entries[dim + 1 :]))
    )
    return constraint.call(x, sharding) if isinstance(x, Tracer) else put_on(x, sharding)
