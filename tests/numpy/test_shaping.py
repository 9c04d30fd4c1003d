"""Arrays in other shapes, held against NumPy."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

CALLS = [
    ("reshape", (X, (4, -1))),
    ("reshape", (X, (6, 4), "F")),
    ("ravel", (X,)),
    ("transpose", (X, (2, 0, 1))),
    ("swapaxes", (X, 0, -1)),
    ("moveaxis", (X, (0, 1), (-1, 0))),
    ("expand_dims", (X, (0, -1))),
    ("squeeze", (X[:1, :, :1],)),
    ("squeeze", (X[:1, :, :1], 0)),
    ("broadcast_to", (X[0], (5, 3, 4))),
    ("where", (X > 5, X, -X)),
    ("clip", (X, 3, 7)),
]


@pytest.mark.parametrize("name, args", [c for c in CALLS if hasattr(jnp, c[0])])
def test_as_numpy(name, args):
    want = getattr(np, name)(*args)
    got = getattr(jnp, name)(*args)
    assert got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(
        calque.jit(lambda x: getattr(jnp, name)(x, *args[1:]))(args[0]), want
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda: jnp.reshape(X, (5, 5)),
        lambda: jnp.reshape(X, (-1, -1)),
        lambda: jnp.transpose(X, (0, 1)),
        lambda: jnp.transpose(X, (0, 0, 1)),
        lambda: jnp.squeeze(X, 1),
        lambda: jnp.moveaxis(X, 3, 0),
        lambda: jnp.expand_dims(X, 9),
        lambda: jnp.broadcast_to(X, (3, 4)),
        lambda: jnp.where(X > 1, X),
    ],
)
def test_what_does_not_fit(call):
    with pytest.raises((ValueError, TypeError)):
        call()


@pytest.mark.parametrize(
    "call", [lambda: jnp.ravel(X, order="K"), lambda: jnp.reshape(X, -1, order="A")]
)
def test_orders_that_arrays_do_not_have(call):
    with pytest.raises(NotImplementedError, match="arrays have no order of their own"):
        call()


def test_gradients_go_where_elements_went():
    g = calque.grad(lambda x: (jnp.moveaxis(x, 0, -1) * X.transpose(1, 2, 0)).sum())(X)
    np.testing.assert_array_equal(g, X)


def test_axes_may_be_ranges():
    x = jnp.ones((2, 3))
    assert jnp.expand_dims(x, range(2)).shape == (1, 1, 2, 3)
    assert jnp.squeeze(jnp.expand_dims(x, 0), range(1)).shape == (2, 3)
    assert jnp.sum(x, range(2)) == 6 and jnp.flip(x, range(2)).shape == (2, 3)
    assert jnp.roll(x, (1, 1), range(2)).shape == (2, 3)
    assert jnp.moveaxis(x, range(2), (1, 0)).shape == (3, 2)
