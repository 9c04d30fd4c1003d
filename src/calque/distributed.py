"""Several processes as one machine, by XLA's runtime. The native backend has one process."""

import os
from collections.abc import Sequence
from typing import Any, Final

from calque.core import lazy
from calque.core.config import config
from calque.core.devices import number_of_processes, were_asked_for
from calque.machine.state import ProcessValue, process
from calque.xla.clusters import Place, filled

_join = lazy.function("calque.xla.processes", "join")
_leave = lazy.function("calque.xla.processes", "leave")

_started: Final[ProcessValue[bool]] = process.value("distributed.initialize", False)


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
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
    jaxlib, unless another platform of XLA was chosen; the native backend has one process. What is
    not given is what the launcher tells, if it is Slurm or Open MPI.

    Args:
        coordinator_address: where processes meet: host:port of process 0. None takes that of
            JAX_COORDINATOR_ADDRESS, or of the launcher.
        num_processes: how many there are; None takes what the launcher says. One goes on alone.
        process_id: which one this is, from 0; None takes what the launcher says.
        local_device_ids: the numbers of the GPUs of this machine that are this process's; None
            takes JAX_LOCAL_DEVICE_IDS, or one GPU where a launcher tells which process of its
            machine this is. For CPUs it says nothing.
        cluster_detection_method: the launcher that is asked: "slurm", "ompi", or "mpi4py", which
            asks any MPI by that package; "deactivate" asks none.
        initialization_timeout: seconds that it waits for the others, more than 0.
        heartbeat_timeout_seconds: seconds after which a silent process counts as dead, more
            than 0.
        shutdown_timeout_seconds: seconds, more than 0.
        coordinator_bind_address: the address at which process 0 listens; None takes that of
            JAX_COORDINATOR_BIND_ADDRESS, or all.
        slice_index, partition_index: must be None.

    Raises:
        RuntimeError: It was called before, or devices were asked for.
        ValueError: It is not known where the processes meet, how many there are, or which one this
            is.

    >>> jax.distributed.initialize("localhost:1234", 1, 0)  # doctest: +SKIP
    >>> jax.distributed.is_initialized()  # doctest: +SKIP
    True"""
    _check_first()
    _check_options(
        {"slice_index": slice_index, "partition_index": partition_index},
        {
            "initialization_timeout": initialization_timeout,
            "heartbeat_timeout_seconds": heartbeat_timeout_seconds,
            "shutdown_timeout_seconds": shutdown_timeout_seconds,
        },
    )
    known = Place(
        coordinator_address or os.environ.get("JAX_COORDINATOR_ADDRESS"),
        num_processes,
        process_id,
        _own_devices(local_device_ids),
    )
    place = filled(known, cluster_detection_method, initialization_timeout)
    address, count, number = _checked(place)
    for platform in ("cuda", "rocm") if place.local_devices else ():
        config.update(
            f"jax_{platform}_visible_devices", ",".join(map(str, place.local_devices or ()))
        )
    if count > 1:
        _join(
            address,
            count,
            number,
            coordinator_bind_address or os.environ.get("JAX_COORDINATOR_BIND_ADDRESS"),
            initialization_timeout,
            heartbeat_timeout_seconds,
            shutdown_timeout_seconds,
        )
    _started.value = True


def _check_first() -> None:
    if _started.value:
        raise RuntimeError("distributed.initialize should only be called once.")
    if were_asked_for.value:
        raise RuntimeError(
            "distributed.initialize must be called before anything that asks for devices, as"
            " jax.devices, jax.device_put and meshes do: this process has its own already. Make it"
            " the first call of the program"
        )


def _check_options(refused: dict[str, Any], seconds: dict[str, int]) -> None:
    asked = [name for name, value in refused.items() if value is not None]
    if asked:
        raise NotImplementedError(
            f"distributed.initialize: {', '.join(asked)} cannot be chosen: all devices are one"
            " slice"
        )
    for name, value in seconds.items():
        if value <= 0:
            raise ValueError(f"distributed.initialize: {name} must be positive, got {value}")


def _own_devices(given: int | Sequence[int] | None) -> list[int] | None:
    """The numbers of the devices that are this process's, as they were given or as the environment
    has them."""
    told = os.environ.get("JAX_LOCAL_DEVICE_IDS")
    if given is None and told:
        return [int(n) for n in told.split(",")]
    if given is None:
        return None
    return [given] if isinstance(given, int) else [int(n) for n in given]


def _checked(place: Place) -> tuple[str, int, int]:
    """Where the processes meet, how many there are and which one this is: all must be known."""
    address, count, number, _ = place
    said = "give coordinator_address, num_processes and process_id: of launchers"
    remedy = f"{said} only Slurm and Open MPI tell them, and mpi4py where it is asked"
    if address is None:
        raise ValueError(f"distributed.initialize: coordinator_address should be defined; {remedy}")
    for name, value in (("num_processes", count), ("process_id", number)):
        if value is None:
            raise ValueError(f"distributed.initialize: {name} should be defined; {remedy}")
        if not isinstance(value, int):
            raise TypeError(f"distributed.initialize: {name} must be an int, got {value!r}")
    assert count is not None and number is not None
    if not 0 <= number < count:
        raise ValueError(
            f"distributed.initialize: process_id must be from 0 to {count - 1}, got {number}"
        )
    if not address.rpartition(":")[2].isdigit():
        raise ValueError(
            f"distributed.initialize: coordinator_address is host:port, got {address!r}"
        )
    return address, count, number


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
