"""Values at hand whose shardings their types speak of: arrays on meshes with explicit axes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from calque.core import trace_state
from calque.core.arrays import ArrayImpl
from calque.core.avals import ShapedArray
from calque.core.trace import placed_typeof
from calque.core.trace_state import Tracer
from calque.transforms.devices.mesh import EMPTY, Mesh
from calque.transforms.devices.sharding import NamedSharding
from calque.transforms.devices.sharding_arrays import placed
from calque.transforms.devices.sharding_constraint import sharding_constraint_p
from calque.transforms.devices.specs import names_in
from calque.transforms.devices.type_rules import retyped
from calque.transforms.devices.types import MeshPlace


def split_as(x: Any, target: Any) -> Any:
    """A value of the rank of another, split like that along the dimensions that are as long."""
    place, own = placed_typeof(target).place, placed_typeof(x)
    if not isinstance(place, MeshPlace) or not place.mesh.explicit_axes:
        return x
    sizes = zip(place.spec.partitions, own.shape, placed_typeof(target).shape)
    entries = [e if n == whole else None for e, n, whole in sizes]
    return retyped(x, own.update(place=place.with_entries(entries)))


def type_placement(aval: Any, mesh: Mesh | None) -> NamedSharding | None:
    """The sharding that a type says, over the devices of a mesh."""
    place = getattr(aval, "place", None)
    if not isinstance(place, MeshPlace) or not place.mesh.explicit_axes or mesh is None:
        return None
    return NamedSharding(mesh, place.spec)


def is_evaluating_all(values: Sequence[Any]) -> bool:
    """Whether these values are at hand, and operations on them run at once."""
    return trace_state.is_evaluating() and not any(isinstance(x, Tracer) for x in values)


def unplaced(x: Any, aval: ShapedArray, names: Sequence[Hashable]) -> Any:
    """The value without the place where it was along these axes: it is cut anew."""
    if isinstance(x, ArrayImpl):
        return placed(x, None)
    place = aval.place
    if not isinstance(place, MeshPlace) or not (
        place.spec.unreduced
        or place.spec.reduced
        or any(n in names for e in place.spec.partitions for n in names_in(e))
    ):
        return x
    kept = [tuple(n for n in names_in(e) if n not in names) for e in place.spec.partitions]
    spec = place.spec.update(
        partitions=kept,
        unreduced=place.spec.unreduced - set(names),
        reduced=place.spec.reduced - set(names),
    )
    return sharding_constraint_p.bind(
        x,
        sharding=NamedSharding(place.mesh, spec),
        layout=None,
        context_mesh=EMPTY,
        unconstrained_dims=frozenset(),
    )
