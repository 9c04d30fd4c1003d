"""Bit operations against Python's integers."""

import ml_dtypes
import numpy as np
import pytest

from calque.core.primitives import REGISTRY
from calque.ops import bits as B
from tests.ops.helpers import call, check_batch, check_peer, same, specials, traced, values, x64

DTYPES = ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"]


def pairs(dtype):
    s = specials(dtype)
    return np.repeat(s, len(s)), np.tile(s, len(s))


def wrapped(n, dtype):
    width = 8 * np.dtype(dtype).itemsize
    n %= 2**width
    return n - 2**width if np.dtype(dtype).kind == "i" and n >= 2 ** (width - 1) else n


PYTHON = {
    "and": lambda a, b, w: a & b,
    "or": lambda a, b, w: a | b,
    "xor": lambda a, b, w: a ^ b,
    "shift_left": lambda a, b, w: a << b % 2**w if b % 2**w < w else 0,
    "shift_right_logical": lambda a, b, w: a % 2**w >> b % 2**w if b % 2**w < w else 0,
    "shift_right_arithmetic": lambda a, b, w: (
        (a if a % 2**w < 2 ** (w - 1) else a % 2**w - 2**w) >> min(b % 2**w, w - 1)
    ),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PYTHON)
def test_binary(name, dtype):
    x, y = pairs(dtype)
    width = 8 * x.itemsize
    want = [wrapped(PYTHON[name](int(a), int(b), width), dtype) for a, b in zip(x, y)]
    with x64():
        same(call(REGISTRY[name], x, y)[0], np.array(want, object).astype(dtype))
        same(
            call(REGISTRY[name], x, y[3])[0],
            np.array(
                [wrapped(PYTHON[name](int(a), int(y[3]), width), dtype) for a in x], object
            ).astype(dtype),
        )


@pytest.mark.parametrize("dtype", DTYPES)
def test_unary(dtype):
    x = specials(dtype)
    width = 8 * x.itemsize
    with x64():
        same(call(B.not_p, x)[0], ~x)
        same(
            call(B.population_count_p, x)[0],
            np.array([(int(v) % 2**width).bit_count() for v in x], dtype),
        )
        same(
            call(B.clz_p, x)[0],
            np.array([width - (int(v) % 2**width).bit_length() for v in x], dtype),
        )


def test_booleans():
    p, q = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    same(call(B.and_p, p, q)[0], p & q)
    same(call(B.or_p, p, q)[0], p | q)
    same(call(B.xor_p, p, q)[0], p ^ q)
    same(call(B.not_p, p)[0], ~p)


def test_four_bit_integers():
    x, y = np.array([7, -8, 3], ml_dtypes.int4), np.array([1, 2, 5], ml_dtypes.int4)
    assert call(B.and_p, x, y)[0].astype(int).tolist() == [1, 0, 1]
    assert call(B.shift_left_p, x, y)[0].astype(int).tolist() == [-2, 0, 0]
    assert call(B.clz_p, x)[0].astype(int).tolist() == [1, 0, 2]
    assert call(B.not_p, x)[0].astype(int).tolist() == [-8, 7, -4]


@pytest.mark.parametrize("name", [*PYTHON, "not", "population_count", "clz"])
def test_batch(name):
    args = [values("int32", (3,), 0, 9, seed=i) for i in range(2 if name in PYTHON else 1)]
    check_batch(REGISTRY[name], *args)


def test_floats_are_refused():
    with pytest.raises(TypeError, match="and does not accept dtype float32 at position 0"):
        traced(B.bitwise_and, np.ones(2, np.float32), np.ones(2, np.float32))


@pytest.mark.peer
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32"])
def test_peer(dtype):
    x, y = pairs(dtype)
    for name in (
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "shift_left",
        "shift_right_logical",
        "shift_right_arithmetic",
    ):
        check_peer(name, x, y)
    for name in ("bitwise_not", "population_count", "clz"):
        check_peer(name, x)
