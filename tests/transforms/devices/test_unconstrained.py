"""Constraints that leave dimensions open."""

import numpy as np

import calque
import calque.numpy as jnp
from calque import lax
from calque.sharding import Mesh, NamedSharding
from calque.sharding import PartitionSpec as P
from calque.transforms.devices.sharding_propagation import settled
from tests.transforms.devices.four_devices import four_devices

FREE = P.UNCONSTRAINED


def over(*entries):
    mesh = Mesh(np.array(calque.devices()[:4]).reshape(2, 2), ("x", "y"))
    return NamedSharding(mesh, P(*entries))


@four_devices
def test_open_dimensions_stay_as_they_were():
    assert settled(over(FREE, "x"), over("y"), 2) == over("y", "x")
    assert settled(over(FREE, "x"), over("x"), 2) == over(None, "x")
    assert settled(over(FREE), None, 3) == over(None, None, None)
    assert settled(over("x"), over("y"), 2) == over("x")


@four_devices
def test_arrays_are_somewhere_in_every_dimension():
    x = calque.device_put(jnp.ones((4, 4)), over("y"))

    def f(v):
        return lax.with_sharding_constraint(v, over(FREE, "x"))

    for g in (f, calque.jit(f)):
        assert g(x).sharding == over("y", "x")
        assert g(jnp.ones((4, 4))).sharding == over(None, "x")


@four_devices
def test_a_mapped_dimension_is_left_open():
    x = calque.device_put(jnp.ones((4, 4)), over("y"))
    f = calque.vmap(lambda v: lax.with_sharding_constraint(v * 2, over("x")))
    (_, e) = calque.make_jaxpr(f)(x).eqns
    assert e.params["sharding"] == over(FREE, "x")
    assert e.params["unconstrained_dims"] == frozenset({0})
    assert f(x).sharding == calque.jit(f)(x).sharding == over("y", "x")
    named = calque.vmap(
        lambda v: lax.with_sharding_constraint(v * 2, over("x")), spmd_axis_name="y"
    )
    assert named(jnp.ones((4, 4))).sharding == over("y", "x")
