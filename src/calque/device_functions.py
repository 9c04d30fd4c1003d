"""Devices: on the native backend this machine's CPU, once or as several virtual devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from calque.core import backends, pytrees
from calque.core import guards as _guards
from calque.core.arrays import ArrayImpl
from calque.core.devices import Device, all_devices, number_of_processes, process_number
from calque.core.dtypes import is_extended
from calque.core.trace import typeof
from calque.core.trace_state import Tracer
from calque.transforms.devices import transfers
from calque.transforms.devices.sharding_arrays import device_put

if TYPE_CHECKING:
    import numpy as np

    from calque.core.arrays import Array
    from calque.core.generics import Asked

_T = TypeVar("_T")


def devices(backend: str | None = None) -> list[Device]:
    """Lists all devices.

    Args:
        backend: "cpu" or None; the name of another platform asks that one.

    Returns:
        A list of devices; one, unless CALQUE_NUM_CPU_DEVICES says otherwise.

    >>> jax.devices()
    [CpuDevice(id=0)]"""
    if backend not in (None, "cpu"):
        return list(backends.known.devices_of(backend))
    return list(backends.known.default_devices() if backend is None else all_devices())


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """Lists the devices of this process, or of another one.

    Args:
        process_index: The number of a process; None is this one.
        backend: "cpu" or None; the name of another platform asks that one.
        host_id: An older name for `process_index`.

    Returns:
        A list of devices.

    >>> jax.local_devices()
    [CpuDevice(id=0)]"""
    process_index = host_id if process_index is None else process_index
    if process_index is not None and not 0 <= process_index < number_of_processes():
        raise ValueError(
            f"Unknown process_index {process_index}: there are {number_of_processes()} processes"
        )
    wanted = process_number() if process_index is None else process_index
    return [d for d in devices(backend) if d.process_index == wanted]


def device_count(backend: str | None = None) -> int:
    """Counts the devices.

    Args:
        backend: "cpu" or None; the name of another platform asks that one.

    Returns:
        An int.

    >>> jax.device_count()
    1"""
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """Counts the devices of this process.

    Args:
        backend: "cpu" or None; the name of another platform asks that one.

    Returns:
        An int.

    >>> jax.local_device_count()
    1"""
    return len(local_devices(backend=backend))


def default_backend() -> str:
    """Names the platform that programs run on.

    Returns:
        "cpu", also for the CPU under XLA, or the name of the accelerator that was chosen, or that
        is there with its plugin: "gpu", "tpu". A chosen platform that is not there is an error.

    >>> jax.default_backend()
    'cpu'"""
    return str(backends.known.default_devices()[0].platform)


def process_index(backend: str | None = None) -> int:
    """Gives the number of this process.

    Args:
        backend: "cpu" or None; the name of another platform asks that one.

    Returns:
        An int: 0 where there is one process.

    >>> jax.process_index()
    0"""
    devices(backend)
    return process_number()


def process_count(backend: str | None = None) -> int:
    """Counts the processes that take part.

    Args:
        backend: "cpu" or None; the name of another platform asks that one.

    Returns:
        An int.

    >>> jax.process_count()
    1"""
    devices(backend)
    return number_of_processes()


def process_indices(backend: str | None = None) -> list[int]:
    """Lists the numbers of the processes.

    Args:
        backend: "cpu" or None; the name of another platform asks that one.

    Returns:
        A list of ints.

    >>> jax.process_indices()
    [0]"""
    devices(backend)
    return list(range(number_of_processes()))


host_id, host_count, host_ids = process_index, process_count, process_indices


@overload
def device_get(x: Array) -> np.ndarray: ...


@overload
def device_get(x: Any) -> Asked: ...  # type: ignore[type-var]


def device_get(x: Any) -> Any:
    """Gives the leaves of a tree as NumPy arrays.

    Args:
        x: A tree of arrays. Random keys stay as they are: they have no values.

    Returns:
        The tree with NumPy arrays, which share memory with the arrays where they can.

    >>> jax.device_get({"a": jnp.arange(3)})
    {'a': array([0, 1, 2], dtype=int32)}"""
    with transfers.asked.inside(is_explicit=True):
        return pytrees.tree_map(_on_host, x)


def _on_host(a: Any) -> Any:
    on_device = isinstance(a, (ArrayImpl, Tracer)) and not is_extended(typeof(a).dtype)
    return a.__array__() if on_device else a


def block_until_ready(x: _T) -> _T:
    """Waits for arrays that are being computed.

    The native backend computes before it returns: there is nothing to wait for. Programs on XLA
    may go on meanwhile; what goes wrong there is raised here.

    Args:
        x: A tree of arrays.

    Returns:
        The same tree.

    >>> jax.block_until_ready(jnp.arange(3))
    Array([0, 1, 2], dtype=int32)"""
    for leaf in pytrees.leaves(x):
        wait = getattr(leaf, "block_until_ready", None)
        if wait is not None:
            wait()
    return x


def copy_to_host_async(x: _T) -> _T:
    """Begins to copy arrays to the host.

    Those of calque are there already; objects of others with a method of this name are asked.

    Args:
        x: A tree of arrays.

    Returns:
        The same tree.

    >>> jax.copy_to_host_async(jnp.arange(3))
    Array([0, 1, 2], dtype=int32)"""
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

_guards.guard_public(globals())
