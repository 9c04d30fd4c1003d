"""Uniform values: bounds, dtypes, and that they fill their range evenly."""

import importlib

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import random

KEY = random.key(0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_floats_stay_in_their_range(dtype):
    x = random.uniform(KEY, (20_000,), dtype, -2.0, 3.0)
    v = np.asarray(x.astype(jnp.float32))
    assert x.dtype == jnp.dtype(dtype) and v.min() >= -2 and v.max() <= 3
    counts, _ = np.histogram(v, 10, (-2, 3))
    assert abs(counts / 20_000 - 0.1).max() < 0.02


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32"])
def test_integers_take_every_value(dtype):
    x = np.asarray(random.randint(KEY, (2000,), 3, 11, dtype))
    assert x.dtype == np.dtype(dtype) and sorted(set(x.tolist())) == list(range(3, 11))
    assert (
        np.asarray(random.randint(KEY, (50,), 5, 5, dtype)).tolist() == [5] * 50
    )  # an empty range


def test_bounds_broadcast():
    low, high = jnp.array([[0.0], [10.0]]), jnp.array([1.0, 2.0, 3.0])
    x = np.asarray(random.uniform(KEY, (2, 3), minval=low, maxval=low + high))
    assert (x >= np.asarray(low)).all() and (x < np.asarray(low + high)).all()
    n = np.asarray(random.randint(KEY, (2, 3), jnp.array([[0], [100]]), jnp.array([1, 2, 3]) + 100))
    assert (n[1] >= 100).all()


def test_the_same_key_gives_the_same_values():
    a, b = random.uniform(KEY, (5,)), calque.jit(lambda k: random.uniform(k, (5,)))(KEY)
    assert a.tolist() == b.tolist() != random.uniform(random.key(1), (5,)).tolist()


@pytest.mark.parametrize(
    "call",
    [
        lambda: random.uniform(KEY, (2,), "int32"),
        lambda: random.randint(KEY, (2,), 0, 5, "float32"),
        lambda: random.uniform(KEY, (2,), minval=jnp.zeros(3)),
        lambda: random.uniform(3.0, (2,)),
    ],
)
def test_bad_arguments(call):
    with pytest.raises((TypeError, ValueError)):
        call()


def test_numbers_of_64_bits_are_cut_to_the_digits_of_float32(monkeypatch):
    words = (
        [0, 0, 0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32 - 1, 0x12345678],
        [*(1, 2**32 - 1, 2**31, 0, 2**32 - 1, 0, 2**32 - 1, 0, 0x9ABCDEF0)],
    )
    drawn = jnp.asarray(np.array(words, np.uint32))
    part = importlib.import_module("calque.random.uniform")
    monkeypatch.setattr(part, "random_bits", lambda *_: drawn)
    found, beyond = part.fine_uniforms(random.key(0), (9,))
    for high, low, v, b in zip(*words, found.tolist(), beyond.tolist(), strict=True):
        number = high << 32 | low
        assert b == (number >= 2**63)
        exact = 2**64 - number if b else number
        cut = max(0, exact.bit_length() - 24)
        assert v == (exact >> cut << cut) / 2**64


@pytest.mark.parametrize(("dtype", "low", "high"), [("int4", -8, 7), ("uint4", 0, 15)])
def test_integers_of_four_bits(dtype, low, high):
    x = random.randint(random.key(1), (400,), -100, 100, dtype)
    assert x.dtype == dtype
    assert sorted(set(np.asarray(x).astype(int).tolist())) == list(range(low, high + 1))


def test_every_number_of_a_dtype_is_drawn_where_the_bound_is_beyond_it():
    with calque.enable_x64(True):
        x = np.asarray(random.randint(KEY, (1000,), 0, 2**32, "uint32"))
        y = np.asarray(random.randint(KEY, (1000,), -(2**31), 2**31, "int32"))
    for v, middle in ((x.astype(float), 2**31), (y.astype(float), 0)):
        assert 400 < (v > middle).sum() < 600 and np.ptp(v) > 2**31.9


@pytest.mark.parametrize("bound", [1e20, float("inf"), np.float32(1e20), 5e9])
def test_bounds_beyond_every_integer_are_the_largest_one(bound):
    x = np.asarray(random.randint(KEY, (500,), 0, bound, "int32"))
    assert x.min() >= 0 and x.max() > 2**30
    assert random.randint(KEY, (2,), 0, float("nan"), "int32").tolist() == [0, 0]
