"""Splitting at pivots."""

from typing import Any

import numpy as np
import pytest

from calque.machine.routines.sort import network as sort_network
from calque.machine.routines.sort import quick as sort_quick
from tests.machine.routines.sort.shared import idle_run, numbers

TYPES = ((np.uint32, 0), (np.uint64, 1))


splitting = pytest.mark.skipif(
    not sort_network.can_split(), reason="this processor does not pack the lanes of vectors"
)


@splitting
@pytest.mark.parametrize(("dtype", "wide"), TYPES)
def test_splits_at_pivots(dtype: Any, wide: int) -> None:
    run = idle_run()
    for n in (0, 1, 2000, 9000, 30_000):
        for x in (
            numbers(dtype, n),
            numbers(dtype, n, 3),
            np.sort(numbers(dtype, n)),
            np.full(n, np.iinfo(dtype).max, dtype),
        ):
            for kept in {n, n // 50, 1}:
                y, other = x.copy(), np.zeros(n + sort_network.PAD, dtype)
                good = sort_quick.quick_sort(
                    y.ctypes.data, other.ctypes.data, n, wide, kept, 64, run.ctypes.data
                )
                assert good == 1
                np.testing.assert_array_equal(y[:kept], np.sort(x)[:kept])
                np.testing.assert_array_equal(np.sort(y), np.sort(x))
    y, other = numbers(dtype, 9000), np.zeros(9000 + sort_network.PAD, dtype)
    before = np.sort(y)
    assert (
        sort_quick.quick_sort(
            y.ctypes.data, other.ctypes.data, 9000, wide, 9000, 1, run.ctypes.data
        )
        == 0
    )
    np.testing.assert_array_equal(
        np.sort(y), before
    )  # nothing is lost when the pivots turn out badly
