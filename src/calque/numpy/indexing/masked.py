"""Updates at the places where a traced mask is true: every element is computed, the mask
chooses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calque.core.arrays import is_concrete
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.trace_state import Tracer
from calque.numpy.indexing import gathering as indexing
from calque.numpy.promotion import convert
from calque.ops.sizes import as_number, index_dtype
from calque.transforms.functions.checks import raise_if


def traced_mask(x: Any, index: Any) -> Any:
    """The index, if it is one boolean array whose values are not known yet, and which fits the
    leading axes of `x`."""
    if isinstance(index, tuple) and len(index) == 1:
        (index,) = index
    if not isinstance(index, Tracer) or typeof(index).dtype != np.dtype(bool) or is_concrete(index):
        return None
    shape = typeof(index).shape
    return index if shape and shape == typeof(x).shape[: len(shape)] else None


def update(x: Any, mask: Any, values: Any, scatter: Callable[..., Any]) -> Any:
    """`x` with the places of the mask combined with values: one for all, one for each place (in
    order), or rows of these."""
    shape, m = typeof(x).shape, typeof(mask)
    rest = shape[m.ndim :]
    own = typeof(values).shape
    if len(own) > len(rest) + 1:
        raise ValueError(
            f"x.at[mask]: values of shape {own} do not fit the masked part, of shape (n,"
            f" {str(rest)[1:]}"
        )
    if len(own) == len(rest) + 1:
        values = in_order(mask, values) if own[0] != 1 else do.reshape(values, new_sizes=own[1:])
    every = indexing.update(x, Ellipsis, values, scatter, None, False, False)
    chosen = do.broadcast_in_dim(mask, shape=shape, broadcast_dimensions=tuple(range(m.ndim)))
    return do.select_n(chosen, x, every)


def in_order(mask: Any, values: Any) -> Any:
    """For every place of the mask the value that is its turn; NumPy's error while running if there
    are not just as many."""
    m, n = typeof(mask), typeof(values).shape[0]
    dtype = index_dtype(m.size)
    flat = convert(do.reshape(mask, new_sizes=(m.size,)), dtype)
    count = do.reduce_sum(flat, axes=(0,))

    def error(found: np.ndarray) -> Exception:
        return ValueError(
            f"x.at[mask]: {n} values were given for {int(found)} places where the mask is true"
        )

    raise_if(do.ne(count, as_number(n, dtype)), error, [count])
    if not n:  # nothing may be chosen: any value will do
        zero = np.zeros((), typeof(values).dtype)
        shape = (*m.shape, *typeof(values).shape[1:])
        return do.broadcast_in_dim(zero, shape=shape, broadcast_dimensions=())
    turn = do.sub(do.cumsum(flat, axis=0, reverse=False), as_number(1, dtype))
    turn = do.max(turn, as_number(0, dtype))
    taken = indexing.getitem(values, turn, "clip")
    return do.reshape(taken, new_sizes=(*m.shape, *typeof(values).shape[1:]))
