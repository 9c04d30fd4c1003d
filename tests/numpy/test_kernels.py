"""Functions of the library that become one loop nest when compiled, without a call back to
Python."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import nn

X = np.linspace(-2, 3, 64 * 50, dtype=np.float32).reshape(64, 50)


def layer_norm(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred * calque.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


ONE = {
    "mean": jnp.mean,
    "mean of columns": lambda x: jnp.mean(x, 0),
    "var": lambda x: jnp.var(x, 1),
    "var of columns": lambda x: jnp.var(x, 0),
    "softmax": nn.softmax,
    "log_softmax": nn.log_softmax,
    "logsumexp": lambda x: nn.logsumexp(x, -1),
    "layer norm": layer_norm,
    "standardize": nn.standardize,
    "linspace": lambda x: jnp.linspace(0.0, x[0, 0], 100),
    "one_hot": lambda x: nn.one_hot(x[:, 0].astype(int), 10),
    "clip": lambda x: jnp.clip(x, x[0], 1.0),
    "norm": jnp.linalg.norm,
    "allclose": lambda x: jnp.allclose(x, x + 1),
    "nanmean": jnp.nanmean,
    "average": lambda x: jnp.average(x, weights=x),
    "interp": lambda x: jnp.interp(x, jnp.arange(5.0), jnp.arange(5.0)),
    "pad": lambda x: jnp.pad(x, 1),
}


@pytest.mark.parametrize("name", ONE)
def test_one_kernel(name):
    report = calque.explain(ONE[name], X)
    assert (report.kernels, report.host_calls) == (1, [])
