"""`calque_check_tracer_leaks`: traced values that are still referenced when their trace has ended
are reported at once."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Sequence
from types import FrameType
from typing import Any

from calque.core import errors
from calque.core.config import config
from calque.core.trace_state import Trace, Tracer


def check(traces: Sequence[Trace], allowed: Iterable[Any] = ()) -> None:
    """Raise if a tracer of one of these traces, which have ended, is alive; those in `allowed` may
    be."""
    if not config.check_tracer_leaks:
        return
    gc.collect()
    known, ended = {id(x) for x in allowed}, {id(t) for t in traces}
    alive = [
        x for x in gc.get_objects() if issubclass(type(x), Tracer)
    ]  # `isinstance` would ask objects for their class
    for x in alive:
        if id(x._trace) in ended and id(x) not in known:
            raise errors.UnexpectedTracerError(
                f"Leaked trace {_kind(x._trace)}: a traced value of type"
                f" {x.aval.str_short()}{_function(x._trace)} is"
                " still referenced after the transformation that made it has"
                f" ended{_holder(x, alive)}. A function under jit, grad or vmap must return its"
                " results."
            )


def _kind(trace: Trace) -> str:
    """What programs written for JAX look for in the message."""
    return {"JaxprTrace": "DynamicJaxprTrace"}.get(type(trace).__name__, type(trace).__name__)


def _function(trace: Trace) -> str:
    name = getattr(trace, "function", "")
    return f" of the function {name}" if name else ""


def _holder(x: Tracer, own: list[Tracer]) -> str:
    """Who refers to it, as far as that can be said. Frozen objects are asked, too, which
    `gc.get_referrers` passes over."""
    frozen = gc.get_freeze_count()
    gc.unfreeze()
    holders = gc.get_referrers(x)
    if frozen:
        gc.freeze()
    for holder in holders:
        if holder is own:
            continue
        if issubclass(type(holder), dict):
            return f", by the name or key {_key_of(holder, x)!r}"
        elif issubclass(type(holder), (list, set)):
            return f", by a {type(holder).__name__}"
        elif type(holder).__name__ == "cell":
            return ", by a variable of an enclosing function"
        elif not issubclass(type(holder), (tuple, FrameType)):
            return f", by an object of type {type(holder).__name__}"
    return ""


def _key_of(holder: dict[Any, Any], x: Any) -> Any:
    for key, value in holder.items():
        if value is x:
            return key
    return "?"
