import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import ds

X = np.arange(24).reshape(4, 6)


def test_reading():
    f = calque.jit(
        lambda x, i: (
            x[ds(i, 2)],
            x[:, ds(i, 3, 2)],
            x[ds(i, 2), ds(i, 2)],
            x[ds(2)],
            x[ds(1, 2), 0],
            x[ds(None)],
        )
    )
    want = X[1:3], X[:, 1:7:2], X[1:3, 1:3], X[:2], X[1:3, 0], X
    for g, w in zip(f(X, 1), want):
        np.testing.assert_array_equal(g, w)
    np.testing.assert_array_equal(jnp.array(X)[2, ds(jnp.int32(3), 2)], X[2, 3:5])
    assert jnp.array(X)[ds(jnp.int32(0), 0)].shape == (0, 6)


def test_writing_and_derivatives():
    out = calque.jit(lambda x, i: x.at[ds(i, 2)].set(7))(jnp.arange(5), 2)
    assert out.tolist() == [0, 1, 7, 7, 4]
    grad = calque.grad(lambda x, i: (x[ds(i, 2)] ** 2).sum())(jnp.arange(5.0), jnp.int32(1))
    assert grad.tolist() == [0, 2, 4, 0, 0]


def test_refuses():
    with pytest.raises(TypeError, match="ds: the size must be known"):
        calque.jit(lambda x, i: x[ds(0, i)])(X, 2)
    with pytest.raises(NotImplementedError, match="index in two steps"):
        calque.jit(lambda x, i: jnp.zeros((2, 3, 4))[ds(i, 2), :, 0])(X, 0)
    with pytest.raises(ValueError, match="stride must be positive"):
        ds(0, 2, -1)
    with pytest.raises(ValueError, match="size must not be negative"):
        ds(0, -2)
