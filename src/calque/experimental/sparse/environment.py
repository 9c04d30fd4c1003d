"""Sparse arrays as references to buffers that several of them may share, in JAX's names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from calque import numpy as jnp
from calque.core import pytrees
from calque.core.arrays import Array
from calque.core.types import ArrayLike
from calque.experimental.sparse.base import is_sparse
from calque.experimental.sparse.bcoo import BCOO
from calque.experimental.sparse.bcsr import BCSR
from calque.experimental.sparse.sparsifying import SparseTracer, aval_of, sparsify

__all__ = [
    "SparseTracer", "SparsifyEnv", "SparsifyValue", "arrays_to_spvalues", "sparsify",
    "sparsify_raw", "spvalues_to_arrays", "spvalues_to_avals",
]  # fmt: skip


class SparsifyValue(NamedTuple):
    """An array by the places of its buffers: `data` alone makes a dense one, with `indices` it is a
    BCOO, with `indptr` a BCSR array.

    Args:
        shape: Its shape.
        data_ref: The place of its elements.
        indices_ref: The place of its indices, or None.
        indptr_ref: The place of its row pointers, or None.
        indices_sorted: Whether the indices are in order.
        unique_indices: Whether no index occurs twice.

    >>> sparse.transform.SparsifyValue((3,), 0).is_dense()
    True"""

    shape: tuple[int, ...]
    data_ref: int | None
    indices_ref: int | None = None
    indptr_ref: int | None = None
    indices_sorted: bool | None = False
    unique_indices: bool | None = False

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def is_sparse(self) -> bool:
        """Tells whether it has indices.

        Returns:
            A bool."""
        return self.indices_ref is not None

    def is_dense(self) -> bool:
        """Tells whether it has no indices.

        Returns:
            A bool."""
        return not self.is_sparse()

    def is_bcoo(self) -> bool:
        """Tells whether it is a BCOO array.

        Returns:
            A bool."""
        return self.is_sparse() and self.indptr_ref is None

    def is_bcsr(self) -> bool:
        """Tells whether it is a BCSR array.

        Returns:
            A bool."""
        return self.is_sparse() and self.indptr_ref is not None


class SparsifyEnv:
    """The buffers to which SparsifyValues refer.

    Args:
        bufs: The first buffers.

    >>> env = sparse.transform.SparsifyEnv()
    >>> env.data(env.dense(jnp.arange(3)))
    Array([0, 1, 2], dtype=int32)"""

    def __init__(self, bufs: Sequence[ArrayLike] = ()):
        self._buffers: list[Any] = list(bufs)

    def _place(self, buffer: Any, ref: int | None, what: str) -> int:
        """The place of a buffer, which is added, or else one that is there."""
        if (buffer is None) is (ref is None):
            raise ValueError(f"SparsifyEnv: give {what} or {what}_ref, and not both")
        if ref is None:
            self._buffers.append(jnp.asarray(buffer))
            return len(self._buffers) - 1
        if not 0 <= ref < len(self._buffers):
            raise IndexError(f"SparsifyEnv has {len(self._buffers)} buffers, got {what}_ref={ref}")
        return ref

    def _at(self, ref: int | None, what: str) -> Any:
        if ref is None:
            raise RuntimeError(f"the array has no {what}")
        return self._buffers[ref]

    def data(self, spvalue: SparsifyValue) -> Array:
        """Gives the elements of an array.

        Args:
            spvalue: The array.

        Returns:
            An array."""
        return self._at(spvalue.data_ref, "data")

    def indices(self, spvalue: SparsifyValue) -> Array:
        """Gives the indices of a sparse array.

        Args:
            spvalue: The array.

        Returns:
            An array."""
        return self._at(spvalue.indices_ref, "indices")

    def indptr(self, spvalue: SparsifyValue) -> Array:
        """Gives the row pointers of a BCSR array.

        Args:
            spvalue: The array.

        Returns:
            An array."""
        return self._at(spvalue.indptr_ref, "indptr")

    def dense(self, data: ArrayLike) -> SparsifyValue:
        """Adds a dense array.

        Args:
            data: Its elements.

        Returns:
            A SparsifyValue."""
        return SparsifyValue(jnp.shape(data), self._place(data, None, "data"))

    def sparse(
        self,
        shape: Sequence[int],
        data: ArrayLike | None = None,
        indices: ArrayLike | None = None,
        indptr: ArrayLike | None = None,
        *,
        data_ref: int | None = None,
        indices_ref: int | None = None,
        indptr_ref: int | None = None,
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> SparsifyValue:
        """Adds a sparse array, of new buffers or of those that are there.

        Args:
            shape: Its shape.
            data: Its elements, or None.
            indices: Its indices, or None.
            indptr: Its row pointers, or None.
            data_ref: The place of its elements, or None.
            indices_ref: The place of its indices, or None.
            indptr_ref: The place of its row pointers, or None.
            indices_sorted: Whether the indices are in order.
            unique_indices: Whether no index occurs twice.

        Returns:
            A SparsifyValue."""
        has_rows = indptr is not None or indptr_ref is not None
        return SparsifyValue(
            tuple(shape),
            self._place(data, data_ref, "data"),
            self._place(indices, indices_ref, "indices"),
            self._place(indptr, indptr_ref, "indptr") if has_rows else None,
            indices_sorted=indices_sorted,
            unique_indices=unique_indices,
        )

    def shared(self, arr: Any) -> SparsifyValue:
        """Adds an array, whose indices stay where they are if they are a buffer here.

        Args:
            arr: The array, sparse or dense.

        Returns:
            A SparsifyValue."""
        if not is_sparse(arr):
            return self.dense(arr)
        known = next((i for i, b in enumerate(self._buffers) if b is arr.indices), None)
        return self.sparse(
            arr.shape,
            arr.data,
            arr.indices if known is None else None,
            getattr(arr, "indptr", None),
            indices_ref=known,
            indices_sorted=arr.indices_sorted,
            unique_indices=arr.unique_indices,
        )


def _is_value(x: Any) -> bool:
    return isinstance(x, SparsifyValue)


def arrays_to_spvalues(spenv: SparsifyEnv, args: Any) -> Any:
    """Adds the arrays of a tree to the buffers.

    Args:
        spenv: The buffers.
        args: A tree of arrays, sparse and dense.

    Returns:
        The tree with SparsifyValues.

    >>> env = sparse.transform.SparsifyEnv()
    >>> sparse.transform.arrays_to_spvalues(env, [sparse.eye(2)])[0].indices_ref
    1"""

    def added(x: Any) -> SparsifyValue:
        if not is_sparse(x):
            return spenv.dense(x)
        flags = {"indices_sorted": x.indices_sorted, "unique_indices": x.unique_indices}
        return spenv.sparse(x.shape, x.data, x.indices, getattr(x, "indptr", None), **flags)

    return pytrees.tree_map(added, args, is_leaf=is_sparse)


def spvalues_to_arrays(spenv: SparsifyEnv, spvalues: Any) -> Any:
    """Gives the arrays that the SparsifyValues of a tree stand for.

    Args:
        spenv: The buffers.
        spvalues: A tree of SparsifyValues.

    Returns:
        The tree with arrays.

    >>> env = sparse.transform.SparsifyEnv([jnp.arange(3)])
    >>> sparse.transform.spvalues_to_arrays(env, sparse.transform.SparsifyValue((3,), 0))
    Array([0, 1, 2], dtype=int32)"""

    def made(v: SparsifyValue) -> Any:
        if v.is_dense():
            return spenv.data(v)
        flags = {"indices_sorted": bool(v.indices_sorted), "unique_indices": bool(v.unique_indices)}
        if v.is_bcoo():
            return BCOO((spenv.data(v), spenv.indices(v)), shape=v.shape, **flags)
        parts = (spenv.data(v), spenv.indices(v), spenv.indptr(v))
        return BCSR(parts, shape=v.shape, **flags)

    return pytrees.tree_map(made, spvalues, is_leaf=_is_value)


def spvalues_to_avals(spenv: SparsifyEnv, spvalues: Any) -> Any:
    """Gives the types of the arrays that the SparsifyValues of a tree stand for.

    Args:
        spenv: The buffers.
        spvalues: A tree of SparsifyValues.

    Returns:
        The tree with types.

    >>> env = sparse.transform.SparsifyEnv()
    >>> sparse.transform.spvalues_to_avals(env, env.dense(jnp.arange(3)))
    ShapedArray(int32[3])"""
    arrays = spvalues_to_arrays(spenv, spvalues)
    return pytrees.tree_map(aval_of, arrays, is_leaf=is_sparse)


def sparsify_raw(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """Makes a function of SparsifyValues of a function of dense arrays.

    Args:
        f: The function.
        use_tracer: As `sparsify` takes it.

    Returns:
        A function of a SparsifyEnv and SparsifyValues. It gives a pair: the results, as a flat list
        of SparsifyValues, and whether there are several.

    >>> env = sparse.transform.SparsifyEnv()
    >>> (out,), _ = sparse.transform.sparsify_raw(jnp.sin)(env, env.dense(jnp.zeros(2)))
    >>> env.data(out)
    Array([0., 0.], dtype=float32)"""
    function = sparsify(f, use_tracer)

    def raw(spenv: SparsifyEnv, *spvalues: Any, **params: Any) -> tuple[list[Any], bool]:
        out = function(*spvalues_to_arrays(spenv, spvalues), **params)
        leaves, tree = pytrees.flatten(out, is_leaf=is_sparse)
        return [spenv.shared(x) for x in leaves], tree != pytrees.LEAF

    return raw
