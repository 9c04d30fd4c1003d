"""Signatures as readers want to see them: types by their public names, one parameter a line where
a line is too short for all."""

from __future__ import annotations

import inspect
import re
import types
import typing
from typing import Any

from calque.core import types as named_types

WIDTH = 84
# types with names of their own, the widest first
_NAMES = ("ArrayLike", "DTypeLike", "ShapeLike")
_ALIASES = {name: frozenset(typing.get_args(getattr(named_types, name))) for name in _NAMES}
_MODULE = re.compile(r"(?<![\w.\"'])(?:[a-z_]\w*\.)+(?=[A-Za-z_])")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def printed(name: str, value: Any) -> str | None:
    """`name(parameter: type = default, ...) -> type`, or None where nothing is known."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    result = ""
    if signature.return_annotation is not inspect.Signature.empty and not isinstance(value, type):
        result = f" -> {type_name(signature.return_annotation)}"
    parts = parameters(list(signature.parameters.values()))
    line = f"{name}({', '.join(parts)}){result}"
    if len(line) <= WIDTH:
        return line
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){result}"


def parameters(given: list[inspect.Parameter]) -> list[str]:
    """Each parameter with type and default, and the marks `/` and `*` between them."""
    if given and given[0].name in ("self", "cls"):
        given = given[1:]
    out: list[str] = []
    kinds = inspect.Parameter
    for before, p in zip([None, *given], given):
        if before and before.kind is kinds.POSITIONAL_ONLY and p.kind is not before.kind:
            out.append("/")
        no_star = before is None or before.kind not in (kinds.KEYWORD_ONLY, kinds.VAR_POSITIONAL)
        if p.kind is kinds.KEYWORD_ONLY and no_star:
            out.append("*")
        out.append(parameter(p))
    if given and given[-1].kind is kinds.POSITIONAL_ONLY:
        out.append("/")
    return out


def parameter(p: inspect.Parameter) -> str:
    stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")  # type: ignore[call-overload]
    typed = p.annotation is not p.empty
    text = f"{stars}{p.name}" + (f": {type_name(p.annotation)}" if typed else "")
    if p.default is p.empty:
        return text
    return f"{text} = {default(p.default)}" if typed else f"{text}={default(p.default)}"


def default(value: Any) -> str:
    """A default as one would write it."""
    if isinstance(value, type) or inspect.isroutine(value) or hasattr(value, "__wrapped__"):
        return str(getattr(value, "__name__", "..."))
    if hasattr(value, "name") and hasattr(type(value), "__members__"):
        return f"{type(value).__name__}.{value.name}"
    text = repr(value)
    return "..." if text.startswith("<") or _ADDRESS.search(text) else text


def type_name(annotation: Any) -> str:
    """A type without its modules; a union that is one of calque's named types by that name."""
    if isinstance(annotation, str):
        return _MODULE.sub("", annotation)
    if annotation is None or annotation is type(None):
        return "None"
    if annotation is Ellipsis:
        return "..."
    if isinstance(annotation, list):
        return f"[{', '.join(map(type_name, annotation))}]"
    origin, given = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(members(given))
    if origin is typing.Literal:
        return f"Literal[{', '.join(map(repr, given))}]"
    if origin is not None and given:
        shown = _MODULE.sub("", getattr(origin, "__name__", str(origin)))
        return f"{shown}[{', '.join(map(type_name, given))}]"
    return _MODULE.sub("", getattr(annotation, "__name__", str(annotation)))


def members(given: tuple[Any, ...]) -> list[str]:
    """The types of a union, with those that have a name together replaced by it."""
    out: list[str] = []
    left = list(given)
    for name, alias in _ALIASES.items():
        if alias <= set(left):
            out.append(name)
            left = [t for t in left if t not in alias]
    return out + [type_name(t) for t in left]
