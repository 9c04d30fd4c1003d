"""Diagonals and triangles of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calque.core.arrays import Array
from calque.core.avals import ShapedArray, nbytes
from calque.core.dims import whole
from calque.core.dtypes import canonicalize, is_integer
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike, DTypeLike
from calque.numpy.calls.marks import seldom_taught
from calque.numpy.contractions import diagonal
from calque.numpy.creation import canonical_shape, zeros
from calque.numpy.matrices import diagonal_places
from calque.numpy.promotion import array_of, broadcast_to, check_arraylike, convert, result_dtype
from calque.numpy.shaping import clip, ravel, reshape, where
from calque.numpy.sorting import nonzero
from calque.ops.common import filled, scalar_of
from calque.ops.sizes import places

__all__ = [
    "diag", "diag_indices", "diag_indices_from", "diagflat", "fill_diagonal", "mask_indices",
    "tri", "tril", "tril_indices", "tril_indices_from",
    "triu", "triu_indices", "triu_indices_from",
]  # fmt: skip


def diag(v: ArrayLike, k: int = 0) -> Array:
    """A diagonal of a matrix, or the matrix that has a given diagonal.

    Args:
        v: a matrix, or a vector.
        k: the diagonal: 0 is the main one, positive ones lie above it.
    Returns:
        The diagonal, if `v` is a matrix; a square matrix with `v` on the diagonal and zeros
        elsewhere, if it is a vector.

    >>> jnp.diag(jnp.array([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    >>> jnp.diag(jnp.array([[1, 2], [3, 4]]), k=1)
    Array([2], dtype=int32)"""
    v = array_of("diag", v)
    k = whole(k, "diag: k")
    if v.ndim == 2:
        return diagonal(v, offset=k)
    if v.ndim != 1:
        raise ValueError(f"diag input must be 1d or 2d, got shape {v.shape}")
    n = v.shape[0]
    size = n + abs(k)
    nbytes(ShapedArray((size, size), v.dtype))
    if n == 0:
        return zeros((size, size), v.dtype)
    # every row is a shifted copy of the padded values: no scatter, and linear in v
    columns = _line(size, 1) - max(k, 0)
    rows = _line(size, 0) - max(-k, 0)
    line = reshape(_line(size, 0), (size,))
    values = v[clip(line - max(-k, 0), 0, n - 1)]
    here = (rows == columns) & (rows >= 0) & (rows < n)
    return where(
        here, broadcast_to(reshape(values, (size, 1)), (size, size)), scalar_of(v.dtype, 0)
    )


def _line(n: int, axis: int) -> np.ndarray:
    """0 .. n-1 along one axis of a matrix: indices are known while tracing."""
    return places(n).reshape((-1, 1) if axis == 0 else (1, -1))


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """The matrix that has the values of an array on a diagonal.

    Args:
        v: an array of any shape; its flattened values are used.
        k: the diagonal: 0 is the main one, positive ones lie above it.
    Returns:
        A square matrix, zero off the diagonal.

    >>> jnp.diagflat(jnp.array([[1, 2]]), 1)
    Array([[0, 1, 0],
           [0, 0, 2],
           [0, 0, 0]], dtype=int32)"""
    return diag(ravel(array_of("diagflat", v)), k)


@seldom_taught
def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None) -> Array:
    """A matrix with ones on and below a diagonal and zeros above it.

    Args:
        N: the number of rows.
        M: the number of columns; None is `N`.
        k: the diagonal: 0 is the main one, positive ones lie above it.
        dtype: of the elements; None is float32, with x64 too.
    Returns:
        An array of shape `(N, M)`.

    >>> jnp.tri(3, dtype=int)
    Array([[1, 0, 0],
           [1, 1, 0],
           [1, 1, 1]], dtype=int32)"""
    (n,), (m,) = canonical_shape(N), canonical_shape(N if M is None else M)
    return convert(_below(n, m, k), result_dtype(dtype, np.dtype("float32")))


def _below(n: int, m: int, k: Any) -> Any:
    rows, columns, k = diagonal_places(n, m, _diagonal(k))
    return do.ge(do.add(rows, k), columns)


def _diagonal(k: Any) -> Any:
    """The number of a diagonal; bools of Python are numbers, as in NumPy."""
    if isinstance(k, int):
        return int(k)
    if not is_integer(typeof(k).dtype):
        raise TypeError(f"k, the number of a diagonal, must be an integer, got {k!r}")
    return k


def tril(m: ArrayLike, k: int = 0) -> Array:
    """The lower triangle of matrices, with zeros above a diagonal.

    Args:
        m: an array with at least two axes; the last two are the matrices.
        k: the last diagonal that is kept: 0 is the main one, positive ones lie above it.
    Returns:
        An array of the shape of `m`.

    >>> jnp.tril(jnp.ones((3, 3), int))
    Array([[1, 0, 0],
           [1, 1, 0],
           [1, 1, 1]], dtype=int32)"""
    m = _matrix("tril", m)
    keep = broadcast_to(_below(m.shape[-2], m.shape[-1], k), m.shape)
    return do.select_n(keep, filled(m.shape, scalar_of(m.dtype, 0)), m)


def triu(m: ArrayLike, k: int = 0) -> Array:
    """The upper triangle of matrices, with zeros below a diagonal.

    Args:
        m: an array with at least two axes; the last two are the matrices.
        k: the first diagonal that is kept: 0 is the main one, positive ones lie above it.
    Returns:
        An array of the shape of `m`.

    >>> jnp.triu(jnp.ones((3, 3), int))
    Array([[1, 1, 1],
           [0, 1, 1],
           [0, 0, 1]], dtype=int32)"""
    m = _matrix("triu", m)
    n, columns = m.shape[-2:]
    row, column, k = diagonal_places(n, columns, _diagonal(k))
    drop = broadcast_to(do.gt(do.add(row, k), column), m.shape)
    return do.select_n(drop, m, filled(m.shape, scalar_of(m.dtype, 0)))


def _matrix(name: str, m: Any) -> Array:
    m = array_of(name, m)
    if m.ndim < 2:
        raise ValueError(f"Argument to jax.numpy.{name} must be at least 2D, got shape {m.shape}")
    return m


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The places of the lower triangle of a matrix.

    Args:
        n: the number of rows.
        k: the last diagonal of the triangle: 0 is the main one, positive ones lie above it.
        m: the number of columns; None is `n`.
    Returns:
        Two arrays: the row and the column of every place.

    >>> jnp.tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))"""
    return _places(np.tril_indices, n, k, m)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The places of the upper triangle of a matrix.

    Args:
        n: the number of rows.
        k: the first diagonal of the triangle: 0 is the main one, positive ones lie above it.
        m: the number of columns; None is `n`.
    Returns:
        Two arrays: the row and the column of every place.

    >>> jnp.triu_indices(2)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))"""
    return _places(np.triu_indices, n, k, m)


def _places(f: Callable[..., Any], n: int, k: int, m: int | None) -> tuple[Any, Any]:
    n, k = whole(n, f"{f.__name__}: n"), whole(k, f"{f.__name__}: k")
    m = n if m is None else whole(m, f"{f.__name__}: m")
    nbytes(ShapedArray((max(n, 0), max(m, 0)), bool))  # NumPy makes the triangle
    rows, columns = f(n, k, m)
    dtype = canonicalize(int)
    return array_of("indices", rows.astype(dtype)), array_of("indices", columns.astype(dtype))


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """The places of the lower triangle of this matrix.

    Args:
        arr: a matrix, of which only the shape matters.
        k: the last diagonal of the triangle: 0 is the main one, positive ones lie above it.
    Returns:
        Two arrays: the row and the column of every place.

    >>> x = jnp.array([[1, 2], [3, 4]])
    >>> x[jnp.tril_indices_from(x)]
    Array([1, 3, 4], dtype=int32)"""
    n, m = _sizes("tril_indices_from", arr)
    return tril_indices(n, k, m)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """The places of the upper triangle of this matrix.

    Args:
        arr: a matrix, of which only the shape matters.
        k: the first diagonal of the triangle: 0 is the main one, positive ones lie above it.
    Returns:
        Two arrays: the row and the column of every place.

    >>> x = jnp.array([[1, 2], [3, 4]])
    >>> x[jnp.triu_indices_from(x)]
    Array([1, 2, 4], dtype=int32)"""
    n, m = _sizes("triu_indices_from", arr)
    return triu_indices(n, k, m)


def _sizes(name: str, arr: Any) -> tuple[int, ...]:
    check_arraylike(name, arr)
    if len(np.shape(arr) if not hasattr(arr, "shape") else arr.shape) != 2:
        raise ValueError(f"Only 2-D inputs are accepted by jnp.{name}")
    return tuple(arr.shape)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The places of the main diagonal of an array whose axes have one size.

    Args:
        n: the size of every axis.
        ndim: the number of axes.
    Returns:
        A tuple of `ndim` equal arrays.

    >>> jnp.diag_indices(3)
    (Array([0, 1, 2], dtype=int32), Array([0, 1, 2], dtype=int32))"""
    n, ndim = whole(n, "diag_indices: n"), whole(ndim, "diag_indices: ndim")
    if n < 0:
        raise ValueError(f"n argument to diag_indices must be nonnegative, got {n}")
    if ndim < 0:
        raise ValueError(f"ndim argument to diag_indices must be nonnegative, got {ndim}")
    return (do.iota(dtype=canonicalize(int), shape=(n,), dimension=0),) * ndim


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """The places of the main diagonal of this array.

    Args:
        arr: an array with at least two axes, all of one size.
    Returns:
        A tuple of equal arrays, one for each axis.

    >>> jnp.diag_indices_from(jnp.zeros((2, 2)))
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))"""
    check_arraylike("diag_indices_from", arr)
    shape = typeof(arr).shape
    if len(shape) < 2:
        raise ValueError("input array must be at least 2-d")
    if len(set(shape)) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    return diag_indices(shape[0], len(shape))


def mask_indices(
    n: int, mask_func: Callable[..., Any], k: ArrayLike = 0, *, size: int | None = None
) -> tuple[Array, Array]:
    """The places of a square matrix that a function such as `jnp.triu` leaves.

    Args:
        n: the number of rows and columns.
        mask_func: called as `mask_func(ones, k)`; the places where its result is not 0 are taken.
        k: handed to `mask_func`.
        size: how many places to return: more are left out, fewer filled up. None returns all.
    Returns:
        Two arrays: the row and the column of every place.

    >>> jnp.mask_indices(2, jnp.triu)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))"""
    if not hasattr(n, "aval"):
        n = whole(n, "mask_indices: n")
        if n < 0:
            raise ValueError(f"mask_indices: n must not be negative, got {n}")
        nbytes(ShapedArray((n, n), np.dtype("float32")))
    i, j = nonzero(mask_func(np.ones((n, n), np.float32), k), size=size)
    return i, j


def fill_diagonal(
    a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True
) -> Array:
    """An array with another main diagonal.

    Args:
        a: an array with at least two axes, of one size if they are more.
        val: a number or an array; its flattened values are repeated along the diagonal.
        wrap: whether the diagonal of a tall matrix begins anew after it has ended.
        inplace: must be False: arrays are immutable.
    Returns:
        A new array.
    Differs from NumPy:
        `inplace=False` has to be given, and the result used.

    >>> jnp.fill_diagonal(jnp.zeros((2, 2)), 5, inplace=False)
    Array([[5., 0.],
           [0., 5.]], dtype=float32)"""
    if inplace:
        raise NotImplementedError(
            "calque arrays are immutable, must use inplace=False: jnp.fill_diagonal(...,"
            " inplace=False)"
        )
    if wrap:
        raise NotImplementedError(
            "wrap=True is not implemented, must use wrap=False: fill the blocks below one by one"
        )
    check_arraylike("fill_diagonal", a, val)
    a, val = array_of("fill_diagonal", a), array_of("fill_diagonal", val)
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if a.ndim > 2 and len(set(a.shape)) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    n = min(a.shape)
    values = _tiled(ravel(val), n)
    line = places(n)
    return a.at[(line,) * a.ndim].set(convert(values, a.dtype))


def _tiled(v: Any, n: int) -> Any:
    """The values repeated, or cut, to n."""
    return v[places(n) % v.shape[0]] if v.shape[0] != n else v
