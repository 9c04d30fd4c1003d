"""Containers of the user's that take arrays alone: nothing makes one of anything else."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax, tree_util


class Strict:
    def __init__(self, x):
        assert hasattr(x, "ndim") and hasattr(x, "dtype"), type(x)
        self.x = x


tree_util.register_pytree_node(Strict, lambda s: ((s.x,), None), lambda _, parts: Strict(parts[0]))

X = Strict(jnp.arange(3.0))


def twice(s):
    return Strict(2 * s.x)


def custom(s):
    f = calque.custom_vjp(lambda s: s)
    f.defvjp(lambda s: (f(s), None), lambda _, ct: (twice(ct),))
    return calque.grad(lambda s: f(s).x.sum())(s)


CALLS = {
    "jit": (lambda: [calque.jit(twice)(X) for _ in range(3)][2], 2 * X.x),
    "nested": (lambda: calque.jit(lambda s: {"a": twice(s)})(X)["a"], 2 * X.x),
    "lowered": (lambda: calque.jit(twice).lower(X).compile()(X), 2 * X.x),
    "grad": (lambda: calque.grad(lambda s: (s.x**2).sum())(X), 2 * X.x),
    "vjp": (lambda: calque.vjp(twice, X)[1](X)[0], 2 * X.x),
    "linearize": (lambda: calque.linearize(twice, X)[1](X), 2 * X.x),
    "vmap": (lambda: calque.vmap(twice)(X), 2 * X.x),
    "scan": (lambda: lax.scan(lambda c, _: (twice(c), c), X, None, length=2)[0], 4 * X.x),
    "rows": (lambda: lax.scan(lambda c, row: (c, twice(row)), 0.0, X)[1], 2 * X.x),
    "while": (lambda: lax.while_loop(lambda c: c.x[1] < 4, twice, X), 4 * X.x),
    "fori": (lambda: lax.fori_loop(0, 3, lambda _, c: twice(c), X), 8 * X.x),
    "cond": (lambda: lax.cond(True, twice, lambda s: s, X), 2 * X.x),
    "map": (lambda: lax.map(twice, X), 2 * X.x),
    "custom_vjp": (lambda: custom(X), 2 * jnp.ones(3)),
}


@pytest.mark.parametrize("name", CALLS)
def test_transformations_and_loops(name):
    call, expected = CALLS[name]
    np.testing.assert_array_equal(call().x, expected)


def test_what_is_wrong_is_told_all_the_same():
    with pytest.raises(TypeError, match=r"has type float32\[3\].* has type int32\[3\]"):
        lax.scan(lambda c, _: (Strict(c.x.astype(int)), None), X, None, length=2)
    with pytest.raises(TypeError, match="same pytree structure"):
        lax.scan(lambda c, _: ((c,), None), X, None, length=2)
