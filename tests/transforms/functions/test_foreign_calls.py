"""What a caller of a foreign function gives."""

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque.experimental.layout import Layout
from tests.foreign_functions import scaled

assert scaled  # the functions are known


@pytest.mark.parametrize("layout", [(1, 0), Layout((1, 0))], ids=["axes", "Layout"])
def test_orders_in_memory(layout):
    x = jnp.arange(6.0).reshape(2, 3)

    def of(**options):
        return jax.ffi.ffi_call("sequence", x, **options)(x).tolist()

    assert of() == [[0, 11, 22], [33, 44, 55]]
    assert of(input_layouts=[layout]) == [[0, 31, 12], [43, 24, 55]]
    assert of(output_layouts=layout) == [[0, 22, 44], [11, 33, 55]]
    assert of(input_layouts=[layout], output_layouts=layout) == [[0, 12, 24], [31, 43, 55]]


def test_random_keys_are_given_as_words():
    key = jax.random.key(7)
    call = jax.ffi.ffi_call("scaled", jax.ShapeDtypeStruct((2,), np.uint32))
    assert call(key, factor=np.uint32(1)).tolist() == jax.random.key_data(key).tolist()
    with pytest.raises(TypeError, match="wrap_key_data"):
        jax.ffi.ffi_call("scaled", key)


def test_types_of_64_bits_are_what_they_say():
    asked = jax.ShapeDtypeStruct((2,), np.float64)
    found = jax.ffi.ffi_call("scaled", asked)(jnp.ones(2), factor=0.1)
    assert found.dtype == np.float64 and found.tolist() == [0.1, 0.1]
