"""Window functions for spectra."""

from __future__ import annotations

from typing import Any

import numpy as np

from calque.core.arrays import Array
from calque.core.dims import whole
from calque.core.dtypes import canonicalize
from calque.core.primitives import do
from calque.core.types import ArrayLike
from calque.numpy import ufuncs
from calque.numpy.creation import ones
from calque.numpy.elementwise import i0
from calque.numpy.promotion import convert
from calque.numpy.ranges import arange

__all__ = ["bartlett", "blackman", "hamming", "hanning", "kaiser"]


def _points(M: Any) -> int:
    """How many points a window has: NumPy takes floats, too, and drops what is behind the point."""
    if isinstance(M, (float, np.floating)) and np.isfinite(M):
        return int(M)
    return whole(M, "the number of points of a window, M,")


def _steps(M: int) -> tuple[int, Any]:
    """The number of points, and 0, 1, ... as floats, or None for windows of one point or none."""
    n = _points(M)
    return n, None if n <= 1 else arange(n, dtype=canonicalize(float))


def _cosines(M: int, *coefficients: float) -> Any:
    """a0 - a1 cos(2 pi t) + a2 cos(4 pi t)"""
    n, t = _steps(M)
    if t is None:
        return ones((max(n, 0),))
    out: Any = coefficients[0]
    for k, c in enumerate(coefficients[1:], 1):
        out = out + (-1) ** k * c * do.cos(t * np.asarray(2 * np.pi * k / (n - 1), t.dtype))
    return out


def bartlett(M: int) -> Array:
    """The triangular window: it rises from 0 to 1 and falls back.

    Args:
        M: how many points.
    Returns:
        Floats between 0 and 1.

    >>> jnp.bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)"""
    n, t = _steps(M)
    return ones((max(n, 0),)) if t is None else 1 - ufuncs.absolute(2 * t + 1 - n) / (n - 1)


def blackman(M: int) -> Array:
    """The Blackman window, made of two cosines: small side lobes, a wide main one.

    Args:
        M: how many points.
    Returns:
        Floats between 0 and 1.

    >>> jnp.abs(jnp.blackman(5).round(3))
    Array([0.  , 0.34, 1.  , 0.34, 0.  ], dtype=float32)"""
    return _cosines(M, 0.42, 0.5, 0.08)


def hamming(M: int) -> Array:
    """The Hamming window, a cosine on a pedestal: a low first side lobe.

    Args:
        M: how many points.
    Returns:
        Floats between 0.08 and 1.

    >>> jnp.hamming(5).round(3)
    Array([0.08, 0.54, 1.  , 0.54, 0.08], dtype=float32)"""
    return _cosines(M, 0.54, 0.46)


def hanning(M: int) -> Array:
    """The Hann window, one period of a cosine.

    Args:
        M: how many points.
    Returns:
        Floats between 0 and 1.

    >>> jnp.hanning(5).round(3)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)"""
    return _cosines(M, 0.5, 0.5)


def kaiser(M: int, beta: ArrayLike) -> Array:
    """The Kaiser window, whose shape is a number.

    Args:
        M: how many points.
        beta: 0 is a rectangle; larger numbers have smaller side lobes and a wider main one.
    Returns:
        Floats between 0 and 1.

    >>> jnp.kaiser(5, 8.6).round(3)
    Array([0.001, 0.34 , 1.   , 0.34 , 0.001], dtype=float32)"""
    n, t = _steps(M)
    if t is None:
        return ones((max(n, 0),))
    half = 0.5 * (n - 1)
    beta = convert(beta, t.dtype)
    root = do.sqrt(ufuncs.maximum(1 - ((t - half) / half) ** 2, 0))
    return i0(ufuncs.multiply(beta, root)) / i0(beta)
