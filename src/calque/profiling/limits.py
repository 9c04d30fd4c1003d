"""What this machine can do at best, as measured: operations a second, and bytes a second for as
much as a kernel touches."""

from __future__ import annotations

import bisect
import math
import time
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from calque.core.arrays import to_array
from calque.machine.once import once
from calque.machine.threads import get_num_threads
from calque.ops.arithmetic import add_p
from calque.ops.products.dot import dot_general
from calque.transforms.jit.decorator import jit

SIDE: Final = 512  # of the matrices that are multiplied
SIZES: Final = (1 << 13, 1 << 16, 1 << 19, 1 << 22, 1 << 25)  # bytes that are read
SECONDS: Final = 0.03  # for each measurement, at least three runs


class Limits(NamedTuple):
    """The best of this process with its threads: floating-point operations a second in single and
    in double precision, and for each number of bytes touched how many a second."""

    single: float
    double: float
    touched: tuple[float, ...]
    bandwidth: tuple[float, ...]

    def bytes_per_second(self, touched: float) -> float:
        """For a kernel that touches so much: what is near is read faster."""
        k = bisect.bisect_left(self.touched, touched)
        if k == 0 or k == len(self.touched):
            return self.bandwidth[min(k, len(self.bandwidth) - 1)]
        low, high = self.touched[k - 1], self.touched[k]
        share = math.log(touched / low) / math.log(high / low)
        return self.bandwidth[k - 1] ** (1 - share) * self.bandwidth[k] ** share


def limits() -> Limits:
    """Those of this machine with the threads that kernels use now, measured when they are first
    asked for."""
    return _measured(get_num_threads())


@once
def _measured(threads: int) -> Limits:
    rates = []
    for nbytes in SIZES:
        x = to_array(np.ones(nbytes // 4, np.float32))
        double = jit(lambda x: add_p.bind(x, x))
        rates.append(2 * nbytes / _best(lambda: double(x)))
    return Limits(
        _products(np.float32),
        _products(np.float64) or _products(np.float32) / 2,
        tuple(2.0 * n for n in SIZES),
        tuple(rates),
    )


def _products(dtype: type) -> float:
    """Operations a second in a product of matrices."""
    a = to_array(np.ones((SIDE, SIDE), dtype))
    multiply = jit(lambda a, b: dot_general(a, b, (((1,), (0,)), ((), ()))))
    if a.dtype != dtype:  # there are no such arrays
        return 0.0
    return 2 * SIDE**3 / _best(lambda: multiply(a, a))


def _best(run: Callable[[], object]) -> float:
    """The least of the times that a run takes, in seconds."""
    run()
    best, end, runs = math.inf, time.perf_counter() + SECONDS, 0
    while runs < 3 or time.perf_counter() < end:
        begun = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begun)
        runs += 1
    return best
