"""What a traced value says of itself in messages: the argument that it is or depends on, the line
that made it, and whether its transformation has ended."""

from __future__ import annotations

from typing import Any, Final

from calque.core.jaxprs import Var
from calque.core.source import here
from calque.core.trace import JaxprTrace, JaxprTracer
from calque.core.trace_state import Tracer


def origin(x: Any) -> str:
    """Where a traced value came from: the argument it is or depends on, and the line that made
    it."""
    trace = x._trace
    if not isinstance(trace, JaxprTrace) or not isinstance(x, JaxprTracer):
        return _origin_inside(x)
    ended = _ENDED if trace.done else ""
    names = trace.argument_names or [f"argument {i}" for i in range(len(trace.invars))]
    function = f" of the function {trace.function}" if trace.function else ""
    if x._var in trace.invars:
        name = names[trace.invars.index(x._var)]
        return f"\nThe value is the argument {name}{function}.{ended}"
    makers = {v: e for e in trace.eqns for v in e.outvars}
    maker, found, todo, seen = makers.get(x._var), [], [x._var], {x._var}
    while todo:
        v = todo.pop()
        if v in makers:
            fresh = [a for a in makers[v].invars if isinstance(a, Var) and a not in seen]
            seen.update(fresh)
            todo += fresh
        elif v in trace.invars:
            found.append(trace.invars.index(v))
    where = (
        f"\nIt was made by `{maker.primitive.name}` at {maker.source}."
        if maker and maker.source
        else ""
    )
    if found:
        listed = ", ".join(names[i] for i in sorted(found)[:5])
        where += (
            f"\nThe value depends on the argument{'s' if len(found) > 1 else ''}"
            f" {listed}{function}."
        )
    return where + ended


_ENDED: Final = (
    "\nThe transformation that made it has ended: it leaked through a global, a list or an"
    " attribute. Return it from the function instead."
)


def _origin_inside(x: Any) -> str:
    """Of a value of vmap or of a derivative: where the value inside came from, else the line that
    asks."""
    inner = getattr(x, "val", getattr(x, "primal", None))
    if isinstance(inner, Tracer):
        return origin(inner)
    maker = "vmap" if hasattr(x, "val") else "a derivative"
    place = here()
    ended = _ENDED if x._trace.done else ""
    return f"\nIt is a value of {maker}{f', used at {place}' if place else ''}.{ended}"
