"""Convolutions and spectra against SciPy and JAX."""

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.signal

import calque
import calque.numpy as jnp
from calque import test_util
from calque.scipy import signal
from tests.peers import compare, jax
from tests.scipy.signal.shared import NARROW, OTHER, RNG, SIGNAL, WIDE, close

LONG, SHORT = RNG.normal(size=9).astype(np.float32), RNG.normal(size=4).astype(np.float32)


# ---------------------------------------------------------------- convolution


# ---------------------------------------------------------------- trends


# ---------------------------------------------------------------- spectra

OPTIONS: list[dict[str, Any]] = [
    {"nperseg": 16},
    {"nperseg": 15, "noverlap": 4, "fs": 10.0},
    {"nperseg": 16, "noverlap": 0, "nfft": 21, "window": "hamming"},
    {"nperseg": 8, "window": ("kaiser", 4.0), "detrend": "linear"},
    {"window": np.ones(10), "detrend": False, "return_onesided": False},
    {"nperseg": 1, "noverlap": 0, "detrend": False},
    {"nperseg": 16, "detrend": lambda d: d - d[..., :1]},
]


@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
def test_spectra_as_in_scipy(options: dict[str, Any]) -> None:
    for average in ("mean", "median"):
        for scaling in ("density", "spectrum"):
            more = {**options, "average": average, "scaling": scaling}
            close(signal.welch(SIGNAL, **more), scipy.signal.welch(SIGNAL, **more))
            close(signal.csd(SIGNAL, OTHER, **more), scipy.signal.csd(SIGNAL, OTHER, **more))
    close(
        signal.csd(SIGNAL, OTHER[:, :90], **options),
        scipy.signal.csd(SIGNAL, OTHER[:, :90], **options),
    )
    if callable(options.get("detrend")):
        seen: list[tuple[int, ...]] = []
        signal.welch(
            SIGNAL.T, axis=0, **{**options, "detrend": lambda d: seen.append(d.shape) or d}
        )
        assert seen == [(16, 2, 11)]  # the segments lie along the axis of the data
        return
    close(
        signal.welch(SIGNAL.T, axis=0, **options), scipy.signal.welch(SIGNAL.T, axis=0, **options)
    )


@pytest.mark.parametrize("boundary", ["zeros", "even", "odd", "constant", None])
@pytest.mark.parametrize("padded", [True, False])
def test_short_time_transforms_as_in_scipy(boundary: Any, padded: bool) -> None:
    for options in OPTIONS[:4]:
        more = {**options, "boundary": boundary, "padded": padded}
        close(signal.stft(SIGNAL, **more), scipy.signal.stft(SIGNAL, **more))
    close(
        signal.stft(SIGNAL.T, nperseg=16, axis=0, boundary=boundary),
        scipy.signal.stft(SIGNAL.T, nperseg=16, axis=0, boundary=boundary),
    )


@pytest.mark.parametrize("length", [15, 16])
@pytest.mark.parametrize("onesided", [True, False])
def test_inverse_as_in_scipy(length: int, onesided: bool) -> None:
    options: dict[str, Any] = {"nperseg": length, "noverlap": 11, "fs": 2.0}
    _, _, z = scipy.signal.stft(SIGNAL, return_onesided=onesided, **options)
    got = signal.istft(z.astype(np.complex64), input_onesided=onesided, **options)
    close(got, scipy.signal.istft(z, input_onesided=onesided, **options))
    close(got[1][:, :100].real, SIGNAL)
    for more in (
        {"window": "hamming"},
        {"window": np.ones(length, np.float32)},
        {"boundary": False},
    ):
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # SciPy says that a window without a boundary may not be invertible
            want = scipy.signal.istft(z[0], input_onesided=onesided, **options, **more)
        close(
            signal.istft(z[0].astype(np.complex64), input_onesided=onesided, **options, **more),
            want,
            1e-3,
        )
    swapped = signal.istft(
        np.swapaxes(z, 0, 1), input_onesided=onesided, time_axis=2, freq_axis=0, **options
    )
    close(swapped[1], got[1])
    turned = signal.istft(
        np.moveaxis(z, -1, 0), input_onesided=onesided, time_axis=0, freq_axis=-1, **options
    )
    close(turned[1], got[1].T)


@pytest.mark.peer
def test_spectra_as_in_jax() -> None:
    peer = jax().scipy.signal
    ours = signal.stft(SIGNAL, nperseg=16)
    compare(signal.istft(ours[2], nperseg=16), peer.istft(np.asarray(ours[2]), nperseg=16), 1e-4)
    compare(signal.csd(SIGNAL, OTHER, nperseg=16), peer.csd(SIGNAL, OTHER, nperseg=16), 1e-4)
    compare(signal.welch(np.arange(64), nperseg=16), peer.welch(np.arange(64), nperseg=16), 1e-3)
    compare(signal.welch(np.zeros((2, 0))), peer.welch(np.zeros((2, 0))))


def test_warnings() -> None:
    with pytest.warns(UserWarning, match="nperseg=256"):
        got = signal.welch(SIGNAL, nperseg=256)
    assert got[1].shape == (2, 51)
    with pytest.warns(UserWarning, match="complex"):
        signal.welch(SIGNAL * 1j, nperseg=16)


def test_under_transformations() -> None:
    x = jnp.asarray(SIGNAL)
    cases: list[Any] = [
        lambda v: signal.convolve(v, SHORT, "same"),
        lambda v: signal.fftconvolve(v, SHORT, "valid"),
        lambda v: signal.welch(v, nperseg=16)[1],
        lambda v: signal.detrend(v, bp=[30]),
        lambda v: signal.istft(signal.stft(v, nperseg=16)[2], nperseg=16)[1],
    ]
    for f in cases:
        want = np.stack([np.asarray(f(row)) for row in x])
        close(calque.jit(calque.vmap(f))(x), want, 1e-4)
        test_util.check_grads(f, (x[0, :40],), order=1, modes=["rev"], rtol=3e-2, atol=3e-2)


def test_bad_arguments() -> None:
    calls: list[tuple[Any, type[Exception], str]] = [
        (lambda: signal.convolve(LONG, SHORT, "half"), ValueError, "half"),
        (lambda: signal.convolve(LONG, SHORT, method="slow"), ValueError, "slow"),
        (lambda: signal.convolve(LONG, WIDE), ValueError, "dimensionality"),
        (lambda: signal.convolve(WIDE, WIDE[:, :0]), ValueError, "zero-size"),
        (lambda: signal.convolve(WIDE, np.ones((2, 9))), ValueError, "at least as large"),
        (
            lambda: signal.fftconvolve(WIDE, np.ones((2, 9)), "valid"),
            ValueError,
            "at least as large",
        ),
        (lambda: signal.fftconvolve(WIDE, NARROW, axes=0), ValueError, "same sizes"),
        (lambda: signal.convolve2d(LONG, SHORT), ValueError, "2-dimensional"),
        (lambda: signal.correlate2d(WIDE, NARROW, boundary="wrap"), NotImplementedError, "wrap"),
        (lambda: signal.convolve2d(WIDE, NARROW, fillvalue=1), NotImplementedError, "fillvalue"),
        (lambda: signal.detrend(LONG, type="square"), ValueError, "square"),
        (lambda: signal.detrend(LONG, bp=[10]), ValueError, "10"),
        (lambda: signal.detrend(LONG, overwrite_data=True), NotImplementedError, "overwrite_data"),
        (lambda: signal.stft(SIGNAL, boundary="mirror"), ValueError, "mirror"),
        (lambda: signal.stft(SIGNAL, nperseg=0), ValueError, "nperseg"),
        (lambda: signal.welch(SIGNAL, nperseg=8, nfft=4), ValueError, "nfft"),
        (lambda: signal.welch(SIGNAL, nperseg=8, noverlap=8), ValueError, "noverlap"),
        (lambda: signal.welch(SIGNAL, window=WIDE), ValueError, "1-D"),
        (lambda: signal.welch(SIGNAL, window=SHORT, nperseg=5), ValueError, "nperseg=5"),
        (lambda: signal.welch(SIGNAL, window=np.ones(101)), ValueError, "longer"),
        (lambda: signal.welch(SIGNAL, scaling="power"), ValueError, "power"),
        (lambda: signal.welch(SIGNAL, average="mode", nperseg=8), ValueError, "mode"),
        (lambda: signal.csd(SIGNAL, LONG), ValueError, "rank"),
        (lambda: signal.csd(SIGNAL, np.ones((3, 100))), ValueError, "broadcast"),
        (lambda: signal.istft(LONG), ValueError, "2d"),
        (lambda: signal.istft(WIDE, time_axis=0, freq_axis=0), ValueError, "differing"),
        (lambda: signal.istft(WIDE, nperseg=20), ValueError, "FFT length"),
        (lambda: signal.istft(WIDE, noverlap=10), ValueError, "noverlap"),
        (lambda: signal.istft(WIDE, window=SHORT), ValueError, "length of 10"),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call, error, text in calls:
            with pytest.raises(error, match=text):
                call()
