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
    """Prints the versions and the machine, for a report of a defect.

    Args:
        return_string: Whether to return the text instead of printing it.

    Returns:
        The text with `return_string`, else None.

    >>> "calque:" in jax.print_environment_info(return_string=True)
    True"""
    package, count = sys.modules[__name__.partition(".")[0]], len(all_devices())
    lines = [
        f"calque: {package.__version__}",
        *_served(),
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


def _served() -> list[str]:
    """The versions whose interface is served, as programs written for JAX see them."""
    modules = [(name, sys.modules.get(name)) for name in ("jax", "jaxlib")]
    return [
        f"{name + ':':<7} {module.__version__}"
        for name, module in modules
        if module is not None and hasattr(module, "__version__")
    ]


def effects_barrier() -> None:
    """Waits for the effects of what was called.

    A call returns when its callbacks are through, so there is nothing to wait for.

    Returns:
        None.

    >>> jax.effects_barrier()"""


def live_arrays(platform: str | None = None) -> list[Array]:
    """All arrays that something holds: variables, attributes, containers.

    Arrays stand in no list, which is a reason why making one costs so little: finding them takes a
    look at every object of the process.

    Args:
        platform: The platform of the devices whose arrays are asked for; None for all.

    Returns:
        The arrays, in no order.

    Differs from JAX:
        An array that is held by nothing but the middle of an expression is not found.

    >>> x = jnp.ones(3)
    >>> any(y is x for y in jax.live_arrays())
    True"""
    found: list[Array] = memory.live_arrays()
    if platform is None:
        return found
    return [x for x in found if any(platform in (d.platform, d.engine) for d in x.devices())]
