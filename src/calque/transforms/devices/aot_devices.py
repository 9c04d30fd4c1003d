"""The devices of programs that are compiled ahead of their calls, for arguments on abstract meshes
too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calque.core.devices import Device
from calque.transforms.devices.mesh import Mesh
from calque.transforms.devices.program_devices import is_abstract
from calque.transforms.devices.sharding import NamedSharding, Sharding, default_sharding

Placements = Sequence[Sharding | None]


def _abstract(placements: Placements) -> list[NamedSharding]:
    return [s for s in placements if isinstance(s, NamedSharding) and is_abstract(s)]


def _devices(placements: Placements) -> tuple[Device, ...] | None:
    """The devices of those arguments that have some."""
    known = (s for s in placements if s is not None and not is_abstract(s))
    return next((s.device_order for s in known), None)


def check_known(placements: Placements) -> None:
    """Arguments on abstract meshes alone say nothing of the platform that a program is for."""
    if _abstract(placements) and _devices(placements) is None:
        raise ValueError(
            "Passing lowering_platforms via jax.export or"
            " jax.jit(f).trace(*args).lower(lowering_platforms=...) is required when only"
            " AbstractMesh exists in a jitted computation."
        )


def check_sizes(placements: Placements) -> None:
    """Abstract meshes have as many members as there are devices."""
    devices = _devices(placements)
    for s in _abstract(placements):
        if devices is not None and s.mesh.size != len(devices):
            raise ValueError(
                f"AbstractMesh size: {s.mesh.size} does not match the device assignment size:"
                f" {len(devices)}. The mesh is {s.mesh}"
            )


def assigned(placements: Placements, devices: Sequence[Device] | None) -> Placements:
    """The placements with devices for abstract meshes, which are those of the other arguments, or
    else those that `devices` names; refused if the two differ."""
    own, abstract = _devices(placements), _abstract(placements)
    if devices is None and abstract and own is None:
        raise RuntimeError(
            "device_assignment cannot be `None` during compilation of a program whose arguments are"
            " on abstract meshes. Pass the devices: `.compile(device_assignment=tuple(devices))`"
        )
    given = tuple(devices or ())
    if devices is not None and not abstract and given != (own or default_sharding().device_order):
        raise ValueError(
            "device_assignment passed to `.compile` must match the device_assignment calculated"
            f" from array shardings and out_shardings. Got {given} and"
            f" {own or default_sharding().device_order}"
        )
    order = given or own or ()
    for s in abstract:
        if s.mesh.size != len(order):
            raise ValueError(
                f"The size of abstract mesh {s.mesh.size} in {s.mesh} must match the length of"
                f" device assignment: {len(order)}"
            )
    return [_over(s, order) if isinstance(s, NamedSharding) else s for s in placements]


def _over(sharding: NamedSharding, devices: Sequence[Device]) -> NamedSharding:
    if not is_abstract(sharding):
        return sharding
    mesh = sharding.mesh
    grid = np.array(devices, object).reshape(mesh.axis_sizes)
    return sharding.update(mesh=Mesh(grid, mesh.axis_names, mesh.axis_types))
