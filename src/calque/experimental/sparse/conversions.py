"""BCOO arrays from dense ones and back."""

import operator
from typing import Any

import numpy as np

from calque import numpy as jnp
from calque.core.arrays import Array, is_concrete
from calque.core.errors import ConcretizationTypeError
from calque.core.types import ArrayLike, DTypeLike
from calque.experimental.sparse.base import columns, per_batch, scatter_added
from calque.experimental.sparse.bcoo import BCOO, checked, like
from calque.numpy.promotion import array_of


def bcoo_todense(mat: BCOO) -> Array:
    """Gives a BCOO array as a dense one; values of the same place are added.

    Args:
        mat: The array.

    Returns:
        An array.

    >>> sparse.bcoo_todense(sparse.eye(2))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)"""
    mat = checked("bcoo_todense", mat)
    return todense(mat.data, mat.indices, mat.shape)


def todense(data: Array, indices: Array, shape: tuple[int, ...]) -> Array:
    """The dense array of these values and places."""
    n = indices.ndim - 2

    def one(d: Any, i: Any) -> Any:
        if i.shape[-1] == 0:
            return jnp.any(d, axis=0) if d.dtype == bool else jnp.sum(d, axis=0, dtype=d.dtype)
        return scatter_added(shape[n:], columns(i), d)

    return jnp.broadcast_to(per_batch(one, n, data, indices), shape)


def extract(indices: Array, arr: Array, assume_unique: bool = True) -> Array:
    """The values of a dense array at these places; 0 for padding. Unless they are unique only the
    first of equal places has one."""

    def one(i: Any, a: Any) -> Any:
        at = columns(i)
        out = (
            a.at[at].get(mode="fill", fill_value=0)
            if at
            else jnp.broadcast_to(a, (i.shape[0], *a.shape))
        )
        if assume_unique:
            return out
        first = first_of_equal(i)
        return jnp.where(
            jnp.reshape(first, first.shape + (1,) * (out.ndim - 1)), out, jnp.zeros((), out.dtype)
        )

    return per_batch(one, indices.ndim - 2, indices, arr)


def lexicographic(indices: Array) -> Array:
    """The order that sorts rows of indices by their first column, then the next."""
    at = columns(indices)
    return jnp.lexsort(at[::-1]) if at else jnp.arange(indices.shape[0])


def starts(ordered: Array) -> Array:
    """Where a new row begins among ordered rows of indices."""
    new = jnp.any(ordered[1:] != ordered[:-1], axis=-1)
    return jnp.concatenate([jnp.ones(min(1, ordered.shape[0]), bool), new])


def first_of_equal(indices: Array) -> Array:
    """Which rows of indices have no equal before them."""
    order = lexicographic(indices)
    return jnp.zeros(indices.shape[0], bool).at[order].set(starts(indices[order]))


def counted(name: str, mask: Array) -> int:
    """How many are needed for the fullest batch: a number, which a traced value does not have."""
    count = jnp.max(mask, initial=0)
    if not is_concrete(count):
        raise ConcretizationTypeError(
            f"{name}: the number of stored elements depends on traced values: give it as a concrete"
            " `nse=`"
        )
    return int(count)


def bcoo_fromdense(
    mat: ArrayLike,
    *,
    nse: int | None = None,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: DTypeLike = np.int32,
) -> BCOO:
    """Makes a BCOO array of a dense one.

    Args:
        mat: The dense array.
        nse: How many elements are stored; None stores those that are not 0. Under `jit` it must be
            given.
        n_batch: The number of batch dimensions.
        n_dense: The number of dense dimensions.
        index_dtype: The integer dtype of the indices.

    Returns:
        A BCOO array.

    >>> sparse.bcoo_fromdense(jnp.array([0.0, 5.0, 0.0])).indices.tolist()
    [[1]]"""
    mat = array_of("bcoo_fromdense", mat)
    n_sparse = mat.ndim - n_batch - n_dense
    if min(n_sparse, n_batch, n_dense) < 0:
        raise ValueError(
            f"bcoo_fromdense: invalid n_batch={n_batch}, n_dense={n_dense} for shape {mat.shape}"
        )
    mask = mat != 0
    if n_dense:
        mask = jnp.any(mask, axis=tuple(range(mat.ndim - n_dense, mat.ndim)))
    if nse is None:
        nse = counted("bcoo_fromdense", jnp.sum(mask, axis=tuple(range(n_batch, mask.ndim))))
    size = operator.index(nse)

    def one(m: Any, values: Any) -> tuple[Any, Any]:
        if not m.ndim:
            there = jnp.arange(size) < m
            place = jnp.zeros((size, 0), index_dtype)
        else:
            found = jnp.nonzero(m, size=size, fill_value=m.shape)
            place = jnp.stack(found, axis=-1).astype(index_dtype)
            there = jnp.arange(size) < jnp.sum(m)
        taken = extract(place, values)
        kept = jnp.reshape(there, (size,) + (1,) * n_dense)
        return jnp.where(kept, taken, jnp.zeros((), taken.dtype)), place

    data, indices = per_batch(one, n_batch, mask, mat)
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)


def bcoo_extract(sparr: BCOO, arr: ArrayLike, *, assume_unique: bool | None = None) -> BCOO:
    """Gives the values of a dense array at the places of a sparse one.

    Args:
        sparr: The sparse array.
        arr: The dense array, of the same shape.
        assume_unique: Whether no place comes twice; None takes what `sparr` says. Otherwise only
            the first of equal places gets the value.

    Returns:
        A BCOO array.

    >>> sparse.bcoo_extract(sparse.eye(2), jnp.array([[1.0, 2.0], [3.0, 4.0]])).data
    Array([1., 4.], dtype=float32)"""
    sparr = checked("bcoo_extract", sparr)
    arr = array_of("bcoo_extract", arr)
    if arr.shape != sparr.shape:
        raise ValueError(f"bcoo_extract: shape mismatch, {sparr.shape} and {arr.shape}")
    unique = sparr.unique_indices if assume_unique is None else assume_unique
    return like(sparr, extract(sparr.indices, arr, unique))
