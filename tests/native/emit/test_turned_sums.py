"""Sums of rows beside each other: what is read in squares has the bits of a row alone."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.machine.code.target import describe

LANES = describe().vector_bytes // 4


def rows_alone(f, x, v):
    """The same of every row by itself."""
    one = calque.jit(f, dynamic="never")
    return np.concatenate([np.asarray(one(row[None], v)) for row in x])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("m", [LANES, 2 * LANES, 3 * LANES + 1, 5 * LANES - 1])
def test_bits_of_rows(m, dtype):
    """Whole squares, what is left of rows and of columns, several rounds."""
    r = np.random.default_rng(m)
    with calque.enable_x64(dtype == "float64"):
        for k in (2 * LANES + 1, 3 * LANES + 5, 700, 1100):
            x, v = [(r.normal(size=s) * 9).astype(dtype) for s in ((m, k), (k, 1))]
            f = lambda x, v: jnp.maximum((x * 3) @ v, -7)  # noqa: E731
            got = np.asarray(calque.jit(f, dynamic="never")(x, v))
            assert got.tobytes() == rows_alone(f, x, v).tobytes()
            expected = np.maximum((x * 3) @ v, -7)
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


def test_squares_are_for_rows_that_lie_along_the_sum():
    x, v = np.ones((96, 200), "f"), np.ones((200, 1), "f")

    def squares(f, *args):
        return "read in squares" in calque.jit(f).lower(*args).compile().as_text("loops")

    assert squares(lambda x, v: x @ v, x, v)
    assert squares(lambda x, v: v.T @ x.T, x, v)
    assert not squares(lambda x, v: x.T @ v, np.ascontiguousarray(x.T), v)
    assert not squares(lambda x, v: x @ v, x[:3], v)
