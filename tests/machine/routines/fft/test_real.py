"""Real lines: joined from halves, parted into them, and mirrored."""

import numpy as np
import pytest

import calque.numpy
from calque.machine.routines.fft import real
from calque.machine.routines.fft.halves import HALVES
from tests.machine.routines.fft.shared import Work


@pytest.mark.parametrize("lanes", [1, 5])
def test_halves_are_joined_and_parted(lanes: int) -> None:
    """A real transform from the complex one of half the length; the opposite is twice as large."""
    for h in (1, 2, 5, 16):
        rng = np.random.default_rng(h)
        x = rng.normal(size=(2 * h, lanes))
        pairs = np.fft.fft(x[0::2] + 1j * x[1::2], axis=0)
        angle = np.pi * np.arange(h) / h
        roots = np.concatenate([np.cos(angle), -np.sin(angle)])
        work = Work(pairs, h + 1, turn_halves=HALVES["fft_join_halves"])
        real.fft_join(work.words.ctypes.data, h, roots.ctypes.data)
        half = work.lines(h + 1)
        np.testing.assert_allclose(half, np.fft.rfft(x, axis=0), atol=1e-12)
        work = Work(half, h + 1, turn_halves=HALVES["fft_part_halves"])
        real.fft_part(work.words.ctypes.data, h, roots.ctypes.data)
        np.testing.assert_allclose(work.lines(h), 2 * pairs, atol=1e-12)


def test_odd_lengths_are_mirrored() -> None:
    x = np.random.default_rng(0).normal(size=(9, 3))
    half = np.fft.rfft(x, axis=0)
    work = Work(half, 9)
    real.fft_mirror(work.words.ctypes.data, 9)
    np.testing.assert_allclose(work.lines(9), np.fft.fft(x, axis=0), atol=1e-12)


@pytest.mark.parametrize("n", [4, 8, 12, 100])
def test_the_element_in_the_middle_of_a_real_transform_has_no_negative_zero(n):
    """It is joined with itself, so that both formulas of a pair give it."""
    middle = np.asarray(calque.numpy.fft.rfft(np.ones(n, np.float32)))[n // 4]
    assert middle == 0 and not np.signbit(middle.imag)
