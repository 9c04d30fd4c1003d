"""Updates at a traced mask, against NumPy."""

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp

X = np.arange(12, dtype=np.float32).reshape(4, 3)
ROWS = np.array([True, False, True, False])
WHOLE = X % 2 == 0


@pytest.mark.parametrize("mask", [ROWS, WHOLE, ~WHOLE & False], ids=["rows", "whole", "none"])
@pytest.mark.parametrize("values", [-1.0, "each", "row"])
def test_set_and_add(mask, values):
    if values == "each":
        v = 100 + np.arange(X[mask].size, dtype=np.float32).reshape(X[mask].shape)
    else:
        v = (
            np.float32(-1.0)
            if values == -1.0 or mask.ndim == 2
            else np.array([7, 8, 9], np.float32)
        )
    want_set, want_add = X.copy(), X.copy()
    want_set[mask] = v
    want_add[mask] += v
    got = jax.jit(lambda x, m, v: (x.at[m].set(v), x.at[m].add(v), x.at[m,].max(v)))(X, mask, v)
    np.testing.assert_array_equal(got[0], want_set)
    np.testing.assert_array_equal(got[1], want_add)
    np.testing.assert_array_equal(got[2][~mask], X[~mask])


def test_the_other_updates():
    def f(x, m):
        return (
            x.at[m].multiply(2),
            x.at[m].apply(jnp.sin),
            x.at[m].divide(4),
            x.at[m].power(2),
            x.at[m].min(1.0),
        )

    for got, op in zip(
        jax.jit(f)(X, WHOLE),
        (lambda x: x * 2, np.sin, lambda x: x / 4, lambda x: x**2, lambda x: np.minimum(x, 1)),
    ):
        np.testing.assert_allclose(got, np.where(WHOLE, op(X), X), rtol=1e-6)


def test_gradients_and_vmap():
    g = jax.jit(jax.grad(lambda x, m: (x.at[m].set(0.0) ** 2).sum()))
    np.testing.assert_array_equal(g(X, WHOLE), np.where(WHOLE, 0, 2 * X))
    rows = jax.vmap(lambda x, m: x.at[m].set(5.0))(jnp.asarray(X), jnp.asarray(WHOLE))
    np.testing.assert_array_equal(rows, np.where(WHOLE, 5, X))


def test_a_wrong_number_of_values():
    f = jax.jit(lambda x, m, v: x.at[m].set(v))
    with pytest.raises(ValueError, match="3 values were given for 2 places"):
        f(np.arange(4.0), ROWS, np.ones(3))
    with pytest.raises(ValueError, match="do not fit the masked part"):
        f(np.arange(4.0), ROWS, np.ones((2, 2)))


def test_a_mask_of_another_shape():
    with pytest.raises(IndexError, match="did not match shape"):
        jax.jit(lambda x, m: x.at[m].set(0.0))(X, np.ones((3,), bool))
