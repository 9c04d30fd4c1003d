"""Methods of arrays that need their values."""

import copy
import pickle

import numpy as np
import pytest

import calque
from calque import numpy as jnp
from calque.numpy.methods.concrete import CONCRETE
from tests.test_help import lacks

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_values_as_python_and_numpy_have_them():
    x = jnp.asarray(X)
    assert x.tolist() == X.tolist() and x.tobytes() == X.tobytes()
    assert x.tobytes("F") == X.tobytes("F") and x.item(1, 2) == 5.0 and x.item(4) == 4.0
    assert np.array_equal(np.asarray(x), X) and np.asarray(x, np.int8).dtype == np.int8
    assert float(x[0, 1]) == 1.0 and bool(x[0, 1]) and not bool(x[0, 0])


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_have_memory_of_their_own(copied):
    x = jnp.asarray(X)
    y = copied(x)
    assert np.array_equal(x, y) and x.unsafe_buffer_pointer() != y.unsafe_buffer_pointer()


def test_memory_that_was_given_back():
    x = jnp.asarray(X) + 1
    assert x.is_ready() and not x.is_deleted() and x.on_device_size_in_bytes() == X.nbytes
    x.delete()
    assert x.is_deleted()
    for use in (x.block_until_ready, x.copy_to_host_async, x.is_ready, x.tolist):
        with pytest.raises(RuntimeError, match="deleted"):
            use()


def test_every_method_is_explained_where_help_looks():
    for name, method in CONCRETE.items():
        if not name.startswith("_"):
            assert getattr(calque.Array, name) is method and not lacks(method), name
