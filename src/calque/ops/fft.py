"""Fourier transforms over the last dimensions: complex, inverse, real to complex, complex to
real."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.arrays import Array
from calque.core.avals import ShapedArray
from calque.core.dtypes import complex_of, is_complex, real_part
from calque.core.lazy import LazyModule
from calque.core.primitives import Primitive, do
from calque.core.trace import typeof
from calque.core.types import ArrayLike
from calque.ops.common import move, scalar_of
from calque.ops.common import operand as as_operand
from calque.ops.dimension_numbers import FftType
from calque.ops.layout import Shape, canonical_shape, linear_jvp, size_of, unary_transpose

scipy_fft = LazyModule("scipy.fft")

FFT, IFFT, RFFT, IRFFT = FftType.FFT, FftType.IFFT, FftType.RFFT, FftType.IRFFT


def _fft_shape(x: ShapedArray, *, fft_type: FftType, fft_lengths: Shape) -> ShapedArray:
    n = len(fft_lengths)
    if n > x.ndim:
        raise ValueError(
            f"FFT input shape {x.shape} must have at least as many input dimensions as fft_lengths"
            f" {fft_lengths}."
        )
    if n == 0:
        raise ValueError("FFT needs at least one length")
    if fft_type is RFFT:
        if x.dtype not in (np.float32, np.float64):
            raise ValueError(f"RFFT input must be float32 or float64, got {x.dtype.name}")
    elif not is_complex(x.dtype):
        raise ValueError(
            f"{fft_type.name} input must be complex64 or complex128, got {x.dtype.name}"
        )
    half = (*fft_lengths[:-1], fft_lengths[-1] // 2 + 1)
    if x.shape[x.ndim - n :] != (half if fft_type is IRFFT else fft_lengths):
        what = f"{fft_type.name} input shape {x.shape} minor dimensions must be equal to"
        if fft_type is IRFFT:
            raise ValueError(
                f"{what} all except the last fft_length, got fft_lengths={fft_lengths}; the last is"
                f" halved: {half}"
            )
        raise ValueError(f"{what} fft_lengths {fft_lengths}")
    head = x.shape[: x.ndim - n]
    if fft_type is RFFT:
        return ShapedArray((*head, *half), complex_of(x.dtype))
    if fft_type is IRFFT:
        return ShapedArray((*head, *fft_lengths), real_part(x.dtype))
    return ShapedArray(x.shape, x.dtype)


def _fft_meaning(x: np.ndarray, *, fft_type: FftType, fft_lengths: Shape) -> np.ndarray:
    aval = _fft_shape(ShapedArray(x.shape, x.dtype), fft_type=fft_type, fft_lengths=fft_lengths)
    if x.size == 0 or aval.size == 0:
        return np.zeros(aval.shape, aval.dtype)
    function = {
        FFT: scipy_fft.fftn,
        IFFT: scipy_fft.ifftn,
        RFFT: scipy_fft.rfftn,
        IRFFT: scipy_fft.irfftn,
    }[fft_type]
    axes = tuple(range(x.ndim - len(fft_lengths), x.ndim))
    return np.asarray(function(x, s=fft_lengths, axes=axes)).astype(aval.dtype, copy=False)


def _mirrored(x: Any, n: int, inverse: bool) -> Any:
    """`x`, the first half of a spectrum of length `n`, with the entries that stand for two doubled
    (or halved)."""
    aval = typeof(x)
    weights = np.full(n // 2 + 1, 0.5 if inverse else 2.0, aval.dtype)
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    last = (aval.ndim - 1,)
    return do.mul(x, do.broadcast_in_dim(weights, shape=aval.shape, broadcast_dimensions=last))


def _scaled(x: Any, factor: float) -> Any:
    aval = typeof(x)
    return do.mul(x, scalar_of(aval.dtype, factor))


@unary_transpose
def _fft_transpose(ct: Any, aval: ShapedArray, *, fft_type: FftType, fft_lengths: Shape) -> Any:
    if fft_type in (FFT, IFFT):  # symmetric matrices
        return do.fft(ct, fft_type=fft_type, fft_lengths=fft_lengths)
    total = size_of(fft_lengths)
    if fft_type is RFFT:
        half = _mirrored(do.conj(ct, input_dtype=typeof(ct).dtype), fft_lengths[-1], inverse=True)
        return _scaled(do.fft(half, fft_type=IRFFT, fft_lengths=fft_lengths), total)
    half = do.fft(ct, fft_type=RFFT, fft_lengths=fft_lengths)
    back = _scaled(_mirrored(half, fft_lengths[-1], inverse=False), 1 / max(total, 1))
    return do.conj(back, input_dtype=typeof(back).dtype)


def _fft_batch(
    args: Sequence[Any], dims: Sequence[int | None], *, fft_type: FftType, fft_lengths: Shape
) -> tuple[Any, int]:
    (x,), (b,) = args, dims
    assert b is not None
    return do.fft(move(x, b, 0), fft_type=fft_type, fft_lengths=fft_lengths), 0


fft_p = Primitive(
    "fft",
    meaning=_fft_meaning,
    shape=_fft_shape,
    jvp=linear_jvp("fft"),
    transpose=_fft_transpose,
    batch=_fft_batch,
)


def _fft_type(fft_type: Any) -> FftType:
    if isinstance(fft_type, str):
        try:
            return FftType[fft_type.upper()]
        except KeyError:
            raise ValueError(f"Unknown FFT type '{fft_type}'") from None
    return FftType(fft_type)


def fft(x: ArrayLike, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """Gives the Fourier transform over the last dimensions.

    Args:
        x: An array; real for "RFFT", otherwise complex (real numbers are converted).
        fft_type: "FFT", "IFFT" (the inverse), "RFFT" (of real numbers, half of the result) or
            "IRFFT" (its inverse), or an `FftType`.
        fft_lengths: The sizes of the dimensions that are transformed, from one to three; of real
            transforms, those of the real side.

    Returns:
        An array of complex numbers; of real ones for "IRFFT".

    >>> lax.fft(jnp.ones(4), "RFFT", (4,))
    Array([4.+0.j, 0.+0.j, 0.+0.j], dtype=complex64)"""
    kind, lengths = _fft_type(fft_type), canonical_shape(fft_lengths, "fft_lengths")
    x = as_operand(x)
    dtype = typeof(x).dtype
    if kind is RFFT:
        if is_complex(dtype):
            raise ValueError("only real valued inputs supported for rfft")
        if dtype.kind in "iub":
            x = do.convert_element_type(x, new_dtype=real_part(complex_of(dtype)))
    elif not is_complex(dtype):
        x = do.convert_element_type(x, new_dtype=complex_of(dtype))
    return do.fft(x, fft_type=kind, fft_lengths=lengths) if lengths else x
