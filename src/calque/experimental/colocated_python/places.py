"""The CPUs beside devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.devices import DEFAULT_DEVICE, Device, all_devices
from calque.transforms.devices.mesh import Mesh


def colocated_cpu_devices(devices_or_mesh: Sequence[Device] | Mesh) -> Any:
    """Gives the CPU devices that stand beside devices, on the same host.

    Args:
        devices_or_mesh: Devices, or a mesh of them. CPU devices stand beside themselves.

    Returns:
        A list of as many devices in the same order, or a mesh of the same shape.

    >>> from calque.experimental import colocated_python
    >>> colocated_python.colocated_cpu_devices(jax.devices()[:1])
    [CpuDevice(id=0)]"""
    if isinstance(devices_or_mesh, Mesh):
        mesh = devices_or_mesh
        found = np.empty(mesh.devices.size, object)
        found[:] = colocated_cpu_devices(tuple(mesh.devices.flat))
        return Mesh(found.reshape(mesh.devices.shape), mesh.axis_names, mesh.axis_types)
    own = iter(all_devices())
    out = []
    for device in devices_or_mesh:
        beside = device if device.engine == DEFAULT_DEVICE.engine else next(own, None)
        if beside is None:
            raise ValueError(
                f"colocated_cpu_devices: this process has {len(all_devices())} CPU devices, too few"
                f" for {list(devices_or_mesh)}; set CALQUE_NUM_CPU_DEVICES for more"
            )
        out.append(beside)
    return out
