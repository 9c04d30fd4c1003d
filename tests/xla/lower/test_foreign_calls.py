"""Foreign functions in the text for XLA."""

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp

X = jnp.ones(3)


@pytest.mark.parametrize(
    "value, text",
    [
        (True, "true"), (3, "3 : i64"), (0.5, "5.000000e-01 : f64"), (np.uint8(3), "3 : ui8"),
        (np.float16(1), "1.000000e+00 : f16"), ('a"b', r'"a\22b"'),
        ({"a": 1, "b c": "x"}, '{a = 1 : i64, "b c" = "x"}'),
        (np.arange(3), "dense<[0, 1, 2]> : tensor<3xi64>"),
        (np.array(True), "dense<true> : tensor<i1>"),
    ],
)  # fmt: skip
def test_attributes_in_the_text_for_xla(value, text):
    def call(x):
        return jax.ffi.ffi_call("scaled", x)(x, v=value)

    found = jax.jit(call).lower(X).as_text()
    assert f"mhlo.backend_config = {{v = {text}}}" in found
