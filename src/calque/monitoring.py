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
    """Tells the listeners that something happened.

    Args:
        event: Its name.
        **kwargs: What more is to be said of it.

    >>> seen = lambda event, **details: print(event, details)
    >>> jax.monitoring.register_event_listener(seen)
    >>> jax.monitoring.record_event("/my/cache/hit", size=3)
    /my/cache/hit {'size': 3}
    >>> jax.monitoring.unregister_event_listener(seen)"""
    _report("event", event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: Any) -> None:
    """Tells the listeners how long something took.

    Args:
        event: Its name.
        duration: The seconds.
        **kwargs: What more is to be said of it.

    >>> jax.monitoring.record_event_duration_secs("/my/load", 0.5)"""
    _report("duration", event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: Any) -> None:
    """Tells the listeners when something began and ended.

    Args:
        event: Its name.
        start_time: When it began, in seconds.
        end_time: When it ended, in seconds.
        **kwargs: What more is to be said of it.

    >>> jax.monitoring.record_event_time_span("/my/load", 1.0, 1.5)"""
    _report("time span", event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float, **kwargs: Any) -> None:
    """Tells the listeners a number.

    Args:
        event: Its name.
        value: The number.
        **kwargs: What more is to be said of it.

    >>> jax.monitoring.record_scalar("/my/loss", 0.25)"""
    _report("scalar", event, value, **kwargs)


def register_event_listener(callback: Listener) -> None:
    """Has a function called at each event.

    Args:
        callback: `callback(event, **details)`.

    >>> jax.monitoring.register_event_listener(print)
    >>> jax.monitoring.record_event("/my/event")
    /my/event
    >>> jax.monitoring.unregister_event_listener(print)"""
    _listeners["event"].append(callback)


def register_event_duration_secs_listener(callback: Listener) -> None:
    """Has a function called at each duration.

    Args:
        callback: `callback(event, duration, **details)`.

    >>> jax.monitoring.register_event_duration_secs_listener(print)
    >>> jax.monitoring.record_event_duration_secs("/my/load", 0.5)
    /my/load 0.5
    >>> jax.monitoring.unregister_event_duration_listener(print)"""
    _listeners["duration"].append(callback)


def register_event_time_span_listener(callback: Listener) -> None:
    """Has a function called at each time span.

    Args:
        callback: `callback(event, start, end, **details)`.

    >>> jax.monitoring.register_event_time_span_listener(print)
    >>> jax.monitoring.record_event_time_span("/my/load", 1.0, 1.5)
    /my/load 1.0 1.5
    >>> jax.monitoring.unregister_event_time_span_listener(print)"""
    _listeners["time span"].append(callback)


def register_scalar_listener(callback: Listener) -> None:
    """Has a function called at each number.

    Args:
        callback: `callback(event, value, **details)`.

    >>> jax.monitoring.register_scalar_listener(print)
    >>> jax.monitoring.record_scalar("/my/loss", 0.25)
    /my/loss 0.25
    >>> jax.monitoring.unregister_scalar_listener(print)"""
    _listeners["scalar"].append(callback)


def unregister_event_listener(callback: Listener) -> None:
    """Has a function called at events no more.

    Args:
        callback: The function.

    Raises:
        ValueError: It is no listener.

    >>> jax.monitoring.register_event_listener(print)
    >>> jax.monitoring.unregister_event_listener(print)"""
    _forget("event", callback)


def unregister_event_duration_listener(callback: Listener) -> None:
    """Has a function called at durations no more.

    Args:
        callback: The function.

    Raises:
        ValueError: It is no listener.

    >>> jax.monitoring.register_event_duration_secs_listener(print)
    >>> jax.monitoring.unregister_event_duration_listener(print)"""
    _forget("duration", callback)


def unregister_event_time_span_listener(callback: Listener) -> None:
    """Has a function called at time spans no more.

    Args:
        callback: The function.

    Raises:
        ValueError: It is no listener.

    >>> jax.monitoring.register_event_time_span_listener(print)
    >>> jax.monitoring.unregister_event_time_span_listener(print)"""
    _forget("time span", callback)


def unregister_scalar_listener(callback: Listener) -> None:
    """Has a function called at numbers no more.

    Args:
        callback: The function.

    Raises:
        ValueError: It is no listener.

    >>> jax.monitoring.register_scalar_listener(print)
    >>> jax.monitoring.unregister_scalar_listener(print)"""
    _forget("scalar", callback)


def clear_event_listeners() -> None:
    """Forgets all listeners.

    >>> jax.monitoring.clear_event_listeners()"""
    for listeners in _listeners.values():
        listeners.clear()
