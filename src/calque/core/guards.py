"""Public functions whose errors show the user's lines: calque's frames are taken out of the
traceback as the exception leaves the outermost function of calque, and a call that succeeds runs
what it ran before (`machine.exits`)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, Final, TypeVar

from calque.core.source import is_internal
from calque.core.tracebacks import is_boundary, leaving
from calque.machine.exits import with_exit

T = TypeVar("T")

_UNGUARDED: Final = ("__getattr__", "__getattribute__", "__del__")  # asked in vain by `hasattr`


def guard(value: T) -> T:
    """Guard a function of calque, or what a class of calque defines; other values stay as they
    are. The object stays the same."""
    if isinstance(value, FunctionType):
        code = value.__code__
        if is_internal(code) and not is_boundary(code):
            value.__code__ = _guarded(code)
    elif isinstance(value, type):
        for base in value.__mro__:
            if base.__module__.partition(".")[0] == "calque":
                _guard_members(base)
    return value


def offered(name: str, value: T) -> T:
    """What a facade of calque's own functions offers under a name, when it is first asked for."""
    return guard(value)


def _guarded(code: CodeType) -> CodeType:
    """The code, and the functions in it, which it may give to the user."""
    inner = [
        _guarded(c) if isinstance(c, CodeType) and not c.co_name.startswith("<") else c
        for c in code.co_consts
    ]
    return with_exit(code.replace(co_consts=tuple(inner)), leaving)


def guard_public(namespace: dict[str, Any], offer: Callable[[str, Any], Any] | None = None) -> None:
    """Guard the functions and classes of a module that are public. Where it only passes on
    what others define, each when it is first asked for, as `offer` gives it."""
    names = namespace.get("__all__") or [n for n in namespace if not n.startswith("_")]
    public = {n: namespace[n] for n in names if n in namespace}
    found = {n: v for n, v in public.items() if isinstance(v, (FunctionType, type))}
    own = [v for v in namespace.values() if _is_of(v, namespace["__name__"])]
    if own:  # what they give to the user may come from private ones
        for value in (*own, *found.values()):
            guard(value)
        return
    for name in found:
        del namespace[name]
    namespace.update(_at_first_use(namespace, found, offer or offered))


def _is_of(value: Any, module: str) -> bool:
    return isinstance(value, (FunctionType, type)) and value.__module__ == module


def _at_first_use(
    namespace: dict[str, Any], found: dict[str, Any], offer: Callable[[str, Any], Any]
) -> dict[str, Any]:
    def get(name: str) -> Any:
        if name not in found:
            module = namespace["__name__"]
            raise AttributeError(
                f"module {module!r} has no attribute {name!r}",
                name=name,
                obj=sys.modules.get(module),
            )
        namespace[name] = offer(name, found[name])
        return namespace[name]

    def listing() -> list[str]:
        return sorted({*namespace, *found})

    return {"__getattr__": guard(get), "__dir__": listing}


def _guard_members(cls: type) -> None:
    for name, member in vars(cls).items():
        if name in _UNGUARDED:
            continue
        for function in (member, getattr(member, "__func__", None), getattr(member, "fget", None)):
            if isinstance(function, FunctionType):
                guard(function)
