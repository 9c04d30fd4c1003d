"""Keys order as elements do, and elements come back from them."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from calque.machine.routines.sort import keys
from calque.machine.routines.sort.keys import KeyKind

INFINITY = {"f2": 0x7C00, "bf16": 0x7F80, "f4": 0x7F800000, "f8": 0x7FF0000000000000}
ALL_BITS = -1


def words(kind: int, data: np.ndarray, mask: int = 0, infinity: int = 0, table: Any = None) -> Any:
    """The description of a key."""
    where = 0 if table is None else table.ctypes.data
    key = [data.ctypes.data, data.itemsize, 0, kind, mask, infinity, where]
    return np.array([k - (1 << 64) if k >= 1 << 63 else k for k in key], np.int64)


def made(kind: int, x: np.ndarray, **more: Any) -> tuple[np.ndarray, bool]:
    """The keys of elements, and whether they tell less than these."""
    wide = kind in keys.WIDE
    out = np.zeros(len(x) + 1, np.uint64 if wide else np.uint32)
    out[-1] = 77
    key = words(kind, x, **more)
    row = np.array([key.ctypes.data, x.ctypes.data, out.ctypes.data, 0], np.int64)
    keys.keys_load(row.ctypes.data, 0, len(x))
    assert out[-1] == 77
    for k in (0, len(x) // 2, len(x) - 1):  # one by one they are the same
        place = x.ctypes.data + k * x.itemsize
        one = keys.key_at(key.ctypes.data, place)
        assert one % (1 << 64 if wide else 1 << 32) == int(out[k])
    return out[:-1], bool(row[3])


def stored(kind: int, of: np.ndarray, like: np.ndarray, **more: Any) -> np.ndarray:
    back = np.zeros_like(like)
    key = words(kind, back, **more)
    row = np.array([key.ctypes.data, back.ctypes.data, of.ctypes.data, 0], np.int64)
    keys.keys_store(row.ctypes.data, 0, len(of))
    return back


INTEGERS = {
    "u2": (KeyKind.PLAIN_2, 0),
    "i2": (KeyKind.PLAIN_2, 1 << 15),
    "u4": (KeyKind.PLAIN_4, 0),
    "i4": (KeyKind.PLAIN_4, 1 << 31),
    "u8": (KeyKind.PLAIN_8, 0),
    "i8": (KeyKind.PLAIN_8, 1 << 63),
}


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("descending", [False, True])
def test_integers(dtype: str, descending: bool) -> None:
    kind, mask = INTEGERS[dtype]
    info = np.iinfo(dtype)
    if descending:
        mask ^= (1 << info.bits) - 1
    x = np.random.default_rng(0).integers(info.min, info.max, 300, dtype, endpoint=True)
    x = np.concatenate([x, np.array([info.min, info.max, 0, 1], dtype)])
    got, odd = made(kind, x, mask=mask)
    order = np.argsort(got, kind="stable")
    want = np.sort(x)[::-1] if descending else np.sort(x)
    np.testing.assert_array_equal(x[order], want)
    assert not odd and np.array_equal(stored(kind, got, x, mask=mask), x)


def floats(name: str) -> np.ndarray:
    special = [0.0, -0.0, np.inf, -np.inf, 1.5, -1.5, 1e-40, -1e-40, 3e4]
    x = np.concatenate([np.random.default_rng(1).normal(size=300) * 100, special])
    with np.errstate(all="ignore"):
        return x.astype(ml_dtypes.bfloat16 if name == "bf16" else name)


@pytest.mark.parametrize("name", INFINITY)
def test_floats(name: str) -> None:
    """Both zeros are one, every nan is the same and the greatest; both lose bits, which is said."""
    size = 2 if name == "bf16" else int(name[1])
    kind = KeyKind[f"FLOAT_{size}"]
    x = floats(name)
    got, odd = made(kind, x, infinity=INFINITY[name])
    order = np.argsort(got, kind="stable")
    np.testing.assert_array_equal(x[order].astype("f8"), np.sort(x.astype("f8")))
    assert odd  # of -0
    plain = x[x != 0]
    keys_of, lost = made(kind, plain, infinity=INFINITY[name])
    assert not lost
    bits = np.dtype(f"u{size}")
    np.testing.assert_array_equal(stored(kind, keys_of, plain).view(bits), plain.view(bits))
    top = 1 << (8 * size - 1)
    nans = np.array([INFINITY[name] + 1, top | INFINITY[name] | 3], bits)
    with np.errstate(invalid="ignore"):
        ranks, lost = made(kind, nans.view(x.dtype), infinity=INFINITY[name])
    assert lost and ranks[0] == ranks[1] > got.max()
    assert len(set(got[x == 0].tolist())) == 1


@pytest.mark.parametrize("name", ["f2", "f4", "f8"])
def test_the_total_order_of_floats(name: str) -> None:
    """-nan, -inf, ..., -0, 0, ..., inf, nan."""
    size = int(name[1])
    top, inf = 1 << (8 * size - 1), INFINITY[name]
    bits = [top | inf | 1, top | inf, top | 5, top, 0, 5, inf, inf | 1]
    x = np.array(bits, f"u{size}")
    got, odd = made(KeyKind[f"TOTAL_{size}"], x)
    assert not odd and (np.diff(got.astype(object)) > 0).all()


def test_bytes_have_a_table_of_ranks() -> None:
    table = np.random.default_rng(2).permutation(256).astype("u1")
    x = np.arange(256, dtype="u1")
    got, odd = made(KeyKind.TABLE, x, table=table)
    assert not odd and got.tolist() == table.tolist()


def test_descending_floats() -> None:
    x = floats("f4")
    got, _ = made(KeyKind.FLOAT_4, x, infinity=INFINITY["f4"], mask=(1 << 32) - 1)
    np.testing.assert_array_equal(x[np.argsort(got, kind="stable")], np.sort(x)[::-1])
