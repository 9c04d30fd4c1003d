"""What machine functions refer to: all that decides their code."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator
from typing import Any

from calque.machine.lang.types import Cell, Extern, Function, Layout, Signature, Var

_NAMESPACES = (type, types.ModuleType, types.SimpleNamespace)
_MISSING = object()
_THINGS = (Function, Extern, Var, Cell, Layout, Signature)


def named(function: Function) -> Iterator[tuple[str, Any]]:
    """Every outside object a function names, also as an attribute of a module or class."""
    code = function.python.__code__
    for name in (*code.co_names, *code.co_freevars):
        try:
            value = function.lookup(name)
        except KeyError:
            continue
        yield name, value
        if isinstance(value, _NAMESPACES):
            for attribute in code.co_names:
                found = member(value, attribute)
                if found is not _MISSING:
                    yield f"{name}.{attribute}", found


def member(space: Any, name: str) -> Any:
    """An attribute of a namespace. (`hasattr` is slow where there is none: an enum raises.)"""
    if not isinstance(space, type):
        return space.__dict__.get(name, _MISSING)
    members = space.__dict__.get("_member_map_")
    if members is not None and name in members:
        return members[name]
    return (
        getattr(space, name, _MISSING)
        if any(name in kind.__dict__ for kind in space.__mro__)
        else _MISSING
    )


def reachable(functions: Iterable[Function]) -> list[Any]:
    """The functions and every global, extern, layout and function they need; helpers of other units
    are looked through."""
    found: dict[int, Any] = {id(f): f for f in functions}
    pending = list(found.values())
    while pending:
        for _, item in named(pending.pop()):
            if id(item) in found or not isinstance(item, _THINGS):
                continue
            found[id(item)] = item
            if isinstance(item, Function) and not item.exported:
                pending.append(item)
    return list(found.values())


def constants(function: Function) -> list[tuple[str, Any]]:
    """The outside numbers a function may use, with attributes of the classes and enums it names."""
    return [(name, value) for name, value in named(function) if isinstance(value, (int, float))]
