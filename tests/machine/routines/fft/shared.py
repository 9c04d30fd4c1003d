"""What the tests of Fourier transforms share: lines in work."""

from typing import Any

import numpy as np

from calque.machine.routines.fft.work import Functions


class Work:
    """Lines in work: `lanes` sequences side by side, room for more, and the functions that their
    lengths need."""

    def __init__(self, x: np.ndarray, room: int, **functions: Any) -> None:
        self.n, self.lanes = x.shape
        self.blocks = np.zeros((4, room * self.lanes))
        self.blocks[0, : x.size], self.blocks[1, : x.size] = x.real.reshape(-1), x.imag.reshape(-1)
        known = [functions.get(f) for f in Functions.fields]
        self.functions = np.array([f.address if f else 0 for f in known], np.int64)
        blocks = [b.ctypes.data for b in self.blocks]
        self.words = np.array([*blocks, self.lanes, self.functions.ctypes.data], np.int64)

    def lines(self, n: int) -> np.ndarray:
        parts = []
        for k in range(2):
            (block,) = [b for b in self.blocks if b.ctypes.data == self.words[k]]
            parts.append(block[: n * self.lanes].reshape(n, self.lanes).copy())
        return parts[0] + 1j * parts[1]
