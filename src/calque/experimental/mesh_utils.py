"""Grids of devices for meshes."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from calque.core import guards as _guards
from calque.core.backends import known
from calque.machine.state import process
from calque.transforms.devices.mesh import grid_of

Handler = Callable[..., Any]
# kind of device -> what arranges devices of this kind, or None to leave them
device_kind_handler_dict: Final[dict[str, Handler]] = process.container("orders of devices", {})


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Gives devices as a grid for a mesh.

    All of them are equally near to each other, so their order stays.

    Args:
        mesh_shape: The size of each axis.
        devices: The devices, as many as positions; None takes all.
        contiguous_submeshes: Whether parts of the grid are neighbours; given to an arrangement that
            was registered for the kind of device.
        allow_split_physical_axes: It speaks of networks of TPUs, and changes nothing here.

    Returns:
        An array of devices.

    >>> from calque.experimental import mesh_utils
    >>> mesh_utils.create_device_mesh((1, 1))
    array([[CpuDevice(id=0)]], dtype=object)"""
    chosen = list(known.default_devices() if devices is None else devices)
    if len(chosen) != math.prod(mesh_shape):
        raise ValueError(
            f"Number of devices {len(chosen)} must equal the product of mesh_shape"
            f" {tuple(mesh_shape)}"
        )
    handler = device_kind_handler_dict.get(chosen[-1].device_kind) if chosen else None
    arranged = handler and handler(mesh_shape, chosen, contiguous_submeshes=contiguous_submeshes)
    return grid_of(chosen, tuple(mesh_shape)) if arranged is None else arranged


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Any] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> np.ndarray:
    """Gives devices of several groups as a grid for a mesh.

    Args:
        mesh_shape: The size of each axis within a group.
        dcn_mesh_shape: The number of groups along each axis.
        devices: The devices; None takes all.
        process_is_granule: Whether groups are the devices of a process; otherwise all devices are
            one group.
        should_sort_granules_by_key: Whether groups are in the order of their processes; otherwise
            in that of the devices.
        allow_split_physical_axes: It speaks of networks of TPUs, and changes nothing here.

    Returns:
        An array of devices.

    >>> from calque.experimental import mesh_utils
    >>> mesh_utils.create_hybrid_device_mesh((1, 1), (1, 1))
    array([[CpuDevice(id=0)]], dtype=object)"""
    groups: dict[int, list[Any]] = {}
    for d in known.default_devices() if devices is None else devices:
        groups.setdefault(d.process_index if process_is_granule else 0, []).append(d)
    if math.prod(dcn_mesh_shape) != len(groups):
        raise ValueError(
            f"Number of slices {len(groups)} must equal the product of dcn_mesh_shape"
            f" {tuple(dcn_mesh_shape)}; process_is_granule=True makes each process one"
        )
    keys = sorted(groups) if should_sort_granules_by_key else groups
    grids = [
        create_device_mesh(
            mesh_shape, groups[k], allow_split_physical_axes=allow_split_physical_axes
        )
        for k in keys
    ]
    blocks = np.empty(len(grids), object)
    blocks[:] = [*grids]
    return np.block(blocks.reshape(tuple(dcn_mesh_shape)).tolist())


_guards.guard_public(globals())
