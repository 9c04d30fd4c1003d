"""Sums of complex numbers as text: run as machine code over plain numbers."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from calque.machine.lang.unit import Unit, ptr
from calque.machine.routines.fft.sums import SUMS, Complex, Real
from calque.machine.routines.fft.vectors import Code, Kind

_numbers = itertools.count()


def from_x_to_y(x: ptr, y: ptr) -> None:
    """Numbers in memory to numbers in memory."""


def machine(
    count: int, function: Callable[[Sequence[Complex]], Sequence[tuple[int, Complex]]]
) -> Any:
    """A function of complex numbers as one of arrays."""

    def writer() -> str:
        c, one = Code(), Kind(8, 1)

        def read(k: int) -> Real:
            return Real(c, one, c.load(one, c.at("%x", str(8 * k))))

        for j, y in function([Complex(read(2 * k), read(2 * k + 1)) for k in range(count)]):
            c.store(one, y.re.text, c.at("%y", str(16 * j)))
            c.store(one, y.im.text, c.at("%y", str(16 * j + 8)))
        return c.finished()

    made = Unit(f"test_sums_{next(_numbers)}")
    code = made.written(f"{made.name}_f", from_x_to_y, writer, {})

    def run(x: np.ndarray) -> np.ndarray:
        x, y = x.astype("c16"), np.zeros(64, "c16")
        code(x.ctypes.data, y.ctypes.data)
        return y

    return run


@pytest.mark.parametrize("r", SUMS)
def test_each_radix(r: int) -> None:
    rng = np.random.default_rng(r)
    x = rng.normal(size=r) + 1j * rng.normal(size=r)
    got = machine(r, lambda v: list(SUMS[r](v)))(x)
    np.testing.assert_allclose(got[:r], np.fft.fft(x), rtol=0, atol=1e-14)


def test_arithmetic_of_complex_numbers() -> None:
    a, b = 1.5 - 2j, -0.25 + 4j

    def function(v: Sequence[Complex]) -> list[tuple[int, Complex]]:
        p, q = v
        made = [p + q, p - q, p * 3.0, p.plus_i(q), p.minus_i(q), p.turned(q.re, q.im)]
        return list(enumerate([*made, (p * 0.0).above_zero()]))

    got = machine(2, function)(np.array([a, b]))
    np.testing.assert_array_equal(got[:6], [a + b, a - b, 3 * a, a + 1j * b, a - 1j * b, a * b])
    assert not np.signbit(got[6].imag)
