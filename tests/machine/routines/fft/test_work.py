"""The complex transform of lines in work, with the functions that their length needs."""

import numpy as np
import pytest

from calque.machine.routines.fft import passes, work
from calque.native.library import fourier
from tests.machine.routines.fft.shared import Work


def numbers(n: int, lanes: int) -> np.ndarray:
    parts = np.random.default_rng(n).normal(size=(2, n, lanes))
    return parts[0] + 1j * parts[1]


def test_parts_change_places() -> None:
    x = numbers(9, 3)
    lines = Work(x, 9)
    work.fft_turn_round(lines.words.ctypes.data)
    np.testing.assert_array_equal(lines.lines(9), x.imag + 1j * x.real)


@pytest.mark.parametrize("n", [1, 2, 32, 60, 77])
@pytest.mark.parametrize("lanes", [1, 6])
def test_only_the_passes_of_a_length_are_called(n: int, lanes: int) -> None:
    """There are no others: all else is NULL."""
    names = {f"pass_{r}" if r in passes.OWN_SUMS else "pass_any" for r in fourier.radices(n, False)}
    lines = Work(x := numbers(n, lanes), n, **{f: passes.PASSES[f"fft_{f}"] for f in names})
    table, _ = fourier.complex_table(n, False, False)
    work.fft_transform(lines.words.ctypes.data, table.ctypes.data, 0)
    np.testing.assert_allclose(lines.lines(n), np.fft.fft(x, axis=0), atol=1e-11)
    work.fft_transform(lines.words.ctypes.data, table.ctypes.data, 1)
    np.testing.assert_allclose(lines.lines(n), n * x, atol=1e-10)
