"""Ordinary mistakes, by area, in one table."""

from tests.mistakes import (
    linear_algebra,
    shapes,
    surroundings,
    tracing,
    transformations,
    types,
)
from tests.mistakes.table import TABLE, Mistake, said

__all__ = [
    "TABLE", "Mistake", "linear_algebra", "said", "shapes", "surroundings", "tracing",
    "transformations", "types",
]  # fmt: skip
