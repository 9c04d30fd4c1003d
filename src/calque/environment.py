"""This process: what it runs on, what it waits for."""

import os
import platform
import sys
from typing import Any

import numpy as np

from calque.core.arrays import Array
from calque.core.devices import DEFAULT_DEVICE, all_devices
from calque.core.lazy import LazyModule

memory: Any = LazyModule("calque.profiling.memory")


def print_environment_info(return_string: bool = False) -> str | None:
    """Print the versions and the machine, for a report; or return the text.

    >>> "calque:" in calque.print_environment_info(return_string=True)
    True"""
    package, count = sys.modules[__name__.partition(".")[0]], len(all_devices())
    lines = [
        f"calque: {package.__version__}",
        f"numpy:  {np.__version__}",
        f"python: {sys.version}",
        f"device info: {DEFAULT_DEVICE.platform}-{count}, {count} local devices",
        "process_count: 1",
        f"platform: {platform.uname()}",
    ]
    lines += [f"{k}={v}" for k, v in sorted(os.environ.items()) if k.startswith("CALQUE_")]
    text = "\n".join(lines)
    if return_string:
        return text
    print(text)
    return None


def effects_barrier() -> None:
    """Wait for the effects of what was called. A call returns when its callbacks are through: there
    is nothing to wait for."""


def live_arrays(platform: str | None = None) -> list[Array]:
    """All arrays that something holds: variables, attributes, containers. `platform` may be "cpu".
    They stand in no list, which is a reason why making one costs so little; finding them takes a
    look at every object of the process.

    >>> x = jnp.ones(3)
    >>> any(y is x for y in calque.live_arrays())
    True"""
    if platform not in (None, "cpu"):
        return []
    found: list[Array] = memory.live_arrays()
    return found
