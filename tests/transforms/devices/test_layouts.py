"""How the arguments and results of compiled functions lie in memory."""

import pytest

import calque as jax
import calque.numpy as jnp
from calque.experimental.layout import Format, Layout


def test_what_compiled_functions_say():
    compiled = jax.jit(lambda x, y: (x, {"z": y})).lower(jnp.ones((2, 3)), 1.0).compile()
    (x, y), named = compiled.input_formats
    assert x.layout == Layout((0, 1)) and y.layout == Layout(()) and named == {}
    assert x.sharding == compiled.input_shardings[0][0]
    assert compiled.output_formats[1]["z"] == Format(Layout(()), x.sharding)
    assert compiled.in_avals[0][0].shape == compiled.out_avals[0].shape == (2, 3)
    with pytest.raises(TypeError, match="Detected argument of Tracer type"):
        jax.vmap(compiled, in_axes=(None, 0))(jnp.ones((2, 3)), jnp.ones(2))
    with pytest.raises(TypeError, match="does not match the input pytree it was called with"):
        compiled([jnp.ones((2, 3))], 1.0)
    with pytest.raises(TypeError, match=r"Argument 'y' compiled with float32\[\] and called with"):
        compiled(jnp.ones((2, 3)), 1)
