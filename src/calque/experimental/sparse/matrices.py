"""Sparse matrices: COO, CSR and CSC."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from calque import numpy as jnp
from calque.core.arrays import Array
from calque.core.types import ArrayLike, DTypeLike
from calque.experimental.sparse.base import JAXSparse, is_sparse, undefined
from calque.experimental.sparse.bcoo import BCOO
from calque.experimental.sparse.bcsr import BCSR
from calque.experimental.sparse.conversions import bcoo_fromdense, bcoo_todense
from calque.experimental.sparse.products import bcoo_dot_general
from calque.numpy.promotion import array_of
from calque.tree_util import register_pytree_node_class


class _Matrix(JAXSparse):
    """What the three formats share: products and dense forms by way of coordinates."""

    def __init__(self, args: tuple[Any, ...], *, shape: Sequence[int]):
        sizes = tuple(operator.index(n) for n in shape)
        if len(sizes) != 2:
            raise ValueError(f"{type(self).__name__} must have ndim=2; got shape={sizes}")
        self.shape = sizes
        self._set([jnp.asarray(x) for x in args])

    def _set(self, parts: Sequence[Any]) -> None:
        raise undefined(self, "_set")

    @property
    def nse(self) -> int:
        return int(self.data.size)

    def to_bcoo(self) -> BCOO:
        """The same matrix with coordinates."""
        raise undefined(self, "to_bcoo")

    def todense(self) -> Any:
        return bcoo_todense(self.to_bcoo())

    def _reversed(self) -> Any:
        raise undefined(self, "_reversed")

    def transpose(self, axes: Any = None) -> Any:
        if axes is not None and tuple(axes) != (1, 0):
            raise NotImplementedError(
                f"{type(self).__name__}.transpose: axes={axes}; only the transposed matrix, (1, 0)"
            )
        return self._reversed()

    def __matmul__(self, other: Any) -> Any:
        if is_sparse(other):
            raise NotImplementedError("matmul between two sparse matrices: use BCOO")
        return _product(type(self).__name__, self, other, False, (1, 2))


def _product(name: str, mat: Any, v: Any, transpose: bool, ndims: tuple[int, ...]) -> Any:
    v = array_of(name, v)
    if v.ndim not in ndims:
        raise NotImplementedError(
            f"{name}: product with an array of shape {v.shape}; bcoo_dot_general takes any, of"
            " to_bcoo()"
        )
    bcoo = mat.to_bcoo()
    return bcoo_dot_general(bcoo, v, dimension_numbers=(((0 if transpose else 1,), (0,)), ((), ())))


@register_pytree_node_class
class COO(_Matrix):
    """A sparse matrix of values, rows and columns.

    Args:
        args: The values, their rows and their columns: three vectors of one length.
        shape: The numbers of rows and columns.
        rows_sorted: A promise that the elements come by rows.
        cols_sorted: A promise that the elements of a row come by columns.

    >>> sparse.COO.fromdense(jnp.eye(2)) @ jnp.array([1.0, 2.0])
    Array([1., 2.], dtype=float32)"""

    row: Any
    col: Any

    def __init__(
        self,
        args: tuple[Any, Any, Any],
        *,
        shape: Sequence[int],
        rows_sorted: bool = False,
        cols_sorted: bool = False,
    ):
        super().__init__(args, shape=shape)
        self._rows_sorted, self._cols_sorted = bool(rows_sorted), bool(cols_sorted)

    def _set(self, parts: Sequence[Any]) -> None:
        self.data, self.row, self.col = parts

    @property
    def _bufs(self) -> tuple[Any, Any, Any]:
        return self.data, self.row, self.col

    def tree_flatten(self) -> tuple[Any, Any]:
        """Gives values, rows and columns, and the rest.

        Returns:
            A pair."""
        return self._bufs, (self.shape, self._rows_sorted, self._cols_sorted)

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> "COO":
        """Makes the matrix of its parts.

        Args:
            aux: The rest, as `tree_flatten` gave it.
            children: Values, rows and columns.

        Returns:
            A COO matrix."""
        out = object.__new__(cls)
        out.data, out.row, out.col = children
        out.shape, out._rows_sorted, out._cols_sorted = aux
        return out

    def to_bcoo(self) -> BCOO:
        """Gives the same matrix with coordinates.

        Returns:
            A BCOO array."""
        indices = jnp.stack([self.row, self.col], axis=-1)
        return BCOO(
            (self.data, indices),
            shape=self.shape,
            indices_sorted=self._rows_sorted and self._cols_sorted,
        )

    def _reversed(self) -> "COO":
        return COO(
            (self.data, self.col, self.row),
            shape=self.shape[::-1],
            rows_sorted=self._cols_sorted,
            cols_sorted=self._rows_sorted,
        )

    def _sort_indices(self) -> "COO":
        order = jnp.lexsort((self.col, self.row))
        return COO(
            (self.data[order], self.row[order], self.col[order]), shape=self.shape, rows_sorted=True
        )

    @classmethod
    def fromdense(
        cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
    ) -> "COO":
        """Makes a COO matrix of a dense one.

        Args:
            mat: The dense matrix.
            nse: How many elements are stored; None stores those that are not 0. Under `jit` it must
                be given.
            index_dtype: The integer dtype of rows and columns.

        Returns:
            A COO matrix."""
        return coo_fromdense(mat, nse=nse, index_dtype=index_dtype)

    @classmethod
    def _of(cls, mat: BCOO) -> "COO":
        return cls(
            (mat.data, mat.indices[:, 0], mat.indices[:, 1]),
            shape=mat.shape,
            rows_sorted=mat.indices_sorted,
        )

    @classmethod
    def _empty(
        cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32"
    ) -> "COO":
        none = jnp.zeros(0, index_dtype)
        return cls(
            (jnp.zeros(0, dtype or float), none, none),
            shape=shape,
            rows_sorted=True,
            cols_sorted=True,
        )


class _Compressed(_Matrix):
    indices: Any
    indptr: Any

    def _set(self, parts: Sequence[Any]) -> None:
        self.data, self.indices, self.indptr = parts

    @property
    def _bufs(self) -> tuple[Any, Any, Any]:
        return self.data, self.indices, self.indptr

    def tree_flatten(self) -> tuple[Any, Any]:
        return self._bufs, self.shape

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> Any:
        out = object.__new__(cls)
        out.data, out.indices, out.indptr = children
        out.shape = aux
        return out


@register_pytree_node_class
class CSR(_Compressed):
    """A sparse matrix by rows: values, columns, and where each row begins.

    Args:
        args: The values, their columns, and the position of the first element of each row, with the
            end as last one.
        shape: The numbers of rows and columns.

    >>> sparse.CSR.fromdense(jnp.eye(2)).indptr.tolist()
    [0, 1, 2]"""

    def to_bcoo(self) -> BCOO:
        """Gives the same matrix with coordinates.

        Returns:
            A BCOO array."""
        return BCSR(self._bufs, shape=self.shape).to_bcoo()

    def _reversed(self) -> "CSC":
        return CSC(self._bufs, shape=self.shape[::-1])

    @classmethod
    def _of(cls, mat: BCOO) -> "CSR":
        return cls(BCSR.from_bcoo(mat)._bufs, shape=mat.shape)

    @classmethod
    def fromdense(
        cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
    ) -> "CSR":
        """Makes a CSR matrix of a dense one.

        Args:
            mat: The dense matrix.
            nse: How many elements are stored; None stores those that are not 0. Under `jit` it must
                be given.
            index_dtype: The integer dtype of the columns.

        Returns:
            A CSR matrix."""
        return csr_fromdense(mat, nse=nse, index_dtype=index_dtype)

    @classmethod
    def _empty(
        cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32"
    ) -> "CSR":
        ends = jnp.zeros(shape[0] + 1, index_dtype)
        return cls((jnp.zeros(0, dtype or float), jnp.zeros(0, index_dtype), ends), shape=shape)


@register_pytree_node_class
class CSC(_Compressed):
    """A sparse matrix by columns: values, rows, and where each column begins.

    Args:
        args: The values, their rows, and the position of the first element of each column, with the
            end as last one.
        shape: The numbers of rows and columns.

    >>> sparse.CSC.fromdense(jnp.eye(2)).T
    CSR(float32[2, 2], nse=2)"""

    def to_bcoo(self) -> BCOO:
        """Gives the same matrix with coordinates.

        Returns:
            A BCOO array."""
        mat = self._reversed().to_bcoo()
        return BCOO((mat.data, mat.indices[:, ::-1]), shape=self.shape)

    def _reversed(self) -> CSR:
        return CSR(self._bufs, shape=self.shape[::-1])

    @classmethod
    def fromdense(
        cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
    ) -> "CSC":
        """Makes a CSC matrix of a dense one.

        Args:
            mat: The dense matrix.
            nse: How many elements are stored; None stores those that are not 0. Under `jit` it must
                be given.
            index_dtype: The integer dtype of the rows.

        Returns:
            A CSC matrix."""
        return csr_fromdense(
            array_of("CSC.fromdense", mat).T, nse=nse, index_dtype=index_dtype
        )._reversed()

    @classmethod
    def _of(cls, mat: BCOO) -> "CSC":
        turned = BCOO((mat.data, mat.indices[:, ::-1]), shape=mat.shape[::-1])
        return CSR._of(turned)._reversed()

    @classmethod
    def _empty(
        cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32"
    ) -> "CSC":
        return CSR._empty(tuple(shape)[::-1], dtype=dtype, index_dtype=index_dtype)._reversed()


def _matrix(name: str, mat: Any) -> Any:
    mat = array_of(name, mat)
    if mat.ndim != 2:
        raise ValueError(f"{name}: a matrix is needed, got shape {mat.shape}")
    return mat


def _of(name: str, mat: Any, kind: type) -> Any:
    if not isinstance(mat, kind):
        raise TypeError(f"{name}: a {kind.__name__} matrix is needed, got {type(mat)}")
    return mat


def coo_fromdense(
    mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
) -> COO:
    """Makes a COO matrix of a dense one.

    Args:
        mat: The dense matrix.
        nse: How many elements are stored; None stores those that are not 0. Under `jit` it must be
            given.
        index_dtype: The integer dtype of rows and columns.

    Returns:
        A COO matrix.

    >>> sparse.coo_fromdense(jnp.eye(2)).row.tolist()
    [0, 1]"""
    return COO._of(bcoo_fromdense(_matrix("coo_fromdense", mat), nse=nse, index_dtype=index_dtype))


def coo_todense(mat: COO) -> Array:
    """Gives a COO matrix as a dense one.

    Args:
        mat: The matrix.

    Returns:
        An array.

    >>> sparse.coo_todense(sparse.eye(2, sparse_format="coo"))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)"""
    return _of("coo_todense", mat, COO).todense()


def coo_matvec(mat: COO, v: ArrayLike, transpose: bool = False) -> Array:
    """Multiplies a COO matrix, or its transpose, by a vector.

    Args:
        mat: The matrix.
        v: The vector.
        transpose: Whether the transpose is taken.

    Returns:
        A vector.

    >>> sparse.coo_matvec(sparse.eye(2, sparse_format="coo"), jnp.array([3.0, 4.0]))
    Array([3., 4.], dtype=float32)"""
    return _product("coo_matvec", _of("coo_matvec", mat, COO), v, transpose, (1,))


def coo_matmat(mat: COO, B: ArrayLike, *, transpose: bool = False) -> Array:
    """Multiplies a COO matrix, or its transpose, by a dense matrix.

    Args:
        mat: The matrix.
        B: The dense matrix.
        transpose: Whether the transpose of `mat` is taken.

    Returns:
        A dense matrix.

    >>> sparse.coo_matmat(sparse.eye(2, sparse_format="coo"), jnp.ones((2, 1)))
    Array([[1.],
           [1.]], dtype=float32)"""
    return _product("coo_matmat", _of("coo_matmat", mat, COO), B, transpose, (2,))


def csr_fromdense(
    mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
) -> CSR:
    """Makes a CSR matrix of a dense one.

    Args:
        mat: The dense matrix.
        nse: How many elements are stored; None stores those that are not 0. Under `jit` it must be
            given.
        index_dtype: The integer dtype of the columns.

    Returns:
        A CSR matrix.

    >>> sparse.csr_fromdense(jnp.eye(2)).indices.tolist()
    [0, 1]"""
    return CSR._of(bcoo_fromdense(_matrix("csr_fromdense", mat), nse=nse, index_dtype=index_dtype))


def csr_todense(mat: CSR) -> Array:
    """Gives a CSR matrix as a dense one.

    Args:
        mat: The matrix.

    Returns:
        An array.

    >>> sparse.csr_todense(sparse.eye(2, sparse_format="csr"))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)"""
    return _of("csr_todense", mat, CSR).todense()


def csr_matvec(mat: CSR, v: ArrayLike, transpose: bool = False) -> Array:
    """Multiplies a CSR matrix, or its transpose, by a vector.

    Args:
        mat: The matrix.
        v: The vector.
        transpose: Whether the transpose is taken.

    Returns:
        A vector.

    >>> sparse.csr_matvec(sparse.eye(2, sparse_format="csr"), jnp.array([3.0, 4.0]))
    Array([3., 4.], dtype=float32)"""
    return _product("csr_matvec", _of("csr_matvec", mat, CSR), v, transpose, (1,))


def csr_matmat(mat: CSR, B: ArrayLike, *, transpose: bool = False) -> Array:
    """Multiplies a CSR matrix, or its transpose, by a dense matrix.

    Args:
        mat: The matrix.
        B: The dense matrix.
        transpose: Whether the transpose of `mat` is taken.

    Returns:
        A dense matrix.

    >>> sparse.csr_matmat(sparse.eye(2, sparse_format="csr"), jnp.ones((2, 1)))
    Array([[1.],
           [1.]], dtype=float32)"""
    return _product("csr_matmat", _of("csr_matmat", mat, CSR), B, transpose, (2,))
