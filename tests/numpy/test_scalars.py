"""Dtypes as names of the namespace: called, they make arrays."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp


@pytest.mark.parametrize("name", ["float32", "int8", "uint16", "bfloat16", "complex64", "bool_"])
def test_a_dtype_makes_arrays(name):
    kind = getattr(jnp, name)
    x = kind([1, 0])
    assert x.dtype == kind and x.shape == (2,) and not x.weak_type
    assert jnp.zeros(2, kind).dtype == jnp.dtype(kind) == np.dtype(kind)
    assert calque.jit(lambda v: kind(v))(1).dtype == kind


def test_they_are_types_of_numpy_to_numpy():
    assert np.zeros(1, jnp.float32).dtype == np.float32
    assert jnp.float32 == np.float32
    assert jnp.issubdtype(jnp.float32, jnp.floating) and not jnp.issubdtype(jnp.int8, jnp.floating)


def test_wide_ones_need_the_flag():
    with calque.enable_x64(True):
        assert jnp.float64(1).dtype == np.dtype("float64")
    with pytest.warns(UserWarning, match="float64 is not available"):
        assert jnp.float64(1).dtype == np.dtype("float32")
