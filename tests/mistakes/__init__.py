"""Ordinary mistakes, by area, in one table."""

from tests.mistakes import (
    calls,
    linear_algebra,
    shapes,
    surroundings,
    tracing,
    transformations,
    types,
)
from tests.mistakes.table import TABLE, Mistake, said

__all__ = [
    "TABLE", "Mistake", "calls", "linear_algebra", "said", "shapes", "surroundings", "tracing",
    "transformations", "types",
]  # fmt: skip
