"""The functions of lax that slice, against NumPy, and what they refuse."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.ops import slicing_functions as S
from tests.ops.helpers import run, same, values

X = values("float64", (5, 4))


def test_functions():
    x = X.astype("float32")
    i = np.int32(-1)
    same(run(lambda x: S.slice_in_dim(x, -2, None, axis=-1), x)[0], x[:, -2:])
    same(run(lambda x: S.slice_in_dim(x, 0, -1, 2), x)[0], x[0:-1:2])
    same(run(lambda x: S.index_in_dim(x, -1, 1, keepdims=False), x)[0], x[:, -1])
    same(run(lambda x, i: S.dynamic_slice(x, (i, 0), (1, 4)), x, i)[0], x[-1:])
    same(
        run(lambda x, i: S.dynamic_slice(x, (i, 0), (1, 4), allow_negative_indices=False), x, i)[0],
        x[:1],
    )
    same(run(lambda x, i: S.dynamic_index_in_dim(x, i, 1, False), x, i)[0], x[:, -1])
    same(run(lambda x, i: S.dynamic_slice_in_dim(x, i, 2), x, i)[0], x[-2:])
    same(
        run(lambda x, v: S.dynamic_slice(x, v, (2, 2)), x, np.array([1, 2], "int16"))[0],
        x[1:3, 2:4],
    )
    want = x.copy()
    want[-1] = 1
    same(
        run(lambda x, i: S.dynamic_update_index_in_dim(x, np.ones(4, "float32"), i, 0), x, i)[0],
        want,
    )
    same(
        run(lambda x, i: S.dynamic_update_slice_in_dim(x, np.ones((1, 4), "float32"), i, 0), x, i)[
            0
        ],
        want,
    )


@pytest.mark.parametrize(
    ("fun", "words"),
    [
        (lambda x: S.slice(x, (0,), (1,)), "one start, limit"),
        (lambda x: S.slice(x, (0, 0), (6, 4)), "within"),
        (lambda x: S.slice(x, (3, 0), (2, 4)), "not beyond limit"),
        (lambda x: S.slice(x, (0, 0), (2, 4), (0, 1)), "strides must be positive"),
        (lambda x: S.index_in_dim(x, 5), "out of bounds"),
        (lambda x: S.dynamic_slice(x, (0, 0), (6, 1)), "slice sizes"),
        (lambda x: S.dynamic_slice(x, (0,), (1,)), "rank of the operand"),
        (lambda x: S.dynamic_slice(x, (np.float32(0), 0), (1, 1)), "type, got: float32, int32"),
        (lambda x: S.dynamic_update_slice(x, np.ones(3, "float32"), (0, 0)), "same rank"),
        (lambda x: S.dynamic_update_slice(x, np.ones((1, 1), "int32"), (0, 0)), "same dtype"),
        (lambda x: S.dynamic_update_index_in_dim(x, 1.0, 0, 0), "rank"),
    ],
)
def test_errors(fun, words):
    with pytest.raises((TypeError, ValueError, IndexError), match=words):
        run(fun, X.astype("float32"))


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_narrow_starts_count_from_the_end_of_axes_longer_than_they_reach(dtype):
    f = calque.jit(lambda x, i: lax.dynamic_slice(x, (i,), (2,)))
    put = calque.jit(lambda x, i: lax.dynamic_update_slice(x, x[:2], (i,)))
    for n in (300, 400, 70000):  # the sizes are free from the second on
        x = jnp.arange(n)
        i = jnp.array(-5, dtype)
        assert f(x, i).tolist() == [n - 5, n - 4] == lax.dynamic_slice(x, (i,), (2,)).tolist()
        assert put(x, i)[-5:-3].tolist() == [0, 1]
