"""Fourier transforms against their definition, their rules, and JAX."""

import numpy as np
import pytest

from calque.ops import fft as F
from tests.ops import peer
from tests.ops.helpers import check_batch, check_jvp, check_meaning, check_transpose, run, values


def matrix(n, sign):
    k = np.arange(n)
    return np.exp(sign * 2j * np.pi * np.outer(k, k) / n)


def dft(x, lengths, sign):
    """One dense matrix for each transformed dimension."""
    for i, n in enumerate(reversed(lengths)):
        axis = x.ndim - 1 - i
        x = np.moveaxis(np.tensordot(x, matrix(n, sign), ([axis], [0])), -1, axis)
    return x


def expected(kind, lengths):
    def compute(x):
        out = "complex64" if x.dtype.itemsize < 8 or x.dtype == "complex64" else "complex128"
        total = np.prod(lengths)
        if kind == "FFT":
            return dft(x.astype(complex), lengths, -1).astype(out)
        if kind == "IFFT":
            return (dft(x.astype(complex), lengths, 1) / total).astype(out)
        if kind == "RFFT":
            return dft(x.astype(complex), lengths, -1)[..., : lengths[-1] // 2 + 1].astype(out)
        n = lengths[-1]
        y = np.asarray(x, complex)
        for axis, m in zip(range(x.ndim - len(lengths), x.ndim - 1), lengths[:-1]):
            y = np.moveaxis(np.tensordot(y, matrix(m, 1), ([axis], [0])), -1, axis)
        w = np.array([1.0] + [2.0] * (n // 2 - 1 + n % 2) + [1.0] * (n % 2 == 0 and n > 1))
        back = np.exp(2j * np.pi * np.outer(np.arange(n // 2 + 1), np.arange(n)) / n) * w[:, None]
        return ((y @ back).real / total).astype(
            out.replace("complex64", "float32").replace("complex128", "float64")
        )

    return compute


CASES = [
    ("FFT", (3, 4), (4,)),
    ("FFT", (2, 3, 5), (3, 5)),
    ("IFFT", (3, 5), (5,)),
    ("IFFT", (2, 3, 4), (2, 3, 4)),
]
CASES += [
    ("RFFT", (3, 4), (4,)),
    ("RFFT", (3, 5), (5,)),
    ("RFFT", (2, 4, 6), (4, 6)),
    ("RFFT", (3, 1), (1,)),
]
CASES += [
    ("IRFFT", (3, 3), (4,)),
    ("IRFFT", (3, 3), (5,)),
    ("IRFFT", (2, 3, 4), (3, 6)),
    ("IRFFT", (3, 1), (1,)),
]


@pytest.mark.parametrize(("kind", "shape", "lengths"), CASES)
def test_transform(kind, shape, lengths):
    real = kind == "RFFT"
    p = {"fft_type": F._fft_type(kind), "fft_lengths": lengths}
    for dtype, tol in (
        (("float32", 1e-5), ("float64", 1e-12))
        if real
        else (("complex64", 1e-5), ("complex128", 1e-12))
    ):
        check_meaning(
            F.fft_p, expected(kind, lengths), values(dtype, shape), rtol=tol, atol=tol, **p
        )
    x = values("float64" if real else "complex128", shape)
    check_jvp(F.fft_p, x, **p)
    check_transpose(F.fft_p, x, **p)
    check_batch(F.fft_p, x.astype("float32" if real else "complex64"), rtol=1e-5, atol=1e-5, **p)


def test_empty():
    x = np.zeros((0, 4), "complex64")
    assert run(lambda x: F.fft(x, "FFT", (4,)), x)[0].shape == (0, 4)
    assert run(lambda x: F.fft(x, "ifft", ()), x)[0].shape == (0, 4)


@pytest.mark.parametrize(
    ("fun", "words"),
    [
        (lambda x: F.fft(x, "RFFT", (3,)), "minor dimensions"),
        (lambda x: F.fft(x, "FFT", (3,)), "minor dimensions"),
        (lambda x: F.fft(x, "IRFFT", (4,)), "minor dimensions"),
        (lambda x: F.fft(x, "FFT", (2, 3, 4)), "at least as many"),
        (lambda x: F.fft(x, "DCT", (4,)), "Unknown FFT type"),
        (lambda x: F.fft_p.bind(x, fft_type=F.FFT, fft_lengths=(4,)), "must be complex"),
    ],
)
def test_errors(fun, words):
    with pytest.raises(ValueError, match=words):
        run(fun, np.ones((3, 4), "float32"))


@pytest.mark.peer
def test_beside_jax():
    x = values("float32", (3, 4))
    z = values("complex64", (3, 3))
    peer.compare(
        [
            (lambda lax, x: lax.fft(x, "FFT", (4,)), x),
            (lambda lax, x: lax.fft(x, "RFFT", (3, 4)), x),
            (lambda lax, x: lax.fft(x, lax.FftType.IFFT, (3, 4)), x),
            (lambda lax, z: lax.fft(z, "IRFFT", (3, 4)), z),
            (lambda lax, z: lax.fft(z, "IRFFT", (5,)), z),
            (lambda lax, x: lax.fft(x, "FFT", (3, 4)), x.astype("int32")),
        ],
        printed=False,
    )


@pytest.mark.peer
def test_transposes_beside_jax():
    jax = pytest.importorskip("jax")
    for kind, shape, lengths in CASES:
        x = values("float32" if kind == "RFFT" else "complex64", shape)
        out, back = jax.vjp(lambda x, k=kind, n=lengths: jax.lax.fft(x, k, n), x)
        ct = values(out.dtype, out.shape, seed=2)
        p = {"fft_type": F._fft_type(kind), "fft_lengths": lengths}
        got = run(lambda ct, x=x, p=p: F.fft_p.transpose(ct, peer.undefined(x), **p)[0], ct)[0]
        np.testing.assert_allclose(got, back(ct)[0], rtol=1e-4, atol=1e-4)
