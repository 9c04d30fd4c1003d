"""The primitive composite: a named call, what transformations make of it."""

import numpy as np

import calque
import calque.numpy as jnp
from calque import lax

tangent = lax.composite(lambda x: lax.sin(x) / lax.cos(x), "my.tangent", version=1)


def test_a_named_call():
    text = str(calque.make_jaxpr(tangent)(1.0))
    assert "composite[" in text and "name=my.tangent" in text and "version=1" in text
    for run in (tangent, calque.jit(tangent)):
        np.testing.assert_allclose(run(1.0), np.tan(1.0), rtol=1e-6)
    np.testing.assert_allclose(
        calque.vmap(tangent)(jnp.arange(3.0)), np.tan(np.arange(3.0)), rtol=1e-6
    )
    np.testing.assert_allclose(calque.grad(tangent)(1.0), 1 / np.cos(1.0) ** 2, rtol=1e-6)
    np.testing.assert_allclose(
        calque.jit(calque.grad(tangent))(1.0), 1 / np.cos(1.0) ** 2, rtol=1e-6
    )
