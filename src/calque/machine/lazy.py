"""Modules that are imported when first used: SciPy and LLVM take longer to import than all of calque."""

from __future__ import annotations

import importlib
from typing import Any


class LazyModule:
    """Stands for a module; imports it when an attribute is asked for."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(importlib.import_module(self._name), attribute)
        self.__dict__[attribute] = value
        return value

    def __repr__(self) -> str:
        return f"<module {self._name!r}, imported when used>"
