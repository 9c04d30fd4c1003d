"""Metadata for XLA's passes."""

import pytest

import calque
import calque.numpy as jnp
from calque.experimental.xla_metadata import set_xla_metadata


def test_values_and_functions_stay_as_they_are():
    x = {"a": jnp.ones(2)}
    assert set_xla_metadata(x, kind=1) is x
    f = calque.jit(lambda x: x + 1)
    assert set_xla_metadata(kind="slow")(f) is f
    with set_xla_metadata(kind="slow", other=2):
        assert calque.grad(lambda x: set_xla_metadata(x * x, kind="square"))(3.0) == 6
    with pytest.raises(TypeError, match="expected a function"):
        set_xla_metadata(kind="slow")(3)
