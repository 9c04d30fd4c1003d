"""`ds(start, size)`: slices of a fixed size whose start may be traced, as parts of an index."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calque.core.arrays import is_concrete
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.ops.common import scalar_of


@dataclass(frozen=True)
class Slice:
    """`size` elements from `start` on, each `stride` after the last."""

    start: Any
    size: int
    stride: int = 1


def ds(start: Any, size: Any = None, stride: int | None = None) -> Any:
    """Selects, in an index, a fixed number of elements from a start that may be traced.

    Args:
        start: The position of the first element; None means 0. Given alone, it is the size, and the
            start is 0.
        size: How many elements, known when the program is made.
        stride: The step from each to the next, at least 1; None means 1.

    Returns:
        An object for `x[...]`, `x.at[...]` and the indices of Refs.

    >>> jax.jit(lambda x, i: x[jax.ds(i, 2)])(jnp.arange(5), 2)
    Array([2, 3], dtype=int32)"""
    if size is None:
        if stride is not None:
            raise ValueError("ds: a stride needs a start and a size")
        if start is None:
            return slice(None)
        return Slice(0, _static("size", start))
    step = 1 if stride is None else _static("stride", stride)
    if step < 1:
        raise ValueError(f"ds: the stride must be positive, got {step}")
    count = _static("size", size)
    if count < 0:
        raise ValueError(f"ds: the size must not be negative, got {count}")
    return Slice(0 if start is None else start, count, step)


def _static(what: str, value: Any) -> int:
    if not is_concrete(value):
        raise TypeError(
            f"ds: the {what} must be known when the program is made, only the start may be traced"
        )
    return operator.index(value)


def opened(parts: Sequence[Any]) -> list[Any]:
    """The parts of an index with slices of a fixed size as what stands for them: ordinary slices,
    or arrays of positions."""
    if not any(isinstance(p, Slice) for p in parts):
        return list(parts)
    found = [_fixed(p) if isinstance(p, Slice) else p for p in parts]
    traced = [i for i, p in enumerate(found) if isinstance(p, Slice)]
    if not traced:
        return found
    places = [i for i, p in enumerate(found) if p is not None and not isinstance(p, slice)]
    if places != list(range(places[0], places[-1] + 1)) or any(hasattr(p, "dtype") for p in found):
        raise NotImplementedError(
            "ds with a traced start, in an index with arrays, or with ints that are not beside it:"
            " index in two steps"
        )
    for k, i in enumerate(traced):
        found[i] = _positions(found[i], k, len(traced))
    return found


def _fixed(s: Slice) -> Any:
    """An ordinary slice where the start is a number."""
    if hasattr(s.start, "aval"):
        return s
    start = operator.index(s.start)
    return slice(start, start + s.size * s.stride, s.stride) if start >= 0 else s


def _positions(s: Slice, k: int, n: int) -> Any:
    """The positions as dimension `k` of `n`."""
    shape = [1] * n
    shape[k] = s.size
    steps = (np.arange(s.size) * s.stride).reshape(shape)
    if not hasattr(s.start, "aval"):
        return operator.index(s.start) + steps
    dtype = typeof(s.start).dtype
    first = do.broadcast_in_dim(s.start, shape=tuple(shape), broadcast_dimensions=())
    return do.add(first, steps.astype(dtype)) if s.size else do.mul(first, scalar_of(dtype, 0))
