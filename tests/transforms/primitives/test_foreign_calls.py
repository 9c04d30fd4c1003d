"""The rules of calls of foreign functions."""

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from tests.foreign_functions import CALLS, scaled

METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")


@pytest.mark.parametrize("method", METHODS)
def test_lanes(method):
    x, z = jnp.arange(12.0).reshape(4, 3), jnp.arange(3.0)
    CALLS.clear()
    got = jax.jit(jax.vmap(lambda x: scaled(x, z, vmap_method=method)))(x)
    assert got.tolist() == (2 * x + z).tolist()
    assert ([(3,)] * 4 if method.startswith("sequential") else [(4, 3)]) == CALLS

    def inner(x):
        return scaled(x, z, vmap_method=method)

    both = jax.vmap(jax.vmap(inner, in_axes=1, out_axes=1), in_axes=2)(jnp.ones((3, 2, 5)))
    assert both.shape == (5, 3, 2)
    assert np.array_equal(both, np.broadcast_to(2 + np.arange(3.0)[None, :, None], (5, 3, 2)))


def test_lanes_need_a_method():
    with pytest.raises(NotImplementedError, match="Got vmap_method=None"):
        jax.vmap(scaled)(jnp.ones((2, 3)))
    with pytest.raises(ValueError, match="but got: by_hand"):
        scaled(jnp.ones(3), vmap_method="by_hand")


def test_attributes_differ_by_type_and_bits():
    x = jnp.ones(1)

    def jaxpr(**a):
        return jax.make_jaxpr(lambda x: jax.ffi.ffi_call("f", x)(x, **a))(x)

    def of(**a):
        return jaxpr(**a).eqns[0].params["attributes"]

    assert of(a=1) == of(a=1) and hash(of(a=1)) == hash(of(a=1))
    assert len({of(a=1), of(a=1.0), of(a=True), of(a=np.int32(1)), of(a=np.array([1]))}) == 5
    assert of(a=0.0) != of(a=-0.0)
    text = str(jaxpr(d={"a": 1}, row=np.arange(2), name="x"))
    assert "attributes=(('d', FrozenDict({'a': 1})), ('name', 'x'), ('row', HashableArray(" in text
    with pytest.raises(TypeError, match="Non-hashable keyword argument to ffi_call a"):
        of(a=[1])


X = jnp.ones(3)


def test_derivatives_are_those_of_a_rule():
    with pytest.raises(ValueError, match="`scaled` cannot be differentiated"):
        jax.grad(lambda x: scaled(x).sum())(jnp.ones(3))

    @jax.custom_vjp
    def f(x):
        return scaled(x, factor=5)

    f.defvjp(lambda x: (f(x), None), lambda _, g: (scaled(g, factor=5),))
    assert jax.jit(jax.grad(lambda x: f(x).sum()))(jnp.ones(3)).tolist() == [5, 5, 5]


def test_calls_with_effects_happen_though_nobody_reads_them():
    @jax.jit
    def f(x):
        scaled(x, factor=1)
        scaled(x, factor=2, has_side_effect=True)
        return x

    CALLS.clear()
    f(jnp.ones(3))
    assert len(CALLS) == 1
