"""The parts of the sorting kernel: networks, splits at pivots, digits, and the rows that hold them
together."""

from typing import Any

import numpy as np
import pytest

from calque.machine.driver.interpreter import TOO_LARGE, Run
from calque.machine.routines.sort import network as sort_network
from calque.machine.routines.sort import quick as sort_quick
from calque.machine.routines.sort import radix as sort_radix
from calque.machine.routines.sort import records as sort_records
from calque.machine.routines.sort import rows as sort
from calque.machine.routines.sort import work as sort_work
from calque.machine.routines.sort.keys import Key, KeyKind

TYPES = ((np.uint32, 0), (np.uint64, 1))
RNG = np.random.default_rng(0)
splitting = pytest.mark.skipif(
    not sort_network.can_split(), reason="this processor does not pack the lanes of vectors"
)


def idle_run(stopped: int = 0) -> np.ndarray:
    """A run of a program that another thread looks after, so that nobody looks at signals."""
    run = np.zeros(16, np.int64)
    run[Run.offset("owner") // 8] = 1
    run[Run.offset("stopped") // 8] = stopped
    return run


def numbers(dtype: Any, n: int, most: int | None = None) -> np.ndarray:
    return RNG.integers(
        0, np.iinfo(dtype).max if most is None else most, n, dtype=dtype, endpoint=True
    )


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


def job_for(
    records: np.ndarray, other: np.ndarray, places: np.ndarray, run: np.ndarray, n: int, wide: int
) -> np.ndarray:
    job = np.zeros(sort_radix.RECORDS_BYTES // 8, np.int64)
    values = {"records": records, "other": other, "places": places, "run": run}
    for name, x in values.items():
        job[sort_radix.Records.offset(name) // 8] = x.ctypes.data
    for name, number in {"n": n, "wide": wide, "kept": n}.items():
        job[sort_radix.Records.offset(name) // 8] = number
    return job


@pytest.mark.parametrize(("dtype", "wide"), TYPES)
def test_digits(dtype: Any, wide: int) -> None:
    run, places = idle_run(), np.zeros(sort_records.PLACES_BYTES, np.uint8)
    tables = np.zeros(sort_radix.TABLES_BYTES, np.uint8)
    top = np.iinfo(dtype).bits - 8

    def close(n):
        return (numbers(dtype, n, 2) << dtype(top)) + numbers(
            dtype, n, 1000
        )  # rough digits leave much to do

    for n in (1, 2, 5000, 40_000):
        for x in (
            numbers(dtype, n),
            numbers(dtype, n, 3),
            close(n),
            np.full(n, 5, dtype),
            numbers(dtype, n, 9) + dtype(1 << 30),
        ):
            records, other = x.copy(), np.zeros_like(x)
            job = job_for(records, other, places, run, n, wide)
            sort_records.records_survey(job.ctypes.data)
            survey = [
                int(job.view(np.uint64)[sort_radix.Records.offset(f) // 8])
                for f in ("least", "greatest", "disorder")
            ]
            assert survey == [x.min(), x.max(), (x[1:] < x[:-1]).any()]
            sort_radix.radix_sort(job.ctypes.data, tables.ctypes.data)
            np.testing.assert_array_equal(records, np.sort(x))


def words(x: np.ndarray, out: np.ndarray, rows: int, run: np.ndarray) -> np.ndarray:
    """The arguments of the kernel for rows of unsigned integers, and before them the run."""
    n = x.size // rows
    key = [x.ctypes.data, 4, 0, KeyKind.PLAIN_4, 0, 0, 0]
    return np.array(
        [run.ctypes.data, rows, n, 1, n, 1, 1, 1, *key, x.ctypes.data, out.ctypes.data, 4], np.int64
    )


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


def test_more_places_than_are_counted() -> None:
    run = idle_run()
    args = words(np.zeros(4, np.uint32), np.zeros(4, np.uint32), 1, run)
    args[1 + sort_work.Args.offset("n") // 8] = 1 << 32
    args[1 + sort_work.Args.offset("alone") // 8] = 0
    sort.calque_sort(args.ctypes.data + 8, 0, 1)
    assert run[Run.offset("stopped") // 8] == TOO_LARGE


def test_room_for_layouts() -> None:
    """The bytes that are set aside hold what is kept there."""
    pairs = (
        (sort_work.Work, sort_work.WORK_BYTES),
        (sort_radix.Records, sort_radix.RECORDS_BYTES),
        (sort_radix.Job, sort_radix.JOB_BYTES),
    )
    for layout, nbytes in pairs:
        assert layout.size <= nbytes
    assert (sort_work.Args.size, Key.size, sort_work.Move.size) == (
        sort_work.ARGS_BYTES,
        sort_work.KEY_BYTES,
        sort_work.MOVE_BYTES,
    )
