"""The backend of NumPy meanings: it checks each against the shape rule."""

import numpy as np
import pytest

import calque.numpy as jnp
from calque.core import reference
from calque.core.avals import ShapedArray
from calque.core.primitives import REGISTRY, NotApplicable, Primitive, do
from calque.core.trace import trace_to_jaxpr

F = np.dtype("float32")


def made(meaning, shape, **more):
    none = NotApplicable("only evaluated here")
    p = Primitive(
        "test_meaning", meaning=meaning, shape=shape, jvp=none, transpose=none, batch=none, **more
    )
    REGISTRY.pop("test_meaning")
    return p


def test_one_primitive():
    p = made(lambda x, *, k: x * k, lambda x, *, k: x)
    out = reference.evaluate(p, [np.ones(2, np.float32)], {"k": 3})
    assert out.tolist() == [3, 3] and out.dtype == F
    several = made(lambda x: (x, -x), lambda x: [x, x], multiple_results=True)
    assert [o.tolist() for o in reference.evaluate(several, [np.ones(1, np.float32)], {})] == [
        [1],
        [-1],
    ]


@pytest.mark.parametrize(
    "meaning", [lambda x: x[:1], lambda x: x.astype(np.float64), lambda x: np.float32(1)]
)
def test_a_meaning_that_differs_from_its_shape_rule_is_told(meaning):
    with pytest.raises(AssertionError, match="test_meaning: its meaning gives"):
        reference.evaluate(made(meaning, lambda x: x), [np.ones(2, np.float32)], {})


def test_weak_types_of_results():
    p = made(lambda x: x, lambda x: x)
    assert reference.evaluate(p, [2.0], {}).weak_type
    assert not reference.evaluate(p, [np.float32(2)], {}).weak_type


def test_a_program():
    k = np.arange(3, dtype=np.float32)
    closed = trace_to_jaxpr(
        lambda x: [do.div(k, x), x, do.mul(x, np.float32(2))], [ShapedArray((3,), F)]
    )
    a, b, c = reference.run(closed, np.zeros(3, np.float32))
    assert np.isnan(a[0]) and np.isinf(a[1:]).all()  # and no warning
    assert b.tolist() == c.tolist() == [0, 0, 0] and type(a) is np.ndarray


def test_a_result_beyond_memory_is_named():
    with pytest.raises(MemoryError, match=r"pad.*i32\[|more than a process can address"):
        jnp.pad(jnp.arange(3), (1, 2**45))
