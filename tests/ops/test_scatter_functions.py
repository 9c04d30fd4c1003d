"""Scatters as users call them."""

import numpy as np
import pytest

import calque
from calque import lax
from calque.ops import scatter_functions
from calque.ops.dimension_numbers import ScatterDimensionNumbers
from tests.ops import peer
from tests.ops.helpers import check_fun_jvp, run, same, values

DN = ScatterDimensionNumbers
ROWS = DN((), (0,), (0,))
X = values("float32", (4, 3, 5))


def test_scatter_apply():
    x, rows = X[0], DN((1,), (0,), (0,))
    indices = np.array([[1], [2], [1], [9]], "int32")

    def fun(x, i):
        return scatter_functions.scatter_apply(
            x, i, lambda v: peer.ours.mul(v, 2.0), rows, update_shape=(4, 5)
        )

    want = x.copy()
    want[1] *= 4
    want[2] *= 2
    same(run(fun, x, indices)[0], want)

    def reshaped(v):
        return peer.ours.reshape(peer.ours.broadcast(peer.ours.mul(v, 2.0), (1,)), ())

    same(
        run(
            lambda x, i: scatter_functions.scatter_apply(x, i, reshaped, rows, update_shape=(4, 5)),
            x,
            indices,
        )[0],
        want,
    )
    with pytest.raises(NotImplementedError, match="no derivative"):
        check_fun_jvp(lambda x: fun(x, indices), x.astype("float64"))


@pytest.mark.parametrize(
    "name, at",
    [
        ("scatter_add", np.add.at),
        ("scatter_sub", np.subtract.at),
        ("scatter_mul", np.multiply.at),
        ("scatter_min", np.minimum.at),
        ("scatter_max", np.maximum.at),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "int8", "complex64"])
def test_every_update_counts_as_in_numpy(name, at, dtype):
    if dtype == "complex64" and name in ("scatter_min", "scatter_max"):
        pytest.skip("complex numbers have no order in which JAX and NumPy agree")
    x, updates = values(dtype, (6,)), values(dtype, (5,), seed=1)
    where = np.array([[1], [4], [1], [0], [9]])
    want = x.copy()
    at(want, where[:4, 0], updates[:4])  # the last lies outside
    got = getattr(lax, name)(x, where, updates, ROWS)
    np.testing.assert_allclose(got, want, rtol=1e-6)
    assert getattr(lax, name).__name__ == name and got.dtype == dtype


def test_modes_of_what_lies_outside():
    x, updates = np.zeros(3, np.float32), np.float32([1, 2, 3])
    where = np.array([[-1], [1], [7]])
    assert lax.scatter_add(x, where, updates, ROWS, mode="clip").tolist() == [1, 2, 3]
    assert lax.scatter_add(x, where, updates, ROWS, mode="drop").tolist() == [0, 2, 0]
    with pytest.raises(ValueError, match="Unknown gather mode"):
        lax.scatter(x, where, updates, ROWS, mode="wrap")


def test_the_last_of_several_updates_remains():
    got = lax.scatter(np.zeros(3), np.array([[1], [1], [0]]), np.array([5.0, 6.0, 7.0]), ROWS)
    assert got.tolist() == [7, 6, 0]


@pytest.mark.parametrize(
    "f, error, words",
    [
        (lambda v: v > 0, TypeError, r"must give f32\[\], it gives bool\[\]"),
        (lambda v: lax.broadcast(v, (2,)), TypeError, r"it gives f32\[2\]"),
    ],
)
def test_functions_of_scatter_apply(f, error, words):
    with pytest.raises(error, match=words):
        lax.scatter_apply(X[:, 0, 0], np.array([[1]]), f, ROWS, update_shape=(1,))


def test_scatter_apply_takes_no_traced_value_from_outside():
    def outer(x, s):
        return lax.scatter_apply(x, np.array([[1]]), lambda v: v * s, ROWS, update_shape=(1,))

    with pytest.raises(NotImplementedError, match="traced value from outside"):
        calque.jit(outer)(X[:, 0, 0], 2.0)
    assert outer(np.ones(2, np.float32), np.float32(3)).tolist() == [1, 3]
