"""`jax._src.xla_bridge`: devices."""

from typing import Any, Final

from calque.device_functions import (
    default_backend,
    device_count,
    devices,
    local_device_count,
    local_devices,
    process_count,
    process_index,
)

__all__ = [
    "_backends", "default_backend", "device_count", "devices", "local_device_count",
    "local_devices", "process_count", "process_index",
]  # fmt: skip

_backends: Final[dict[str, Any]] = {}  # clients of XLA that run: none


def backends_are_initialized() -> bool:
    """Whether the number of devices is settled."""
    return True
