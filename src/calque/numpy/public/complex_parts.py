"""The parts of complex numbers, by elements."""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

from calque.core.arrays import Array
from calque.core.types import ArrayLike
from calque.numpy import ufuncs as _ufuncs
from calque.numpy.descriptions.writing import written

__all__ = ["conj", "conjugate", "imag", "real"]


@written(_ufuncs.conjugate)
def conjugate(x: ArrayLike, /) -> Array:
    """The complex conjugate: the imaginary part with the opposite sign. Real numbers are
    themselves.

    Args:
        x: an array or a number.
    Returns:
        An array of the same shape: the dtype that the operands have together.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.conjugate(jnp.array([1 + 2j, 3 - 1j]))
    Array([1.-2.j, 3.+1.j], dtype=complex64)"""


conj = conjugate


@written(_ufuncs.real)
def real(val: ArrayLike, /) -> Array:
    """The real part. Real numbers are themselves.

    Args:
        val: an array or a number.
    Returns:
        An array of real numbers of the same shape: a value, not a view to write through.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.real(jnp.array([1 + 2j, 3 - 1j]))
    Array([1., 3.], dtype=float32)"""


@written(_ufuncs.imag)
def imag(val: ArrayLike, /) -> Array:
    """The imaginary part, 0 for real numbers.

    Args:
        val: an array or a number.
    Returns:
        An array of real numbers of the same shape: a value, not a view to write through.
    Differs from NumPy:
        There is no `out`, `where` or `dtype`: arrays are immutable, `jnp.where` chooses.

    >>> jnp.imag(jnp.array([1 + 2j, 3 - 1j]))
    Array([ 2., -1.], dtype=float32)"""
