"""Looking into compiled programs while they run."""

import pdb
import sys
from collections.abc import Callable
from typing import Any

from calque.core import pytrees
from calque.device_functions import devices
from calque.transforms.callbacks import debug_callback as callback
from calque.transforms.callbacks import debug_print as print
from calque.transforms.sharding import SingleDeviceSharding

__all__ = [
    "DebugEffect",
    "OrderedDebugEffect",
    "breakpoint",
    "callback",
    "inspect_array_sharding",
    "print",
    "visualize_array_sharding",
    "visualize_sharding",
]


class DebugEffect:
    """Marks a call back to Python that may be moved past others."""

    __slots__ = ()

    def __str__(self) -> str:
        return "Debug"


class OrderedDebugEffect:
    """Marks a call back to Python that keeps its place among others."""

    __slots__ = ()

    def __str__(self) -> str:
        return "OrderedDebug"


def breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    **kwargs: Any,
) -> Any:
    """Stop in Python's debugger when the program reaches this point. The values given by name are there as `values`.

    Write `calque.debug.breakpoint(x=x)` in a jitted function, and look at `values["x"]` at the prompt."""
    if backend not in (None, "cli"):
        raise ValueError(f"debug.breakpoint: the only backend is 'cli', got {backend!r}")

    def stop(**values: Any) -> None:
        pdb.Pdb(stdout=sys.stdout).set_trace(sys._getframe())

    callback(stop, ordered=ordered, **kwargs)
    return token


def inspect_array_sharding(value: Any, *, callback: Callable[[Any], None]) -> None:
    """Call back with the sharding of each array of a tree; those of a program that is being recorded have that of one device.

    >>> import calque, calque.numpy as jnp
    >>> calque.debug.inspect_array_sharding(jnp.ones(2), callback=lambda s: print(type(s).__name__))
    SingleDeviceSharding"""
    for leaf in pytrees.leaves(value):
        callback(getattr(leaf, "sharding", None) or SingleDeviceSharding(devices()[0]))


def visualize_array_sharding(arr: Any, **kwargs: Any) -> None:
    """Print which device holds which part of a vector or matrix.

    >>> import calque, calque.numpy as jnp
    >>> calque.debug.visualize_array_sharding(jnp.ones(4))
    ┌───────┐
    │ CPU 0 │
    └───────┘"""
    inspect_array_sharding(arr, callback=lambda s: visualize_sharding(arr.shape, s, **kwargs))


def visualize_sharding(
    shape: Any,
    sharding: Any,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: Any = None,
) -> None:
    """Print which device holds which part of a vector or matrix of this shape."""
    if len(shape) not in (1, 2):
        raise ValueError("`visualize_sharding` only works for shapes with 1 and 2 dimensions.")
    cells: dict[tuple[int, int], list[str]] = {}
    for device, index in sharding.devices_indices_map(tuple(shape)).items():
        at = [s.start or 0 for s in index]
        cells.setdefault((at[0], at[1]) if len(at) == 2 else (0, at[0]), []).append(str(device.id))
    rows, columns = sorted({r for r, _ in cells}), sorted({c for _, c in cells})
    names = [["CPU " + ",".join(cells[r, c]) for c in columns] for r in rows]
    width = max(min_width - 4, *(len(n) for row in names for n in row)) + 2
    line = lambda left, between, right: left + between.join(["─" * width] * len(columns)) + right
    body = [line("┌", "┬", "┐")]
    for i, row in enumerate(names):
        body += [line("├", "┼", "┤")] * (i > 0) + ["│" + "│".join(n.center(width) for n in row) + "│"]
    sys.stdout.write("\n".join([*body, line("└", "┴", "┘")]) + "\n")
