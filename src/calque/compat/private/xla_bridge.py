"""`jax._src.xla_bridge`: devices."""

import os
from typing import Any

from calque.core.backends import PLUGIN_PATHS
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
from calque.extend.backend import backends, get_backend, register_backend_factory

__all__ = [
    "backends", "backends_are_initialized", "default_backend", "device_count", "devices",
    "get_backend", "local_device_count", "local_devices", "process_count", "process_index",
    "register_backend_factory", "register_plugin",
]  # fmt: skip
_PRIORITY = 400  # of plugins that ask for none


def backends_are_initialized() -> bool:
    """Whether the number of devices is settled: it was asked for, or set by the option."""
    return are_settled()


def register_plugin(
    plugin_name: str, *, priority: int = _PRIORITY, library_path: str | None = None, **rest: Any
) -> None:
    """Names the library of a plugin of XLA, for this process and its children; one of a higher
    priority than usual goes ahead of the others."""
    unknown = [name for name, value in rest.items() if value is not None]
    if unknown or not library_path:
        raise NotImplementedError(
            f"register_plugin: {plugin_name!r} is known by library_path alone, the path of its"
            f" library; {', '.join(unknown) or 'another way'} cannot be taken here"
        )
    known = [p for p in os.environ.get(PLUGIN_PATHS, "").split(",") if p]
    own, others = [f"{plugin_name}:{library_path}"], known
    ordered = [*own, *others] if priority > _PRIORITY else [*others, *own]
    os.environ[PLUGIN_PATHS] = ",".join(ordered)


def __getattr__(name: str) -> Any:
    """`_backends`: what runs programs by the name of its platform, as soon as the number of devices
    is settled. Before that the flag of XLA may still be set."""
    if name == "_backends":
        return {"cpu": Client()} if are_settled() else {}
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
