"""Variables of the environment: a value that says nothing is told once, with the values that do."""

from __future__ import annotations

import os
import warnings
from typing import Final

from calque.machine.state import process

__all__ = ["OFF", "ON", "choice", "size"]

ON: Final = ("on", "1", "yes", "true")
OFF: Final = ("off", "0", "no", "false")
_SCALES: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
# (variable, value) of which was said that it says nothing
_told: Final[set[tuple[str, str]]] = process.container("variables that say nothing", set())


def choice(name: str, allowed: tuple[str, ...]) -> str:
    """The value of a variable, in small letters; empty where it is not set or not allowed."""
    text = os.environ.get(name, "").strip().lower()
    if not text or text in allowed:
        return text
    _tell(name, text, f"the values are {', '.join(allowed)}")
    return ""


def size(name: str, default: int) -> int:
    """A number of bytes, "512M" for one; the default where it is not set or not understood."""
    text = os.environ.get(name, "").strip()
    number = text.upper().removesuffix("B").removesuffix("I")
    scale = _SCALES.get(number[-1:], 1)
    digits = number[:-1] if scale > 1 else number
    if digits.isascii() and digits.isdigit():
        return int(digits) * scale
    if text:
        _tell(name, text, 'it is a number of bytes, or one with K, M, G or T such as "512M"')
    return default


def _tell(name: str, text: str, allowed: str) -> None:
    if (name, text) not in _told:
        _told.add((name, text))
        warnings.warn(
            f"the environment variable {name} is {text!r}, which says nothing: {allowed}. It is"
            " as if it were not set.",
            RuntimeWarning,
            stacklevel=4,
        )
