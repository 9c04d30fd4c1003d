"""This process: what it runs on, what it waits for."""

import os
import platform
import sys

import numpy as np

from calque.core.arrays import Array
from calque.core.devices import DEFAULT_DEVICE, all_devices


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
    jax, jaxlib = (sys.modules.get(name) for name in ("jax", "jaxlib"))
    return [
        f"{name + ':':<7} {module.__version__}"
        for name, module in (("jax", jax), ("jaxlib", jaxlib))
        if hasattr(module, "__version__")
    ]


def effects_barrier() -> None:
    """Waits for the effects of what was called.

    A call returns when its callbacks are through, so there is nothing to wait for.

    Returns:
        None.

    >>> jax.effects_barrier()"""


def live_arrays(platform: str | None = None) -> list[Array]:
    """Would list all arrays of this process, and raises NotImplementedError.

    Arrays are not entered in any list, which is a reason why making one costs so little.

    Args:
        platform: The platform whose arrays are asked for.

    Returns:
        Nothing: it raises.

    Differs from JAX:
        There is no such list.

    >>> jax.live_arrays()
    Traceback (most recent call last):
    NotImplementedError: live_arrays: arrays are not kept in a list..."""
    raise NotImplementedError(
        "live_arrays: arrays are not kept in a list. To see what holds memory, use tracemalloc or"
        " sys.getrefcount"
    )
