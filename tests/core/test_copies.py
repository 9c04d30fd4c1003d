"""Copies and pickles of what programs are made of."""

import copy
import pickle

import numpy as np
import pytest

import calque
import calque.numpy as jnp

WAYS = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "inside a container": lambda x: copy.deepcopy({"a": [x]})["a"][0],
}


@calque.jit
def tripled(x):
    return x * 3


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("shape", ((), (3,), (2, 2)))
@pytest.mark.parametrize("impl", ("threefry2x32", "rbg"))
def test_keys(way, shape, impl):
    keys = calque.random.split(calque.random.key(3, impl=impl), shape) if shape else None
    keys = calque.random.key(3, impl=impl) if keys is None else keys
    got = WAYS[way](keys)
    assert got.dtype == keys.dtype and got.shape == shape
    assert (calque.random.key_data(got) == calque.random.key_data(keys)).all()


@pytest.mark.parametrize("way", WAYS)
def test_arrays(way):
    for x in (jnp.arange(3), jnp.ones((2, 2), "bfloat16"), jnp.asarray(2.0)):
        got = WAYS[way](x)
        assert got.dtype == x.dtype and got.weak_type == x.weak_type
        np.testing.assert_array_equal(np.asarray(got), np.asarray(x))


@pytest.mark.parametrize("way", WAYS)
def test_jitted_functions(way):
    got = WAYS[way](tripled)
    assert got is tripled and float(got(2.0)) == 6


@pytest.mark.parametrize("transformed", (calque.jit, calque.grad, calque.vmap))
def test_copies_of_traced_values_are_the_values(transformed):
    def f(x):
        y = copy.deepcopy({"x": x})["x"]
        return (copy.copy(y) * 2).sum()

    x = jnp.ones(2) if transformed is calque.vmap else 3.0
    got = transformed(f)(x)
    assert np.asarray(got).max() == (6 if transformed is calque.jit else 2)
