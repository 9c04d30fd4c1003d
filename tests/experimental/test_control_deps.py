"""The order of operations."""

import pytest

import calque
import calque.numpy as jnp
from calque.experimental.control_deps import control_dep, schedule


def test_it_takes_arrays():
    def f(x):
        y, z = x + 1, x + 2
        schedule([y, z, x])
        return y * z

    assert calque.jit(f)(1.0) == 6 and control_dep(jnp.ones(2), jnp.ones(2)) is None
    with pytest.raises(TypeError, match="takes arrays, got 3"):
        control_dep(3, jnp.ones(2))
