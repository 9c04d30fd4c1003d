"""Complex numbers: making them from parts, taking the parts, the conjugate."""

from __future__ import annotations

from typing import Any

import numpy as np

from calque.core.arrays import Array
from calque.core.avals import ShapedArray
from calque.core.dtypes import complex_of, is_complex, real_part
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike
from calque.ops.common import COMPLEXES, Accepts, operand, zeros
from calque.ops.kinds import (
    apply_nary,
    apply_unary,
    linear_nary,
    linear_unary,
    nary,
    unary,
)

_PARTS = Accepts("float32, float64", (np.dtype("float32"), np.dtype("float64")))
_CONJ = Accepts("float32, float64, complexfloating", (*_PARTS.dtypes, *COMPLEXES.dtypes))


def _complex_meaning(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    out = np.empty(np.broadcast_shapes(x.shape, y.shape), complex_of(x.dtype))
    out.real, out.imag = x, y
    return out


def _zero_imaginary(t: Any) -> Any:
    return do.complex(t, _strong_zero(t))


def _zero_real(t: Any) -> Any:
    return do.complex(_strong_zero(t), t)


def _strong_zero(t: Any) -> Any:
    """Zeros of a type that is not weak: what parts that are taken alone give back is not either."""
    return zeros(typeof(t).strip_weak_type())


real_p = unary(
    "real",
    COMPLEXES,
    lambda x: np.real(x).copy(),
    lambda t, x, out: do.real(t),
    result=real_part,
    transpose=linear_unary(lambda ct, aval: _zero_imaginary(ct)),
)
imag_p = unary(
    "imag",
    COMPLEXES,
    lambda x: np.imag(x).copy(),
    lambda t, x, out: do.imag(t),
    result=real_part,
    transpose=linear_unary(lambda ct, aval: _zero_real(do.neg(ct))),
)
complex_p = nary(
    "complex",
    _PARTS,
    _complex_meaning,
    lambda t, out, x, y: _zero_imaginary(t),
    lambda t, out, x, y: _zero_real(t),
    result=complex_of,
    transpose=linear_nary(lambda ct, x, y: do.real(ct), lambda ct, x, y: do.neg(do.imag(ct))),
)


def _conj_meaning(x: np.ndarray, *, input_dtype: Any) -> np.ndarray:
    return np.conj(x).astype(complex_of(x.dtype))


def _conj_cotangent(ct: Any, aval: ShapedArray, *, input_dtype: Any) -> Any:
    back = do.conj(ct, input_dtype=typeof(ct).dtype)
    return back if is_complex(aval.dtype) else do.real(back)


conj_p = unary(
    "conj",
    _CONJ,
    _conj_meaning,
    lambda t, x, out, *, input_dtype: do.conj(t, input_dtype=input_dtype),
    result=complex_of,
    transpose=linear_unary(_conj_cotangent),
)

# ---------------------------------------------------------------- public functions


def real(x: ArrayLike) -> Array:
    """The real part of each element.

    Args:
        x: Complex numbers.

    Returns:
        An array of the floating-point dtype of the parts.

    >>> lax.real(3 + 4j)
    Array(3., dtype=float32, weak_type=True)"""
    return apply_unary(real_p, x)


def imag(x: ArrayLike) -> Array:
    """The imaginary part of each element.

    Args:
        x: Complex numbers.

    Returns:
        An array of the floating-point dtype of the parts.

    >>> lax.imag(3 + 4j)
    Array(4., dtype=float32, weak_type=True)"""
    return apply_unary(imag_p, x)


def complex(x: ArrayLike, y: ArrayLike) -> Array:
    """The complex numbers of these parts.

    Args:
        x: The real parts, of dtype float32 or float64.
        y: The imaginary parts, of the same dtype and shape.

    Returns:
        An array of dtype complex64 or complex128.

    >>> lax.complex(3.0, 4.0)
    Array(3.+4.j, dtype=complex64, weak_type=True)"""
    return apply_nary(complex_p, x, y)


def conj(x: ArrayLike) -> Array:
    """The complex conjugate of each element.

    Args:
        x: Complex numbers, or real ones.

    Returns:
        An array of complex numbers, also for real ones.

    >>> lax.conj(3 + 4j)
    Array(3.-4.j, dtype=complex64, weak_type=True)"""
    x = operand(x)
    return conj_p.bind(x, input_dtype=typeof(x).dtype)


def squared_magnitude(x: Any) -> Any:
    """|x| squared, of complex values without a root."""
    if not is_complex(typeof(x).dtype):
        return do.square(x)
    return do.square(do.real(x)) + do.square(do.imag(x))
