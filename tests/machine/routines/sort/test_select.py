"""The least few of a row of keys, selected in one pass."""

import numpy as np
import pytest

from calque.core.primitives import do
from calque.machine.routines.sort.select import MOST, SHARE, select_records
from tests.native.programs import check, normal, run

UNTOUCHED = 7


def selected(keys: np.ndarray, kept: int) -> tuple[int, np.ndarray]:
    records = np.full(kept + 1, UNTOUCHED, np.uint64)
    good = select_records(keys.ctypes.data, records.ctypes.data, len(keys), kept)
    assert records[kept] == UNTOUCHED
    return good, records[:kept]


def wanted(keys: np.ndarray, kept: int) -> np.ndarray:
    return np.sort(
        (keys.astype(np.uint64) << np.uint64(32)) | np.arange(len(keys), dtype=np.uint64)
    )[:kept]


@pytest.mark.parametrize("n", [1, 5, 63, 64, 65, 129, 5000])
@pytest.mark.parametrize("kept", [1, 2, 5, 64])
@pytest.mark.parametrize("most", [2, 40, 2**32])
def test_the_least_in_order_equal_ones_by_their_places(n: int, kept: int, most: int) -> None:
    if kept > n:
        return
    keys = np.random.default_rng(n + kept).integers(0, most, n).astype(np.uint32)
    good, got = selected(keys, kept)
    assert good == 1
    np.testing.assert_array_equal(got, wanted(keys, kept))


def test_what_comes_in_a_bad_order_is_given_up() -> None:
    keys = np.arange(20_000, 0, -1).astype(np.uint32)
    assert selected(keys, MOST)[0] == 0
    assert selected(keys, 4)[0] == 1
    assert selected(np.ascontiguousarray(keys[::-1]), MOST)[0] == 1


@pytest.mark.parametrize("dtype", ["f4", "f2", "i4", "u4", "i1", "f8", "i8"])
@pytest.mark.parametrize("k", [3, 20])
def test_programs_select(dtype: str, k: int) -> None:
    n = SHARE * 64
    x = normal(7, n, dtype=dtype) if dtype != "f2" else normal(7, n).astype("f2")
    x[1] = np.sort(x[1])  # in a bad order
    x[2] = x[2, 0]
    if np.dtype(dtype).kind == "f":
        x[3, 5:9], x[4, ::3], x[5, 100], x[6, ::2] = np.nan, 0.0, -np.inf, -0.0
    e = check(lambda x: do.top_k(x, k=k, axis=1), x)
    values, places = run(e, x)
    assert np.take_along_axis(x.astype(values.dtype), places, 1).tobytes() == values.tobytes()
    check(lambda x: do.top_k(x, k=k, axis=0), np.ascontiguousarray(x.T))
