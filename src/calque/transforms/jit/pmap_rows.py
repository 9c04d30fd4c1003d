"""pmap over the devices of several processes: each of them passes the rows of its devices, and gets
what those computed. In between there is one array of all rows, and one program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calque.core.arrays import ArrayImpl, to_array, to_numpy
from calque.core.devices import Device, is_mine
from calque.core.trace import typeof
from calque.transforms.devices.assembling import from_arrays
from calque.transforms.devices.several_processes import spanning, spans
from calque.transforms.devices.sharding import NamedSharding
from calque.transforms.devices.sharding_arrays import located


def check_rows(size: int, devices: Sequence[Device], name: str) -> None:
    """An error unless the mapped axis has one row for each device of this process."""
    own = sum(map(is_mine, devices))
    if own == 0:
        raise ValueError(
            f"pmap of {name}: this process has none of the devices {[str(d) for d in devices]};"
            " give devices= with some of each process, or jax.local_devices()"
        )
    if size != own:
        raise ValueError(
            f"pmap of {name} over {len(devices)} devices of several processes takes from each"
            f" process the rows of its own devices, which are {own} here, but the mapped axis has"
            f" size {size}. devices=jax.local_devices() maps over those of this process alone"
        )


def rows_here(x: Any, dim: int, devices: Sequence[Device]) -> int:
    """How many rows for devices of this process an argument has."""
    size: int = typeof(x).shape[dim]
    if isinstance(x, ArrayImpl) and spans(x._extra) and size == len(devices):
        return sum(map(is_mine, devices))
    return size


def of_all_rows(x: Any, dim: int | None, sharding: NamedSharding) -> Any:
    """An argument over the devices of all processes, of the rows of this one along `dim`; without
    such a dimension each device gets what its process has."""
    if isinstance(x, ArrayImpl) and spans(x._extra):
        return located(x, sharding)
    if dim is None and not isinstance(x, ArrayImpl):
        return x  # a number, or an array of NumPy: the program takes it as it is
    array = to_array(x)
    data, aval = to_numpy(array), array.aval.without_place()
    own = [d for d in sharding.device_order if is_mine(d)]
    if dim is None:
        return spanning.call(aval, sharding, dict.fromkeys(own, data))
    before = (slice(None),) * dim
    parts = {d: data[(*before, slice(i, i + 1))] for i, d in enumerate(own)}
    shape = (*aval.shape[:dim], sharding.num_devices, *aval.shape[dim + 1 :])
    return spanning.call(aval.update(shape=shape), sharding, parts)


def own_part(x: Any) -> Any:
    """What this process has of an array over a mesh, over its part of the mesh."""
    whole = x.sharding
    local = NamedSharding(whole.mesh.local_mesh, whole.spec, memory_kind=whole.memory_kind)
    aval = x.aval.without_place()
    counts = zip(local.counts(aval.ndim), whole.shard_shape(aval.shape), strict=True)
    shape = tuple(n * size for n, size in counts)
    return from_arrays(aval.update(shape=shape), local, [s.data for s in x.addressable_shards])
