"""`calque_check_tracer_leaks`: traced values that are still referenced when their trace has ended
are reported at once."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from types import FrameType, ModuleType
from typing import Any

from calque.core import errors
from calque.core.config import config
from calque.core.trace_state import Trace, Tracer
from calque.machine.frozen import thawed


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
            with thawed():
                holder, chain = _holder(x, alive), _chain(x, alive)
            raise errors.UnexpectedTracerError(
                f"Leaked trace {_kind(x._trace)}: a traced value of type"
                f" {x.aval.str_short()}{_function(x._trace)} is"
                f" still referenced after the transformation that made it has ended{holder}. A"
                f" function under jit, grad or vmap must return its results.\n{chain}"
            )


def _kind(trace: Trace) -> str:
    """What programs written for JAX look for in the message."""
    return {"JaxprTrace": "DynamicJaxprTrace"}.get(type(trace).__name__, type(trace).__name__)


def _function(trace: Trace) -> str:
    name = getattr(trace, "function", "")
    return f" of the function {name}" if name else ""


def _holder(x: Tracer, own: list[Tracer]) -> str:
    """Who refers to it, as far as that can be said."""
    for holder in gc.get_referrers(x):
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


_LONGEST = 8  # steps of a chain of holders


def _chain(x: Tracer, own: list[Tracer]) -> str:
    """The objects that keep a traced value alive, one after the other."""
    kind = {"JaxprTracer": "DynamicJaxprTracer"}.get(type(x).__name__, type(x).__name__)
    lines = [f"This {kind} with object id {id(x)} was created on line:\n  {_line(x)}"]
    held: Any = x
    seen = {id(own), id(lines)}
    for _ in range(_LONGEST):
        seen.add(id(held))
        holder = next((h for h in gc.get_referrers(held) if _holds(h, seen)), None)
        if holder is None:
            break
        name = kind if held is x else type(held).__name__
        lines.append(f"<{name} {id(held)}> is referred to by {_said(holder, held)}")
        if issubclass(type(holder), ModuleType):
            break
        held = holder
    return "\n".join(lines)


def _line(x: Tracer) -> str:
    """Where a traced value was made, as far as its trace says so."""
    eqns = getattr(x._trace, "eqns", ())
    maker = next((e for e in eqns if getattr(x, "_var", None) in e.outvars), None)
    return str(maker.source) if maker is not None and maker.source else "an argument of a function"


def _holds(holder: Any, seen: set[int]) -> bool:
    """Whether a referrer belongs to the program, and is not this search itself."""
    return id(holder) not in seen and not issubclass(type(holder), (FrameType, Iterator))


def _said(holder: Any, held: Any) -> str:
    """A holder, and where in it the value is."""
    text = f"<{type(holder).__name__} {id(holder)}>"
    if issubclass(type(holder), dict):
        return f"{text}[{_key_of(holder, held)!r}]"
    if issubclass(type(holder), (list, tuple)):
        return f"{text}[{next((i for i, v in enumerate(holder) if v is held), '?')}]"
    name = getattr(holder, "__name__", None)
    return f"{text} ({name})" if isinstance(name, str) else text


def _key_of(holder: dict[Any, Any], x: Any) -> Any:
    for key, value in holder.items():
        if value is x:
            return key
    return "?"
