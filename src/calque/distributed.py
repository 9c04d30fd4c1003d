"""Several processes as one machine. On the native backend there is one process."""

from typing import Any, Final

from calque.machine.state import ProcessValue, process

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
    """Joins the other processes. The native backend has none, so a call only says so:
    `num_processes` is 1, `process_id` 0.

    Args:
        coordinator_address: where processes meet; it needs `num_processes=1`.
        num_processes: 1 or None.
        process_id: 0 or None.
        local_device_ids: must be None.
        cluster_detection_method: must be None.
        initialization_timeout: seconds, more than 0; nothing is waited for.
        heartbeat_timeout_seconds: seconds, more than 0.
        shutdown_timeout_seconds: seconds, more than 0.
        coordinator_bind_address: must be None.
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
    }
    others |= {"slice_index": slice_index, "partition_index": partition_index}
    asked = [name for name, value in others.items() if value is not None]
    if (
        num_processes not in (None, 1)
        or process_id not in (None, 0)
        or coordinator_bind_address
        or asked
    ):
        raise NotImplementedError(
            "distributed.initialize: the native backend runs in one process (num_processes=1,"
            " process_id=0). Set CALQUE_NUM_CPU_DEVICES=n for n devices in it"
        )
    if coordinator_address is not None and num_processes is None:
        raise NotImplementedError(
            f"distributed.initialize: there is no other process to meet at {coordinator_address};"
            " give num_processes=1 to go on alone"
        )
    for name, seconds in (
        ("initialization_timeout", initialization_timeout),
        ("heartbeat_timeout_seconds", heartbeat_timeout_seconds),
        ("shutdown_timeout_seconds", shutdown_timeout_seconds),
    ):
        if seconds <= 0:
            raise ValueError(f"distributed.initialize: {name} must be positive, got {seconds}")
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
    _started.value = False
