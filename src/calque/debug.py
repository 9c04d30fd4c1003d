"""Looking into compiled programs while they run."""

import pdb
import sys
import traceback
from collections.abc import Callable
from typing import Any

from calque.core import guards as _guards
from calque.core import pytrees
from calque.core.pause import no_collection
from calque.core.source import is_internal, user_frame
from calque.core.trace_state import Tracer
from calque.device_functions import devices
from calque.transforms.devices.sharding import SingleDeviceSharding
from calque.transforms.functions.callbacks import debug_callback as callback
from calque.transforms.functions.callbacks import debug_log as log
from calque.transforms.functions.callbacks import debug_print as print
from calque.transforms.primitives.inspecting import Inspection, inspect_sharding_p

__all__ = [
    "DebugEffect",
    "OrderedDebugEffect",
    "breakpoint",
    "callback",
    "inspect_array_sharding",
    "log",
    "print",
    "visualize_array_sharding",
    "visualize_sharding",
]


class DebugEffect:
    """Marks a call back to Python that may be moved past others.

    >>> str(jax.debug.DebugEffect())
    'Debug'"""

    __slots__ = ()

    def __str__(self) -> str:
        return "Debug"


class OrderedDebugEffect:
    """Marks a call back to Python that keeps its place among others.

    >>> str(jax.debug.OrderedDebugEffect())
    'OrderedDebug'"""

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
    """Stops in Python's debugger when the program reaches this point, also in compiled code.

    The variables of the function are there by their names, with the values that they have then, and
    so are the values given by name, also as `values`. The frames that led here are shown first.

    Args:
        backend: None or "cli".
        filter_frames: Whether the frames of calque are left out.
        num_frames: How many frames are shown; None shows all.
        ordered: Whether it keeps its order among such calls.
        token: What is returned.
        **kwargs: Further values for the debugger, by name.

    Returns:
        `token`.

    >>> @jax.jit
    ... def f(x):
    ...     jax.debug.breakpoint()
    ...     return x + 1
    >>> f(1.0)  # doctest: +SKIP"""
    if backend not in (None, "cli"):
        raise ValueError(f"debug.breakpoint: the only backend is 'cli', got {backend!r}")
    if num_frames is not None and num_frames < 1:
        raise ValueError(f"debug.breakpoint: num_frames must be at least 1, got {num_frames}")
    frame = user_frame()
    variables = dict(frame.f_locals) if frame is not None else {}
    known = {k: v for k, v in variables.items() if not _tracers(v)}
    traced = {
        k: v
        for k, v in variables.items()
        if _tracers(v) and all(not t._trace.done for t in _tracers(v))
    }
    outer = frame.f_globals if frame is not None else {}
    lines = _frames(filter_frames, num_frames)

    def stop(variables: dict[str, Any], given: dict[str, Any]) -> None:
        inner = {**known, **variables, **given, "values": given}
        inner["stop"] = lambda: pdb.Pdb(stdout=sys.stdout).set_trace(sys._getframe(1))
        sys.stdout.write("".join(lines))
        with (
            no_collection()
        ):  # else the debugger stops in a callback of the collector, if one runs just then
            exec(compile("stop()", "<calque.debug.breakpoint>", "exec"), {**outer, **inner})

    callback(stop, traced, kwargs, ordered=ordered)
    return token


def _tracers(x: Any) -> list[Tracer]:
    return [leaf for leaf in pytrees.leaves(x) if isinstance(leaf, Tracer)]


def _frames(filter_frames: bool, num_frames: int | None) -> list[str]:
    """The frames that are running now, the innermost last, as text."""
    found = []
    for f, line in traceback.walk_stack(sys._getframe(2)):
        if not (filter_frames and is_internal(f.f_code)):
            found.append((f, line))
    chosen = found if num_frames is None else found[:num_frames]
    return traceback.StackSummary.extract(iter(chosen[::-1])).format()


def inspect_array_sharding(value: Any, *, callback: Callable[[Any], None]) -> None:
    """Calls back with the sharding of each array of a tree.

    Args:
        value: A tree of arrays. Those of a program that is being recorded are where its compiler
            places them: XLA tells it when it compiles for several devices. Programs of calque's
            own engine run on one device.
        callback: A function of a sharding.

    >>> tell = lambda s: print(type(s).__name__)
    >>> jax.debug.inspect_array_sharding(jnp.ones(2), callback=tell)
    SingleDeviceSharding"""
    for leaf in pytrees.leaves(value):
        alone = SingleDeviceSharding(devices()[0])
        if isinstance(leaf, Tracer):
            inspect_sharding_p.bind(leaf, inspection=Inspection(callback, alone))
        else:
            callback(getattr(leaf, "sharding", None) or alone)


def visualize_array_sharding(arr: Any, **kwargs: Any) -> None:
    """Prints which device holds which part of a vector or matrix.

    Args:
        arr: The array.
        **kwargs: As of `visualize_sharding`.

    >>> jax.debug.visualize_array_sharding(jnp.ones(4))
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
    """Prints which device holds which part of a vector or matrix of some shape.

    Args:
        shape: The shape.
        sharding: The sharding.
        use_color: It changes nothing: the drawing has no colours.
        scale: How large a cell is drawn.
        min_width: The least width of a cell, in characters.
        max_width: The largest width of a cell.
        color_map: Must be None.

    >>> jax.debug.visualize_sharding((4,), jnp.ones(4).sharding)
    ┌───────┐
    │ CPU 0 │
    └───────┘"""
    if len(shape) not in (1, 2):
        raise ValueError("`visualize_sharding` only works for shapes with 1 and 2 dimensions.")
    cells: dict[tuple[int, int], list[str]] = {}
    for device, index in sharding.devices_indices_map(tuple(shape)).items():
        at = [s.start or 0 for s in index]
        cells.setdefault((at[0], at[1]) if len(at) == 2 else (0, at[0]), []).append(str(device.id))
    rows, columns = sorted({r for r, _ in cells}), sorted({c for _, c in cells})
    names = [["CPU " + ",".join(cells[r, c]) for c in columns] for r in rows]
    if color_map is not None:
        raise NotImplementedError(
            "visualize_sharding: the drawing has no colours, leave out color_map"
        )
    width = max(min_width - 4, *(len(n) for row in names for n in row)) + 2
    width = max(min(round(width * scale), max_width), 3)
    height = [
        round(scale) // 2,
        max(round(scale) - 1, 0) - round(scale) // 2,
    ]  # empty lines before and after the name

    def line(left: str, between: str, right: str) -> str:
        return left + between.join(["─" * width] * len(columns)) + right

    body = [line("┌", "┬", "┐")]
    for i, row in enumerate(names):
        before, after = [["│" + "│".join([" " * width] * len(columns)) + "│"] * n for n in height]
        name = "│" + "│".join(n[:width].center(width) for n in row) + "│"
        body += [line("├", "┼", "┤")] * (i > 0) + before + [name] + after
    sys.stdout.write("\n".join([*body, line("└", "┴", "┘")]) + "\n")


_guards.guard_public(globals())
