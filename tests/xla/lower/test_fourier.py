"""Fourier transforms on XLA, against NumPy's."""

import numpy as np
import pytest

from calque import lax
from tests.xla.lower.shared import on_both, operations, text_of
from tests.xla.mlir import needs_jaxlib

rng = np.random.default_rng(0)
real = rng.standard_normal((2, 4, 3, 4, 6)).astype(np.float32)
complex_ = (real + 1j * real[::-1]).astype(np.complex64)
NUMPY = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn}


@needs_jaxlib
@pytest.mark.parametrize("dims", [1, 3, 4])
@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT"])
def test_forward_and_back_over_as_many_dimensions(kind: str, dims: int) -> None:
    x = real if kind == "RFFT" else complex_
    (found,) = on_both(lambda x: lax.fft(x, kind, x.shape[-dims:]), x, rtol=2e-4)
    np.testing.assert_allclose(found, NUMPY[kind](x, axes=range(-dims, 0)), rtol=2e-4, atol=2e-4)


@needs_jaxlib
@pytest.mark.parametrize("dims", [2, 4])
@pytest.mark.parametrize("last", [6, 7])
def test_the_inverse_to_real_numbers(dims: int, last: int) -> None:
    shape = (*real.shape[1:-1], last)[-dims:]
    half = np.fft.rfftn(rng.standard_normal((2, 4, 3, 4, last)), axes=range(-dims, 0))
    half = half.astype(np.complex64)
    (found,) = on_both(lambda x: lax.fft(x, "IRFFT", shape), half, rtol=2e-4)
    want = np.fft.irfftn(half, s=shape, axes=range(-dims, 0))
    np.testing.assert_allclose(found, want, rtol=2e-4, atol=2e-4)


def test_three_dimensions_are_one_operation_and_four_are_one_each() -> None:
    one = operations(text_of(lambda x: lax.fft(x, "RFFT", x.shape[-3:]), real))
    assert one["fft"] == 1 and not one["transpose"]
    each = operations(text_of(lambda x: lax.fft(x, "RFFT", x.shape[-4:]), real))
    assert each["fft"] == 4


@needs_jaxlib
def test_nothing_to_transform() -> None:
    (found,) = on_both(lambda x: lax.fft(x, "FFT", (4,)), np.zeros((0, 4), np.complex64))
    assert found.shape == (0, 4)
