"""The attributes that arrays and tracers share."""

from __future__ import annotations

from typing import Any, Final

from calque.numpy import shaping, ufuncs
from calque.numpy.indexing.at import At


def _shape(self: Any) -> tuple[int, ...]:
    """The size of each axis, a tuple of ints.

    Returns:
        A tuple.

    >>> jnp.ones((2, 3)).shape
    (2, 3)"""
    return self.aval.shape


def _dtype(self: Any) -> Any:
    """The type of the elements, a NumPy dtype.

    Returns:
        A dtype.

    >>> jnp.ones(2).dtype
    dtype('float32')"""
    return self.aval.dtype


def _ndim(self: Any) -> int:
    """The number of axes.

    Returns:
        An int.

    >>> jnp.ones((2, 3)).ndim
    2"""
    return self.aval.ndim


def _size(self: Any) -> int:
    """The number of elements: the product of the sizes.

    Returns:
        An int.

    >>> jnp.ones((2, 3)).size
    6"""
    return self.aval.size


def _itemsize(self: Any) -> int:
    """The bytes of one element.

    Returns:
        An int.

    >>> jnp.ones(2).itemsize
    4"""
    return self.aval.dtype.itemsize


def _nbytes(self: Any) -> int:
    """The bytes of all elements.

    Returns:
        An int.

    >>> jnp.ones(2).nbytes
    8"""
    return self.aval.size * self.aval.dtype.itemsize


def _weak_type(self: Any) -> bool:
    """Whether the dtype gives way to that of another operand, as a Python number's does.

    Returns:
        A bool.

    >>> jnp.asarray(1.0).weak_type
    True"""
    return self.aval.weak_type


def _reversed_axes(self: Any) -> Any:
    """The array with its axes in opposite order; a matrix transposed.

    Returns:
        An array.

    >>> jnp.ones((2, 3)).T.shape
    (3, 2)"""
    return shaping.transpose(self)


_MATRICES_TRANSPOSED: Final = "The last two axes exchanged: every matrix of a batch transposed."
_UPDATES: Final = """Updates that give a new array: `x.at[i].set(y)`, `.add(y)`, `.max(y)`, ...

    >>> jnp.zeros(3).at[1].set(5.0)
    Array([0., 5., 0.], dtype=float32)"""


def _real(self: Any) -> Any:
    """The real part; of real numbers the array itself.

    Returns:
        An array of real numbers.

    >>> jnp.array([1 + 2j]).real
    Array([1.], dtype=float32)"""
    return ufuncs.real(self)


def _imag(self: Any) -> Any:
    """The imaginary part; of real numbers zeros.

    Returns:
        An array of real numbers.

    >>> jnp.array([1 + 2j]).imag
    Array([2.], dtype=float32)"""
    return ufuncs.imag(self)


def _flat(self: Any) -> Any:
    """Would iterate over all elements, and raises NotImplementedError: use `x.ravel()`.

    Returns:
        Nothing: it raises.

    Differs from JAX:
        There is no such iterator.

    >>> jnp.arange(3).ravel()
    Array([0, 1, 2], dtype=int32)"""
    raise NotImplementedError("arrays have no property flat: use x.flatten() or x.ravel()")


ATTRIBUTES: Final[dict[str, Any]] = {
    "shape": property(_shape),
    "dtype": property(_dtype),
    "ndim": property(_ndim),
    "size": property(_size),
    "itemsize": property(_itemsize),
    "nbytes": property(_nbytes),
    "weak_type": property(_weak_type),
    "T": property(_reversed_axes),
    "mT": property(shaping.matrix_transpose, doc=_MATRICES_TRANSPOSED),
    "real": property(_real),
    "imag": property(_imag),
    "at": property(At, doc=_UPDATES),
    "flat": property(_flat),
}
