"""Values of classes that vmap maps over as a whole."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.interpreters import batching


class Sparse:
    """Numbers at some places: the batch dimension is that of the numbers alone."""

    def __init__(self, places, numbers):
        self.places, self.numbers = places, numbers


class Along:
    """Which dimension of the numbers is mapped."""

    def __init__(self, axis):
        self.axis = axis


def element(cont, i, x, spec):
    return Sparse(x.places, cont(x.numbers, spec.axis))


def whole(cont, size, x, spec):
    return Sparse(x.places, cont(size, x.numbers, spec.axis))


@pytest.fixture(name="sparse", autouse=True)
def _sparse():
    batching.register_vmappable(Sparse, Along, int, element, whole, None)
    yield
    batching.unregister_vmappable(Sparse)


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_elements_and_wholes():
    def f(x, y):
        return {"sum": x.numbers.sum() + y, "twice": Sparse(x.places, 2 * x.numbers)}

    mapped = calque.vmap(f, (Along(0), 0), {"sum": 0, "twice": Along(1)})
    out = mapped(Sparse((4, 5, 9), X), jnp.arange(2.0))
    np.testing.assert_array_equal(out["sum"], X.sum(1) + np.arange(2))
    np.testing.assert_array_equal(out["twice"].numbers, 2 * X.T)
    assert out["twice"].places == (4, 5, 9)
    nested = calque.vmap(
        calque.vmap(lambda x: x, Along(0), Along(0), axis_size=3), Along(0), Along(0), axis_size=2
    )
    np.testing.assert_array_equal(nested(Sparse((), X)).numbers, X)


def test_under_other_transformations():
    @calque.jit
    def f(x):
        g = calque.vmap(lambda s: (s.numbers**2).sum(), Along(0), axis_size=2)
        return g(Sparse(None, x)).sum()

    np.testing.assert_array_equal(calque.grad(f)(X), 2 * X)


def test_what_is_missing_or_wrong():
    x = Sparse(None, X)
    with pytest.raises(ValueError, match="give axis_size"):
        calque.vmap(lambda s: s, Along(0), Along(0))(x)
    with pytest.raises(ValueError, match="mapped output but out_axes is None"):
        calque.vmap(lambda s: s.numbers, Along(0), None, axis_size=2)(x)
    with pytest.raises(ValueError, match="tree prefix"):
        calque.vmap(lambda s: s, ((Along(0), 0),), axis_size=2)(x)
    with pytest.raises(ValueError, match="registered already"):
        batching.register_vmappable(Sparse, Along, int, element, whole, None)
    with pytest.raises(NotImplementedError, match="make_iota"):
        batching.register_vmappable(Along, Along, int, element, whole, np.arange)
