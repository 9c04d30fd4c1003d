"""What the tests of this room share."""

from typing import Any

import numpy as np

from calque.machine.routines.sort.keys import KeyKind
from tests.machine.routines.shared import idle_run

__all__ = ["RNG", "idle_run", "numbers", "words"]

RNG = np.random.default_rng(0)


def numbers(dtype: Any, n: int, most: int | None = None) -> np.ndarray:
    return RNG.integers(
        0, np.iinfo(dtype).max if most is None else most, n, dtype=dtype, endpoint=True
    )


def words(x: np.ndarray, out: np.ndarray, rows: int, run: np.ndarray) -> np.ndarray:
    """The arguments of the kernel for rows of unsigned integers, and before them the run."""
    n = x.size // rows
    key = [x.ctypes.data, 4, 0, KeyKind.PLAIN_4, 0, 0, 0]
    return np.array(
        [run.ctypes.data, rows, n, 1, n, 1, 1, 1, *key, x.ctypes.data, out.ctypes.data, 4], np.int64
    )
