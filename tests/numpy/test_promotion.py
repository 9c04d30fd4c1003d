"""What the settings for promotion forbid: operations that the user asks for, in any way; not what
the library does for its own ends."""

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp

X, Y = jnp.ones((2, 3)), jnp.ones(3)

ASKED = {
    "operator": lambda: X - Y,
    "reflected operator": lambda: np.ones(3, np.float32) - X,
    "function": lambda: jnp.arctan2(X, Y),
    "ufunc": lambda: jnp.subtract(X, Y),
    "clip": lambda: jnp.clip(X, Y, 2 * Y),
    "inside jit": lambda: jax.jit(lambda x, y: x * y)(X, Y),
    "inside grad": lambda: jax.grad(lambda x: (x * Y).sum())(X),
    "inside a loop": lambda: jax.lax.fori_loop(0, 2, lambda i, x: x + Y, X),
}
OWN = {
    "resize": lambda: jax.image.resize(X, (4, 4), "linear"),
    "var": lambda: jnp.var(X, axis=1),
    "cov": lambda: jnp.cov(X),
    "vander": lambda: jnp.vander(Y),
    "softmax": lambda: jax.nn.softmax(X),
    "layer of jit": lambda: jax.jit(lambda x: jnp.std(x, axis=0))(X),
    "pad": lambda: jnp.pad(X, 1, mode="linear_ramp"),
    "interp": lambda: jnp.interp(X, Y, Y),
    "median": lambda: jnp.median(X, axis=0),
}


@pytest.mark.parametrize("name", ASKED)
def test_ranks_that_the_user_mixes(name):
    with jax.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank_promotion"):
        ASKED[name]()


@pytest.mark.parametrize("name", OWN)
def test_ranks_that_the_library_mixes(name):
    want = OWN[name]()
    with jax.numpy_rank_promotion("raise"):
        assert jnp.array_equal(OWN[name](), want)


def test_dtypes():
    i = jnp.arange(3)
    with jax.numpy_dtype_promotion("strict"):
        for mixed in (lambda: Y + i, lambda: jnp.add(Y, i), lambda: jnp.concatenate([Y, i])):
            with pytest.raises(jax.dtypes.TypePromotionError, match="int32"):
                mixed()
        assert (Y + 1).tolist() == [2, 2, 2]
        jnp.pad(X * 1j, 1, mode="linear_ramp")
        jnp.median(X)
        jax.image.resize(X, (4, 4), "cubic")
