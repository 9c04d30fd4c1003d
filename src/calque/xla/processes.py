"""Several processes as one machine: they meet at the address of one of them, and their devices are
one list for each."""

from __future__ import annotations

import atexit
import socket
import time
from typing import Any, Final

from calque.core.backends import known
from calque.core.config import config
from calque.core.devices import set_process, were_asked_for
from calque.machine.state import ProcessValue, process
from calque.xla import jaxlib

joined: Final[ProcessValue[jaxlib.Distributed | None]] = process.value("other processes", None)
_service: Final[ProcessValue[Any]] = process.value("service of the processes", None)


def join(
    address: str,
    processes: int,
    process_id: int,
    bind_address: str | None,
    initialization_timeout: int,
    heartbeat_timeout: int,
    shutdown_timeout: int,
) -> None:
    """Wait for the others. From now on XLA's devices are those of all of them, and programs run
    there unless a platform was chosen, on an accelerator if there is one."""
    extension = jaxlib.jaxlib().extension
    if process_id != 0:  # XLA's own wait ends the process when it is over
        wait_for_somebody(address, initialization_timeout)
    if process_id == 0:
        _service.value = extension.get_distributed_runtime_service(
            bind_address or f"[::]:{address.rpartition(':')[2]}",
            processes,
            heartbeat_timeout=heartbeat_timeout,
            shutdown_timeout=shutdown_timeout,
        )
    client = extension.get_distributed_runtime_client(
        address,
        process_id,
        init_timeout=initialization_timeout,
        heartbeat_timeout=heartbeat_timeout,
        shutdown_timeout=shutdown_timeout,
        use_compression=True,
    )
    try:
        client.connect()
    except jaxlib.runtime_errors() as e:
        _service.value = None
        raise RuntimeError(
            f"distributed.initialize: process {process_id} of {processes} has not met the others at"
            f" {address} within {initialization_timeout} seconds: {e}"
        ) from None
    joined.value = jaxlib.Distributed(client, process_id, processes, address, _service.value)
    set_process(process_id, processes)
    if not config.platforms and not known.accelerator():
        config.update("platforms", "xla_cpu")
    atexit.register(leave)


def wait_for_somebody(address: str, seconds: float) -> None:
    """Wait until somebody listens at an address."""
    host, _, port = address.rpartition(":")
    if not (host and port.isdigit()):
        raise ValueError(
            f"distributed.initialize: coordinator_address is host:port, got {address!r}"
        )
    end = time.monotonic() + seconds
    while True:
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=1):
                return
        except OSError as e:
            if time.monotonic() > end:
                raise RuntimeError(
                    f"distributed.initialize: nobody listens at {address} after {seconds} seconds:"
                    f" is process 0 running there? ({e})"
                ) from None
        time.sleep(0.1)


def leave() -> None:
    """Wait until the others have come to the end, too, and part. Devices that are known by now
    stay those of several processes."""
    before, joined.value = joined.value, None
    if not were_asked_for.value:
        set_process(0, 1)
    if before is not None:
        before.client.shutdown()
    service, _service.value = _service.value, None
    if service is not None:
        service.shutdown()
