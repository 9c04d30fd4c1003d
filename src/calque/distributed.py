"""Several processes as one machine, by XLA's runtime. The native backend has one process."""

from typing import Any, Final

from calque.core import lazy
from calque.core.devices import number_of_processes
from calque.machine.state import ProcessValue, process

_join = lazy.function("calque.xla.processes", "join")
_leave = lazy.function("calque.xla.processes", "leave")

_started: Final[ProcessValue[bool]] = process.value("distributed.initialize", False)


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: Any = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
) -> None:
    """Joins the other processes: their devices are one list, `jax.devices()`, in each of them.

    Call it before anything asks for devices. Several processes run on XLA's CPU, which needs
    jaxlib, unless another platform of XLA was chosen; the native backend has one process.

    Args:
        coordinator_address: where processes meet: host:port of process 0.
        num_processes: how many there are; None or 1 goes on alone.
        process_id: which one this is, from 0.
        local_device_ids: must be None.
        cluster_detection_method: must be None.
        initialization_timeout: seconds that it waits for the others, more than 0.
        heartbeat_timeout_seconds: seconds after which a silent process counts as dead, more
            than 0.
        shutdown_timeout_seconds: seconds, more than 0.
        coordinator_bind_address: the address at which process 0 listens; None takes all.
        slice_index, partition_index: must be None.

    >>> jax.distributed.initialize(num_processes=1)
    >>> jax.distributed.is_initialized()
    True
    >>> jax.distributed.shutdown()"""
    if _started.value:
        raise RuntimeError("distributed.initialize should only be called once.")
    others = {
        "cluster_detection_method": cluster_detection_method,
        "local_device_ids": local_device_ids,
        "slice_index": slice_index,
        "partition_index": partition_index,
    }
    asked = [name for name, value in others.items() if value is not None]
    if asked:
        raise NotImplementedError(
            f"distributed.initialize: {', '.join(asked)} cannot be chosen: give"
            " coordinator_address, num_processes and process_id; each process has"
            " CALQUE_NUM_CPU_DEVICES devices"
        )
    for name, seconds in (
        ("initialization_timeout", initialization_timeout),
        ("heartbeat_timeout_seconds", heartbeat_timeout_seconds),
        ("shutdown_timeout_seconds", shutdown_timeout_seconds),
    ):
        if seconds <= 0:
            raise ValueError(f"distributed.initialize: {name} must be positive, got {seconds}")
    if num_processes not in (None, 1) or process_id not in (None, 0):
        if coordinator_address is None or num_processes is None or process_id is None:
            raise ValueError(
                "distributed.initialize: coordinator_address, num_processes and process_id are"
                " needed: there is no cluster that tells them"
            )
        if not 0 <= process_id < num_processes:
            raise ValueError(
                f"distributed.initialize: process_id must be from 0 to {num_processes - 1}, got"
                f" {process_id}"
            )
        _join(
            coordinator_address,
            num_processes,
            process_id,
            coordinator_bind_address,
            initialization_timeout,
            heartbeat_timeout_seconds,
            shutdown_timeout_seconds,
        )
    elif coordinator_address is not None and num_processes is None:
        raise ValueError(
            f"distributed.initialize: how many processes meet at {coordinator_address}? Give"
            " num_processes and process_id; num_processes=1 goes on alone"
        )
    _started.value = True


def is_initialized() -> bool:
    """Whether `initialize` has been called, and `shutdown` not since.

    Returns:
        A bool.

    >>> jax.distributed.is_initialized()
    False"""
    return _started.value


def shutdown() -> None:
    """Leaves the other processes. `initialize` may be called again.

    >>> jax.distributed.shutdown()"""
    if number_of_processes() > 1:
        _leave()
    _started.value = False
