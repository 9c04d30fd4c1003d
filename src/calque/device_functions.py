"""Devices: on the native backend this machine's CPU, once or as several virtual devices."""

from typing import Any, TypeVar

from calque.core import backends, pytrees
from calque.core.arrays import ArrayImpl
from calque.core.devices import Device, all_devices
from calque.core.dtypes import is_extended
from calque.core.trace import typeof
from calque.core.trace_state import Tracer
from calque.transforms.devices.sharding_arrays import device_put

_T = TypeVar("_T")


def devices(backend: str | None = None) -> list[Device]:
    """All devices.

    >>> import calque
    >>> calque.devices()
    [CpuDevice(id=0)]"""
    if backend not in (None, "cpu"):
        return list(backends.known.devices_of(backend))
    return list(all_devices())


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """The devices of this process: all of them."""
    process_index = host_id if process_index is None else process_index
    if process_index not in (None, 0):
        raise ValueError(f"Unknown process_index {process_index}: the only process is 0")
    return devices(backend)


def device_count(backend: str | None = None) -> int:
    """How many devices there are."""
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """How many devices this process has."""
    return len(devices(backend))


def default_backend() -> str:
    """The platform that programs run on: 'cpu'."""
    return "cpu"


def process_index(backend: str | None = None) -> int:
    """The number of this process: 0."""
    devices(backend)
    return 0


def process_count(backend: str | None = None) -> int:
    """How many processes take part: 1."""
    devices(backend)
    return 1


def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of the processes."""
    devices(backend)
    return [0]


host_id, host_count, host_ids = process_index, process_count, process_indices


def device_get(x: Any) -> Any:
    """The leaves of a tree as NumPy arrays; random keys stay as they are, they have no values."""
    return pytrees.tree_map(_on_host, x)


def _on_host(a: Any) -> Any:
    on_device = isinstance(a, (ArrayImpl, Tracer)) and not is_extended(typeof(a).dtype)
    return a.__array__() if on_device else a


def block_until_ready(x: _T) -> _T:
    """Wait for arrays that are being computed; what went wrong is raised here. The native backend
    computes before it returns, so there is nothing to wait for; XLA may not have finished."""
    for leaf in pytrees.leaves(x):
        wait = getattr(leaf, "block_until_ready", None)
        if wait is not None:
            wait()
    return x


def copy_to_host_async(x: _T) -> _T:
    """Begin to copy arrays to the host: those of calque are there already, objects of others that
    have such a method are asked."""
    for leaf in pytrees.leaves(x):
        begin = getattr(leaf, "copy_to_host_async", None)
        if begin is not None:
            begin()
    return x


__all__ = [
    "Device", "block_until_ready", "copy_to_host_async", "default_backend", "device_count",
    "device_get", "device_put", "devices",
    "host_count", "host_id", "host_ids", "local_device_count", "local_devices", "process_count",
    "process_index",
    "process_indices",
]  # fmt: skip
