"""Rows of two to four elements, written lane after lane by one store."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.machine.code.target import describe
from tests.native.emit.test_pairs import text_of

DTYPES = ["float32", "float64", "int8", "uint16", "bool", "complex64", "complex128", "float16"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("row", [2, 3, 4, 5])
@pytest.mark.parametrize("length", [1, 7, 8, 17, 64, 1001])
def test_rows(row, length, dtype):
    rng = np.random.default_rng(0)
    with calque.enable_x64(True):
        x = (rng.normal(size=(2, row, length)) * 40).astype(dtype)
        turned = calque.jit(lambda x: x.transpose(0, 2, 1))
        np.testing.assert_array_equal(turned(x), x.transpose(0, 2, 1))
        back = calque.jit(lambda x: x.transpose(0, 2, 1))
        np.testing.assert_array_equal(back(turned(x)), x)


@pytest.mark.parametrize("row", [2, 3, 4])
def test_one_store_for_all_rows(row):
    x = np.ones((row, 100), np.float32)
    text = text_of(lambda x: x.T, x).partition("define")[2]
    lanes = describe().vector_bytes // 4
    before, store, _ = text.partition(f"store <{lanes * row} x float>")
    assert store and "scatter" not in before  # what is less than a vector comes behind


def test_stacked_columns():
    """Not from one array: what is computed for each place of a row."""
    x, y, z = np.random.default_rng(0).normal(size=(3, 500)).astype(np.float32)
    f = calque.jit(lambda *xs: jnp.stack([xs[0] * 2, xs[1] + xs[2], xs[2]], -1))
    np.testing.assert_array_equal(f(x, y, z), np.stack([x * 2, y + z, z], -1))


@pytest.mark.parametrize("times", [2, 3, 4])
def test_repeated_columns(times):
    x = np.random.default_rng(0).normal(size=(5, 70)).astype(np.float32)
    text = text_of(lambda x: jnp.repeat(x, times, 1), x).partition("define")[2]
    assert f"store <{describe().vector_bytes // 4 * times} x float>" in text
    got = calque.jit(lambda x: jnp.repeat(x, times, 1) + 1)(x)
    np.testing.assert_array_equal(got, np.repeat(x, times, 1) + 1)
