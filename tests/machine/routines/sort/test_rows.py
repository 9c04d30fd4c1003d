"""Rows that are sorted side by side."""

import numpy as np

from calque.machine.routines.sort import rows as sort
from tests.machine.routines.sort.shared import idle_run, numbers, words


def test_a_stopped_run_ends_soon() -> None:
    x = numbers(np.uint32, 1_000_000)
    out = np.zeros_like(x)
    run = idle_run(stopped=1)
    args = words(x, out, 1000, run)
    sort.sort_rows(args.ctypes.data + 8, 0, 1000)
    done = np.count_nonzero(out.reshape(1000, 1000).any(1))
    assert 0 < done < 500
    run = idle_run()
    args = words(x, out, 1000, run)
    sort.calque_sort(args.ctypes.data + 8, 0, 1)
    np.testing.assert_array_equal(out.reshape(1000, 1000), np.sort(x.reshape(1000, 1000)))
