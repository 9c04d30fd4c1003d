"""Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence

from calque.ops.dimension_numbers import FftType
from calque.xla.lower.rules import Builder, rule
from calque.xla.text.tree import Value
from calque.xla.text.types import Tensor


@rule("fft")
def fft(
    b: Builder, out: Tensor, x: Value, *, fft_type: FftType, fft_lengths: Sequence[int]
) -> Value:
    """One operation for up to three dimensions; further ones are transformed one at a time."""
    if 0 in x.shape or 0 in out.shape:
        return b.filled(0, out)
    lengths = list(fft_lengths)
    if len(lengths) > 3:
        return _outer_first(b, out, x, fft_type, lengths)
    text = f", type = {fft_type.name}, length = [{', '.join(map(str, lengths))}]"
    return b.one(out, "stablehlo.fft ", x, f"{text} : ({x.type}) -> {out}")  # type: ignore[no-any-return]


def _outer_first(b: Builder, out: Tensor, x: Value, kind: FftType, lengths: list[int]) -> Value:
    """The real transform along the last dimension goes first, its inverse last; the others are
    complex."""
    axes = list(range(x.ndim - len(lengths), x.ndim))
    inner = FftType.FFT if kind in (FftType.FFT, FftType.RFFT) else FftType.IFFT

    def last(v: Value, how: FftType) -> Value:
        shape = (*v.shape[:-1], out.shape[-1])
        return fft(b, out.with_shape(shape), v, fft_type=how, fft_lengths=lengths[-1:])

    if kind is FftType.RFFT:
        x = last(x, kind)
    for axis in axes if kind in (FftType.FFT, FftType.IFFT) else axes[:-1]:
        order = list(range(x.ndim))
        order[axis], order[-1] = order[-1], order[axis]
        turned = b.transpose(x, order)
        n = turned.shape[-1]
        done = fft(b, turned.tensor, turned, fft_type=inner, fft_lengths=[n])
        x = b.transpose(done, order)
    return last(x, kind) if kind is FftType.IRFFT else x
