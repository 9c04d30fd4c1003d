"""Lowered and compiled functions."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp


def test_arguments_of_stages():
    lowered = calque.jit(lambda x, y: x + y, donate_argnums=0).lower(jnp.ones(3), 2.0)
    (x, y), _ = lowered.args_info
    assert isinstance(x, calque.stages.ArgInfo)
    assert (x.shape, x.dtype, x.donated, y.donated) == ((3,), np.float32, True, False)


def test_compiled_functions_are_called_without_their_static_arguments():
    f = calque.jit(lambda n, x, *, power, scale: (x**power) * n * scale, static_argnums=0,
                   static_argnames="power")  # fmt: skip
    compiled = f.lower(3, jnp.float32(2.0), power=2, scale=1.0).compile()
    assert float(compiled(jnp.float32(2.0), scale=1.0)) == 12.0
    assert compiled.in_tree == calque.tree.structure(((0,), {"scale": 0}))
    with pytest.raises(TypeError, match="does not match the input pytree it was called with"):
        compiled(3, jnp.float32(2.0), scale=1.0)


def test_types_of_results_say_where_they_are_asked_to_be():
    where = calque.sharding.SingleDeviceSharding(calque.devices()[0])
    out = calque.jit(lambda x: (x, x + 1), out_shardings=(None, where)).eval_shape(jnp.ones(3))
    assert out[0].sharding is None and out[1].sharding == where and out[1].shape == (3,)


def test_functions_of_the_library_have_the_stages_of_jitted_ones():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(jnp.sin.lower(x).compile()(x), np.sin(x), rtol=1e-6)
    assert jnp.cumsum.lower(x, axis=1, dtype=jnp.int32).out_info.dtype == np.int32
    assert jnp.sum.lower(x, 0, keepdims=True).compile()(x).tolist() == [[3, 5, 7]]
    assert jnp.reshape.eval_shape(x, (3, 2)).shape == (3, 2)
    assert jnp.concatenate.lower([x, x], axis=1).out_info.shape == (2, 6)
    assert [e.primitive.name for e in jnp.dot.trace(x, x.T).jaxpr.eqns] == ["dot_general"]
    jnp.sin.clear_cache()
    assert jnp.sin._cache_size() == 0 and not hasattr(jnp.sin, "_function")


def test_compiled_functions_say_where_their_results_are():
    info = calque.jit(lambda x: x + 1).lower(jnp.ones(3)).compile().out_info
    assert info.sharding == jnp.ones(3).sharding and info.shape == (3,)
