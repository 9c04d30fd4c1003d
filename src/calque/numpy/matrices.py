"""The matrices with ones on one diagonal, and where a diagonal lies."""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np

from calque.core.arrays import Array, is_concrete, to_numpy
from calque.core.dims import Dim
from calque.core.dtypes import canonicalize, iinfo, is_integer
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike, DTypeLike
from calque.numpy.calls.marks import seldom_taught
from calque.numpy.creation import canonical_shape, placed
from calque.numpy.promotion import convert, result_dtype
from calque.numpy.signatures import Placement
from calque.ops.sizes import as_number, index_dtype

__all__ = ["eye", "identity"]


@seldom_taught
@placed
def eye(
    N: SupportsIndex,
    M: SupportsIndex | None = None,
    k: ArrayLike = 0,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
) -> Array:
    """A matrix with ones on one diagonal and zeros elsewhere.

    Args:
        N: the number of rows.
        M: the number of columns; None is `N`.
        k: the diagonal: 0 is the main one, positive ones lie above it. It may be traced.
        dtype: of the elements; None is float32 (float64 with x64).
        device: where the array lies: a device or a sharding. None is the default device.
    Returns:
        An array of shape `(N, M)`.
    Differs from NumPy:
        There is no `order`.

    >>> jnp.eye(2, 3, k=1)
    Array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32)"""
    dtype = result_dtype(dtype, canonicalize(float))
    n, m = canonical_shape((N, N if M is None else M))
    if type(k) is not int and (not is_integer(typeof(k).dtype) or typeof(k).ndim):
        raise ValueError(f"eye: k must be a scalar integer, got {k!r}")
    rows, columns, k = diagonal_places(n, m, k)
    shifted = do.add(rows, k)
    return do.convert_element_type(do.eq(shifted, columns), new_dtype=dtype)


def diagonal_places(n: Any, m: Any, k: Any) -> tuple[Any, Any, Any]:
    """The row and the column of every element of a matrix, and the number of a diagonal that may be
    added to them; one beyond the matrix is any such."""
    dtype = index_dtype(n, m)
    rows, columns = (do.iota(dtype=dtype, shape=(n, m), dimension=d) for d in (0, 1))
    far = np.iinfo(dtype).max // 2
    low, high = (-n if type(n) is int else -far), (m if type(m) is int else far)
    if type(k) is Dim:
        return rows, columns, as_number(k, dtype)
    if is_concrete(k):
        number = k if type(k) is int else int(to_numpy(k))
        return rows, columns, as_number(min(max(number, low), high), dtype)
    own = typeof(k).dtype
    ends = [as_number(min(max(e, iinfo(own).min), iinfo(own).max), own) for e in (low, high)]
    return rows, columns, convert(do.clamp(ends[0], convert(k, own), ends[1]), dtype)


@seldom_taught
def identity(n: SupportsIndex, dtype: DTypeLike | None = None) -> Array:
    """The identity matrix.

    Args:
        n: the number of rows and columns.
        dtype: of the elements; None is float32 (float64 with x64).
    Returns:
        An array of shape `(n, n)`.

    >>> jnp.identity(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)"""
    return eye(n, dtype=dtype)
