"""Operators of arrays: each says what it does, and gives what NumPy gives."""

import operator

import numpy as np
import pytest

import calque
from calque import numpy as jnp
from calque.numpy.methods.operators import operators

X, Y = np.array([7, -7, 5], np.int32), np.array([2, 3, -4], np.int32)


@pytest.mark.parametrize(
    "f",
    [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.and_,
     operator.or_, operator.xor, operator.eq, operator.ne, operator.lt, operator.le, operator.gt,
     operator.ge, operator.matmul],
)  # fmt: skip
def test_operators_of_two(f):
    for left, right in ((jnp.asarray(X), Y), (X, jnp.asarray(Y)), (jnp.asarray(X), jnp.asarray(Y))):
        assert np.array_equal(f(left, right), f(X, Y))
        assert np.array_equal(calque.jit(f)(left, right), f(X, Y))


@pytest.mark.parametrize("f", [operator.neg, operator.pos, operator.abs, operator.invert])
def test_operators_of_one(f):
    assert np.array_equal(f(jnp.asarray(X)), f(X))


def test_divmod_gives_two():
    for found, expected in zip(divmod(jnp.asarray(X), Y), divmod(X, Y), strict=True):
        assert np.array_equal(found, expected)


def test_each_operator_shows_how_it_is_written():
    for name, method in operators().items():
        assert f"{method.__doc__}".startswith("`"), name
        assert getattr(calque.Array, name).__doc__ == method.__doc__
    assert operators()["__radd__"].__doc__.startswith("`other + x`: the sum.")


def test_containers_are_refused():
    with pytest.raises(TypeError, match=r"convert the list with jnp\.array first"):
        jnp.ones(2) + [1, 2]
    with pytest.raises(TypeError, match="a dict holds no array"):
        {} + jnp.ones(2)


class Handing:
    """Holds an array and hands on what it is asked for."""

    def __init__(self, held):
        self.held = held

    def __getattr__(self, name):
        return getattr(self.held, name)

    def __len__(self):
        return len(self.held)

    def __getitem__(self, i):
        return self.held[i]

    def __radd__(self, other):
        return "mine", other

    def __rmatmul__(self, other):
        return "mine", other


@pytest.mark.parametrize("held", [2, jnp.asarray(X)])
def test_what_hands_on_the_attributes_of_an_array_keeps_its_own_operators(held):
    x = jnp.asarray(X)
    for f in (operator.add, operator.matmul):
        whose, array = f(x, Handing(held))
        assert whose == "mine" and array is x
    with pytest.raises(TypeError):
        x - Handing(held)
