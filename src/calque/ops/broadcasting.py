"""Functions of lax that bring shapes together, written with `broadcast_in_dim` and `reshape`."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core import trace_state
from calque.core.arrays import Array, to_array
from calque.core.dims import as_size, surely_less
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike
from calque.ops import common
from calque.ops.layout import (
    Shape,
    broadcast_in_dim,
    canonical_shape,
    expand_dims,
    reshape,
    size_of,
)
from calque.ops.sizes import as_number


def broadcast(operand: ArrayLike, sizes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """Repeats an array along new leading dimensions.

    Args:
        operand: An array.
        sizes: The sizes of the new dimensions.
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array of shape (*sizes, *operand.shape).

    >>> lax.broadcast(jnp.zeros(3), (2,)).shape
    (2, 3)"""
    sizes = canonical_shape(sizes, "sizes")
    if not sizes and out_sharding is None and not trace_state.is_evaluating():
        return to_array(operand)  # no operation of the program
    aval = typeof(operand)
    dims = tuple(range(len(sizes), len(sizes) + aval.ndim))
    return broadcast_in_dim(operand, (*sizes, *aval.shape), dims, out_sharding=out_sharding)


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """Adds leading dimensions of size 1 until an array has so many dimensions.

    Args:
        x: An array.
        rank: How many.

    Returns:
        An array.

    >>> lax.broadcast_to_rank(jnp.zeros(3), 3).shape
    (1, 1, 3)"""
    return expand_dims(x, range(rank - typeof(x).ndim))


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """Repeats an array, by NumPy's rules, so that it has the shape of another one.

    Args:
        arr: An array.
        like_arr: The other array.

    Returns:
        An array.

    >>> lax.broadcast_like(jnp.zeros(3), jnp.zeros((2, 3))).shape
    (2, 3)"""
    shape, ndim = typeof(like_arr).shape, typeof(arr).ndim
    return broadcast_in_dim(arr, shape, tuple(range(len(shape) - ndim, len(shape))))


def broadcast_shapes(*shapes: Sequence[int]) -> Shape:
    """Gives the shape to which arrays of these shapes broadcast together.

    Args:
        *shapes: Shapes.

    Returns:
        A shape.

    Raises:
        ValueError: They do not fit together.

    >>> lax.broadcast_shapes((2, 1), (3,))
    (2, 3)"""
    canonical = [canonical_shape(s) for s in shapes]
    for s in canonical:
        if any(surely_less(n, 0) for n in s):
            raise TypeError(f"Only non-negative indices are allowed, got the shape {s}")
    if len(canonical) == 1 or (canonical and all(s == canonical[0] for s in canonical)):
        return canonical[0]
    rank = max((len(s) for s in canonical), default=0)
    out: list[Any] = []
    for i in range(rank):
        sizes = [as_size(s[i - rank + len(s)]) for s in shapes if i - rank + len(s) >= 0]
        size = next((n for n in sizes if n != 1), 1)
        if any(n != 1 and n != size for n in sizes):
            raise ValueError(
                f"Incompatible shapes for broadcasting: shapes={[tuple(s) for s in shapes]}"
            )
        out.append(size)
    return tuple(out)


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Merges neighbouring dimensions into one.

    Args:
        operand: An array.
        start_dimension: The first of them.
        stop_dimension: The one after the last; None means that all that follow are merged.

    Returns:
        An array.

    >>> lax.collapse(jnp.zeros((2, 3, 4)), 0, 2).shape
    (6, 4)"""
    shape = typeof(operand).shape
    first, last, _ = slice(start_dimension, stop_dimension).indices(len(shape))
    if last < first:
        raise ValueError(
            "Invalid dimension range passed to collapse:"
            f" {shape}[{start_dimension}:{stop_dimension}]"
        )
    return reshape(operand, (*shape[:first], size_of(shape[first:last]), *shape[last:]))


def shape_as_value(shape: Sequence[int]) -> Array:
    """Gives a shape as an array of integers.

    Args:
        shape: A shape.

    Returns:
        An array with one axis.

    >>> lax.shape_as_value((2, 3))
    Array([2, 3], dtype=int32)"""
    if len(shape) == 0:
        return common.filled((0,), np.zeros((), np.int32))
    numbers = [as_number(as_size(d), np.int32) for d in shape]
    parts = [
        common.filled((1,), n) if isinstance(n, np.ndarray) else expand_dims(n, (0,))
        for n in numbers
    ]
    return functools.reduce(lambda a, b: do.concatenate(a, b, dimension=0), parts)
