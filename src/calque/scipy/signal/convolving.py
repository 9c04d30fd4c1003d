"""Convolution and correlation, directly or by Fourier transforms."""

from collections.abc import Sequence
from typing import Any

from calque import numpy as jnp
from calque.core.arrays import Array
from calque.core.dtypes import is_complex
from calque.core.types import ArrayLike
from calque.numpy import fft
from calque.numpy.promotion import arrays, canonical_axes, promote_inexact
from calque.ops.products.convolution_functions import conv_general_dilated

_MODES = ("full", "same", "valid")


def _operands(name: str, in1: Any, in2: Any, mode: str) -> tuple[Any, Any]:
    in1, in2 = (jnp.asarray(x) for x in promote_inexact(*arrays(name, in1, in2)))
    if mode not in _MODES:
        raise ValueError(f"{name}: mode must be one of ['full', 'same', 'valid'], got {mode!r}")
    if in1.ndim != in2.ndim:
        raise ValueError(
            f"{name}: in1 and in2 should have the same dimensionality, got shapes {in1.shape} and"
            f" {in2.shape}"
        )
    return in1, in2


def _larger_first(name: str, in1: Any, in2: Any, axes: Sequence[int]) -> tuple[Any, Any]:
    sizes = [(in1.shape[i], in2.shape[i]) for i in axes]
    if all(a >= b for a, b in sizes):
        return in1, in2
    if all(a <= b for a, b in sizes):
        return in2, in1
    raise ValueError(
        f"{name}: one input must be at least as large as the other in every dimension, got shapes"
        f" {in1.shape} and {in2.shape}"
    )


def fftconvolve(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: int | Sequence[int] | None = None
) -> Array:
    """The convolution of two arrays, as the product of their Fourier transforms.

    Args:
        in1, in2: arrays of as many axes.
        mode: "full" is every overlap, "same" as much as `in1` has, "valid" only full overlaps.
        axes: the axes to convolve over; None is all.
    Returns:
        An array, with rounding errors of the transforms.

    >>> scipy.signal.fftconvolve(jnp.array([1.0, 2.0]), jnp.array([1.0, 1.0])).round(3)
    Array([1., 3., 2.], dtype=float32)"""
    in1, in2 = _operands("fftconvolve", in1, in2, mode)
    over = canonical_axes(axes, in1.ndim)
    if any(in1.shape[i] != in2.shape[i] for i in range(in1.ndim) if i not in over):
        raise ValueError(
            "fftconvolve: axes that are not convolved must have the same sizes, got shapes"
            f" {in1.shape} and {in2.shape}, axes {axes}"
        )
    if mode == "valid":
        in1, in2 = _larger_first("fftconvolve", in1, in2, over)
    pairs = [(in1.shape[i], in2.shape[i]) for i in over]
    full = [a + b - 1 for a, b in pairs]
    if all(1 in p for p in pairs):
        out = in1 * in2
    else:
        forth, back = (fft.fftn, fft.ifftn) if is_complex(in1.dtype) else (fft.rfftn, fft.irfftn)
        out = back(forth(in1, full, over) * forth(in2, full, over), full, over).astype(in1.dtype)
    if mode == "full":
        return out
    sizes = [a if mode == "same" else a - b + 1 for a, b in pairs]
    cut = [slice(None)] * out.ndim
    for i, whole, n in zip(over, full, sizes):
        cut[i] = slice((whole - n) // 2, (whole - n) // 2 + n)
    return out[tuple(cut)]


def _direct(name: str, in1: Any, in2: Any, mode: str, precision: Any, late: bool = False) -> Any:
    """`late` says how "same" cuts the full result when it cannot cut both ends alike: one more from
    the front."""
    in1, in2 = _operands(name, in1, in2, mode)
    if in1.size == 0 or in2.size == 0:
        raise ValueError(
            f"{name}: zero-size arrays not supported in convolutions, got shapes {in1.shape} and"
            f" {in2.shape}"
        )
    large, small = _larger_first(name, in1, in2, range(in1.ndim))
    strides = (1,) * in1.ndim
    padding = [
        _padding(mode, *sizes, late)
        for sizes in zip(large.shape, small.shape, in1.shape, in2.shape)
    ]
    image, kernel = large[None, None], jnp.flip(small)[None, None]
    return conv_general_dilated(image, kernel, strides, padding, precision=precision)[0, 0]


def _padding(
    mode: str, large: int, small: int, first: int, second: int, late: bool
) -> tuple[int, int]:
    """How much is added, or with "same" and a longer second operand also cut, on both sides of the
    larger operand."""
    if mode == "valid":
        return 0, 0
    if mode == "full":
        return small - 1, small - 1
    before = (
        second // 2 if late else (second - 1) // 2
    )  # what is cut from the front of the full result
    return small - 1 - before, first + before - large


def convolve(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: Any = None
) -> Array:
    """The convolution of two arrays.

    Args:
        in1, in2: arrays of as many axes.
        mode: "full" is every overlap, "same" as much as `in1` has, "valid" only full overlaps.
        method: "direct" adds up, "fft" goes by transforms, "auto" is "direct".
        precision: of the products, see `lax.Precision`; None is the default.
    Returns:
        An array.

    >>> scipy.signal.convolve(jnp.array([1.0, 2.0]), jnp.array([1.0, 1.0]))
    Array([1., 3., 2.], dtype=float32)"""
    return _by_method("convolve", in1, in2, mode, method, precision)


def _by_method(name: str, in1: Any, in2: Any, mode: str, method: str, precision: Any) -> Any:
    if method == "fft":
        return fftconvolve(in1, in2, mode)
    if method in ("direct", "auto"):
        return _direct(name, in1, in2, mode, precision)
    raise ValueError(f"{name}: got method={method!r}; expected 'auto', 'fft', or 'direct'")


def correlate(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto", precision: Any = None
) -> Array:
    """The cross-correlation of two arrays: sums of products at every shift, with `in2` conjugated.

    Args:
        in1, in2: arrays of as many axes.
        mode: "full" is every overlap, "same" as much as `in1` has, "valid" only full overlaps.
        method: "direct" adds up, "fft" goes by transforms, "auto" is "direct".
        precision: of the products, see `lax.Precision`; None is the default.
    Returns:
        An array.

    >>> scipy.signal.correlate(jnp.array([1.0, 2.0]), jnp.array([0.0, 1.0]))
    Array([1., 2., 0.], dtype=float32)"""
    in1, in2 = arrays("correlate", in1, in2)
    return _by_method("correlate", in1, jnp.flip(in2.conj()), mode, method, precision)


def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: Any = None,
) -> Array:
    """The convolution of two matrices.

    Args:
        in1, in2: matrices.
        mode: "full" is every overlap, "same" as much as `in1` has, "valid" only full overlaps.
        boundary: must be "fill".
        fillvalue: must be 0: beyond their edges matrices are 0.
        precision: of the products, see `lax.Precision`; None is the default.
    Returns:
        A matrix.
    Differs from SciPy:
        Other boundaries are refused: `jnp.pad` makes them.

    >>> scipy.signal.convolve2d(jnp.eye(2), jnp.ones((1, 2)))
    Array([[1., 1., 0.],
           [0., 1., 1.]], dtype=float32)"""
    in1, in2 = _matrices("convolve2d", in1, in2, boundary, fillvalue)
    return _direct("convolve2d", in1, in2, mode, precision)


def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: Any = None,
) -> Array:
    """The cross-correlation of two matrices.

    Args:
        in1, in2: matrices.
        mode: "full" is every overlap, "same" as much as `in1` has, "valid" only full overlaps.
        boundary: must be "fill".
        fillvalue: must be 0: beyond their edges matrices are 0.
        precision: of the products, see `lax.Precision`; None is the default.
    Returns:
        A matrix.
    Differs from SciPy:
        Other boundaries are refused: `jnp.pad` makes them.

    >>> scipy.signal.correlate2d(jnp.eye(2), jnp.ones((1, 2)))
    Array([[1., 1., 0.],
           [0., 1., 1.]], dtype=float32)"""
    in1, in2 = _matrices("correlate2d", in1, in2, boundary, fillvalue)
    out = _direct("correlate2d", in1, jnp.flip(in2.conj()), mode, precision, late=True)
    swapped = in1.shape != in2.shape and all(a <= b for a, b in zip(in1.shape, in2.shape))
    return (
        out.conj() if mode == "valid" and swapped else out
    )  # as SciPy, which then slides in1 over in2


def _matrices(name: str, in1: Any, in2: Any, boundary: str, fillvalue: Any) -> list[Any]:
    if boundary != "fill" or fillvalue != 0:
        raise NotImplementedError(
            f"{name}() only supports boundary='fill', fillvalue=0; got {boundary!r}, {fillvalue!r}:"
            " use jnp.pad first"
        )
    out = arrays(name, in1, in2)
    if any(x.ndim != 2 for x in out):
        raise ValueError(
            f"{name}() only supports 2-dimensional inputs, got shapes {out[0].shape} and"
            f" {out[1].shape}"
        )
    return out
