"""Methods that arrays and tracers share: attached to both, explained where help looks."""

import inspect

import numpy as np
import pytest

import calque
from calque import numpy as jnp
from calque.numpy.methods import METHODS
from tests.test_help import lacks

X = np.array([[3, 1, 2], [0, 5, 4]], np.int32)
OWN = ["astype", "reshape", "transpose", "nonzero", "view", "copy", "compress", "choose",
       "argpartition", "byteswap"]  # fmt: skip


@pytest.mark.parametrize("name", OWN)
def test_own_methods_are_explained_where_help_looks(name):
    assert not lacks(METHODS[name])
    assert inspect.getdoc(getattr(calque.Array, name)) == inspect.getdoc(METHODS[name])
    assert getattr(jnp.ones(2), name).__doc__ == METHODS[name].__doc__


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.reshape(3, -1),
        lambda x: x.reshape((2, 3)),
        lambda x: x.transpose(),
        lambda x: x.transpose(1, 0),
        lambda x: x.astype(np.int8),
        lambda x: x.astype(bool),
        lambda x: x.copy(),
        lambda x: x.view(np.float32),
        lambda x: x.byteswap(),
        lambda x: x.compress(np.array([False, True]), axis=0),
        lambda x: x[0].argpartition(1)[1],
        lambda x: x[1, ::2],
        lambda x: len(x),
        lambda x: [row.sum() for row in x],
    ],
)
def test_methods_give_what_numpy_gives(f):
    assert np.array_equal(f(jnp.asarray(X)), f(X))
    assert np.array_equal(calque.jit(f)(jnp.asarray(X)), f(X))


def test_methods_that_only_explain_what_to_write():
    x = jnp.asarray(X)
    with pytest.raises(TypeError, match=r"x.at\[idx\].set"):
        x[0] = 1
    with pytest.raises(TypeError, match=r"jnp\.delete"):
        del x[0]
    with pytest.raises(TypeError, match="as a key"):
        hash(x)
    assert 3 in x[0] and 9 not in x[0]
