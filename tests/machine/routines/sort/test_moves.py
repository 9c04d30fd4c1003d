"""Elements copied as they stand, and as their records say."""

import numpy as np
import pytest

from calque.machine.routines.sort import moves
from calque.machine.routines.sort.moves import Moved

SIZES = (1, 2, 4, 8, 16, 12)


def elements(item: int, n: int) -> np.ndarray:
    """Rows of bytes."""
    return np.random.default_rng(n).integers(0, 256, (n, item), dtype=np.uint8)


@pytest.mark.parametrize("item", SIZES)
@pytest.mark.parametrize("steps", [(1, 1), (3, 1), (1, 2), (2, 3)])
def test_rows_are_copied(item: int, steps: tuple[int, int]) -> None:
    """From any step to any; what lies between is not touched."""
    step, to_step = steps
    for n in (0, 1, 50):
        x = elements(item, max(n * step, 1))
        out = np.full((max(n * to_step, 1), item), 7, np.uint8)
        moves.sort_copy(x.ctypes.data, step * item, out.ctypes.data, to_step * item, item, n)
        np.testing.assert_array_equal(out[: n * to_step : to_step], x[: n * step : step])
        rest = np.ones(len(out), bool)
        rest[: n * to_step : to_step] = False
        assert (out[rest] == 7).all()


def moved(**fields: int) -> np.ndarray:
    words = np.zeros(moves.MOVED_BYTES // 8, np.int64)
    for name, value in fields.items():
        words[Moved.offset(name) // 8] = value
    return words


@pytest.mark.parametrize("item", SIZES)
def test_elements_go_where_their_records_are(item: int) -> None:
    """The low half of a record is its place; a part of the records moves a part."""
    n = 40
    x, order = elements(item, n), np.random.default_rng(0).permutation(n)
    records = (np.uint64(99) << np.uint64(32)) | order.astype(np.uint64)
    out = np.zeros((2 * n, item), np.uint8)
    words = moved(
        source=x.ctypes.data, target=out.ctypes.data, item=item, step=item, to_step=2 * item,
        records=records.ctypes.data,
    )  # fmt: skip
    moves.sort_move_some(words.ctypes.data, 5, 30)
    np.testing.assert_array_equal(out[10:60:2], x[order[5:30]])
    assert not out[:10].any() and not out[60:].any() and not out[11:60:2].any()


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_places_themselves(dtype: type) -> None:
    order = np.random.default_rng(1).permutation(30)
    records = (np.uint64(5) << np.uint64(32)) | order.astype(np.uint64)
    out = np.full(30, -1, dtype)
    size = out.itemsize
    words = moved(target=out.ctypes.data, item=size, to_step=size, records=records.ctypes.data)
    moves.sort_move_some(words.ctypes.data, 0, 30)
    assert out.tolist() == order.tolist()


def test_many_elements_by_several_threads() -> None:
    x = np.arange(5 * moves.GRAIN + 3, dtype=np.int32)
    out = np.zeros_like(x)
    moves.sort_copy(x.ctypes.data, 4, out.ctypes.data, 4, 4, len(x))
    np.testing.assert_array_equal(out, x)
