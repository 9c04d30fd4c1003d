"""Spectra by Fourier transforms of windowed segments: stft, istft, csd, welch."""

import math
import operator
import warnings
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from calque import numpy as jnp
from calque.core.arrays import Array
from calque.core.dims import whole
from calque.core.dtypes import canonicalize, complex_of, inexact_of, is_complex, real_part
from calque.core.lazy import LazyModule
from calque.core.types import ArrayLike
from calque.numpy import fft
from calque.numpy.promotion import array_of, arrays, canonical_axis, promote_inexact
from calque.scipy.signal.trends import detrend as without_trend

windows = LazyModule("scipy.signal.windows")

_BOUNDARIES: Final = {
    "even": "reflect",
    "odd": "",
    "constant": "edge",
    "zeros": "constant",
    None: "",
}


class _Segments(NamedTuple):
    """How a signal is cut: the window, the length of a segment, how far the next one is, and the
    length of the transform."""

    window: Any
    length: int
    step: int
    points: int


# ---------------------------------------------------------------- windows and segments


def _window(name: str, window: Any, length: int, dtype: Any) -> Any:
    """A window given by name, or by name and parameters: a constant."""
    if window == "hann":
        values = (
            np.sin(np.linspace(0, np.pi, length, endpoint=False)) ** 2 if length > 1 else np.ones(1)
        )
    else:
        values = windows.get_window(window, length)
    return jnp.asarray(values.astype(dtype))


def _segments(
    name: str, window: Any, nperseg: Any, noverlap: Any, nfft: Any, length: int, dtype: Any
) -> _Segments:  # fmt: skip
    if nperseg is not None and whole(nperseg, "nperseg") < 1:
        raise ValueError(f"{name}: nperseg must be a positive integer, got {nperseg}")
    if isinstance(window, (str, tuple)):
        size = length if nperseg is None else whole(nperseg, "nperseg")
        if size > length:
            warnings.warn(
                f"{name}: nperseg={size} is greater than the input length {length}, which is used",
                stacklevel=4,
            )
            size = length
        win = _window(name, window, size, dtype) if size else jnp.zeros(0, dtype)
    else:
        win = jnp.asarray(window, dtype=dtype)
        size = win.size if nperseg is None else whole(nperseg, "nperseg")
        if win.ndim != 1:
            raise ValueError(f"{name}: window must be 1-D, got shape {win.shape}")
        if length < win.size:
            raise ValueError(
                f"{name}: window of length {win.size} is longer than the input signal, {length}"
            )
        if size != win.size:
            raise ValueError(
                f"{name}: nperseg={size} is different from the length of the window, {win.size}"
            )
    overlap = size // 2 if noverlap is None else whole(noverlap, "noverlap")
    points = size if nfft is None else whole(nfft, "nfft")
    if points < size:
        raise ValueError(
            f"{name}: nfft must be greater than or equal to nperseg, got {points} and {size}"
        )
    if overlap >= size and size:
        raise ValueError(f"{name}: noverlap must be less than nperseg, got {overlap} and {size}")
    return _Segments(win, size, size - overlap, points)


def _extended(x: Any, n: int, boundary: Any) -> Any:
    """`x` with n values more at both ends of the last axis."""
    if boundary is None or n < 1:
        return x
    if boundary == "odd":
        before = 2 * x[..., :1] - jnp.flip(x[..., 1 : n + 1], -1)
        after = 2 * x[..., -1:] - jnp.flip(x[..., -n - 1 : -1], -1)
        return jnp.concatenate([before, x, after], axis=-1)
    return jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(n, n)], mode=_BOUNDARIES[boundary])


def _filled(x: Any, n: int) -> Any:
    """`x` with zeros at the end of the last axis, up to n."""
    return x if x.shape[-1] >= n else jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, n - x.shape[-1])])


def _transformed(x: Any, cut: _Segments, remove: Callable[[Any], Any], onesided: bool) -> Any:
    """The transform of each windowed segment: (..., segments, frequencies)."""
    starts = np.arange(0, x.shape[-1] - cut.length + 1, cut.step)
    pieces = jnp.take(x, starts[:, None] + np.arange(cut.length), axis=-1)
    pieces = remove(pieces) * cut.window
    return fft.rfft(pieces.real, n=cut.points) if onesided else fft.fft(pieces, n=cut.points)


def _trend_remover(name: str, detrend: Any, axis: int, ndim: int) -> Callable[[Any], Any]:
    if isinstance(detrend, str):
        return lambda d: without_trend(d, axis=-1, type=detrend)
    if callable(detrend):
        if axis == ndim - 1:
            return detrend
        return lambda d: jnp.moveaxis(detrend(jnp.moveaxis(d, -1, axis)), axis, -1)
    if not detrend:
        return lambda d: d
    raise ValueError(f"{name}: unsupported detrend type {detrend!r}")


def _two_signals(name: str, x: Any, y: Any, axis: int) -> tuple[Any, Any, int]:
    """Signals of one dtype; y is None where it is not given."""
    if y is None:
        (x,) = promote_inexact(array_of(name, x))
    else:
        x, y = promote_inexact(*arrays(name, x, y))
        y = jnp.asarray(y)
    x = jnp.asarray(x)
    k = canonical_axis(operator.index(axis), x.ndim)
    if y is None:
        return x, y, k
    if x.ndim != y.ndim:
        raise ValueError(
            f"{name}: two arguments must have the same rank, got shapes {x.shape} and {y.shape}"
        )
    rest = [s[:k] + s[k + 1 :] for s in (x.shape, y.shape)]
    if any(a != b and 1 not in (a, b) for a, b in zip(*rest)):
        raise ValueError(
            f"{name}: x and y cannot be broadcast together, got shapes {x.shape} and {y.shape}"
        )
    return x, y, k


def _spectrum(
    name: str, x: Any, y: Any, fs: Any, window: Any, nperseg: Any, noverlap: Any, nfft: Any,
    detrend: Any, return_onesided: bool,
    scaling: str, axis: int, boundary: Any = None, padded: bool = False, short_time: bool = False,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Frequencies, times, and transforms or products of them, with the segments on the last
    axis."""
    if boundary not in _BOUNDARIES:
        raise ValueError(
            f"{name}: unknown boundary option {boundary!r}, must be one of {list(_BOUNDARIES)}"
        )
    if scaling not in ("density", "spectrum"):
        raise ValueError(f"{name}: unknown scaling {scaling!r}; it must be 'density' or 'spectrum'")
    x, y, k = _two_signals(name, x, y, axis)
    result = canonicalize(complex_of(x.dtype))
    real = real_part(result)
    if x.size == 0 or (y is not None and y.size == 0):
        return _nothing(x, y, k, real, result)
    cut = _segments(name, window, nperseg, noverlap, nfft, x.shape[k], x.dtype)
    remove = _trend_remover(name, detrend, k, x.ndim)
    signals = [jnp.moveaxis(s, k, -1) for s in (x, y) if s is not None]
    longest = max(s.shape[-1] for s in signals)
    signals = [_extended(_filled(s, longest), cut.length // 2, boundary) for s in signals]
    n = signals[0].shape[-1]
    if padded:
        n += (-(n - cut.length) % cut.step) % cut.length
        signals = [_filled(s, n) for s in signals]
    onesided = return_onesided and not is_complex(x.dtype)
    if return_onesided and not onesided:
        warnings.warn(
            f"{name}: input data is complex, switching to return_onesided=False", stacklevel=3
        )
    found = [_transformed(s, cut, remove, onesided) for s in signals]
    out = found[0] if short_time else jnp.conj(found[0]) * found[-1]
    out = (out * _scale(cut, fs, scaling, short_time, onesided, real)).astype(result)
    if y is None and not short_time:
        out = out.real
    steps = np.arange(cut.length / 2, n - cut.length / 2 + 1, cut.step)
    times = jnp.asarray((steps - (cut.length / 2 if boundary is not None else 0)).astype(real)) / fs
    frequencies = (fft.rfftfreq if onesided else fft.fftfreq)(cut.points, 1 / fs, dtype=real)
    return frequencies, times, jnp.moveaxis(out, -1, k)


def _nothing(x: Any, y: Any, k: int, real: Any, result: Any) -> tuple[Any, Any, Any]:
    shape = x.shape
    if y is not None:
        both = jnp.broadcast_shapes(*(s.shape[:k] + s.shape[k + 1 :] for s in (x, y)))
        shape = (*both[:k], min(x.shape[k], y.shape[k]), *both[k:])
    return jnp.zeros(shape, real), jnp.zeros(shape, real), jnp.zeros(shape, result)


def _scale(
    cut: _Segments, fs: Any, scaling: str, short_time: bool, onesided: bool, real: Any
) -> Any:
    """What makes a transform, or a product of two, a spectrum; frequencies that stand for two count
    twice."""
    win = cut.window
    scale = 1 / (fs * jnp.sum(win * win)) if scaling == "density" else 1 / jnp.sum(win) ** 2
    if short_time:
        return jnp.sqrt(scale)
    if not onesided:
        return scale
    twice = np.full(cut.points // 2 + 1, 2, real)
    twice[0] = 1
    if cut.points % 2 == 0:
        twice[-1] = 1
    return scale * twice


# ---------------------------------------------------------------- public functions


def stft(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """The short-time Fourier transform: that of windowed segments.

    Args:
        x: the signal, an array.
        fs: how many samples there are in a unit of time.
        window: the name of a window, its name and parameters, or an array.
        nperseg: how many samples a segment has.
        noverlap: how many of them the next one shares; None is half.
        nfft: how many points the transform has; None is `nperseg`.
        detrend: what is taken off each segment: "linear", "constant", a function, or False for
            nothing.
        return_onesided: whether real signals give only frequencies from 0 up.
        boundary: what stands before and after the signal: "zeros", "even", "odd", "constant", or
            None for nothing.
        padded: whether zeros fill the last segment.
        axis: the axis of the signal.
    Returns:
        A tuple: frequencies, times, and the transform with the times along its last axis.

    >>> f, t, z = scipy.signal.stft(jnp.ones(8), nperseg=4)
    >>> z.shape
    (3, 5)"""
    return _spectrum(
        "stft", x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided,
        "spectrum", axis, boundary, padded,
        short_time=True,
    )  # fmt: skip


def csd(
    x: ArrayLike,
    y: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The cross spectral density of two signals, by Welch's method: the mean over windowed
    segments.

    Args:
        x: a signal.
        y: another, which broadcasts; None is `x`.
        fs: how many samples there are in a unit of time.
        window: the name of a window, its name and parameters, or an array.
        nperseg: how many samples a segment has; None is 256, or all if they are fewer.
        noverlap: how many of them the next one shares; None is half.
        nfft: how many points the transform has; None is `nperseg`.
        detrend: what is taken off each segment: "linear", "constant", a function, or False for
            nothing.
        return_onesided: whether real signals give only frequencies from 0 up.
        scaling: "density" is power by frequency, "spectrum" power.
        axis: the axis of the signals.
        average: "mean" or "median" of the segments.
    Returns:
        A pair: frequencies, and the density, complex.

    >>> f, p = scipy.signal.csd(jnp.arange(8.0), jnp.arange(8.0), nperseg=4)
    >>> p.shape
    (3,)"""
    return _density(
        "csd",
        x,
        y,
        fs,
        window,
        nperseg,
        noverlap,
        nfft,
        detrend,
        return_onesided,
        scaling,
        axis,
        average,
    )


def welch(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The power spectral density of a signal, by Welch's method: the mean over windowed segments.

    Args:
        x: a signal.
        fs: how many samples there are in a unit of time.
        window: the name of a window, its name and parameters, or an array.
        nperseg: how many samples a segment has; None is 256, or all if they are fewer.
        noverlap: how many of them the next one shares; None is half.
        nfft: how many points the transform has; None is `nperseg`.
        detrend: what is taken off each segment: "linear", "constant", a function, or False for
            nothing.
        return_onesided: whether real signals give only frequencies from 0 up.
        scaling: "density" is power by frequency, "spectrum" power.
        axis: the axis of the signal.
        average: "mean" or "median" of the segments.
    Returns:
        A pair: frequencies, and the power at each.

    >>> f, p = scipy.signal.welch(jnp.arange(8.0), nperseg=4)
    >>> f
    Array([0.  , 0.25, 0.5 ], dtype=float32)"""
    return _density(
        "welch",
        x,
        None,
        fs,
        window,
        nperseg,
        noverlap,
        nfft,
        detrend,
        return_onesided,
        scaling,
        axis,
        average,
    )


def _density(
    name: str, x: Any, y: Any, fs: Any, window: Any, nperseg: Any, noverlap: Any, nfft: Any,
    detrend: Any, return_onesided: bool,
    scaling: str, axis: int, average: str,
) -> tuple[Any, Any]:  # fmt: skip
    if average not in ("mean", "median"):
        raise ValueError(f'{name}: average must be "median" or "mean", got {average!r}')
    frequencies, _, power = _spectrum(
        name, x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis
    )
    if y is None:
        power = power.real
    if power.ndim < 2 or power.size == 0:
        return frequencies, power
    if average == "mean":
        return frequencies, jnp.mean(power, axis=-1)
    if is_complex(power.dtype):
        middle = jnp.median(power.real, axis=-1) + 1j * jnp.median(power.imag, axis=-1)
    else:
        middle = jnp.median(power, axis=-1)
    return frequencies, middle / _median_bias(power.shape[-1])


def _median_bias(n: int) -> float:
    """How far the median of n periodograms lies above their mean."""
    return 1 + math.fsum(1 / (k + 1) - 1 / k for k in range(2, n, 2))


def istft(
    Zxx: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """The inverse of `stft`.

    Args:
        Zxx: the transform.
        fs: how many samples there are in a unit of time.
        window: as given to `stft`.
        nperseg: as given to `stft`; None follows from the transform.
        noverlap: as given to `stft`; None is half.
        nfft: as given to `stft`; None is `nperseg`.
        input_onesided: whether only frequencies from 0 up are there.
        boundary: whether the signal was lengthened at both ends.
        time_axis: the axis of the times.
        freq_axis: the axis of the frequencies.
    Returns:
        A pair: times, and the signal.

    >>> _, _, z = scipy.signal.stft(jnp.ones(8), nperseg=4)
    >>> scipy.signal.istft(z, nperseg=4)[1].shape
    (8,)"""
    z = array_of("istft", Zxx)
    if z.ndim < 2:
        raise ValueError(f"istft: input stft must be at least 2d, got shape {z.shape}")
    frequency, time = (
        canonical_axis(freq_axis, z.ndim, "freq_axis"),
        canonical_axis(time_axis, z.ndim, "time_axis"),
    )
    if frequency == time:
        raise ValueError(
            f"istft: must specify differing time and frequency axes, got {time_axis} and"
            f" {freq_axis}"
        )
    z = z.astype(complex_of(inexact_of(z.dtype)))
    length, step, points = _frames(z.shape[frequency], nperseg, noverlap, nfft, input_onesided)
    others = [i for i in range(z.ndim) if i not in (frequency, time)]
    z = jnp.transpose(z, (*others, time, frequency))
    frames = (fft.irfft if input_onesided else fft.ifft)(z, n=points)[..., :length]
    win = _given_window(window, length, frames.dtype)
    x = _overlap_added(frames * (win * jnp.sum(win)), step)
    norm = _overlap_added(jnp.broadcast_to(win * win, (z.shape[-2], length)), step)
    if boundary:
        x, norm = (v[..., length // 2 : v.shape[-1] - length // 2] for v in (x, norm))
    x = x / jnp.where(norm.real > 1e-10, norm, 1.0)
    if x.ndim > 1 and time != z.ndim - 1:
        x = jnp.moveaxis(x, -1, time - (frequency < time))
    return jnp.arange(x.shape[0], dtype=real_part(x.dtype)) / fs, x


def _frames(
    bins: int, nperseg: Any, noverlap: Any, nfft: Any, onesided: bool
) -> tuple[int, int, int]:
    """The length of a segment, how far the next one is, and the length of the transform."""
    default = 2 * (bins - 1) if onesided else bins
    length = whole(nperseg, "nperseg") if nperseg is not None else default
    if length < 1:
        raise ValueError(f"istft: nperseg must be a positive integer, got {length}")
    if nfft is not None:
        points = whole(nfft, "nfft")
    else:
        points = default + (onesided and length == default + 1)  # an odd segment
    if points < length:
        raise ValueError(f"istft: FFT length ({points}) must be at least nperseg ({length})")
    overlap = whole(noverlap, "noverlap") if noverlap is not None else length // 2
    if overlap >= length:
        raise ValueError(f"istft: noverlap must be less than nperseg, got {overlap} and {length}")
    return length, length - overlap, points


def _given_window(window: Any, length: int, dtype: Any) -> Any:
    if isinstance(window, (str, tuple)):
        return _window("istft", window, length, dtype)
    win = jnp.asarray(window)
    if win.ndim != 1:
        raise ValueError(f"istft: window must be 1-D, got shape {win.shape}")
    if win.shape[0] != length:
        raise ValueError(f"istft: window must have length of {length}, got {win.shape[0]}")
    return win.astype(dtype)


def _overlap_added(frames: Any, step: int) -> Any:
    """Frames (..., frames, length) laid `step` apart on one line and added."""
    *batch, count, length = frames.shape
    at = np.arange(count)[:, None] * step + np.arange(length)
    line = jnp.zeros((*batch, (count - 1) * step + length), frames.dtype)
    return line.at[..., at].add(frames)
