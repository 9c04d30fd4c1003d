"""Events that code reports and listeners hear of, in JAX's names. calque itself reports none."""

from collections.abc import Callable
from typing import Any, Final

Listener = Callable[..., None]
_KINDS = ("event", "duration", "time span", "scalar")
_listeners: Final[dict[str, list[Listener]]] = {kind: [] for kind in _KINDS}


def _report(kind: str, *values: Any, **details: Any) -> None:
    for listener in list(_listeners[kind]):
        listener(*values, **details)


def _forget(kind: str, callback: Listener) -> None:
    if callback not in _listeners[kind]:
        raise ValueError(f"monitoring: {callback!r} is not a listener for {kind}s")
    _listeners[kind].remove(callback)


def record_event(event: str, **kwargs: Any) -> None:
    """Tell the listeners that something happened: `record_event("/my/cache/hit", size=3)`"""
    _report("event", event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: Any) -> None:
    """Tell the listeners how long something took."""
    _report("duration", event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: Any) -> None:
    """Tell the listeners when something began and ended."""
    _report("time span", event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float, **kwargs: Any) -> None:
    """Tell the listeners a number."""
    _report("scalar", event, value, **kwargs)


def register_event_listener(callback: Listener) -> None:
    """`callback(event, **details)` at each event."""
    _listeners["event"].append(callback)


def register_event_duration_secs_listener(callback: Listener) -> None:
    """`callback(event, duration, **details)` at each duration."""
    _listeners["duration"].append(callback)


def register_event_time_span_listener(callback: Listener) -> None:
    """`callback(event, start, end, **details)` at each time span."""
    _listeners["time span"].append(callback)


def register_scalar_listener(callback: Listener) -> None:
    """`callback(event, value, **details)` at each number."""
    _listeners["scalar"].append(callback)


def unregister_event_listener(callback: Listener) -> None:
    """The callback hears of events no more."""
    _forget("event", callback)


def unregister_event_duration_listener(callback: Listener) -> None:
    """The callback hears of durations no more."""
    _forget("duration", callback)


def unregister_event_time_span_listener(callback: Listener) -> None:
    """The callback hears of time spans no more."""
    _forget("time span", callback)


def unregister_scalar_listener(callback: Listener) -> None:
    """The callback hears of numbers no more."""
    _forget("scalar", callback)


def clear_event_listeners() -> None:
    """Nobody listens any more."""
    for listeners in _listeners.values():
        listeners.clear()
