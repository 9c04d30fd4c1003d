"""Signals: convolution, and spectra by windowed Fourier transforms."""

from calque.core import guards as _guards
from calque.scipy.signal.convolving import convolve, convolve2d, correlate, correlate2d, fftconvolve
from calque.scipy.signal.spectra import csd, istft, stft, welch
from calque.scipy.signal.trends import detrend

__all__ = [
    "convolve", "convolve2d", "correlate", "correlate2d", "csd", "detrend", "fftconvolve",
    "istft", "stft", "welch",
]  # fmt: skip

_guards.guard_public(globals())
