"""Sorting by digits."""

from typing import Any

import numpy as np
import pytest

from calque.machine.routines.sort import radix as sort_radix
from calque.machine.routines.sort import records as sort_records
from tests.machine.routines.sort.shared import idle_run, numbers

TYPES = ((np.uint32, 0), (np.uint64, 1))


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
