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
