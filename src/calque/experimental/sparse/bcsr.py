"""BCSR: batches of compressed rows."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from calque import numpy as jnp
from calque.core.arrays import Array
from calque.core.types import ArrayLike, DTypeLike
from calque.experimental.sparse.base import JAXSparse, SparseInfo, per_batch
from calque.experimental.sparse.bcoo import BCOO
from calque.experimental.sparse.conversions import bcoo_fromdense, bcoo_todense, extract
from calque.experimental.sparse.layouts import (
    bcoo_eliminate_zeros,
    bcoo_sort_indices,
    bcoo_sum_duplicates,
)
from calque.experimental.sparse.products import bcoo_dot_general
from calque.experimental.sparse.reshaping import bcoo_broadcast_in_dim, bcoo_concatenate
from calque.numpy.promotion import array_of
from calque.numpy.signatures import OutSharding
from calque.tree_util import register_pytree_node_class


@register_pytree_node_class
class BCSR(JAXSparse):
    """A sparse array with two sparse dimensions between batch and dense ones: values by rows.

    Args:
        args: The values, of shape (*batch, nse, *dense), their columns, (*batch, nse), and the
            position of the first element of each row, (*batch, rows + 1).
        shape: The sizes of all dimensions.
        indices_sorted: A promise that the columns of a row come in order.
        unique_indices: A promise that no place comes twice.

    >>> sparse.BCSR.fromdense(jnp.eye(2)).indptr.tolist()
    [0, 1, 2]"""

    indices: Any
    indptr: Any

    def __init__(
        self,
        args: tuple[Any, Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ):
        self.data, self.indices, self.indptr = (jnp.asarray(x) for x in args)
        sizes = tuple(operator.index(n) for n in shape)
        n = self.indices.ndim - 1
        self.sparse_shape = sizes[n : n + 2]
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)
        if (
            self.indptr.ndim != n + 1
            or len(self.sparse_shape) != 2
            or self.indptr.shape[-1] != self.sparse_shape[0] + 1
        ):
            raise ValueError(
                f"BCSR: indptr of shape {self.indptr.shape} and indices of shape"
                f" {self.indices.shape} do not fit shape {sizes}"
            )
        if self.data.shape[n:] != (self.nse, *sizes[n + 2 :]) or self.shape[:n] != sizes[:n]:
            raise ValueError(
                f"BCSR: data of shape {self.data.shape} do not fit nse={self.nse}, shape={sizes}"
            )

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The sizes of batch, sparse and dense dimensions."""
        n = self.n_batch
        batch = jnp.broadcast_shapes(
            self.data.shape[:n], self.indices.shape[:n], self.indptr.shape[:n]
        )
        return (*batch, *self.sparse_shape, *self.data.shape[n + 1 :])

    @property
    def nse(self) -> int:
        return int(self.indices.shape[-1])

    @property
    def n_batch(self) -> int:
        """The number of batch dimensions."""
        return int(self.indices.ndim) - 1

    @property
    def n_sparse(self) -> int:
        """The number of sparse dimensions."""
        return 2

    @property
    def n_dense(self) -> int:
        """The number of dense dimensions."""
        return int(self.data.ndim - self.indices.ndim)

    @property
    def _info(self) -> SparseInfo:
        return SparseInfo(self.shape, self.indices_sorted, self.unique_indices)

    @property
    def _bufs(self) -> tuple[Any, Any, Any]:
        return self.data, self.indices, self.indptr

    def _layout(self) -> str:
        return "".join(
            f", {n}={v}" for n, v in (("n_batch", self.n_batch), ("n_dense", self.n_dense)) if v
        )

    def tree_flatten(self) -> tuple[Any, Any]:
        """Gives the arrays of this one, and the rest.

        Returns:
            A pair."""
        return self._bufs, (self.sparse_shape, self.indices_sorted, self.unique_indices)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> "BCSR":
        """Makes the array of its parts.

        Args:
            aux: The rest, as `tree_flatten` gave it.
            children: Values, columns and positions of rows.

        Returns:
            A BCSR array."""
        out = object.__new__(cls)
        out.data, out.indices, out.indptr = children
        out.sparse_shape, out.indices_sorted, out.unique_indices = aux
        return out

    def to_bcoo(self) -> BCOO:
        """Gives the same array with coordinates.

        Returns:
            A BCOO array."""
        rows = self.sparse_shape[0]

        def one(columns: Any, ends: Any) -> Any:
            row = jnp.searchsorted(ends, jnp.arange(columns.shape[0]), side="right") - 1
            there = row < rows
            place = jnp.stack([row.astype(columns.dtype), columns], axis=-1)
            return jnp.where(there[:, None], place, jnp.array(self.sparse_shape, columns.dtype))

        indices = per_batch(one, self.n_batch, self.indices, self.indptr)
        return BCOO(
            (self.data, indices),
            shape=self.shape,
            indices_sorted=self.indices_sorted,
            unique_indices=self.unique_indices,
        )

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> "BCSR":
        """Makes a BCSR array of a BCOO array with two sparse dimensions.

        Args:
            arr: The BCOO array.

        Returns:
            A BCSR array."""
        if arr.n_sparse != 2:
            raise NotImplementedError(f"BCSR.from_bcoo requires n_sparse=2; got {arr.n_sparse}")
        unique = arr.unique_indices
        arr = bcoo_sort_indices(arr)
        rows = arr.sparse_shape[0]

        def ends(i: Any) -> Any:
            return jnp.searchsorted(i[:, 0], jnp.arange(rows + 1)).astype(i.dtype)

        indptr = per_batch(ends, arr.n_batch, arr.indices)
        parts = (arr.data, arr.indices[..., 1], indptr)
        return cls(parts, shape=arr.shape, indices_sorted=True, unique_indices=unique)

    @classmethod
    def fromdense(
        cls,
        mat: ArrayLike,
        *,
        nse: int | None = None,
        index_dtype: DTypeLike = np.int32,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> "BCSR":
        """Makes a BCSR array of a dense one.

        Args:
            mat: The dense array.
            nse: How many elements are stored; None stores those that are not 0. Under `jit` it must
                be given.
            index_dtype: The integer dtype of the indices.
            n_dense: The number of dense dimensions.
            n_batch: The number of batch dimensions.

        Returns:
            A BCSR array."""
        return bcsr_fromdense(
            mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch
        )

    @classmethod
    def from_scipy_sparse(
        cls,
        mat: Any,
        *,
        index_dtype: DTypeLike | None = None,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> "BCSR":
        """Makes a BCSR array of a matrix of scipy.sparse.

        Args:
            mat: The matrix.
            index_dtype: The integer dtype of the indices; None means int32.
            n_dense: Must be 0.
            n_batch: Must be 0.

        Returns:
            A BCSR array."""
        if n_dense or n_batch:
            raise NotImplementedError("BCSR.from_scipy_sparse with nonzero n_dense or n_batch")
        if mat.ndim != 2:
            raise ValueError(f"BCSR.from_scipy_sparse requires a matrix, got {mat.ndim} dimensions")
        rows = mat.tocsr()
        dtype = index_dtype or np.int32
        parts = (
            jnp.asarray(rows.data),
            jnp.asarray(rows.indices, dtype),
            jnp.asarray(rows.indptr, dtype),
        )
        return cls(parts, shape=mat.shape)

    @classmethod
    def _empty(
        cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32",
        n_dense: int = 0, n_batch: int = 0,
        nse: int = 0,
    ) -> "BCSR":  # fmt: skip
        batch, places, dense = (
            shape[:n_batch],
            shape[n_batch : len(shape) - n_dense],
            shape[len(shape) - n_dense :],
        )
        if len(places) != 2 or min(n_dense, n_batch, nse) < 0:
            raise ValueError(
                f"BCSR: must have 2 sparse dimensions, got shape={shape}, n_batch={n_batch},"
                f" n_dense={n_dense}, nse={nse}"
            )
        data = jnp.zeros((*batch, nse, *dense), dtype or float)
        parts = (
            data,
            jnp.full((*batch, nse), places[1], index_dtype),
            jnp.zeros((*batch, places[0] + 1), index_dtype),
        )
        return cls(parts, shape=shape, indices_sorted=True, unique_indices=True)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> "BCSR":
        """Gives the array with one element for each place.

        Args:
            nse: How many elements are stored; None stores as many as there are. Under `jit` it must
                be given.
            remove_zeros: Whether stored zeros are left out.

        Returns:
            A BCSR array."""
        change = bcoo_eliminate_zeros if remove_zeros else bcoo_sum_duplicates
        return BCSR.from_bcoo(change(self.to_bcoo(), nse))

    def todense(self) -> Array:
        """Gives the array as a dense one.

        Returns:
            An array."""
        return bcoo_todense(self.to_bcoo())

    def transpose(self, axes: ArrayLike | None = None) -> Any:
        """Refused: convert with `to_bcoo()` first.

        Args:
            axes: Not looked at.

        Returns:
            Nothing: it raises."""
        raise NotImplementedError("BCSR.transpose: convert with to_bcoo() first")


def _checked(name: str, mat: Any) -> BCSR:
    if not isinstance(mat, BCSR):
        raise TypeError(f"{name}: a BCSR array is needed, got {type(mat)}")
    return mat


def bcsr_fromdense(
    mat: ArrayLike,
    *,
    nse: int | None = None,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: DTypeLike = np.int32,
) -> BCSR:
    """Makes a BCSR array of a dense one.

    Args:
        mat: The dense array.
        nse: How many elements are stored; None stores those that are not 0. Under `jit` it must be
            given.
        n_batch: The number of batch dimensions.
        n_dense: The number of dense dimensions; two others are left.
        index_dtype: The integer dtype of the indices.

    Returns:
        A BCSR array.

    >>> sparse.bcsr_fromdense(jnp.eye(2)).nse
    2"""
    mat = array_of("bcsr_fromdense", mat)
    if mat.ndim - n_batch - n_dense != 2:
        raise ValueError(
            f"bcsr_fromdense: must have 2 sparse dimensions, got shape {mat.shape},"
            f" n_batch={n_batch}, n_dense={n_dense}"
        )
    return BCSR.from_bcoo(
        bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=index_dtype)
    )


def bcsr_todense(mat: BCSR) -> Array:
    """Gives a BCSR array as a dense one.

    Args:
        mat: The array.

    Returns:
        An array.

    >>> sparse.bcsr_todense(sparse.eye(2, sparse_format="bcsr"))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)"""
    return _checked("bcsr_todense", mat).todense()


def bcsr_extract(indices: ArrayLike, indptr: ArrayLike, mat: ArrayLike) -> Array:
    """Gives the values of a dense array at given places.

    Args:
        indices: The columns, of shape (*batch, nse).
        indptr: The position of the first element of each row, of shape (*batch, rows + 1).
        mat: The dense array.

    Returns:
        An array of values.

    >>> dense = jnp.array([[1.0, 2.0], [3.0, 4.0]])
    >>> sparse.bcsr_extract(jnp.array([1]), jnp.array([0, 1, 1]), dense)
    Array([2.], dtype=float32)"""
    indices, indptr, mat = (array_of("bcsr_extract", x) for x in (indices, indptr, mat))
    n = indices.ndim - 1
    blank = jnp.zeros((*indices.shape, *mat.shape[n + 2 :]), mat.dtype)
    return extract(BCSR((blank, indices, indptr), shape=mat.shape).to_bcoo().indices, mat)


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """Gives a BCSR array with one element for each place.

    Args:
        mat: The array.
        nse: How many elements are stored; None stores as many as there are. Under `jit` it must be
            given.

    Returns:
        A BCSR array.

    >>> sparse.bcsr_sum_duplicates(sparse.eye(2, sparse_format="bcsr")).nse
    2"""
    return _checked("bcsr_sum_duplicates", mat).sum_duplicates(nse, remove_zeros=False)


def bcsr_dot_general(
    lhs: BCSR,
    rhs: JAXSparse | ArrayLike,
    *,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Any:
    """Multiplies a BCSR array by another array, as `lax.dot_general`.

    Args:
        lhs: The BCSR array.
        rhs: A sparse or dense array.
        dimension_numbers: As of `lax.dot_general`.
        precision: It changes nothing: sums are exact products in the dtype of the result.
        preferred_element_type: The dtype of the result; None takes that of the operands.
        out_sharding: Must be None.

    Returns:
        A dense array; a BCOO array if `rhs` is sparse.

    >>> a, dims = sparse.eye(2, sparse_format="bcsr"), (((1,), (0,)), ((), ()))
    >>> sparse.bcsr_dot_general(a, jnp.array([3.0, 4.0]), dimension_numbers=dims)
    Array([3., 4.], dtype=float32)"""
    lhs = _checked("bcsr_dot_general", lhs).to_bcoo()
    return bcoo_dot_general(
        lhs, rhs, dimension_numbers=dimension_numbers, precision=precision,
        preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )  # fmt: skip


def bcsr_broadcast_in_dim(
    mat: BCSR,
    *,
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    sharding: OutSharding = None,
) -> BCSR:
    """Gives a BCSR array more or larger dimensions; the sparse ones stay two.

    Args:
        mat: The array.
        shape: The shape of the result.
        broadcast_dimensions: For each dimension of `mat` the one of the result that it becomes.
        sharding: Must be None.

    Returns:
        A BCSR array.

    >>> a = sparse.bcsr_fromdense(jnp.ones((1, 2, 2)), n_batch=1)
    >>> sparse.bcsr_broadcast_in_dim(a, shape=(3, 2, 2), broadcast_dimensions=(0, 1, 2)).shape
    (3, 2, 2)"""
    out = bcoo_broadcast_in_dim(
        _checked("bcsr_broadcast_in_dim", mat).to_bcoo(), shape=shape,
        broadcast_dimensions=broadcast_dimensions, sharding=sharding
    )  # fmt: skip
    return BCSR.from_bcoo(out)


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Joins BCSR arrays along a dimension.

    Args:
        operands: The arrays.
        dimension: The dimension.

    Returns:
        A BCSR array.

    >>> a = sparse.eye(2, sparse_format="bcsr")
    >>> sparse.bcsr_concatenate([a, a], dimension=1)
    BCSR(float32[2, 4], nse=4)"""
    return BCSR.from_bcoo(
        bcoo_concatenate(
            [_checked("bcsr_concatenate", m).to_bcoo() for m in operands], dimension=dimension
        )
    )
