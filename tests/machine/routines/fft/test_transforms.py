"""The kernel of Fourier transforms, called with words: axes, batches, real lines, and its end."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from calque.core.avals import ShapedArray
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
    params = {"fft_type": kind, "fft_lengths": lengths}
    kernel, functions = fourier.kernel(ShapedArray(x.shape, x.dtype), params)
    assert kernel.split()[1] in transforms.ROUTINES
    functions = [f and f.found() for f in functions]
    call(kernel.found(), x, out, int(np.prod(batch)), table, *functions, run=run)
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


def test_how_many_lines_stand_side_by_side_at_least() -> None:
    """Whole parts, or the last one when it is smaller; of lines behind which nothing stands, eight
    where there are as many, unless one alone fills vectors."""
    side = transforms.side_by_side
    assert [side(256, 256, 1, k) for k in (2, 8, 12, 13, 16)] == [2, 8, 8, 5, 8]
    assert [side(128, 128, 1, k) for k in (65, 48, 30)] == [16, 16, 14]
    assert [side(16, 16, k, 1) for k in (0, 1, 7, 8, 100)] == [0, 1, 7, 8, 8]
    assert [side(80, 80, k, 1) for k in (0, 1, 7, 8, 100)] == [0, 1, 1, 8, 8]
    assert [side(128, 128, k, 1) for k in (0, 1, 7, 8, 100)] == [1] * 5
    assert [side(64, 32, k, 1) for k in (0, 7, 8)] == [0, 1, 8]  # real ones
    assert [side(53, 0, 9, 1), side(300, 300, 9, 1)] == [1, 1]


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


def test_only_what_the_lengths_need_is_compiled() -> None:
    """In a process that has nothing on disk: passes of two radices, real lines of one kind."""
    program = """
import os, tempfile
os.environ["CALQUE_CACHE_DIR"] = tempfile.mkdtemp()
import calque.numpy as jnp
from calque.machine.routines.fft import lines, transforms
jnp.fft.rfft2(jnp.ones((128, 128), "f4"))
made = {n for n, f in transforms.ROUTINES.items() if f.unit._addresses is not None}
assert lines.real_unit_single._addresses is None
print(*sorted(made))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    whole = ("join_halves", "load", "pass_4", "pass_8", "store")
    names = ("calque_fft", "fft_real_halves", *[f"fft_whole_{name}" for name in whole])
    assert done.stdout.split() == [f"{name}_single" for name in names]
