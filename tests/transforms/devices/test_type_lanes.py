"""Lanes of vmap over arrays whose types say that the mapped dimension is split."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.sharding import NamedSharding, PartitionSpec
from tests.transforms.devices.four_devices import four_devices

P = PartitionSpec


def square():
    return calque.make_mesh((2, 2), ("x", "y"))


def on(m, shape, *spec):
    values = np.arange(float(np.prod(shape)), dtype="f4").reshape(shape)
    return calque.device_put(values, NamedSharding(m, P(*spec)))


@four_devices
def test_results_are_split_as_the_lanes_are():
    m = square()
    with calque.set_mesh(m):
        x = on(m, (4, 6), "x", None)
        for jit in (lambda f: f, calque.jit):
            f = jit(calque.vmap(lambda v: (v.sum(), jnp.zeros(3), v * 2), out_axes=(0, -1, 0)))
            total, constant, twice = f(x)
            assert total.sharding == NamedSharding(m, P("x"))
            assert constant.sharding == NamedSharding(m, P(None, "x"))
            assert twice.sharding == NamedSharding(m, P("x", None))
            np.testing.assert_array_equal(total, np.asarray(x).sum(1))
            both = jit(calque.vmap(calque.value_and_grad(lambda v: jnp.sin(v).sum())))(x)
            assert [b.sharding.spec for b in both] == [P("x"), P("x", None)]


@four_devices
def test_axes_of_the_lanes_are_used_up_inside():
    m = square()
    with calque.set_mesh(m):
        x = on(m, (4, 6), "x", None)

        def inside(v):
            assert calque.typeof(v).sharding.spec == P(None)
            v = calque.reshard(v, P("y"))
            return calque.shard_map(lambda p: lax.psum(p, "y"), out_specs=P(None))(v)

        out = calque.jit(calque.vmap(inside))(x)
        assert out.sharding == NamedSharding(m, P("x", None))
        np.testing.assert_array_equal(out, np.asarray(x)[:, :3] + np.asarray(x)[:, 3:])
        named = calque.shard_map(lambda p: p, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
        with pytest.raises(ValueError, match=r"requires axis_names=.* to be a subset"):
            calque.vmap(named)(x)


@four_devices
def test_lanes_that_do_not_go_together():
    m = square()
    with calque.set_mesh(m):
        x, y = on(m, (4, 6), "x", None), on(m, (4, 6), "y", None)
        with pytest.raises(ValueError, match=r"should be sharded the same.*x vs y"):
            calque.vmap(lambda a, b: a + b)(x, y)
        with pytest.raises(ValueError, match="Only one of spmd_axis_name or arrays sharded on"):
            calque.vmap(lambda a: a, spmd_axis_name="y")(x)
        assert calque.vmap(lambda a: a, spmd_axis_name="x")(x).sharding.spec == P("x", None)
        with pytest.raises(ValueError, match="Unmapped values passed to vmap cannot be sharded"):
            calque.vmap(lambda a, b: a + b, in_axes=(0, None))(x, on(m, (6,), "x"))


@four_devices
def test_constraints_in_lanes():
    m = calque.sharding.Mesh(square().devices, ("x", "y"))
    free = NamedSharding(m, P(P.UNCONSTRAINED))

    def params(**options):
        f = calque.vmap(lambda v: lax.with_sharding_constraint(v, free), **options)
        (e,) = calque.make_jaxpr(f)(jnp.ones((4, 4))).eqns
        return e.params["sharding"].spec, e.params["unconstrained_dims"]

    assert params() == (P(P.UNCONSTRAINED, P.UNCONSTRAINED), {0, 1})
    assert params(spmd_axis_name="x") == (P("x", P.UNCONSTRAINED), {1})
    for sharding, message in (
        (NamedSharding(m, P("x")), "vmap spmd_axis_name .* cannot appear"),
        (calque.sharding.SingleDeviceSharding(calque.devices()[0]), "inside the mesh context"),
    ):
        f = calque.vmap(
            lambda v, s=sharding: lax.with_sharding_constraint(v, s), spmd_axis_name="x"
        )
        with pytest.raises(ValueError, match=message):
            calque.jit(f)(jnp.ones((4, 4)))
