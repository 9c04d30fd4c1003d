"""Filled arrays: at once where nothing is traced, part of the program where something is."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core.arrays import repeated
from calque.core.avals import ShapedArray
from calque.native.eager import execution as eager

DTYPES = ["bool", "int8", "uint16", "int32", "float16", "bfloat16", "float32", "complex64"]
SHAPES: list[Any] = [(), 0, 1, 5, (3, 4), (2, 0, 3), (70, 1000), [2, 3], np.int64(4)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values(shape: Any, dtype: str) -> None:
    for name, args in (("zeros", ()), ("ones", ()), ("empty", ()), ("full", (3,))):
        x = getattr(jnp, name)(shape, *args, dtype=dtype)
        want = np.full(shape, {"ones": 1, "full": 3}.get(name, 0), jnp.dtype(dtype))
        assert x.dtype == want.dtype and x.shape == want.shape and not x.weak_type
        np.testing.assert_array_equal(x, want)


def test_values_of_64_bits() -> None:
    with calque.enable_x64(True):
        assert (
            jnp.full((3,), 1 + 2j).dtype == np.complex128
            and (jnp.full((3,), 1 + 2j) == 1 + 2j).all()
        )
        assert jnp.zeros(2).dtype == np.float64 and jnp.ones(2, int).dtype == np.int64
    assert jnp.zeros(2).dtype == np.float32 and jnp.ones(2, int).dtype == np.int32


def test_types_of_what_fills() -> None:
    assert jnp.full((2,), 7.0).weak_type and not jnp.full((2,), jnp.float32(7)).weak_type
    assert jnp.full((2, 2), jnp.arange(2)).tolist() == [[0, 1], [0, 1]]
    keys = jnp.full((3,), calque.random.key(0))
    assert keys.shape == (3,) and keys.dtype == calque.random.key(0).dtype


def test_no_program_is_made_for_a_new_shape() -> None:
    runs, templates = dict(eager._runs), dict(eager._templates)
    for n in range(100, 150):
        jnp.zeros(n), jnp.ones((n, 2)), jnp.full((n,), 2.5), jnp.empty((n,))
    assert eager._runs == runs and eager._templates == templates


def test_each_is_an_array_of_its_own() -> None:
    x, y = jnp.zeros(()), jnp.zeros(())
    x.delete()
    assert y == 0 and jnp.zeros(()) == 0 and jnp.zeros(3).tolist() == [0, 0, 0]


def test_where_something_is_traced() -> None:
    text = str(calque.make_jaxpr(lambda x: x + jnp.zeros(3) + jnp.full((3,), 2.0))(jnp.ones(3)))
    assert text.count("broadcast_in_dim") == 2
    assert calque.jit(lambda x: x + jnp.ones(x.shape))(jnp.ones(3)).tolist() == [2, 2, 2]
    assert calque.vmap(lambda x: jnp.full((2,), x))(jnp.arange(3)).tolist() == [
        [0, 0],
        [1, 1],
        [2, 2],
    ]
    assert calque.grad(lambda x: jnp.full((4,), x).sum())(1.0) == 4


def test_bad_shapes() -> None:
    with pytest.raises(TypeError, match="non-negative"):
        jnp.zeros((2, -1))
    with pytest.raises(TypeError, match="1D sequences"):
        jnp.ones((2.5,))
    with pytest.raises(RuntimeError, match="deleted"):
        gone = jnp.float32(1) + 0
        gone.delete()
        repeated(gone, ShapedArray((3,), gone.dtype))


def test_placed() -> None:
    device = calque.devices()[0]
    assert jnp.zeros(3, device=device).devices() == {device}


def test_nans_are_reported() -> None:
    with calque.debug_nans(True), pytest.raises(FloatingPointError, match="nan"):
        jnp.full((2,), float("nan"))


class Sizes:
    """A shape of another library: a sequence, no tuple."""

    def __init__(self, *sizes):
        self.sizes = sizes

    def __len__(self):
        return len(self.sizes)

    def __iter__(self):
        return iter(self.sizes)


def test_shapes_of_other_libraries():
    assert jnp.zeros(Sizes(2, 3)).shape == (2, 3)
    assert jnp.broadcast_to(1.0, Sizes()).shape == ()
    assert jnp.reshape(jnp.arange(6), Sizes(3, 2)).shape == (3, 2)
    with pytest.raises(TypeError, match="Shapes must be 1D sequences"):
        jnp.zeros(Sizes("a"))


class Duck:
    """What has a shape and a dtype, and cannot be had as an array."""

    shape, dtype = (2, 3), np.dtype("float32")

    def __jax_array__(self):
        raise ValueError("it was asked for")


@pytest.mark.parametrize("function", [jnp.zeros_like, jnp.ones_like, jnp.empty_like])
def test_a_shape_and_a_dtype_are_enough(function):
    for made in (function(Duck()), calque.jit(lambda: function(Duck()))()):
        assert made.shape == (2, 3) and made.dtype == np.float32
    assert function(Duck(), dtype=np.int32, shape=3).shape == (3,)
    assert jnp.full_like(Duck(), 2.0).tolist() == [[2.0] * 3] * 2
