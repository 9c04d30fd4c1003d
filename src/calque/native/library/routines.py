"""The primitives that are calls of routines of the machine, for eager execution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from calque.native.library import fourier, linalg, sorting

EAGER: Final[dict[str, Callable[..., bool]]] = {
    **dict.fromkeys(sorting.NAMES, sorting.emit_eager),
    **dict.fromkeys(fourier.NAMES, fourier.emit_eager),
    **dict.fromkeys(linalg.NAMES, linalg.emit_eager),
}
