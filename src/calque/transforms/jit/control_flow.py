"""The `control_flow` argument of jit. The library converts functions; it lies above, and says here
how."""

from collections.abc import Callable
from typing import Any, Final

from calque.machine.state import Hook, process


def _no_converter(fun: Any) -> Any:
    raise RuntimeError("nothing converts control flow: import calque")


converter: Final[Hook[Callable[[Any], Any]]] = process.hook("control flow", _no_converter)


def converted(fun: Any, control_flow: str | None) -> Any:
    """`fun`, or its converted form where that is asked for."""
    if control_flow is None:
        return fun
    if control_flow != "convert":
        raise ValueError(f'jit: control_flow must be None or "convert", got {control_flow!r}')
    return converter.call(fun)
