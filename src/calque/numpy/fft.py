"""calque.numpy.fft: discrete Fourier transforms."""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from calque.core.arrays import Array
from calque.core.dims import as_size
from calque.core.dtypes import canonicalize, is_inexact
from calque.core.types import ArrayLike, Axes, DTypeLike
from calque.numpy import ufuncs
from calque.numpy.calls.cached import with_call_path
from calque.numpy.creation import placed
from calque.numpy.descriptions.writing import written
from calque.numpy.fourier import check_axis, over_many, over_one, over_two, scale_of
from calque.numpy.moving import roll
from calque.numpy.promotion import (
    array_of,
    canonical_axis,
    convert,
    result_dtype,
)
from calque.numpy.shaping import where
from calque.numpy.signatures import Placement
from calque.ops.sizes import as_number, places

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "rfft",
    "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip


@written(over_one("fft", "FFT"))
def fft(
    a: ArrayLike, n: int | None = None, axis: int | None = -1, norm: str | None = None
) -> Array:
    """The discrete Fourier transform along an axis.

    Args:
        a: an array of values, real or complex.
        n: the number of points: values are cut off at the end, or zeros appended. None is
            the size of the axis.
        axis: the axis to transform.
        norm: "forward" divides the transform by the number of points, "backward" the inverse,
            "ortho" both by its square root. None is "backward".
    Returns:
        Complex numbers, complex128 for float64 and complex128.

    >>> jnp.fft.fft(jnp.array([1.0, 0.0, 0.0, 0.0]))
    Array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)"""


@written(over_one("ifft", "IFFT"))
def ifft(
    a: ArrayLike, n: int | None = None, axis: int | None = -1, norm: str | None = None
) -> Array:
    """The inverse of `fft` along an axis.

    Args:
        a: an array of values, real or complex.
        n: the number of points: values are cut off at the end, or zeros appended. None is
            the size of the axis.
        axis: the axis to transform.
        norm: "forward" divides the transform by the number of points, "backward" the inverse,
            "ortho" both by its square root. None is "backward".
    Returns:
        Complex numbers, complex128 for float64 and complex128.

    >>> jnp.fft.ifft(jnp.array([4.0, 0.0, 0.0, 0.0]))
    Array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)"""


@written(over_one("rfft", "RFFT"))
def rfft(
    a: ArrayLike, n: int | None = None, axis: int | None = -1, norm: str | None = None
) -> Array:
    """The Fourier transform of real values along an axis: the half of `fft` that says it all.

    Args:
        a: an array of real values.
        n: the number of points: values are cut off at the end, or zeros appended. None is
            the size of the axis.
        axis: the axis to transform.
        norm: "forward" divides the transform by the number of points, "backward" the inverse,
            "ortho" both by its square root. None is "backward".
    Returns:
        Complex numbers, `n // 2 + 1` along the axis.

    >>> jnp.fft.rfft(jnp.array([1.0, 1.0, 1.0, 1.0]))
    Array([4.+0.j, 0.+0.j, 0.+0.j], dtype=complex64)"""


@written(over_one("irfft", "IRFFT"))
def irfft(
    a: ArrayLike, n: int | None = None, axis: int | None = -1, norm: str | None = None
) -> Array:
    """The inverse of `rfft`: real values, from the first half of their transform.

    Args:
        a: an array of values, real or complex.
        n: the number of points: values are cut off at the end, or zeros appended. None is
            `2 * (size - 1)`.
        axis: the axis to transform.
        norm: "forward" divides the transform by the number of points, "backward" the inverse,
            "ortho" both by its square root. None is "backward".
    Returns:
        Real numbers, `n` along the axis.

    >>> jnp.fft.irfft(jnp.array([4.0, 0.0, 0.0]))
    Array([1., 1., 1., 1.], dtype=float32)"""


@written(over_two("fft2", "FFT"))
def fft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Array:
    """The discrete Fourier transform over two axes.

    Args:
        a: an array of values, real or complex.
        s: the number of points along each axis: values are cut off at the end, or zeros appended.
            None, and -1 for one axis, is its size.
        axes: the axes to transform, no axis twice. By default the last two.
        norm: "forward" divides the transform by the number of points, "backward" the inverse,
            "ortho" both by its square root. None is "backward".
    Returns:
        Complex numbers, complex128 for float64 and complex128.

    >>> jnp.fft.fft2(jnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)"""


@written(over_two("ifft2", "IFFT"))
def ifft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Array:
    """The inverse of `fft2` over two axes.

    Args:
        a: an array of values, real or complex.
        s: the number of points along each axis: values are cut off at the end, or zeros appended.
            None, and -1 for one axis, is its size.
        axes: the axes to transform, no axis twice. By default the last two.
        norm: "forward" divides the transform by the number of points, "backward" the inverse,
            "ortho" both by its square root. None is "backward".
    Returns:
        Complex numbers, complex128 for float64 and complex128.

    >>> jnp.fft.ifft2(jnp.array([[4.0, 0.0], [0.0, 0.0]]))
    Array([[1.+0.j, 1.+0.j],
           [1.+0.j, 1.+0.j]], dtype=complex64)"""


@written(over_two("rfft2", "RFFT"))
def rfft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Array:
    """The Fourier transform of real values over two axes, halved along the last of them.

    Args:
        a: an array of real values.
        s: the number of points along each axis: values are cut off at the end, or zeros appended.
            None, and -1 for one axis, is its size.
        axes: the axes to transform, no axis twice. By default the last two.
        norm: "forward" divides the transform by the number of points, "backward" the inverse,
            "ortho" both by its square root. None is "backward".
    Returns:
        Complex numbers, `n // 2 + 1` along the last axis of `axes`.

    >>> jnp.fft.rfft2(jnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)"""


@written(over_two("irfft2", "IRFFT"))
def irfft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Array:
    """The inverse of `rfft2`: real values over two axes.

    Args:
        a: an array of values, real or complex.
        s: the number of points along each axis: values are cut off at the end, or zeros appended.
            None, and -1 for one axis, is its size, `2 * (size - 1)` for the last.
        axes: the axes to transform, no axis twice. By default the last two.
        norm: "forward" divides the transform by the number of points, "backward" the inverse,
            "ortho" both by its square root. None is "backward".
    Returns:
        Real numbers.

    >>> jnp.fft.irfft2(jnp.array([[4.0, 0.0], [0.0, 0.0]]))
    Array([[1., 1.],
           [1., 1.]], dtype=float32)"""


@written(over_many("fftn", "FFT"))
def fftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The discrete Fourier transform over several axes.

    Args:
        a: an array of values, real or complex.
        s: the number of points along each axis: values are cut off at the end, or zeros appended.
            None, and -1 for one axis, is its size.
        axes: the axes to transform, no axis twice. By default all, or the last `len(s)`.
        norm: "forward" divides the transform by the number of points, "backward" the inverse,
            "ortho" both by its square root. None is "backward".
    Returns:
        Complex numbers, complex128 for float64 and complex128.

    >>> jnp.fft.fftn(jnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)"""


@written(over_many("ifftn", "IFFT"))
def ifftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The inverse of `fftn` over several axes.

    Args:
        a: an array of values, real or complex.
        s: the number of points along each axis: values are cut off at the end, or zeros appended.
            None, and -1 for one axis, is its size.
        axes: the axes to transform, no axis twice. By default all, or the last `len(s)`.
        norm: "forward" divides the transform by the number of points, "backward" the inverse,
            "ortho" both by its square root. None is "backward".
    Returns:
        Complex numbers, complex128 for float64 and complex128.

    >>> jnp.fft.ifftn(jnp.array([[4.0, 0.0], [0.0, 0.0]]))
    Array([[1.+0.j, 1.+0.j],
           [1.+0.j, 1.+0.j]], dtype=complex64)"""


@written(over_many("rfftn", "RFFT"))
def rfftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The Fourier transform of real values over several axes, halved along the last of them.

    Args:
        a: an array of real values.
        s: the number of points along each axis: values are cut off at the end, or zeros appended.
            None, and -1 for one axis, is its size.
        axes: the axes to transform, no axis twice. By default all, or the last `len(s)`.
        norm: "forward" divides the transform by the number of points, "backward" the inverse,
            "ortho" both by its square root. None is "backward".
    Returns:
        Complex numbers, `n // 2 + 1` along the last axis of `axes`.

    >>> jnp.fft.rfftn(jnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]], dtype=complex64)"""


@written(over_many("irfftn", "IRFFT"))
def irfftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The inverse of `rfftn`: real values over several axes.

    Args:
        a: an array of values, real or complex.
        s: the number of points along each axis: values are cut off at the end, or zeros appended.
            None, and -1 for one axis, is its size, `2 * (size - 1)` for the last.
        axes: the axes to transform, no axis twice. By default all, or the last `len(s)`.
        norm: "forward" divides the transform by the number of points, "backward" the inverse,
            "ortho" both by its square root. None is "backward".
    Returns:
        Real numbers.

    >>> jnp.fft.irfftn(jnp.array([[4.0, 0.0], [0.0, 0.0]]))
    Array([[1., 1.],
           [1., 1.]], dtype=float32)"""


_OTHER: Final = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The Fourier transform of values with Hermitian symmetry, which is real; the first half of the
    values says it all.

    Args:
        a: an array of the first half, real or complex.
        n: how many points the transform has; None is `2 * (size - 1)`.
        axis: the axis to transform.
        norm: "forward" divides by the number of points here, "backward" (as None) in the inverse,
            "ortho" by its square root in both.
    Returns:
        Real numbers, `n` along the axis.

    >>> jnp.fft.hfft(jnp.array([1.0, 0.0, 0.0]))
    Array([1., 1., 1., 1.], dtype=float32)"""
    check_axis("hfft", axis)
    x = ufuncs.conjugate(array_of("hfft", a))
    if norm not in _OTHER:
        scale_of("hfft", norm, False, 1)
    return irfft(x, n, axis, _OTHER[norm])


def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `hfft`: the first half of values with Hermitian symmetry.

    Args:
        a: an array of real values.
        n: how many of the values to take; None is all.
        axis: the axis to transform.
        norm: "forward" divides by the number of points in `hfft`, "backward" (as None) here,
            "ortho" by its square root in both.
    Returns:
        Complex numbers, `n // 2 + 1` along the axis.

    >>> jnp.fft.ihfft(jnp.array([1.0, 1.0, 1.0, 1.0]))
    Array([1.-0.j, 0.-0.j, 0.-0.j], dtype=complex64)"""
    check_axis("ihfft", axis)
    if norm not in _OTHER:
        scale_of("ihfft", norm, False, 1)
    return ufuncs.conjugate(rfft(a, n, axis, _OTHER[norm]))


# ---------------------------------------------------------------- frequencies


@placed
def fftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Placement = None
) -> Array:
    """The frequency that each point of a transform stands for.

    Args:
        n: how many points.
        d: the distance between samples.
        dtype: of the frequencies; None is float32 (float64 with x64).
        device: where the array lies: a device or a sharding. None is the default device.
    Returns:
        An array of `n` frequencies, in the order of `fft`: from 0 up, then the negative ones.

    >>> jnp.fft.fftfreq(4, 0.5)
    Array([ 0. ,  0.5, -1. , -0.5], dtype=float32)"""
    n, dtype = _points("fftfreq", n), result_dtype(dtype, canonicalize(float))
    at = places(n)
    at = where(at < (n + 1) // 2, at, at - n)
    inner = dtype if is_inexact(dtype) else canonicalize(float)
    return convert(_spaced("fftfreq", at.astype(inner), n, d, inner), dtype)


@placed
def rfftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Placement = None
) -> Array:
    """The frequency that each point of a transform of real values stands for.

    Args:
        n: how many values.
        d: the distance between samples.
        dtype: of the frequencies; None is float32 (float64 with x64).
        device: where the array lies: a device or a sharding. None is the default device.
    Returns:
        An array of `n // 2 + 1` frequencies, from 0 up.

    >>> jnp.fft.rfftfreq(4, 0.5)
    Array([0. , 0.5, 1. ], dtype=float32)"""
    n, dtype = _points("rfftfreq", n), result_dtype(dtype, canonicalize(float))
    return _spaced("rfftfreq", places(n // 2 + 1).astype(dtype), n, d, dtype)


def _points(name: str, n: int) -> int:
    if isinstance(n, (list, tuple)):
        raise ValueError(
            f"The n argument of calque.numpy.fft.{name} only takes an int. Got n = {list(n)}."
        )
    n = as_size(n, "n")
    if n == 0:
        raise ValueError(f"calque.numpy.fft.{name}: n must be nonzero.")
    return n


def _spaced(name: str, places: Any, n: int, d: Any, dtype: Any) -> Any:
    if isinstance(d, (list, tuple)):
        raise ValueError(
            f"The d argument of calque.numpy.fft.{name} only takes a single value. Got d ="
            f" {list(d)}."
        )
    d = array_of(name, d)
    return ufuncs.true_divide(places, convert(d, dtype) * as_number(n, dtype))


def fftshift(x: ArrayLike, axes: Axes | None = None) -> Array:
    """A transform with the frequency 0 moved to the middle.

    Args:
        x: an array in the order of `fft`.
        axes: the axes to shift, an int or several; None is all.
    Returns:
        An array of the same shape.

    >>> jnp.fft.fftshift(jnp.fft.fftfreq(4))
    Array([-0.5 , -0.25,  0.  ,  0.25], dtype=float32)"""
    x = array_of("fftshift", x)
    dims = _axes(axes, x.ndim)
    return roll(x, tuple(x.shape[k] // 2 for k in dims), dims) if dims else x


def ifftshift(x: ArrayLike, axes: Axes | None = None) -> Array:
    """The inverse of `fftshift`: the frequency 0 moved from the middle to the front.

    Args:
        x: an array.
        axes: the axes to shift, an int or several; None is all.
    Returns:
        An array of the same shape, in the order of `fft`.

    >>> jnp.fft.ifftshift(jnp.array([-2, -1, 0, 1]))
    Array([ 0,  1, -2, -1], dtype=int32)"""
    x = array_of("ifftshift", x)
    dims = _axes(axes, x.ndim)
    return roll(x, tuple(-(x.shape[k] // 2) for k in dims), dims) if dims else x


def _axes(axes: Any, ndim: int) -> tuple[int, ...]:
    if axes is None:
        return tuple(range(ndim))
    given = axes if isinstance(axes, (tuple, list, range)) else (axes,)
    return tuple(canonical_axis(k, ndim) for k in given)


globals().update({_name: with_call_path(_name, globals()[_name]) for _name in __all__})
