"""The `control_flow` argument of jit. The library converts functions; it lies above, and says here
how."""

from collections.abc import Callable
from typing import Any

_converters: list[Callable[[Any], Any]] = []


def set_converter(convert: Callable[[Any], Any]) -> None:
    _converters[:] = [convert]


def converted(fun: Any, control_flow: str | None) -> Any:
    """`fun`, or its converted form where that is asked for."""
    if control_flow is None:
        return fun
    if control_flow != "convert":
        raise ValueError(f'jit: control_flow must be None or "convert", got {control_flow!r}')
    return _converters[0](fun)
