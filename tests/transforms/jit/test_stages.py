"""Lowered and compiled functions."""

import numpy as np

import calque
import calque.numpy as jnp


def test_arguments_of_stages():
    lowered = calque.jit(lambda x, y: x + y, donate_argnums=0).lower(jnp.ones(3), 2.0)
    (x, y), _ = lowered.args_info
    assert isinstance(x, calque.stages.ArgInfo)
    assert (x.shape, x.dtype, x.donated, y.donated) == ((3,), np.float32, True, False)
