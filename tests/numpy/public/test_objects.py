"""The universal functions that are objects."""

import inspect

import numpy as np
import pytest

import calque.numpy as jnp
from calque.numpy.public import objects


@pytest.mark.parametrize("name", objects.__all__)
def test_objects_show_their_operands_and_their_help(name: str) -> None:
    f = getattr(jnp, name)
    operands = "x" if name == "negative" else "x1"
    assert next(iter(inspect.signature(f).parameters)) == operands
    assert isinstance(f, jnp.ufunc) and f.nin == (1 if name == "negative" else 2)
    assert "out, where: must be None" in f.__doc__


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
def test_the_dtype_of_a_fold_is_not_ignored(name: str) -> None:
    x = np.array([1, 2, 0])
    out = getattr(jnp, name).reduce(x, dtype=int)
    assert out.dtype == np.dtype("int32") and out == getattr(np, name).reduce(x)
