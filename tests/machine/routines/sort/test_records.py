"""Records sorted by whatever is quickest for so many."""

from typing import Any

import numpy as np
import pytest

from calque.machine import threads
from calque.machine.routines.sort import records
from calque.machine.routines.sort.radix import Records
from tests.machine.routines.sort.shared import idle_run, numbers
from tests.machine.routines.sort.test_radix import job_for

TYPES = ((np.uint32, 0), (np.uint64, 1))


def job(x: np.ndarray, wide: int, kept: int | None = None) -> tuple[np.ndarray, Any]:
    """The words of a job on a copy of records, and what has to live as long."""
    room = np.zeros(len(x) + records.ROOM, x.dtype)
    data = np.concatenate([x, np.zeros(64, x.dtype)])
    places, run = np.zeros(records.PLACES_BYTES, np.uint8), idle_run()
    words = job_for(data, room, places, run, len(x), wide)
    words[Records.offset("kept") // 8] = len(x) if kept is None else kept
    return words, (data, room, places, run)


def inputs(dtype: Any, n: int) -> list[np.ndarray]:
    x = numbers(dtype, n)
    return [x, numbers(dtype, n, 3), np.sort(x), np.sort(x)[::-1].copy(), np.full(n, 5, dtype)]


@pytest.mark.parametrize(("dtype", "wide"), TYPES)
@pytest.mark.parametrize("n", [0, 1, 2, 300, 501, 5000, 80_000])
def test_every_length(dtype: Any, wide: int, n: int) -> None:
    for x in inputs(dtype, n):
        words, (data, *_) = job(x, wide)
        assert records.sort_records(words.ctypes.data) == 1
        np.testing.assert_array_equal(data[:n], np.sort(x))


@pytest.mark.parametrize(("dtype", "wide"), TYPES)
@pytest.mark.parametrize("kept", [1, 10, 3000])
def test_the_first_few_are_in_their_places(dtype: Any, wide: int, kept: int) -> None:
    """The others stand somewhere behind them, and none is lost."""
    for x in inputs(dtype, 30_000):
        words, (data, *_) = job(x, wide, kept)
        assert records.sort_records(words.ctypes.data) == 1
        want = np.sort(x)
        np.testing.assert_array_equal(data[:kept], want[:kept])
        np.testing.assert_array_equal(np.sort(data[: len(x)]), want)


def test_one_thread_and_many_give_the_same() -> None:
    x = numbers(np.uint64, 200_000)
    before = threads.get_num_threads()
    try:
        for count in (1, 2, 4):
            threads.set_num_threads(count)
            words, (data, *_) = job(x, 1)
            assert records.sort_records(words.ctypes.data) == 1
            np.testing.assert_array_equal(data[: len(x)], np.sort(x))
    finally:
        threads.set_num_threads(before)


@pytest.mark.parametrize(("dtype", "wide"), TYPES)
@pytest.mark.parametrize("n", [1, 2, 1000, 200_000])
def test_a_survey(dtype: Any, wide: int, n: int) -> None:
    """Least, greatest, and disorder where it is between two blocks as well."""
    for x in inputs(dtype, n):
        words, _held = job(x, wide)
        records.records_survey(words.ctypes.data)
        found = [
            int(words.view(np.uint64)[Records.offset(f) // 8])
            for f in ("least", "greatest", "disorder")
        ]
        assert found == [x.min(), x.max(), bool((x[1:] < x[:-1]).any())]
    x = np.arange(n, dtype=dtype)
    for at in {k for k in (1, n // 2, n - 1) if 0 < k < n}:
        y = x.copy()
        y[at] = 0
        words, _held = job(y, wide)
        records.records_survey(words.ctypes.data)
        assert bool(words[Records.offset("disorder") // 8]) == (at > 1 and n > 2)
