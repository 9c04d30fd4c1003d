"""Attributes of arrays, traced ones included."""

import numpy as np
import pytest

import calque
from calque import numpy as jnp
from calque.numpy.methods.attributes import ATTRIBUTES

X = np.arange(6, dtype=np.complex64).reshape(2, 3) * (1 + 2j)


@pytest.mark.parametrize(
    "name", ["shape", "dtype", "ndim", "size", "itemsize", "nbytes", "T", "mT", "real", "imag"]
)
def test_attributes_are_those_of_numpy(name):
    expected = X.T if name == "mT" else getattr(X, name)
    assert np.array_equal(getattr(jnp.asarray(X), name), expected)
    seen = []
    calque.jit(lambda x: seen.append(getattr(x, name)))(X)
    if name not in ("T", "mT", "real", "imag"):
        assert seen == [expected]


def test_every_attribute_is_explained_where_help_looks():
    for name in ATTRIBUTES:
        assert getattr(calque.Array, name).__doc__, name
        assert getattr(type(jnp.ones(2)), name).__doc__, name


def test_there_is_no_flat_iterator():
    with pytest.raises(NotImplementedError, match=r"x\.flatten"):
        jnp.ones(2).flat
    assert jnp.asarray(1.0).weak_type and not jnp.ones(1).weak_type
