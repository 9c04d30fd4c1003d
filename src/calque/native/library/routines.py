"""The primitives that are calls of routines of the machine, one equation at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from calque.native.library import fourier, linalg, sorting
from calque.native.library.names import FACTORS, SORTS, TRANSFORMS
from calque.native.plan.steps import Routine

# name -> (name, parameters, avals, operands, results) -> the call
ROUTINES: Final[dict[str, Callable[..., Routine | None]]] = {
    **dict.fromkeys(SORTS, sorting.routine),
    **dict.fromkeys(TRANSFORMS, fourier.routine),
    **dict.fromkeys(FACTORS, linalg.routine),
}
