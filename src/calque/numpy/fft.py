"""calque.numpy.fft: discrete Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from calque.core.arrays import Array
from calque.core.dims import as_size, surely_less
from calque.core.dtypes import canonicalize, complex_of, is_complex, real_part
from calque.core.types import ArrayLike, Axes, DTypeLike
from calque.numpy import ufuncs
from calque.numpy.conversions import asarray
from calque.numpy.creation import placed, zeros
from calque.numpy.descriptions.transforms import of_transform
from calque.numpy.indexing.found_sizes import refuse_empty
from calque.numpy.joining import concatenate
from calque.numpy.moving import roll, section
from calque.numpy.promotion import (
    array_of,
    canonical_axes,
    canonical_axis,
    convert,
    promote_inexact,
    result_dtype,
)
from calque.numpy.shaping import moveaxis, where
from calque.numpy.signatures import Placement
from calque.ops import fft as lax_fft
from calque.ops.sizes import as_number, places

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "irfft", "irfft2", "irfftn", "rfft",
    "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip


def _fitted(x: Any, axis: int, n: int) -> Any:
    """An axis cut, or filled up with zeros, to n."""
    size = x.shape[axis]
    if size > n:
        return section(x, axis, 0, n)
    if size < n:
        return concatenate(
            [x, zeros(tuple(n - size if i == axis else d for i, d in enumerate(x.shape)), x.dtype)],
            axis=axis,
        )
    return x


def _scale(name: str, norm: str | None, inverse: bool, count: int) -> float:
    """What the unscaled forward, or the 1/n-scaled inverse, transform is multiplied by."""
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(
            f'Invalid norm={norm!r} for {name}; norm should be "backward","ortho" or "forward".'
        )
    if norm in (None, "backward") or not count:
        return 1.0
    if norm == "ortho":
        return float(np.sqrt(count)) if inverse else 1 / float(np.sqrt(count))
    return float(count) if inverse else 1 / count


def _transform(name: str, kind: str, a: Any, sizes: Any, axes: Any, norm: str | None) -> Any:
    """Axes are moved to the end, cut or filled to their sizes, and transformed three at most at a
    time."""
    (x,) = promote_inexact(array_of(name, a))
    x = asarray(x)
    if x.dtype.itemsize < 4 or x.dtype.kind == "V":
        x = convert(x, np.dtype("float32"))
    if axes is None and sizes is not None:
        axes = tuple(range(x.ndim - len(sizes), x.ndim))
    dims = (
        canonical_axes(axes, x.ndim)
        if axes is None or len(set(axes)) == len(tuple(axes))
        else _refuse_repeats(name, axes)
    )
    if sizes is not None and len(sizes) != len(dims):
        raise ValueError(
            f"Shape and axes have different lengths: calque.numpy.fft.{name} got"
            f" s={tuple(sizes)} and axes={tuple(dims)}."
        )
    inverse, real = kind.startswith("I"), "RFFT" in kind
    full = [
        as_size(n) if n is not None and n != -1 else x.shape[k]
        for n, k in zip(sizes or [None] * len(dims), dims)
    ]
    if kind == "IRFFT" and dims and (sizes is None or sizes[-1] in (None, -1)):
        full[-1] = 2 * (x.shape[dims[-1]] - 1)
    if kind in ("FFT", "IFFT") and sizes is None and 0 in full:
        return convert(x, canonicalize(complex_of(x.dtype)))  # of no points there are none
    if any(surely_less(n, 1) for n in full):
        raise ValueError(
            f"calque.numpy.fft.{name}: the number of points must be positive, got {tuple(full)}"
            f" for axes {dims} of shape {x.shape}"
        )
    refuse_empty(
        full, ValueError(f"calque.numpy.fft.{name}: the number of points must be positive, got 0")
    )
    if kind == "RFFT" and is_complex(x.dtype):
        raise ValueError(
            f"calque.numpy.fft.{name} only supports real valued inputs, got dtype"
            f" {x.dtype.name}: use"
            " jnp.fft.fft."
        )
    if not real or inverse:
        x = convert(x, canonicalize(complex_of(x.dtype)))
    if not dims:
        return x
    count = 1
    for n, k in zip(full, dims):
        x = _fitted(x, k, n // 2 + 1 if kind == "IRFFT" and k == dims[-1] else n)
        count *= n
    x = moveaxis(x, dims, tuple(range(-len(dims), 0)))
    x = _on_last(x, kind, full)
    scale = _scale(name, norm, inverse, count)
    if scale != 1.0:
        x = x * np.asarray(scale, real_part(x.dtype))
    return moveaxis(x, tuple(range(-len(dims), 0)), dims)


def _refuse_repeats(name: str, axes: Any) -> tuple[int, ...]:
    raise ValueError(
        f"calque.numpy.fft.{name} does not support repeated axes. Got axes {list(axes)}."
    )


def _on_last(x: Any, kind: str, full: Sequence[int]) -> Any:
    """The transform over the last len(full) axes; the real one belongs to the last of them."""
    n = len(full)
    if n <= 3:
        return lax_fft.fft(x, kind, tuple(full))
    plain = "IFFT" if kind.startswith("I") else "FFT"
    head = [_one_axis(plain, -n + i, d) for i, d in enumerate(full[:-3])]

    def tail(v: Any) -> Any:
        return lax_fft.fft(v, kind, tuple(full[-3:]))

    steps = [*head, tail] if kind.startswith("I") else [tail, *head]
    for step in steps:
        x = step(x)
    return x


def _one_axis(kind: str, axis: int, n: int) -> Callable[[Any], Any]:
    return lambda x: moveaxis(lax_fft.fft(moveaxis(x, axis, -1), kind, (n,)), -1, axis)


def _one(name: str, kind: str) -> Any:
    def transform(
        a: Any, n: int | None = None, axis: int | None = -1, norm: str | None = None
    ) -> Any:
        _check_axis(name, axis)
        if n is not None and surely_less(as_size(n), 1):
            raise ValueError(
                f"calque.numpy.fft.{name}: the number of points n must be positive, got {n}"
            )
        return _transform(
            name, kind, a, None if n is None else (n,), (-1 if axis is None else axis,), norm
        )

    return ufuncs.named(transform, name, of_transform(name), "calque.numpy.fft")


def _check_axis(name: str, axis: Any) -> None:
    if isinstance(axis, (tuple, list)):
        raise ValueError(
            f"calque.numpy.fft.{name} does not support multiple axes. Please use"
            f" calque.numpy.fft.{name}n. Got axis = {axis}."
        )


def _two(name: str, kind: str) -> Any:
    def transform(
        a: Any, s: Any = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
    ) -> Any:
        if len(axes) != 2:
            raise ValueError(f"calque.numpy.fft.{name} only supports 2 axes. Got axes = {axes}.")
        return _transform(name, kind, a, s, axes, norm)

    return ufuncs.named(transform, name, of_transform(name), "calque.numpy.fft")


def _many(name: str, kind: str) -> Any:
    def transform(
        a: Any, s: Any = None, axes: Sequence[int] | None = None, norm: str | None = None
    ) -> Any:
        return _transform(name, kind, a, s, axes, norm)

    return ufuncs.named(transform, name, of_transform(name), "calque.numpy.fft")


fft = _one("fft", "FFT")
ifft = _one("ifft", "IFFT")
rfft = _one("rfft", "RFFT")
irfft = _one("irfft", "IRFFT")
fft2 = _two("fft2", "FFT")
ifft2 = _two("ifft2", "IFFT")
rfft2 = _two("rfft2", "RFFT")
irfft2 = _two("irfft2", "IRFFT")
fftn = _many("fftn", "FFT")
ifftn = _many("ifftn", "IFFT")
rfftn = _many("rfftn", "RFFT")
irfftn = _many("irfftn", "IRFFT")

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
    _check_axis("hfft", axis)
    x = ufuncs.conjugate(array_of("hfft", a))
    if norm not in _OTHER:
        _scale("hfft", norm, False, 1)
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
    _check_axis("ihfft", axis)
    if norm not in _OTHER:
        _scale("ihfft", norm, False, 1)
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
    return _spaced("fftfreq", at.astype(dtype), n, d, dtype)


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
    n = as_size(n)
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
