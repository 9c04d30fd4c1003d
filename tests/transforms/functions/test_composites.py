import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax


def test_attributes_and_trees():
    f = lax.composite(lambda x, *, n: {"a": x * n[0], "b": x + n[1]}, "pair")
    out = calque.jit(lambda x: f(x, n=(2, 3)))(4.0)
    assert (float(out["a"]), float(out["b"])) == (8.0, 7.0)
    assert "attributes=(('n', (2, 3)" in str(calque.make_jaxpr(lambda x: f(x, n=(2, 3)))(1.0))


def test_captured_values_are_refused():
    with pytest.raises(
        TypeError, match=r"composite 'pair': the attribute n .* use numpy arrays instead"
    ):
        calque.jit(lambda x: lax.composite(lambda x, *, n: x * n, "pair")(x, n=x))(1.0)
    with pytest.raises(TypeError, match="as a constant in the decomposition"):
        calque.jit(lambda x: lax.composite(lambda y: x * y, "pair")(1.0))(1.0)


def test_platforms():
    double, triple = lambda x: x * 2, lambda x: x * 3
    assert lax.platform_dependent(2.0, cpu=double, default=triple) == 4.0
    assert (
        float(calque.jit(lambda x: lax.platform_dependent(x, cuda=double, default=triple))(2.0))
        == 6.0
    )
    with pytest.raises(NotImplementedError, match="platform cpu, there is one for cuda"):
        lax.platform_dependent(2.0, cuda=double)
    with pytest.raises(TypeError, match="cuda must be a function"):
        lax.platform_dependent(2.0, cuda=1, default=double)


def test_attributes_may_be_arrays():
    """Outside of jit too, where programs are looked up by their parameters."""
    scale = np.array([0.5, 0.25], np.float32)
    scaled = lax.composite(lambda x, *, scale: x / scale, "my.scaled")
    for f in (lambda x: scaled(x, scale=scale), calque.jit(lambda x: scaled(x, scale=scale))):
        assert f(jnp.ones(2)).tolist() == [2, 4]


def test_platforms_without_a_function():
    with pytest.raises(NotImplementedError, match=r"rule .* not found for platform cpu"):
        lax.platform_dependent(3.0, tpu=lambda x: x)


def test_attributes_of_operations_in_text():
    def f(x):
        named = {"dtype": np.dtype(np.int8), "nothing": None, "n": 2}
        return lax.composite(lambda x, **_: jnp.sin(x), "my.sin")(x, **named)

    text = calque.jit(f).lower(jnp.ones(3)).as_text()
    assert "composite_attributes = {dtype = i8, n = 2 : i64}" in text


def test_constants_of_named_operations_are_operands():
    scale, x = np.array([0.5, 0.4, 0.3], "f"), jnp.array([1.0, 2.0, 3.0])
    named = lax.composite(lambda x, *, scale: jnp.round(x / scale), "my.consts")

    def f(x):
        return named(x, scale=scale)

    assert f(x).tolist() == calque.jit(f)(x).tolist() == [2, 5, 10]
    (e,) = calque.make_jaxpr(f)(x).eqns
    assert [a.aval.shape for a in e.invars] == [(3,), (3,)] and not e.params["jaxpr"].consts
    text = calque.jit(f).lower(x).as_text()
    assert "@my.consts(%arg0: tensor<3xf32>, %arg1: tensor<3xf32>) -> tensor<3xf32>" in text
    assert calque.vmap(f)(x[None] * np.ones((2, 1), "f")).shape == (2, 3)
