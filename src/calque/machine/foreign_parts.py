"""Packages of others whose name calque answers for, and of which it needs the real parts: their
folders. A finder that serves the name looks there for what calque does not have itself. And those
that code of others would import in passing, where calque has no use for them."""

from __future__ import annotations

import sys
from typing import Any, Final

from calque.machine.once import once
from calque.machine.state import Inside, PerThread, ProcessValue, process

_open: Final[ProcessValue[dict[str, str]]] = process.value(
    "folders of packages whose name is served", {}
)


def open_package(name: str, folder: str) -> None:
    """From now on parts of the package may be imported from this folder; those that calque has
    answered for so far are asked for anew."""
    for part in [m for m in sys.modules if m.startswith(f"{name}.")]:
        if getattr(sys.modules[part], "__name__", part) != part:
            del sys.modules[part]
    _open.value = {**_open.value, name: folder}


def folder_of(name: str) -> str | None:
    """Where the real parts of a package are, if they have been asked for."""
    return _open.value.get(name)


# ---------------------------------------------------------------- what is not to be imported


class _Withheld(PerThread, name="the package that this thread does not import"):
    package: str | None = None


_withheld: Final = _Withheld()


class _Withholding:
    """A finder ahead of all others that does not find what this thread is not to import."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] == _withheld.package:
            raise ModuleNotFoundError(f"{name!r} is not imported for this", name=name)


@once
def _place_finder() -> None:
    sys.meta_path.insert(0, _Withholding())  # type: ignore[arg-type]


def withheld(package: str) -> Inside[_Withheld]:
    """A `with` block in which this thread imports nothing more of a package: code of others that
    would like to goes its way without."""
    _place_finder()
    return _withheld.inside(package=package)
