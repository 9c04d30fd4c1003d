"""BCOO arrays in another order or another division of their dimensions."""

import math
import operator
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from calque import numpy as jnp
from calque.experimental.sparse.base import (
    SparseEfficiencyError,
    SparseEfficiencyWarning,
    chosen,
    columns,
    per_batch,
)
from calque.experimental.sparse.bcoo import BCOO, checked, in_bounds
from calque.experimental.sparse.conversions import counted, lexicographic, starts


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """Gives a BCOO array with its dimensions in another order, each among its own kind.

    Args:
        mat: The array.
        permutation: For each new dimension the old one. Batch, sparse and dense dimensions do not
            mix.

    Returns:
        A BCOO array.

    >>> sparse.bcoo_transpose(sparse.empty((2, 3)), permutation=(1, 0)).shape
    (3, 2)"""
    mat = checked("bcoo_transpose", mat)
    if not isinstance(permutation, (tuple, list, np.ndarray)):
        raise TypeError(
            f"bcoo_transpose: permutation must be a tuple, list or ndarray, got {type(permutation)}"
        )
    order = tuple(operator.index(p) for p in permutation)
    if sorted(order) != list(range(mat.ndim)):
        raise TypeError(
            f"bcoo_transpose: {order} is not a permutation of the dimensions of shape {mat.shape}"
        )
    if order == tuple(range(mat.ndim)):
        return mat
    n, s = mat.n_batch, mat.n_sparse
    batch, places, dense = (
        order[:n],
        [p - n for p in order[n : n + s]],
        [p - n - s for p in order[n + s :]],
    )
    for what, part in (("batch", batch), ("dense", dense)):
        if sorted(part) != list(range(len(part))):
            raise NotImplementedError(
                f"bcoo_transpose: cannot permute {what} axes with others, got {order} for"
                f" n_batch={n}, n_sparse={s}; see update_layout"
            )
    data = jnp.transpose(mat.data, (*batch, n, *(d + n + 1 for d in dense)))
    indices = jnp.transpose(chosen(mat.indices, places), (*batch, n, n + 1))
    still = mat.indices_sorted and places == sorted(places)
    shape = tuple(mat.shape[p] for p in order)
    return BCOO(
        (data, indices), shape=shape, indices_sorted=still, unique_indices=mat.unique_indices
    )


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """Puts the indices of a BCOO array in order.

    Args:
        mat: The array.

    Returns:
        A BCOO array.

    >>> a = sparse.BCOO((jnp.ones(2), jnp.array([[1], [0]])), shape=(2,))
    >>> sparse.bcoo_sort_indices(a).indices.tolist()
    [[0], [1]]"""
    mat = checked("bcoo_sort_indices", mat)
    if mat.indices_sorted or mat.n_sparse == 0:
        return mat

    def one(d: Any, i: Any) -> tuple[Any, Any]:
        order = lexicographic(i)
        return d[order], i[order]

    data, indices = per_batch(one, mat.n_batch, mat.data, mat.indices)
    return BCOO(
        (data, indices), shape=mat.shape, indices_sorted=True, unique_indices=mat.unique_indices
    )


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """Gives a BCOO array with one element for each place, in order.

    Args:
        mat: The array.
        nse: How many elements are stored; None stores as many as there are. Under `jit` it must be
            given.

    Returns:
        A BCOO array.

    >>> a = sparse.BCOO((jnp.ones(2), jnp.array([[1], [1]])), shape=(2,))
    >>> sparse.bcoo_sum_duplicates(a).data
    Array([2.], dtype=float32)"""
    mat = checked("bcoo_sum_duplicates", mat)
    shape = mat.sparse_shape

    def segments(i: Any) -> tuple[Any, Any]:
        order = lexicographic(i)
        ordered = i[order]
        new = starts(ordered) & in_bounds(ordered, shape)
        return order, new

    if nse is None:
        found = per_batch(lambda i: jnp.sum(segments(i)[1]), mat.n_batch, mat.indices)
        nse = counted("bcoo_sum_duplicates", found)
    size = operator.index(nse)

    def one(d: Any, i: Any) -> tuple[Any, Any]:
        order, new = segments(i)
        place = jnp.where(in_bounds(i[order], shape), jnp.cumsum(new) - 1, size)
        total = jnp.zeros((size, *d.shape[1:]), d.dtype).at[place].add(d[order], mode="drop")
        where = (
            jnp.broadcast_to(jnp.array(shape, i.dtype), (size, i.shape[-1]))
            .at[place]
            .set(i[order], mode="drop")
        )
        return total, where

    data, indices = per_batch(one, mat.n_batch, mat.data, mat.indices)
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)


def bcoo_eliminate_zeros(mat: BCOO, nse: int | None = None) -> BCOO:
    """As `bcoo_sum_duplicates`, without elements that are stored as 0."""
    mat = checked("bcoo_eliminate_zeros", mat)
    zero = mat.data == 0
    zero = jnp.all(zero, axis=tuple(range(mat.n_batch + 1, mat.data.ndim)))
    outside = jnp.array(mat.sparse_shape, mat.indices.dtype)
    indices = per_batch(
        lambda z, i: jnp.where(z[:, None], outside, i), mat.n_batch, zero, mat.indices
    )
    return bcoo_sum_duplicates(BCOO((mat.data, indices), shape=mat.shape), nse)


def bcoo_update_layout(
    mat: BCOO,
    *,
    n_batch: int | None = None,
    n_dense: int | None = None,
    on_inefficient: str | None = "error",
) -> BCOO:
    """Gives a BCOO array other numbers of batch and dense dimensions.

    Args:
        mat: The array.
        n_batch: The number of batch dimensions; None keeps it.
        n_dense: The number of dense dimensions; None keeps it.
        on_inefficient: What happens where more is stored then: "error", "warn" or None.

    Returns:
        A BCOO array.

    >>> sparse.bcoo_update_layout(sparse.eye(3), n_batch=1, on_inefficient=None)
    BCOO(float32[3, 3], nse=3, n_batch=1)"""
    mat = checked("bcoo_update_layout", mat)
    batch = mat.n_batch if n_batch is None else operator.index(n_batch)
    dense = mat.n_dense if n_dense is None else operator.index(n_dense)
    if (batch, dense) == (mat.n_batch, mat.n_dense):
        return mat
    if on_inefficient not in ("error", "warn", None):
        raise ValueError(
            f"bcoo_update_layout: on_inefficient={on_inefficient!r}; expected one of ['error',"
            " 'warn', None]."
        )
    if batch < 0 or dense < 0:
        raise ValueError(
            f"bcoo_update_layout: n_batch and n_dense must be non-negative; got {batch} and {dense}"
        )
    if batch + dense > mat.ndim:
        raise ValueError(
            f"bcoo_update_layout: the sum of n_batch={batch} and n_dense={dense} cannot be larger"
            f" than mat.ndim={mat.ndim}"
        )
    _complain(mat, batch, dense, on_inefficient)
    if dense < mat.n_dense:
        mat = _dense_to_sparse(mat, mat.n_dense - dense)
    if batch < mat.n_batch:
        mat = _batch_to_sparse(mat, mat.n_batch - batch)
    if dense > mat.n_dense:
        mat = _sparse_to_dense(mat, dense - mat.n_dense)
    return _sparse_to_batch(mat, batch - mat.n_batch) if batch > mat.n_batch else mat


def _complain(mat: BCOO, batch: int, dense: int, how: str | None) -> None:
    more = (
        ("n_dense", mat.n_dense, dense, mat.shape[mat.ndim - dense : mat.ndim - mat.n_dense]),
        ("n_batch", mat.n_batch, batch, mat.shape[mat.n_batch : batch]),
    )
    for what, old, new, sizes in more:
        if new > old and any(n > 1 for n in sizes) and how is not None:
            text = (
                f"bcoo_update_layout: for a matrix of shape {mat.shape}, increasing {what} from"
                f" {old} to {new} results in inefficient storage. Set on_inefficient to 'warn' or"
                " None to go on."
            )
            if how == "error":
                raise SparseEfficiencyError(text)
            warnings.warn(text, SparseEfficiencyWarning, stacklevel=3)


def _grid(sizes: Sequence[int], dtype: Any) -> Any:
    """The coordinates of all places of an array of these sizes: (number of places, dimensions)."""
    return jnp.asarray(np.indices(sizes).reshape(len(sizes), -1).T.astype(dtype))


def _dense_to_sparse(mat: BCOO, n: int) -> BCOO:
    sizes = mat.dense_shape[:n]
    count = math.prod(sizes)

    def one(d: Any, i: Any) -> tuple[Any, Any]:
        places = jnp.concatenate(
            [jnp.repeat(i, count, axis=0), jnp.tile(_grid(sizes, i.dtype), (i.shape[0], 1))], axis=1
        )
        return jnp.reshape(d, (d.shape[0] * count, *d.shape[n + 1 :])), places

    parts = per_batch(one, mat.n_batch, mat.data, mat.indices)
    return BCOO(
        parts, shape=mat.shape, indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices
    )


def _batch_to_sparse(mat: BCOO, n: int) -> BCOO:
    sizes = mat.batch_shape[mat.n_batch - n :]
    nse = mat.nse

    def one(d: Any, i: Any) -> tuple[Any, Any]:
        d, i = jnp.broadcast_to(d, sizes + d.shape[n:]), jnp.broadcast_to(i, sizes + i.shape[n:])
        places = jnp.repeat(_grid(sizes, i.dtype), nse, axis=0)
        rows = jnp.concatenate([places, jnp.reshape(i, (places.shape[0], i.shape[-1]))], axis=1)
        return jnp.reshape(d, (-1, *d.shape[n + 1 :])), rows

    parts = per_batch(one, mat.n_batch - n, mat.data, mat.indices)
    return BCOO(parts, shape=mat.shape, unique_indices=mat.unique_indices)


def _sparse_to_dense(mat: BCOO, n: int) -> BCOO:
    sizes = mat.sparse_shape[mat.n_sparse - n :]

    def one(d: Any, i: Any) -> tuple[Any, Any]:
        at = (jnp.arange(i.shape[0]), *columns(i[:, i.shape[-1] - n :]))
        filled = jnp.zeros((i.shape[0], *sizes, *d.shape[1:]), d.dtype).at[at].set(d, mode="drop")
        return filled, i[:, : i.shape[-1] - n]

    return BCOO(per_batch(one, mat.n_batch, mat.data, mat.indices), shape=mat.shape)


def _sparse_to_batch(mat: BCOO, n: int) -> BCOO:
    sizes = mat.sparse_shape[:n]

    def one(d: Any, i: Any) -> tuple[Any, Any]:
        at = (*columns(i[:, :n]), jnp.arange(i.shape[0]))
        filled = jnp.zeros((*sizes, *d.shape), d.dtype).at[at].set(d, mode="drop")
        return filled, jnp.broadcast_to(i[:, n:], (*sizes, i.shape[0], i.shape[1] - n))

    return BCOO(per_batch(one, mat.n_batch, mat.data, mat.indices), shape=mat.shape)
