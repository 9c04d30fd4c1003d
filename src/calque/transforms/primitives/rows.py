"""Rows of arrays: one taken out, several put together."""

from collections.abc import Sequence
from typing import Any

from calque.core.primitives import do
from calque.core.trace import typeof


def take_row(x: Any, i: int) -> Any:
    """Element `i` along the first dimension."""
    shape = typeof(x).shape
    start, stop = (i,) + (0,) * (len(shape) - 1), (i + 1, *shape[1:])
    return do.squeeze(do.slice(x, start_indices=start, limit_indices=stop), dimensions=(0,))


def stack_rows(rows: Sequence[Any]) -> Any:
    """Values of one shape along a new first dimension."""
    shape = typeof(rows[0]).shape
    kept = tuple(range(1, len(shape) + 1))
    wide = [do.broadcast_in_dim(r, shape=(1, *shape), broadcast_dimensions=kept) for r in rows]
    return do.concatenate(*wide, dimension=0)
