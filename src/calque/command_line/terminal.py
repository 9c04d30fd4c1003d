"""What is printed for people: colours where there is a terminal that wants them."""

from __future__ import annotations

import os
import sys
from typing import Final

_CODES: Final = {"good": "32", "bad": "31", "title": "1"}


def coloured() -> bool:
    """Whether the standard output is a terminal, and nobody has said NO_COLOR."""
    dumb = os.environ.get("TERM", "") == "dumb"
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and not dumb


def shown(text: str, how: str) -> str:
    """A text as a `title`, as `good` or as `bad` news."""
    return f"\033[{_CODES[how]}m{text}\033[0m" if coloured() else text


def size(nbytes: float) -> str:
    """Bytes with their unit."""
    for unit in ("B", "KiB", "MiB"):
        if nbytes < 1024:
            return f"{nbytes:.0f} {unit}" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1024
    return f"{nbytes:.1f} GiB"
