"""Transforms of a length with a large prime factor."""

import numpy as np
import pytest

from calque.machine.routines.fft import convolution, passes, work
from calque.native.library import fourier
from tests.machine.routines.fft.shared import Work


@pytest.mark.parametrize("n", [53, 106, 211])
@pytest.mark.parametrize("lanes", [1, 3])
def test_any_length(n: int, lanes: int) -> None:
    """Of the passes, those of the longer length."""
    assert fourier.radices(n, False) is None
    longer = fourier.radices(fourier.longer_than(n), False)
    own = {f"pass_{r}": passes.PASSES[f"fft_pass_{r}"] for r in longer or ()}
    parts = np.random.default_rng(n).normal(size=(2, n, lanes))
    x = parts[0] + 1j * parts[1]
    table, room = fourier.complex_table(n, False, False)
    lines = Work(x, room, convolve=convolution.fft_convolve, **own)
    work.fft_transform(lines.words.ctypes.data, table.ctypes.data, 0)
    np.testing.assert_allclose(lines.lines(n), np.fft.fft(x, axis=0), atol=1e-10)
    work.fft_transform(lines.words.ctypes.data, table.ctypes.data, 1)
    np.testing.assert_allclose(lines.lines(n), n * x, atol=1e-9)
