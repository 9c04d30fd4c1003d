"""Sets of devices that programs may be compiled for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from calque.core.devices import Device, all_devices
from calque.transforms.devices.mesh import Mesh


class TopologyDescription:
    """Devices of one kind that programs may be compiled for.

    Args:
        devices: The devices.

    >>> from calque.experimental import topologies
    >>> topologies.TopologyDescription(jax.devices()[:1])
    TopologyDescription([CpuDevice(id=0)])"""

    def __init__(self, devices: Sequence[Device]):
        self.devices = list(devices)

    def __repr__(self) -> str:
        return f"TopologyDescription({self.devices})"


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """Gives the devices of this machine.

    Args:
        platform: The platform; None takes all.

    Returns:
        A TopologyDescription.

    >>> from calque.experimental import topologies
    >>> topologies.get_attached_topology().devices[:1]
    [CpuDevice(id=0)]"""
    found = [d for d in all_devices() if platform in (None, d.platform)]
    if not found:
        raise ValueError(f"get_attached_topology: no device of the platform {platform!r} is here")
    return TopologyDescription(found)


def get_topology_desc(
    topology_name: str = "", platform: str | None = None, **kwargs: Any
) -> NoReturn:
    """Would describe devices that are not here; refused.

    Args:
        topology_name: The name of the topology.
        platform: The platform.
        **kwargs: Further options.

    Returns:
        Nothing: it raises.

    Differs from JAX:
        Programs are compiled for the machine that they run on.

    >>> from calque.experimental import topologies
    >>> topologies.get_topology_desc("v5e:2x2")
    Traceback (most recent call last):
    NotImplementedError: topology not implemented: 'v5e:2x2' is not attached..."""
    raise NotImplementedError(
        f"topology not implemented: {topology_name or platform!r} is not attached, and calque"
        " compiles for the processor that it runs on. get_attached_topology() has its devices"
    )


def make_mesh(
    topo: TopologyDescription,
    mesh_shape: Sequence[int],
    axis_names: Sequence[str],
    *,
    contiguous_submeshes: bool = False,
) -> Mesh:
    """Gives the devices of a topology as a mesh.

    Args:
        topo: The topology.
        mesh_shape: The size of each axis.
        axis_names: The name of each axis.
        contiguous_submeshes: Whether parts of the mesh are neighbours; all devices are.

    Returns:
        A Mesh.

    >>> from calque.experimental import topologies
    >>> topologies.make_mesh(topologies.get_attached_topology(), (1,), ("x",)).axis_names
    ('x',)"""
    n = math.prod(mesh_shape)
    if n > len(topo.devices):
        raise ValueError(f"make_mesh: {tuple(mesh_shape)} needs {n} devices, {topo} has fewer")
    return Mesh(np.array(topo.devices[:n], object).reshape(tuple(mesh_shape)), tuple(axis_names))
