"""Values of classes of other libraries as operands."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core import pytype_aval_mappings
from calque.interpreters.xla import canonicalize_dtype_handlers


class Held:
    """An array under another name."""

    def __init__(self, values):
        self.values = values


class More(Held):
    pass


@pytest.fixture(name="known")
def _known():
    canonicalize_dtype_handlers[Held] = lambda x: x.values
    yield
    del canonicalize_dtype_handlers[Held]


def test_classes_are_operands_when_they_are_registered(known):
    for x in (Held(np.arange(3.0)), More(jnp.arange(3.0))):
        np.testing.assert_allclose(jnp.sin(x), np.sin(np.arange(3)), rtol=1e-6)
        np.testing.assert_array_equal(jnp.ones(3) + x, [1, 2, 3])
        for _ in range(3):
            assert calque.jit(lambda x: x.sum())(x) == 3.0
        np.testing.assert_array_equal(calque.jit(lambda x=x: jnp.add(x, 1))(), [1, 2, 3])
        np.testing.assert_array_equal(calque.grad(lambda x: (x * x).sum())(x), [0, 2, 4])
        assert calque.typeof(x).shape == (3,)


def test_without_that_they_are_refused():
    with pytest.raises(TypeError, match="Error interpreting argument"):
        calque.jit(lambda x: x)(Held(np.arange(3.0)))


def test_rules_of_arrays_can_be_read_and_given_on():
    assert pytype_aval_mappings[np.ndarray](np.ones((2, 3))).shape == (2, 3)
    assert canonicalize_dtype_handlers[np.float32](np.float32(2)) == 2
    with pytest.raises(KeyError):
        pytype_aval_mappings[Held]


def test_types_can_be_told_apart_from_values(known):
    pytype_aval_mappings[Held] = lambda x: calque.core.ShapedArray((7,), np.dtype("int32"))
    try:
        assert calque.typeof(Held(None)).shape == (7,)
    finally:
        del pytype_aval_mappings[Held]


class Proxy:
    """Says that it is of the class of what it stands for, as proxies do."""

    def __init__(self, x):
        self._x = x

    __class__ = property(lambda self: type(self._x))  # type: ignore[assignment]
    __array__ = property(lambda self: self._x.__array__)

    def __getattr__(self, name):
        return getattr(self._x, name)


@pytest.mark.parametrize(
    "call",
    [jnp.sin, calque.jit(jnp.sin), calque.vmap(jnp.sin), lambda x: jnp.stack([x, x])[0]],
    ids=["library", "jit", "vmap", "container"],
)
def test_proxies_are_asked_for_their_values(call):
    x = jnp.arange(3.0)
    for _ in range(3):
        np.testing.assert_array_equal(call(Proxy(x)), call(x))
