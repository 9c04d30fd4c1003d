"""New sparse arrays: empty, eye, random; and dense ones of them."""

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

from calque import numpy as jnp
from calque import random
from calque.core.arrays import Array
from calque.core.dtypes import canonicalize
from calque.core.trace_state import Tracer
from calque.core.types import ArrayLike, DTypeLike
from calque.experimental.sparse.base import JAXSparse, dense_p
from calque.experimental.sparse.bcoo import BCOO
from calque.experimental.sparse.bcsr import BCSR
from calque.experimental.sparse.conversions import bcoo_fromdense
from calque.experimental.sparse.layouts import bcoo_sort_indices
from calque.experimental.sparse.matrices import COO, CSC, CSR
from calque.numpy.promotion import array_of
from calque.transforms.functions.vmap import vmap

_FORMATS: Final[dict[str, Any]] = {"bcsr": BCSR, "bcoo": BCOO, "coo": COO, "csr": CSR, "csc": CSC}


def _format(name: str, sparse_format: str) -> Any:
    if sparse_format not in _FORMATS:
        raise ValueError(
            f"{name}: sparse_format={sparse_format!r} not recognized; must be one of"
            f" {list(_FORMATS)}"
        )
    return _FORMATS[sparse_format]


def todense(arr: JAXSparse | ArrayLike) -> Array:
    """Gives a sparse array as a dense one; a dense one as it is.

    Args:
        arr: The array.

    Returns:
        An array.

    >>> sparse.todense(sparse.eye(2))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)"""
    if isinstance(arr, JAXSparse):
        return arr.todense()
    if isinstance(arr, Tracer):  # `sparsify` may give a sparse array in its place
        return dense_p.bind(arr)  # type: ignore[no-any-return]
    return array_of("todense", arr)


def empty(
    shape: Sequence[int],
    dtype: DTypeLike | None = None,
    index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo",
    **kwds: Any,
) -> JAXSparse:
    """Makes a sparse array of zeros, none of which is stored.

    Args:
        shape: The size of each dimension.
        dtype: The dtype of the values; None means float32 (float64 where 64-bit types are enabled).
        index_dtype: The integer dtype of the indices.
        sparse_format: "bcoo", "bcsr", "coo", "csr" or "csc".
        **kwds: For "bcoo" and "bcsr" `n_batch`, `n_dense` and `nse`.

    Returns:
        A sparse array.

    >>> sparse.empty((2, 3))
    BCOO(float32[2, 3], nse=0)"""
    sizes = tuple(operator.index(n) for n in shape)
    return _format("empty", sparse_format)._empty(
        sizes, dtype=dtype, index_dtype=index_dtype, **kwds
    )


def eye(
    N: int,
    M: int | None = None,
    k: int = 0,
    dtype: DTypeLike | None = None,
    index_dtype: DTypeLike = "int32",
    sparse_format: str = "bcoo",
    *,
    n_batch: int = 0,
    n_dense: int = 0,
) -> JAXSparse:
    """Makes a sparse matrix with ones along a diagonal.

    Args:
        N: The number of rows.
        M: The number of columns; None means N.
        k: The diagonal: 0 is the main one, positive ones lie above.
        dtype: The dtype of the values; None means float32 (float64 where 64-bit types are enabled).
        index_dtype: The integer dtype of the indices.
        sparse_format: "bcoo", "bcsr", "coo", "csr" or "csc".
        n_batch: The number of batch dimensions, for "bcoo".
        n_dense: The number of dense dimensions, for "bcoo".

    Returns:
        A sparse matrix.

    >>> sparse.eye(3, k=1)
    BCOO(float32[3, 3], nse=2)"""
    kind = _format("eye", sparse_format)
    rows = operator.index(N)
    columns = rows if M is None else operator.index(M)
    k, dtype = operator.index(k), canonicalize(dtype or float)
    if kind is not BCOO and (n_batch or n_dense):
        raise TypeError(f"eye: sparse_format={sparse_format!r} has no n_batch and n_dense")
    if n_batch or n_dense:
        if min(n_batch, n_dense) < 0 or n_batch + n_dense > 2:
            raise ValueError(f"eye: invalid n_batch={n_batch}, n_dense={n_dense} for a matrix")
        dense = jnp.eye(rows, columns, k, dtype=dtype)
        return bcoo_fromdense(dense, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    count = max(0, min(rows, columns - k) if k > 0 else min(rows + k, columns))
    at = jnp.arange(count, dtype=index_dtype)
    indices = jnp.stack([at - min(k, 0), at + max(k, 0)], axis=-1)
    mat = BCOO(
        (jnp.ones(count, dtype), indices),
        shape=(rows, columns),
        indices_sorted=True,
        unique_indices=True,
    )
    if kind is BCOO:
        return mat
    return BCSR.from_bcoo(mat) if kind is BCSR else kind._of(mat)


def random_bcoo(
    key: ArrayLike,
    shape: Sequence[int],
    *,
    dtype: DTypeLike = float,
    indices_dtype: DTypeLike | None = None,
    nse: float = 0.2,
    n_batch: int = 0,
    n_dense: int = 0,
    unique_indices: bool = True,
    sorted_indices: bool = False,
    generator: Callable[..., Any] = random.uniform,
    **kwds: Any,
) -> BCOO:
    """Makes a BCOO array with random values at random places.

    Args:
        key: A random key.
        shape: The size of each dimension.
        dtype: The dtype of the values.
        indices_dtype: The integer dtype of the indices; None means int32 (int64 where enabled).
        nse: The number of stored elements, or a fraction of all from 0 to 1.
        n_batch: The number of batch dimensions.
        n_dense: The number of dense dimensions.
        unique_indices: Whether no place is drawn twice.
        sorted_indices: Whether the indices are put in order.
        generator: `generator(key, shape, dtype)` draws the values.
        **kwds: Further arguments of `generator`.

    Returns:
        A BCOO array.

    >>> sparse.random_bcoo(jax.random.key(0), (3, 4), nse=0.5)
    BCOO(float32[3, 4], nse=6)"""
    sizes = tuple(operator.index(n) for n in shape)
    n_sparse = len(sizes) - n_batch - n_dense
    if min(n_batch, n_dense, n_sparse) < 0:
        raise ValueError(
            f"random_bcoo: invalid n_batch={n_batch}, n_dense={n_dense} for shape={sizes}"
        )
    batch, places, dense = (
        sizes[:n_batch],
        sizes[n_batch : n_batch + n_sparse],
        sizes[n_batch + n_sparse :],
    )
    most = math.prod(places)
    if not 0 <= nse < most:
        raise ValueError(f"random_bcoo: got nse={nse}, expected to be between 0 and {most}")
    count = math.ceil(nse * most) if 0 < nse < 1 else operator.index(nse)  # type: ignore[arg-type]
    index_dtype = canonicalize(int if indices_dtype is None else indices_dtype)
    if most > jnp.iinfo(index_dtype).max:
        raise ValueError(f"random_bcoo: indices_dtype={index_dtype} cannot number {most} places")

    def of(k: Any) -> Any:
        if not places:
            return jnp.zeros((count, 0), index_dtype)
        flat = random.choice(k, most, shape=(count,), replace=not unique_indices).astype(
            index_dtype
        )
        return jnp.stack(jnp.unravel_index(flat, places), axis=-1)

    keys = random.split(key, math.prod(batch) + 1)
    data = generator(keys[0], shape=(*batch, count, *dense), dtype=canonicalize(dtype), **kwds)
    indices = jnp.reshape(vmap(of)(keys[1:]), (*batch, count, n_sparse)).astype(index_dtype)
    mat = BCOO((data, indices), shape=sizes)
    return bcoo_sort_indices(mat) if sorted_indices else mat
