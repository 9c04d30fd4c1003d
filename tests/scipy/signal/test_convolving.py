"""Convolutions and correlations."""

from typing import Any

import numpy as np
import pytest
import scipy.signal

from calque.scipy import signal
from tests.peers import compare, jax
from tests.scipy.signal.shared import NARROW, RNG, WIDE, close

LONG, SHORT = RNG.normal(size=9).astype(np.float32), RNG.normal(size=4).astype(np.float32)


MODES = ["full", "same", "valid"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "pair",
    [(LONG, SHORT), (SHORT, LONG), (WIDE, NARROW), (NARROW, WIDE), (WIDE, WIDE)],
    ids=range(5),
)
def test_convolution_as_in_scipy(mode: str, pair: Any) -> None:
    for a, b in (pair, (pair[0] + 2j * pair[0], pair[1] - 1j)):
        for method in ("direct", "fft"):
            close(signal.convolve(a, b, mode, method), scipy.signal.convolve(a, b, mode))
            if mode != "same" or a.shape >= b.shape:  # there SciPy centres on the other operand
                close(signal.correlate(a, b, mode, method), scipy.signal.correlate(a, b, mode))
        close(signal.fftconvolve(a, b, mode), scipy.signal.fftconvolve(a, b, mode))
        if a.ndim == 2:
            close(signal.convolve2d(a, b, mode), scipy.signal.convolve2d(a, b, mode))
            close(signal.correlate2d(a, b, mode), scipy.signal.correlate2d(a, b, mode))


def test_convolution_over_some_axes() -> None:
    a, b = (
        RNG.normal(size=(3, 7, 4)).astype(np.float32),
        RNG.normal(size=(3, 2, 4)).astype(np.float32),
    )
    for mode in MODES:
        close(signal.fftconvolve(a, b, mode, 1), scipy.signal.fftconvolve(a, b, mode, 1))
        close(
            signal.fftconvolve(a, b[:, :, :2], mode, (1, -1)),
            scipy.signal.fftconvolve(a, b[:, :, :2], mode, (1, 2)),
        )
    close(
        signal.fftconvolve(a[:, :1], b, "full", 1), scipy.signal.fftconvolve(a[:, :1], b, "full", 1)
    )


@pytest.mark.peer
def test_convolution_as_in_jax() -> None:
    peer = jax().scipy.signal
    whole = np.arange(5), np.arange(3)
    for mode in MODES:
        compare(
            signal.convolve(*whole, mode),
            peer.convolve(*map(jax().numpy.asarray, whole), mode),
            1e-5,
        )
        compare(signal.correlate2d(NARROW, WIDE, mode), peer.correlate2d(NARROW, WIDE, mode), 1e-5)
        compare(signal.fftconvolve(*whole, mode), peer.fftconvolve(*whole, mode), 1e-5)
