"""Sizes that a program finds, as equations."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core.avals import ShapedArray
from calque.core.dims import Dim
from calque.core.primitives import do
from calque.errors import DataDependentSizeError
from calque.ops.found_sizes import found_size, let_size_p, places, places_p

MASK = np.array([True, False, True, True])


def test_what_is_known_is_a_number():
    assert found_size(np.int32(3), "f") == 3 and type(found_size(jnp.int32(3), "f")) is int
    np.testing.assert_array_equal(places(MASK, "f"), [0, 2, 3])


def test_a_traced_number_becomes_a_size_of_the_program():
    seen = []

    def f(n):
        size = found_size(n, "my function", 10)
        again = found_size(n, "my function", 0)
        seen.extend([size, again])
        return do.broadcast_in_dim(np.float32(1), shape=(size,), broadcast_dimensions=())

    closed = calque.make_jaxpr(f)(3)
    size, none = seen
    assert (
        type(size) is Dim and none == 0 and size.symbols.maker(size).startswith("my function at ")
    )
    names = [e.primitive.name for e in closed.eqns]
    assert names == ["let_size", "broadcast_in_dim"] and closed.out_avals[0].shape == (size,)
    for n in (0, 3, 10):
        assert calque.jit(f)(n).shape == (n,)


def test_places_of_a_traced_mask():
    def f(mask):
        return places(mask, "f")

    for mask in (MASK, ~MASK, MASK & False, MASK | True):
        np.testing.assert_array_equal(calque.jit(f)(mask), np.flatnonzero(mask))
    out, tangent = calque.jvp(lambda x: (places(MASK, "f") * x).sum(), (2.0,), (1.0,))
    assert (float(out), float(tangent)) == (10, 5)


def test_lanes_of_different_sizes_are_refused():
    with pytest.raises(DataDependentSizeError, match=r"(?s)differs between the lanes.*size="):
        calque.vmap(lambda n: found_size(n, "f"))(np.arange(3))

    def whole(m):
        return places(m, "picked")

    with pytest.raises(DataDependentSizeError, match="results of different sizes from picked"):
        calque.jit(calque.vmap(whole))(np.stack([MASK, ~MASK]))


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: let_size_p.shape(ShapedArray((), np.float32), size=3), "integer scalar"),
        (lambda: let_size_p.shape(ShapedArray((2,), np.int32), size=3), "integer scalar"),
        (
            lambda: places_p.shape(ShapedArray((2, 2), bool), size=3, dtype=np.dtype("int32")),
            "vector of bool",
        ),
        (
            lambda: places_p.shape(ShapedArray((2,), np.int32), size=3, dtype=np.dtype("int32")),
            "vector of bool",
        ),
    ],
)
def test_operands_of_other_types(call, words):
    with pytest.raises(TypeError, match=words):
        call()
