"""`jax._src.xla_bridge`: devices."""

from typing import Any

from calque.core.devices import Client, are_settled
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
    "backends_are_initialized", "default_backend", "device_count", "devices",
    "local_device_count", "local_devices", "process_count", "process_index",
]  # fmt: skip


def backends_are_initialized() -> bool:
    """Whether the number of devices is settled: it was asked for, or set by the option."""
    return are_settled()


def __getattr__(name: str) -> Any:
    """`_backends`: what runs programs by the name of its platform, as soon as the number of devices
    is settled. Before that the flag of XLA may still be set."""
    if name == "_backends":
        return {"cpu": Client()} if are_settled() else {}
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
