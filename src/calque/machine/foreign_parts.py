"""Packages of others whose name calque answers for, and of which it needs the real parts: their
folders. A finder that serves the name looks there for what calque does not have itself."""

from __future__ import annotations

from typing import Final

from calque.machine.state import ProcessValue, process

_open: Final[ProcessValue[dict[str, str]]] = process.value(
    "folders of packages whose name is served", {}
)


def open_package(name: str, folder: str) -> None:
    """From now on parts of the package may be imported from this folder."""
    _open.value = {**_open.value, name: folder}


def folder_of(name: str) -> str | None:
    """Where the real parts of a package are, if they have been asked for."""
    return _open.value.get(name)
