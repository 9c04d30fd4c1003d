"""BCOO: batches of coordinates and values."""

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

from calque import numpy as jnp
from calque.core.arrays import Array
from calque.core.dtypes import is_integer
from calque.experimental.sparse.base import JAXSparse, SparseInfo
from calque.tree_util import register_pytree_node_class


class BCOOProperties(NamedTuple):
    """How the dimensions of a BCOO array are divided, and the number of stored elements of a
    batch."""

    n_batch: int
    n_sparse: int
    n_dense: int
    nse: int


@register_pytree_node_class
class BCOO(JAXSparse):
    """A sparse array with coordinates of its values.

    It has batch, sparse and dense dimensions, in this order. Elements whose index lies outside of
    the array are padding. Values of the same place are added.

    Args:
        args: The values, of shape (*batch, nse, *dense), and the indices, integers of shape
            (*batch, nse, number of sparse dimensions).
        shape: The sizes of all dimensions.
        indices_sorted: A promise that the indices come in order.
        unique_indices: A promise that no index comes twice.

    >>> a = sparse.BCOO.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> a
    BCOO(float32[2, 2], nse=2)
    >>> a @ jnp.array([1.0, 10.0])
    Array([20.,  3.], dtype=float32)"""

    indices: Any
    indices_sorted: bool
    unique_indices: bool

    def __init__(
        self,
        args: tuple[Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ):
        data, indices = (jnp.asarray(x) for x in args)
        sizes = tuple(operator.index(n) for n in shape)
        n_batch, n_sparse, _, _ = validated(data, indices, sizes)
        batch = tuple(
            n if a == b == 1 else a
            for n, a, b in zip(sizes, data.shape[:n_batch], indices.shape[:n_batch], strict=False)
        )
        self.data = jnp.broadcast_to(data, batch + data.shape[n_batch:])
        self.indices = indices
        self.sparse_shape = sizes[n_batch : n_batch + n_sparse]
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The sizes of batch, sparse and dense dimensions. Under vmap the mapped batch dimension is
        gone."""
        n = self.n_batch
        batch = jnp.broadcast_shapes(self.data.shape[:n], self.indices.shape[:n])
        return (*batch, *self.sparse_shape, *self.data.shape[n + 1 :])

    @property
    def nse(self) -> int:
        return int(self.indices.shape[-2])

    @property
    def n_batch(self) -> int:
        """The number of batch dimensions."""
        return int(self.indices.ndim) - 2

    @property
    def n_sparse(self) -> int:
        """The number of sparse dimensions."""
        return int(self.indices.shape[-1])

    @property
    def n_dense(self) -> int:
        """The number of dense dimensions."""
        return int(self.data.ndim) - 1 - self.n_batch

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The sizes of the batch dimensions."""
        return self.shape[: self.n_batch]

    @property
    def dense_shape(self) -> tuple[int, ...]:
        """The sizes of the dense dimensions."""
        return tuple(self.data.shape[self.n_batch + 1 :])

    @property
    def _info(self) -> SparseInfo:
        return SparseInfo(self.shape, self.indices_sorted, self.unique_indices)

    @property
    def _bufs(self) -> tuple[Any, Any]:
        return self.data, self.indices

    def _layout(self) -> str:
        return "".join(
            f", {n}={v}" for n, v in (("n_batch", self.n_batch), ("n_dense", self.n_dense)) if v
        )

    def tree_flatten(self) -> tuple[Any, Any]:
        """Gives values and indices, and the rest.

        Returns:
            A pair."""
        return (self.data, self.indices), (
            self.sparse_shape,
            self.indices_sorted,
            self.unique_indices,
        )

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> "BCOO":
        """Makes the array of its parts.

        Args:
            aux: The rest, as `tree_flatten` gave it.
            children: Values and indices.

        Returns:
            A BCOO array."""
        out = object.__new__(cls)
        out.data, out.indices = children
        out.sparse_shape, out.indices_sorted, out.unique_indices = aux
        return out


def like(mat: BCOO, data: Array) -> BCOO:
    """The same places with other values."""
    return BCOO(
        (data, mat.indices),
        shape=mat.shape,
        indices_sorted=mat.indices_sorted,
        unique_indices=mat.unique_indices,
    )


def validated(data: Array, indices: Array, shape: tuple[int, ...]) -> BCOOProperties:
    """How the dimensions are divided; the parts must fit."""
    if not is_integer(indices.dtype) or indices.ndim < 2:
        raise TypeError(
            "BCOO: indices must be integers of shape (*batch, nse, n_sparse), got"
            f" {indices.dtype.name}{list(indices.shape)}"
        )
    *batch, nse, n_sparse = indices.shape
    n_batch = len(batch)
    n_dense = len(shape) - n_batch - n_sparse
    if n_dense < 0:
        raise ValueError(
            f"BCOO: indices of shape {indices.shape} have more dimensions than the array of shape"
            f" {shape}"
        )
    for what, x in (("data", data), ("indices", indices)):
        if any(a not in (1, n) for a, n in zip(x.shape[:n_batch], shape)):
            raise ValueError(
                f"BCOO: {what} batch dimensions not compatible for {what} of shape {x.shape},"
                f" shape={shape}"
            )
    if data.shape[n_batch:] != (nse, *shape[n_batch + n_sparse :]):
        raise ValueError(
            f"BCOO: invalid data of shape {data.shape} for nse={nse}, n_batch={n_batch},"
            f" n_dense={n_dense}, shape={shape}"
        )
    return BCOOProperties(n_batch, n_sparse, n_dense, nse)


def checked(name: str, mat: object) -> BCOO:
    """The argument, which must be a BCOO array."""
    if not isinstance(mat, BCOO):
        raise TypeError(f"{name}: a BCOO array is needed, got {type(mat)}")
    return mat


def in_bounds(indices: Array, sparse_shape: tuple[int, ...]) -> Array:
    """Which stored elements are not padding."""
    return jnp.all(indices < jnp.array(sparse_shape, indices.dtype), axis=-1)
