"""Values that do and do not vary along a checked axis, and their gradients."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.sharding import Mesh
from calque.sharding import PartitionSpec as P
from calque.transforms.devices.variance import made_varying, pvary_p, variance
from tests.transforms.devices.four_devices import four_devices


def over(f, ins, out):
    mesh = Mesh(np.array(calque.devices()), ("i",))
    return calque.shard_map(f, mesh=mesh, in_specs=ins, out_specs=out)


X = np.arange(4.0, dtype=np.float32)


@four_devices
def test_what_is_known_of_values():
    seen = {}

    def f(v, w):
        seen.update(part=variance(v), same=variance(w), sum=variance(lax.psum(v, "i")))
        seen["mixed"] = variance(v * w)
        seen["constant"] = variance(jnp.ones(2))
        seen["made"] = variance(made_varying(w, ("i",)))
        calque.jvp(lambda t: seen.update(tangent=variance(t)) or t, (v,), (v,))
        return v

    over(f, (P("i"), P()), P("i"))(X, X)
    varying, none = frozenset("i"), frozenset()
    assert seen == {
        "part": varying, "same": none, "sum": none, "mixed": varying, "constant": none,
        "made": varying, "tangent": varying,
    }  # fmt: skip
    assert variance(jnp.ones(2)) == none


@four_devices
@pytest.mark.parametrize("place", ["at once", "in jit", "in a loop"])
def test_shared_operands_get_the_sum_of_what_members_contribute(place):
    """Against the same loss written over the whole array."""

    def local(w, x):
        return (jnp.sin(w * x) * w).sum()

    def step(w, x):
        return calque.grad(local)(w, x)

    def body(w, x):
        if place == "in jit":
            return calque.jit(step)(w, x)
        if place == "in a loop":
            return lax.fori_loop(0, 1, lambda _, g: g + step(w, x), jnp.zeros(()))
        return step(w, x)

    got = over(body, (P(), P("i")), P())(jnp.float32(0.7), X)
    np.testing.assert_allclose(got, calque.grad(local)(0.7, jnp.asarray(X)), rtol=1e-6)


@four_devices
def test_values_that_vary_get_gradients_of_their_own():
    def body(x):
        return calque.grad(lambda v: (v * lax.psum(v, "i")).sum())(x)

    # every member differentiates the sum of what all members lose
    np.testing.assert_array_equal(over(body, P("i"), P("i"))(X), np.full(4, 2 * X.sum()))


@four_devices
def test_made_varying_is_undone_by_a_sum():
    def body(w):
        one = pvary_p.bind(w, axes=("i",))
        primal, back = calque.vjp(lambda v: pvary_p.bind(v, axes=("i",)), w)
        (g,) = back(one * (lax.axis_index("i") + 1.0))
        assert variance(primal) == {"i"} and variance(g) == frozenset()
        return g

    np.testing.assert_array_equal(over(body, P(), P())(X), X * 10)
