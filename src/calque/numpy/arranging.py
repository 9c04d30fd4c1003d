"""More ways to arrange axes and order: block, rot90, rollaxis, unstack, lexsort, partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.arrays import Array
from calque.core.dims import whole
from calque.core.dtypes import canonicalize, complex_of, is_complex
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike
from calque.numpy.joining import concatenate
from calque.numpy.moving import flip
from calque.numpy.promotion import array_of, arrays, canonical_axis, check_arraylike, convert
from calque.numpy.shaping import moveaxis, reshape, swapaxes
from calque.numpy.sorting import argsort, sort

__all__ = [
    "argpartition",
    "block",
    "lexsort",
    "partition",
    "rollaxis",
    "rot90",
    "sort_complex",
    "unstack",
]


def block(arrays: Any) -> Array:
    """An array put together from nested lists of blocks.

    Args:
        arrays: nested lists of arrays, of one depth: the innermost are joined along the last axis,
            those around them along the one before, and so on.
    Returns:
        One array.

    >>> jnp.block([[jnp.eye(2), jnp.zeros((2, 1))], [jnp.ones((1, 3))]])
    Array([[1., 0., 0.],
           [0., 1., 0.],
           [1., 1., 1.]], dtype=float32)"""
    depth = _depth(arrays)
    rank = max(depth, _rank(arrays))
    return _joined(arrays, depth, rank)


def _depth(x: Any) -> int:
    if isinstance(x, tuple):
        raise TypeError(
            "jnp.block: only lists can be used to arrange blocks, and np.block does not allow"
            " implicit conversion from tuple to ndarray"
        )
    if not isinstance(x, list):
        check_arraylike("block", x)
        return 0
    if not x:
        raise ValueError("jnp.block: list at depth is empty")
    depths = {_depth(v) for v in x}
    if len(depths) != 1:
        raise ValueError(
            "List depths are mismatched: every block of jnp.block must be nested as deeply as the"
            " others"
        )
    return 1 + depths.pop()


def _rank(x: Any) -> int:
    return max(map(_rank, x)) if isinstance(x, list) else typeof(x).ndim


def _joined(x: Any, depth: int, rank: int) -> Any:
    if not isinstance(x, list):
        a = array_of("block", x)
        return reshape(a, (1,) * (rank - a.ndim) + a.shape)
    return concatenate([_joined(v, depth - 1, rank) for v in x], axis=-depth)


def rot90(m: ArrayLike, k: int = 1, axes: Sequence[int] = (0, 1)) -> Array:
    """An array turned by right angles in a plane.

    Args:
        m: an array with at least two axes.
        k: how many times to turn, from the first axis of the plane towards the second.
        axes: the two axes of the plane.
    Returns:
        An array with its two sizes exchanged if `k` is odd.

    >>> jnp.rot90(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 4],
           [1, 3]], dtype=int32)"""
    m = array_of("rot90", m)
    if m.ndim < 2:
        raise ValueError(
            "rot90 requires its first argument to have ndim at least two, but got first argument"
            f" of shape {m.shape}"
        )
    i, j = (canonical_axis(a, m.ndim) for a in axes)
    if i == j:
        raise ValueError(f"Axes must be different, got {tuple(axes)}")
    k = whole(k, "rot90: k") % 4
    if k == 0:
        return m
    if k == 2:
        return flip(flip(m, i), j)
    turned = swapaxes(m, i, j)
    return flip(turned, i) if k == 1 else flip(turned, j)


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """An array with one axis moved to before another. `moveaxis` says the same more clearly.

    Args:
        a: an array.
        axis: the axis to move.
        start: the axis before which it comes to stand.
    Returns:
        The array with its axes in the new order.

    >>> jnp.rollaxis(jnp.ones((2, 3, 4)), 2).shape
    (4, 2, 3)"""
    a = array_of("rollaxis", a)
    k = canonical_axis(axis, a.ndim)
    start = whole(start, "rollaxis: start")
    if not -a.ndim <= start <= a.ndim:
        raise ValueError(f"rollaxis: start={start} must satisfy {-a.ndim}<=start<={a.ndim}")
    start += a.ndim if start < 0 else 0
    return moveaxis(a, k, start - 1 if start > k else start)


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices of an array along an axis.

    Args:
        x: an array with at least one axis.
        axis: the axis, which the slices do not have.
    Returns:
        A tuple of arrays.

    >>> jnp.unstack(jnp.array([[1, 2], [3, 4]]))
    (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))"""
    x = array_of("unstack", x)
    if x.ndim == 0:
        raise ValueError(
            "Unstack requires arrays with rank > 0, however a scalar array was passed."
        )
    k = canonical_axis(axis, x.ndim)
    return tuple(x[(slice(None),) * k + (i,)] for i in range(x.shape[k]))


# ---------------------------------------------------------------- order


def lexsort(keys: ArrayLike | Sequence[ArrayLike], axis: int = -1) -> Array:
    """The positions that sort by several keys.

    Args:
        keys: a sequence of arrays of one shape, or an array, which stands for its slices. The last
            key decides first, the one before it among equals, and so on.
        axis: the axis to sort along.
    Returns:
        An array of positions.

    >>> jnp.lexsort((jnp.array([3, 1, 2]), jnp.array([1, 1, 0])))
    Array([2, 1, 0], dtype=int32)"""
    given = list(keys) if isinstance(keys, (list, tuple)) else list(array_of("lexsort", keys))
    if not given:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    xs = arrays("lexsort", *given)
    if len({x.shape for x in xs}) > 1:
        raise ValueError("all keys need to be the same shape")
    if xs[0].ndim == 0:
        return array_of("lexsort", np.zeros((), canonicalize(int)))
    k = canonical_axis(axis, xs[0].ndim)
    places = do.iota(dtype=canonicalize(int), shape=xs[0].shape, dimension=k)
    return do.sort(*reversed(xs), places, dimension=k, is_stable=True, num_keys=len(xs))[-1]


def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """An array with the k-th smallest value in its place, smaller ones before it and larger ones
    after.

    Args:
        a: an array of real numbers.
        kth: the place.
        axis: the axis to arrange along.
    Returns:
        An array of the same shape. Values on either side of the place are in no promised order.
    Differs from NumPy:
        `kth` is one number, and there is no `kind` and no `order`; nan comes last.

    >>> jnp.partition(jnp.array([7, 1, 5, 2]), 1)[1]
    Array(2, dtype=int32)"""
    a, k = _checked("partition", a, kth, axis)
    return sort(a, k)


def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The positions that put the k-th smallest value in its place, smaller ones before and larger
    ones after.

    Args:
        a: an array of real numbers.
        kth: the place.
        axis: the axis to arrange along.
    Returns:
        An array of positions, int32.
    Differs from NumPy:
        `kth` is one number, and there is no `kind` and no `order`; nan comes last.

    >>> jnp.argpartition(jnp.array([7, 1, 5, 2]), 1)[1]
    Array(3, dtype=int32)"""
    a, k = _checked("argpartition", a, kth, axis)
    return argsort(a, k, dtype="int32")


def _checked(name: str, a: Any, kth: int, axis: int) -> tuple[Any, int]:
    a = array_of(name, a)
    if is_complex(a.dtype):
        raise NotImplementedError(
            f"jnp.{name} for complex dtype is not implemented. Use jnp.sort or jnp.argsort."
        )
    k = canonical_axis(axis, a.ndim)
    canonical_axis(kth, a.shape[k], "kth")
    return a, k


def sort_complex(a: ArrayLike) -> Array:
    """The values sorted along the last axis, as complex numbers: by real part, then by imaginary
    part.

    Args:
        a: an array of numbers.
    Returns:
        A complex array of the same shape.

    >>> jnp.sort_complex(jnp.array([2.0, 1.0]))
    Array([1.+0.j, 2.+0.j], dtype=complex64)"""
    a = sort(array_of("sort_complex", a), -1)
    dtype = a.dtype if is_complex(a.dtype) else canonicalize(complex_of(a.dtype))
    return convert(a, dtype)
