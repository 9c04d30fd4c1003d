"""The methods and operators of sparse arrays, attached to the classes."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from calque import numpy as jnp
from calque.experimental.sparse import layouts
from calque.experimental.sparse.base import is_sparse
from calque.experimental.sparse.bcoo import BCOO
from calque.experimental.sparse.bcsr import BCSR
from calque.experimental.sparse.conversions import bcoo_fromdense, bcoo_todense
from calque.experimental.sparse.reshaping import bcoo_reshape
from calque.experimental.sparse.sparsifying import sparsify


def _from_scipy_sparse(
    cls: type, mat: Any, *, index_dtype: Any = None, n_dense: int = 0, n_batch: int = 0
) -> BCOO:
    """Makes a BCOO array of a matrix of scipy.sparse.

    Args:
        cls: The class.
        mat: The matrix.
        index_dtype: The integer dtype of the indices; None means int32.
        n_dense: Must be 0.
        n_batch: Must be 0.

    Returns:
        A BCOO array.

    >>> import scipy.sparse
    >>> sparse.BCOO.from_scipy_sparse(scipy.sparse.eye(2))
    BCOO(float32[2, 2], nse=2)"""
    if n_dense or n_batch:
        raise NotImplementedError("BCOO.from_scipy_sparse with nonzero n_dense or n_batch")
    places = mat.tocoo()
    indices = jnp.asarray(
        np.stack([places.row, places.col], axis=-1).astype(index_dtype or np.int32)
    )
    return BCOO((jnp.asarray(places.data), indices), shape=mat.shape)


def _fromdense(
    cls: type,
    mat: Any,
    *,
    nse: int | None = None,
    index_dtype: Any = np.int32,
    n_dense: int = 0,
    n_batch: int = 0,
) -> BCOO:
    """Makes a BCOO array of a dense one.

    Args:
        cls: The class.
        mat: The dense array.
        nse: How many elements are stored; None stores those that are not 0. Under `jit` it must be
            given.
        index_dtype: The integer dtype of the indices.
        n_dense: The number of dense dimensions.
        n_batch: The number of batch dimensions.

    Returns:
        A BCOO array.

    >>> sparse.BCOO.fromdense(jnp.array([0.0, 5.0, 0.0]))
    BCOO(float32[3], nse=1)"""
    return bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)


def _empty(
    cls: type, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32",
    n_dense: int = 0, n_batch: int = 0, nse: int = 0
) -> BCOO:  # fmt: skip
    n_sparse = len(shape) - n_dense - n_batch
    if min(n_sparse, n_dense, n_batch, nse) < 0:
        raise ValueError(
            f"BCOO: invalid shape={shape}, n_dense={n_dense}, n_batch={n_batch}, nse={nse}"
        )
    batch, places, dense = (
        shape[:n_batch],
        shape[n_batch : n_batch + n_sparse],
        shape[n_batch + n_sparse :],
    )
    indices = jnp.broadcast_to(jnp.array(places, index_dtype), (*batch, nse, n_sparse))
    data = jnp.zeros((*batch, nse, *dense), dtype or float)
    return BCOO((data, indices), shape=shape, indices_sorted=True, unique_indices=True)


def _transpose(self: BCOO, axes: Sequence[int] | None = None) -> BCOO:
    """Gives the array with its dimensions in another order.

    Args:
        axes: For each new dimension the old one; None reverses all.

    Returns:
        A BCOO array.

    >>> sparse.eye(2, 3).transpose()
    BCOO(float32[3, 2], nse=2)"""
    order = tuple(range(self.ndim))[::-1] if axes is None else tuple(axes)
    return layouts.bcoo_transpose(self, permutation=order)


def _sum_duplicates(self: BCOO, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
    """Gives the array with one element for each place, in order.

    Args:
        nse: How many elements are stored; None stores as many as there are. Under `jit` it must be
            given.
        remove_zeros: Whether stored zeros are left out.

    Returns:
        A BCOO array.

    >>> sparse.BCOO((jnp.ones(2), jnp.array([[1], [1]])), shape=(2,)).sum_duplicates()
    BCOO(float32[2], nse=1)"""
    return (layouts.bcoo_eliminate_zeros if remove_zeros else layouts.bcoo_sum_duplicates)(
        self, nse
    )


def _reshape(self: BCOO, *shape: Any) -> BCOO:
    """Gives the array other sizes.

    Args:
        *shape: The sizes, or one tuple of them; one may be -1 and follows from the others.

    Returns:
        A BCOO array.

    >>> sparse.eye(2).reshape(4)
    BCOO(float32[4], nse=2)"""
    sizes = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
    known = -int(np.prod(sizes)) if -1 in sizes else 1
    full = [self.size // known if n == -1 else n for n in sizes]
    return bcoo_reshape(self, new_sizes=full)


def _sum(self: BCOO, *args: Any, **kwargs: Any) -> Any:
    """Sums over axes.

    Args:
        *args: As of `jnp.sum`.
        **kwargs: As of `jnp.sum`.

    Returns:
        A BCOO array.

    >>> sparse.eye(2).sum(axis=0).todense()
    Array([1., 1.], dtype=float32)"""
    return sparsify(lambda x: x.sum(*args, **kwargs))(self)


def _astype(self: BCOO, *args: Any, **kwargs: Any) -> BCOO:
    """Gives the values in another dtype.

    Args:
        *args: As of the method `astype` of arrays.
        **kwargs: As of the method `astype` of arrays.

    Returns:
        A BCOO array.

    >>> sparse.eye(2).astype("int32")
    BCOO(int32[2, 2], nse=2)"""
    return sparsify(lambda x: x.astype(*args, **kwargs))(self)


def _getitem(self: Any, item: Any) -> Any:
    return sparsify(lambda x: x[item])(self)


def _iterated(self: Any) -> Iterator[Any]:
    return (self[i] for i in range(len(self)))


def _binary(f: Callable[..., Any], swapped: bool = False) -> Callable[..., Any]:
    on_sparse = sparsify((lambda a, b: f(b, a)) if swapped else (lambda a, b: f(a, b)))

    def operate(self: Any, other: Any) -> Any:
        if not is_sparse(other) and not jnp.isscalar(other) and not hasattr(other, "shape"):
            return NotImplemented
        return on_sparse(self, other)

    return operate


def _comparison(f: Callable[..., Any]) -> Callable[..., Any]:
    """Comparisons are refused by the rule of the primitive: nearly all elements would be stored."""
    return _binary(f)


def _pow(self: BCOO, exponent: Any) -> BCOO:
    return sparsify(lambda x: jnp.power(x, exponent))(self)


_OPERATORS: Final[dict[str, Callable[..., Any]]] = {
    "add": jnp.add, "sub": jnp.subtract, "mul": jnp.multiply, "truediv": jnp.true_divide,
    "matmul": jnp.matmul,
}  # fmt: skip
_COMPARISONS: Final = {
    "gt": jnp.greater, "ge": jnp.greater_equal, "lt": jnp.less, "le": jnp.less_equal,
    "eq": jnp.equal, "ne": jnp.not_equal,
}  # fmt: skip


def attach() -> None:
    """Give BCOO and BCSR their methods and operators."""
    methods: dict[str, Any] = {
        "todense": bcoo_todense, "transpose": _transpose,
        "sort_indices": layouts.bcoo_sort_indices, "reshape": _reshape, "sum": _sum,
        "sum_duplicates": _sum_duplicates, "update_layout": layouts.bcoo_update_layout,
        "astype": _astype, "__iter__": _iterated,
        "__getitem__": _getitem, "__pow__": _pow,
        "__neg__": lambda self: sparsify(jnp.negative)(self), "__pos__": lambda self: self,
        "__abs__": lambda self: sparsify(jnp.abs)(self), "fromdense": classmethod(_fromdense),
        "from_scipy_sparse": classmethod(_from_scipy_sparse), "_empty": classmethod(_empty),
        "__rpow__": _binary(jnp.power, True),
        **{f"__{name}__": _binary(f) for name, f in _OPERATORS.items()},
        **{f"__r{name}__": _binary(f, True) for name, f in _OPERATORS.items()},
        **{f"__{name}__": _comparison(f) for name, f in _COMPARISONS.items()},
    }  # fmt: skip
    for name, method in methods.items():
        setattr(BCOO, name, method)
    for name in ("__matmul__", "__rmatmul__", "__getitem__"):
        setattr(BCSR, name, methods[name])


attach()
