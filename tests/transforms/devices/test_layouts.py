"""How the arguments and results of compiled functions lie in memory."""

import numpy as np
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


def test_constraints_may_name_the_layout_that_arrays_have():
    mesh = jax.make_mesh((1,), ("x",), (jax.sharding.AxisType.Auto,))
    s = jax.NamedSharding(mesh, jax.P("x"))
    tree = {"a": jnp.ones((2, 3)), "b": jnp.ones(2)}
    for f in (jax.lax.with_sharding_constraint, jax.jit(
        jax.lax.with_sharding_constraint, static_argnums=1
    )):  # fmt: skip
        for layout in (Layout((0, 1)), None):
            assert f(tree["a"], Format(layout, s)).sharding.is_equivalent_to(s, 2)
        with pytest.raises(NotImplementedError, match="cannot be put in Layout"):
            f(tree["a"], Format(Layout((1, 0)), s))
    given = {"a": Format(Layout((0, 1)), s), "b": s}
    out = jax.lax.with_sharding_constraint(tree, given)
    assert out["a"].sharding == s == out["b"].sharding
    out = jax.lax.with_sharding_constraint({"a": tree}, {"a": Format(None, s)})
    assert out["a"]["b"].sharding == s


def test_jit_takes_formats_and_chooses_rows():
    chosen = Format(Layout.AUTO)
    f = jax.jit(lambda x: x.T, in_shardings=chosen, out_shardings=chosen)
    x = np.ones((2, 3), np.float32)
    compiled = f.lower(x).compile()
    assert compiled(x).format == compiled.output_formats == jnp.ones((3, 2)).format
    assert compiled.output_formats.layout == Layout((0, 1)) and f(x).shape == (3, 2)
    again = jax.jit(lambda x: (x, x), out_shardings=(Format(), compiled.output_formats))
    assert again(x)[1].format == compiled.output_formats
    assert jax.device_put(x, compiled.input_formats[0][0]).shape == (2, 3)
    assert f.eval_shape(x).shape == (3, 2)


def test_formats_that_arrays_do_not_have():
    with pytest.raises(ValueError, match="does not accept device-local layouts directly"):
        jax.jit(jnp.sin, out_shardings=Layout.AUTO)
    with pytest.raises(ValueError, match="sharding and layout in a Format should be concrete"):
        jax.device_put(1.0, Format(Layout.AUTO))
    with pytest.raises(NotImplementedError, match="pjit in_shardings: arrays lie in memory row by"):
        jax.jit(jnp.sin, in_shardings=Format(Layout((1, 0))))(jnp.ones((2, 2)))
    assert Layout(()) != Layout.AUTO and Layout.AUTO == Layout.AUTO
