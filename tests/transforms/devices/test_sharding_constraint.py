"""Shardings asked for by programs and by functions on arrays at hand."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from tests.transforms.devices.four_devices import four_devices

P = PartitionSpec


def square(kind=AxisType.Auto):
    return Mesh(np.array(calque.devices()[:4]).reshape(2, 2), ("x", "y"), (kind,) * 2)


@four_devices
def test_meshes_without_devices_take_those_of_the_array():
    m = square()
    x = calque.device_put(np.arange(8.0).reshape(4, 2), NamedSharding(m, P("x", "y")))
    abstract = NamedSharding(m.abstract_mesh, P("y"))

    def f(v):
        return lax.with_sharding_constraint(v, abstract)

    for out in (f(x), calque.jit(f)(x), calque.jit(lambda v: f(v) * 2)(x)):
        assert out.sharding == NamedSharding(m, P("y"))
    with calque.set_mesh(m):
        assert f(jnp.ones((4, 2))).sharding == NamedSharding(m, P("y"))
    with pytest.raises(ValueError, match=r"requires the input passed should be a `jax.Array`"):
        f(np.ones(4))
    with pytest.raises(TypeError, match="The sharding on the input must be a `NamedSharding`"):
        f(jnp.ones(4))
    other = Mesh(np.array(calque.devices()[:4]), ("z",))
    with pytest.raises(ValueError, match=r"Mesh shape of the input .* does not match"):
        f(calque.device_put(np.ones(4), NamedSharding(other, P("z"))))


@four_devices
def test_another_mesh_inside_a_program():
    m = square(AxisType.Explicit)
    x = calque.device_put(np.arange(8.0).reshape(4, 2), NamedSharding(m, P("x", "y")))

    @calque.jit
    def f(v):
        inner = m.abstract_mesh.update(axis_sizes=(4, 1), axis_names=("a", "b"))
        with calque.sharding.use_abstract_mesh(inner):
            v = calque.reshard(v, P(("a", "b"), None)) * 2
            assert calque.typeof(v).sharding.spec == P(("a", "b"), None)
            return v

    out = f(x)
    assert out.sharding.spec == P(("a", "b"), None) and out.sharding.mesh.axis_sizes == (4, 1)
    np.testing.assert_array_equal(out, 2 * np.asarray(x))


@four_devices
def test_what_is_refused():
    m = square()
    x = calque.device_put(np.arange(4.0), NamedSharding(m, P("x")))
    turned = Mesh(m.devices[::-1], ("x", "y"))
    with pytest.raises(ValueError, match="incompatible devices for jitted computation"):
        lax.with_sharding_constraint(x, NamedSharding(turned, P("x")))
    with pytest.raises(ValueError, match="got sharding None which is not allowed"):
        lax.with_sharding_constraint(x, None)
    with pytest.raises(ValueError, match="cannot contain axis names that are of type Auto"):
        calque.reshard(x, NamedSharding(m, P("x")))
    for option in ("in_shardings", "out_shardings"):
        with pytest.raises(ValueError, match=f"Unconstrained dims are not allowed .* {option}"):
            calque.jit(lambda v: v, **{option: NamedSharding(m, P(P.UNCONSTRAINED))})
    with calque.set_mesh(m), pytest.raises(ValueError, match="passed to dot_general cannot"):
        lax.dot_general(x, x, (((0,), (0,)), ((), ())), out_sharding=P("x"))
    with pytest.raises(ValueError, match="contains manual axes"):
        calque.set_mesh(square(AxisType.Manual))
    with pytest.raises(ValueError, match="valid for values of rank at least 2"):
        calque.ShapeDtypeStruct((4,), "float32", sharding=NamedSharding(m, P(None, "x")))


@four_devices
def test_arrays_that_were_never_placed_are_on_the_mesh_that_is_set():
    x = jnp.ones((2, 2))
    single = x.sharding
    m = square(AxisType.Explicit)
    with calque.set_mesh(m):
        assert x.sharding == NamedSharding(m, P(None, None)) and not x.committed
        assert calque.typeof(x).sharding == NamedSharding(m.abstract_mesh, P(None, None))
        assert (x * 2).sharding == NamedSharding(m, P(None, None))
        with calque.set_mesh(None):
            assert x.sharding == single
    with calque.set_mesh(square()):
        assert (x + 1).sharding == NamedSharding(square(), P())
    assert x.sharding == single


@four_devices
def test_cotangents_are_where_their_values_are():
    m = square(AxisType.Explicit)
    x = calque.device_put(np.arange(16.0, dtype="f4").reshape(4, 4), NamedSharding(m, P("x", None)))

    @calque.jit
    def part(v):
        return lax.slice(v, (0, 0), (4, 3))

    with calque.set_mesh(m):
        for f in (lambda v: jnp.square(part(v).sum()), lambda v: part(jnp.sin(v)).sum()):
            assert calque.grad(f)(x).sharding == x.sharding
            assert calque.jit(calque.grad(f))(x).sharding == x.sharding
