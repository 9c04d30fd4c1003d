"""Networks that sort a few elements."""

from typing import Any

import numpy as np
import pytest

from calque.machine.routines.sort import network as sort_network
from tests.machine.routines.sort.shared import numbers

TYPES = ((np.uint32, 0), (np.uint64, 1))


@pytest.mark.parametrize(("dtype", "wide"), TYPES)
def test_networks(dtype: Any, wide: int) -> None:
    for n in (*range(140), 255, 256, 257, 511, 513, 1000, 1025, 5000):
        for most in (None, 3):
            x = numbers(dtype, n, most)
            guarded = np.concatenate([x, np.zeros(sort_network.PAD, dtype), np.full(8, 7, dtype)])
            sort_network.network_sort(guarded.ctypes.data, n, wide)
            np.testing.assert_array_equal(guarded[:n], np.sort(x))
            assert (guarded[-8:] == 7).all()


def test_comparators() -> None:
    """What sorts all rows of zeros and ones sorts everything."""
    for n in (2, 4, 8, 16):
        rows = np.arange(1 << n)[:, None] >> np.arange(n) & 1
        for i, j in sort_network.comparators(n):
            rows[:, i], rows[:, j] = (
                np.minimum(rows[:, i], rows[:, j]),
                np.maximum(rows[:, i], rows[:, j]),
            )
        assert (np.diff(rows) >= 0).all()
    assert len(list(sort_network.comparators(16))) == 63
