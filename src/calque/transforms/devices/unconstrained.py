"""Dimensions that a constraint leaves open: where values are that have it."""

from __future__ import annotations

from calque.transforms.devices.sharding import NamedSharding, Sharding
from calque.transforms.devices.specs import UNCONSTRAINED, names_in, names_of_spec


def settled(sharding: Sharding, own: Sharding | None, ndim: int) -> Sharding:
    """The sharding of a value of this rank, where it was and is constrained: dimensions that are
    left open stay split as they were, along axes that the constraint does not take."""
    if not isinstance(sharding, NamedSharding) or UNCONSTRAINED not in sharding.spec.partitions:
        return sharding
    is_same = isinstance(own, NamedSharding) and own.mesh == sharding.mesh
    before = own.spec.padded(ndim) if is_same else (None,) * ndim  # type: ignore[union-attr]
    taken = names_of_spec(sharding.spec)
    entries = [
        (None if taken.intersection(names_in(b)) else b) if e is UNCONSTRAINED else e
        for e, b in zip(sharding.spec.padded(ndim), before, strict=True)
    ]
    return sharding.update(spec=sharding.spec.update(partitions=entries))
