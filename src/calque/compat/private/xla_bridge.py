"""`jax._src.xla_bridge`: devices."""

from typing import Any, Final

from calque.core.devices import are_settled
from calque.device_functions import (
    default_backend,
    device_count,
    devices,
    local_device_count,
    local_devices,
    process_count,
    process_index,
)
from calque.machine.state import process

__all__ = [
    "_backends", "default_backend", "device_count", "devices", "local_device_count",
    "local_devices", "process_count", "process_index",
]  # fmt: skip

# clients of XLA that run: none
_backends: Final[dict[str, Any]] = process.container("backends of XLA", {})


def backends_are_initialized() -> bool:
    """Whether the number of devices is settled: it was asked for, or set by the option."""
    return are_settled()
