"""Modules, functions and names of facades that are imported when first used: what a program does
not use it does not wait for."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType, ModuleType
from typing import Any

from calque.machine.lazy import LazyModule, imported

__all__ = ["LazyModule", "facade", "function", "imports_of", "offer", "source_of"]


def function(module: str, name: str) -> Callable[..., Any]:
    """Stands for a function; imports its module at the first call."""
    found: list[Callable[..., Any]] = []

    def call(*args: Any, **kwargs: Any) -> Any:
        if not found:
            found.append(getattr(imported(module), name))
        return found[0](*args, **kwargs)

    return call


def offer(package: ModuleType, module: str, names: Collection[str]) -> None:
    """Gives a package names that a module of a higher floor makes: the package declares them, the
    top floor says who makes them. The module is imported when one of them is first asked for."""

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package.__name__!r} has no attribute {name!r}")
        value = getattr(imported(module), name)
        setattr(package, name, value)
        return value

    def listing() -> list[str]:
        return sorted({*vars(package), *names})

    vars(package).update(__getattr__=get, __dir__=listing)


# ---------------------------------------------------------------- facades

_IMPORT = re.compile(r"^    from (\S+) import (?:\(([^)]*)\)|([^#\n]*))", re.MULTILINE)
_COMMENT = re.compile(r"#.*")

Finish = Callable[[str, Any], Any]


def facade(
    package: str,
    file: str,
    finish: Finish = lambda name, value: value,
    gone: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package that imports names when they are first asked for.

    The imports stand in its source under `if TYPE_CHECKING:`, where type checkers read them as
    ever; what they say is read from there. `finish(name, value)` gives what the package offers
    under that name; `gone` has names that it offers no more, and what is said of each."""
    places: dict[str, tuple[str, str]] = {}

    def table() -> dict[str, tuple[str, str]]:
        if not places:
            places.update(imports_of(source_of(package, file)))
        return places

    def get(name: str) -> Any:
        if name == "__all__":
            return [n for n in listing() if not n.startswith("_")]
        place = table().get(name)
        if place is None:
            why = gone.get(name, f"module {package!r} has no attribute {name!r}")
            raise AttributeError(why, name=name, obj=sys.modules[package])
        module, own = place
        if module == package:  # one of its modules
            value = imported(f"{module}.{own}")
        else:
            value = finish(name, getattr(imported(module), own))
        setattr(sys.modules[package], name, value)
        return value

    def listing() -> list[str]:
        return sorted((set(vars(sys.modules[package])) | set(table())) - {"TYPE_CHECKING"})

    return get, listing


def source_of(package: str, file: str) -> str:
    try:
        with open(file, encoding="utf-8") as text:
            return text.read()
    except OSError:  # in an archive
        loader: Any = sys.modules[package].__spec__.loader  # type: ignore[union-attr]
        return str(loader.get_source(package))


def imports_of(source: str) -> dict[str, tuple[str, str]]:
    """Name -> (module, name there), of the indented `from ... import ...` lines of a source. A `*`
    stands for all that the module lists in `__all__`."""
    found = {}
    for module, block, line in _IMPORT.findall(source):
        for item in _COMMENT.sub("", block or line).split(","):
            own, _, name = item.strip().partition(" as ")
            names = imported(module).__all__ if own == "*" else [own] if own else []
            found.update({name.strip() or n: (module, n) for n in names})
    return found
