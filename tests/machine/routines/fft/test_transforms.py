"""The kernel of Fourier transforms, called with words: axes, batches, real lines, and its end."""

from typing import Any

import numpy as np
import pytest

import calque.numpy
from calque.machine.routines.fft import transforms
from calque.native.library import fourier
from calque.ops.dimension_numbers import FftType
from tests.machine.routines.shared import call, idle_run

KINDS: dict[FftType, Any] = {
    FftType.FFT: np.fft.fftn,
    FftType.IFFT: np.fft.ifftn,
    FftType.RFFT: np.fft.rfftn,
    FftType.IRFFT: None,
}


def transformed(kind: FftType, x: np.ndarray, *lengths: int, run: Any = None) -> np.ndarray:
    single = x.dtype in (np.dtype("c8"), np.dtype("f4"))
    batch = x.shape[: x.ndim - len(lengths)]
    last = lengths[-1] // 2 + 1 if kind == FftType.RFFT else lengths[-1]
    dtype = {True: ("f4", "c8"), False: ("f8", "c16")}[single][kind != FftType.IRFFT]
    out = np.zeros((*batch, *lengths[:-1], last), dtype)
    table = fourier.table(kind, single, *lengths)
    kernel = transforms.calque_fft_single if single else transforms.calque_fft
    call(kernel, x, out, int(np.prod(batch)), table, run=run)
    return out


def numbers(*shape: int, dtype: str = "c16") -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype[0] == "c" else x).astype(dtype)


SHAPES = [(1,), (2,), (7,), (16,), (60,), (53,), (1009,), (4, 6), (3, 5, 8), (19, 64), (100, 3, 2)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("batch", [(), (3,), (2, 9), (0,)], ids=str)
def test_every_kind(shape: tuple[int, ...], batch: tuple[int, ...]) -> None:
    """Along the last axes, of lengths with small factors and of primes, forward and back."""
    axes = tuple(range(-len(shape), 0))
    x = numbers(*batch, *shape)
    close = {"rtol": 1e-11, "atol": 1e-11}
    for kind in (FftType.FFT, FftType.IFFT):
        want = KINDS[kind](x, axes=axes)
        np.testing.assert_allclose(transformed(kind, x, *shape), want, **close)
    real = x.real.copy()
    half = np.fft.rfftn(real, axes=axes)
    np.testing.assert_allclose(transformed(FftType.RFFT, real, *shape), half, **close)
    back = transformed(FftType.IRFFT, np.ascontiguousarray(half), *shape)
    np.testing.assert_allclose(back, real, **close)


@pytest.mark.parametrize("n", [8, 12, 60, 64, 100, 121, 128, 47, 1000, 1024, 4096])
def test_single_precision_loses_little(n: int) -> None:
    """The error grows as slowly with the length as that of sums by halves: it is that of NumPy's
    transforms in single precision, and a few hundredths for odd factors from 11 on."""
    x = numbers(20, n, dtype="c8")
    half = np.fft.rfft(x.real.astype("f8")).astype("c8")
    cases = [
        (FftType.FFT, x, np.fft.fft(x.astype("c16"))),
        (FftType.RFFT, x.real.copy(), np.fft.rfft(x.real.astype("f8"))),
        (FftType.IRFFT, half, np.fft.irfft(half.astype("c16"), n)),
    ]
    for kind, given, want in cases:
        got = transformed(kind, given, n)
        assert got.dtype == (np.float32 if kind == FftType.IRFFT else np.complex64)
        bound = 4.6e-8 * max(np.log2(n), 4) ** 0.5 * (1 if n % 11 and n != 47 else 1.3)
        assert np.linalg.norm(got - want) <= bound * np.linalg.norm(want)


@pytest.mark.parametrize("inner", [1, 8, 15, 16, 17, 24, 25, 65, 96, 130])
def test_lines_behind_an_axis_are_all_done(inner: int) -> None:
    """They fall into parts; a few that are left go with the last one."""
    for dtype, close in (("c8", 2e-6), ("c16", 1e-13)):
        x = numbers(2, 128, inner, dtype=dtype)
        got = transformed(FftType.FFT, x, 128, inner)
        want = np.fft.fft2(x.astype("c16"))
        np.testing.assert_allclose(got, want, rtol=0, atol=close * np.abs(want).max())


def test_the_operand_is_not_written() -> None:
    x = numbers(4, 6, 10)
    before = x.copy()
    half = np.ascontiguousarray(np.fft.rfftn(x.real, axes=(1, 2)))
    kept = half.copy()
    transformed(FftType.FFT, x, 6, 10)
    transformed(FftType.IRFFT, half, 6, 10)
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(half, kept)


def test_what_counts_as_real_in_half_a_transform() -> None:
    """The imaginary parts of the first element, and of the last one of an even length, are not
    read."""
    for n in (8, 9):
        half = np.fft.rfft(np.arange(float(n))).astype("c16")
        odd = half.copy()
        odd[0] += 5j
        if n % 2 == 0:
            odd[-1] -= 3j
        got = transformed(FftType.IRFFT, odd, n)
        np.testing.assert_allclose(got, np.arange(n), rtol=1e-12, atol=1e-12)


def test_a_stopped_run_ends_soon() -> None:
    """It is asked between so many elements, in each thread."""
    x = np.ones((4000, 1024), np.complex64)
    out = transformed(FftType.FFT, x, 1024, run=idle_run(stopped=1))
    done = np.count_nonzero(out[:, 0])
    assert 0 < done < 4000


class Work:
    """Lines in work: `lanes` sequences side by side, and room for more."""

    def __init__(self, x: np.ndarray, room: int) -> None:
        self.n, self.lanes = x.shape
        self.blocks = np.zeros((4, room * self.lanes))
        self.blocks[0, : x.size], self.blocks[1, : x.size] = x.real.reshape(-1), x.imag.reshape(-1)
        self.words = np.array([*[b.ctypes.data for b in self.blocks], self.lanes], np.int64)

    def lines(self, n: int) -> np.ndarray:
        parts = []
        for k in range(2):
            (block,) = [b for b in self.blocks if b.ctypes.data == self.words[k]]
            parts.append(block[: n * self.lanes].reshape(n, self.lanes).copy())
        return parts[0] + 1j * parts[1]


@pytest.mark.parametrize("lanes", [1, 5])
def test_halves_are_joined_and_parted(lanes: int) -> None:
    """A real transform from the complex one of half the length; the opposite is twice as large."""
    for h in (1, 2, 5, 16):
        rng = np.random.default_rng(h)
        x = rng.normal(size=(2 * h, lanes))
        pairs = np.fft.fft(x[0::2] + 1j * x[1::2], axis=0)
        angle = np.pi * np.arange(h) / h
        roots = np.concatenate([np.cos(angle), -np.sin(angle)])
        work = Work(pairs, h + 1)
        transforms.fft_join(work.words.ctypes.data, h, roots.ctypes.data)
        np.testing.assert_allclose(work.lines(h + 1), np.fft.rfft(x, axis=0), atol=1e-12)
        transforms.fft_part(work.words.ctypes.data, h, roots.ctypes.data)
        np.testing.assert_allclose(work.lines(h), 2 * pairs, atol=1e-12)


def test_odd_lengths_are_mirrored() -> None:
    x = np.random.default_rng(0).normal(size=(9, 3))
    half = np.fft.rfft(x, axis=0)
    work = Work(half, 9)
    transforms.fft_mirror(work.words.ctypes.data, 9)
    np.testing.assert_allclose(work.lines(9), np.fft.fft(x, axis=0), atol=1e-12)
    transforms.fft_turn_round(work.words.ctypes.data)
    turned = np.fft.fft(x, axis=0)
    np.testing.assert_allclose(work.lines(9), turned.imag + 1j * turned.real, atol=1e-12)


@pytest.mark.parametrize("n", [4, 8, 12, 100])
def test_the_element_in_the_middle_of_a_real_transform_has_no_negative_zero(n):
    """It is joined with itself, so that both formulas of a pair give it."""
    middle = np.asarray(calque.numpy.fft.rfft(np.ones(n, np.float32)))[n // 4]
    assert middle == 0 and not np.signbit(middle.imag)
