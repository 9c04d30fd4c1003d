"""calque.scipy.fft: cosine transforms."""

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from calque import numpy as jnp
from calque.core import guards as _guards
from calque.core.arrays import Array
from calque.core.dims import whole
from calque.core.dtypes import complex_of, is_complex
from calque.core.types import ArrayLike
from calque.numpy.promotion import array_of, canonical_axis, promote_inexact

__all__ = ["dct", "dctn", "idct", "idctn"]

_NORMS = (None, "backward", "ortho", "forward")
_INVERSE: Final = {1: 1, 2: 3, 3: 2, 4: 4}


def _operand(name: str, x: Any, type: int, norm: str | None) -> Any:
    if not isinstance(type, (int, np.integer)) or type not in _INVERSE:
        raise NotImplementedError(f"{name}: cosine transforms have types 1 to 4, got type={type!r}")
    if norm not in _NORMS:
        raise ValueError(
            f"jax.scipy.fft.{name}: norm={norm!r} is not implemented: it must be one of {_NORMS}"
        )
    (x,) = promote_inexact(array_of(name, x))
    x = jnp.asarray(x)
    return x.astype("float32" if x.dtype.itemsize < 4 else x.dtype)


def _resized(name: str, x: Any, n: int | None, axis: int) -> Any:
    """With `n` elements along an axis: cut, or padded with zeros."""
    size = x.shape[axis]
    n = size if n is None else whole(n, "n")
    if n < 1:
        raise ValueError(f"{name}: invalid number of data points ({n}) along axis {axis}")
    if n < size:
        return x[(slice(None),) * axis + (slice(n),)]
    return jnp.pad(x, [(0, n - size if i == axis else 0) for i in range(x.ndim)]) if n > size else x


def _twiddles(n: int, type: int) -> tuple[int, np.ndarray, np.ndarray]:
    """(length, before, after): y = 2 Re(after * fft(before * x, length))."""
    k = np.arange(n)
    ends = np.where((k == 0) | (k == n - 1), 0.5, 1.0)
    turn = np.exp(-0.5j * np.pi * k / n)
    if type == 1:
        return 2 * (n - 1), ends, np.ones(n)
    if type == 2:
        return 2 * n, np.ones(n), turn
    if type == 3:
        return 2 * n, turn * np.where(k == 0, 0.5, 1.0), np.ones(n)
    return 2 * n, turn, np.exp(-0.25j * np.pi * (2 * k + 1) / n)


def _scales(n: int, type: int, norm: str | None, inverse: bool) -> tuple[np.ndarray, np.ndarray]:
    """What the elements are multiplied with before and after the transform, for its
    normalisation."""
    whole = 2 * (n - 1) if type == 1 else 2 * n
    before, after = np.ones(n), np.ones(n)
    if norm == "ortho":
        after *= 1 / math.sqrt(whole)
        if type == 1:
            before[[0, -1]] = math.sqrt(2)
            after[[0, -1]] /= math.sqrt(2)
        elif type == 2:
            after[0] /= math.sqrt(2)
        elif type == 3:
            before[0] = math.sqrt(2)
    elif (norm == "forward") != inverse:
        after /= whole
    return before, after


def _transform(name: str, x: Any, type: int, axis: int, norm: str | None, inverse: bool) -> Any:
    if is_complex(x.dtype):
        real, imaginary = (
            _transform(name, part, type, axis, norm, inverse) for part in (x.real, x.imag)
        )
        return real + 1j * imaginary
    n = x.shape[axis]
    type = _INVERSE[type] if inverse else type
    if type == 1 and n < 2:
        raise ValueError(f"{name}: the transform of type 1 needs 2 elements or more, got {n}")
    length, before, after = _twiddles(n, type)
    first, last = _scales(n, type, norm, inverse)
    along = (n,) + (1,) * (x.ndim - 1 - axis)

    def spread(v: Any) -> Any:
        return v.reshape(along).astype(x.dtype if np.isrealobj(v) else complex_of(x.dtype))

    factors = spread(before * first)
    y = jnp.fft.fft(x.astype(factors.dtype) * factors, n=length, axis=axis)[
        (slice(None),) * axis + (slice(n),)
    ]
    return (y * spread(after.astype(complex))).real * spread(2 * last)


def dct(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """The cosine transform along an axis.

    Args:
        x: an array of real numbers.
        type: 1, 2, 3 or 4: which of the transforms.
        n: how many elements: the axis is cut, or filled with zeros. None is its size.
        axis: the axis to transform.
        norm: "backward" (as None) has no factor here, "forward" that of the inverse, "ortho" makes
            the matrix orthogonal.
    Returns:
        Floats.

    >>> scipy.fft.dct(jnp.array([1.0, 1.0])).round(3)
    Array([4., 0.], dtype=float32)"""
    x = _operand("dct", x, type, norm)
    axis = canonical_axis(axis, x.ndim)
    return _transform("dct", _resized("dct", x, n, axis), type, axis, norm, False)


def idct(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """The inverse of `dct` with the same arguments.

    Args:
        x: an array of real numbers.
        type: 1, 2, 3 or 4: which of the transforms is inverted.
        n: how many elements: the axis is cut, or filled with zeros. None is its size.
        axis: the axis to transform.
        norm: as given to `dct`.
    Returns:
        Floats.

    >>> scipy.fft.idct(jnp.array([4.0, 0.0])).round(3)
    Array([1., 1.], dtype=float32)"""
    x = _operand("idct", x, type, norm)
    axis = canonical_axis(axis, x.ndim)
    return _transform("idct", _resized("idct", x, n, axis), type, axis, norm, True)


def _along_all(
    name: str,
    x: Any,
    type: int,
    s: Sequence[int] | int | None,
    axes: Sequence[int] | int | None,
    norm: str | None,
    inverse: bool,
) -> Any:
    given, x = x, _operand(name, x, type, norm)
    if not x.ndim:  # there are no axes to transform along: the number itself, of its own type
        return array_of(name, given)
    sizes = None if s is None else (s,) if isinstance(s, int) else tuple(s)
    if sizes is not None and len(sizes) > x.ndim:
        raise ValueError(f"s must have at most x.ndim ({x.ndim}) elements, got {len(sizes)}")
    if axes is None:
        axes = range(x.ndim) if sizes is None else range(x.ndim - len(sizes), x.ndim)
    places = [canonical_axis(a, x.ndim) for a in ((axes,) if isinstance(axes, int) else axes)]
    if len(set(places)) != len(places):
        raise ValueError(f"repeated axis: {tuple(places)}")
    if sizes is not None and len(sizes) != len(places):
        raise ValueError(
            f"{name}: s and axes must be of one length, got s={sizes} and axes={tuple(places)}"
        )
    for k, axis in enumerate(places):
        x = _resized(name, x, None if sizes is None else sizes[k], axis)
        x = _transform(name, x, type, axis, norm, inverse)
    return x


def dctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The cosine transform along several axes.

    Args:
        x: an array of real numbers.
        type: 1, 2, 3 or 4: which of the transforms.
        s: how many elements along each axis: an axis is cut, or filled with zeros. None is its
            size.
        axes: the axes to transform; None is all, or the last `len(s)`.
        norm: as of `dct`.
    Returns:
        Floats.

    >>> scipy.fft.dctn(jnp.ones((2, 2))).round(3)
    Array([[16.,  0.],
           [ 0.,  0.]], dtype=float32)"""
    return _along_all("dctn", x, type, s, axes, norm, False)


def idctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The inverse of `dctn` with the same arguments.

    Args:
        x: an array of real numbers.
        type: 1, 2, 3 or 4: which of the transforms is inverted.
        s: how many elements along each axis: an axis is cut, or filled with zeros. None is its
            size.
        axes: the axes to transform; None is all, or the last `len(s)`.
        norm: as given to `dctn`.
    Returns:
        Floats.

    >>> scipy.fft.idctn(jnp.array([[16.0, 0.0], [0.0, 0.0]])).round(3)
    Array([[1., 1.],
           [1., 1.]], dtype=float32)"""
    return _along_all("idctn", x, type, s, axes, norm, True)


_guards.guard_public(globals())
