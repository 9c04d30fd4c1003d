"""What types say of mesh axes, and how it follows through programs."""

import numpy as np
import pytest

import calque
from calque import lax
from calque import numpy as jnp
from calque.core.avals import ShapedArray
from calque.sharding import AbstractMesh, AxisType, ManualAxisType, Mesh, NamedSharding
from calque.sharding import PartitionSpec as P
from tests.transforms.devices.four_devices import four_devices


def explicit():
    return calque.make_mesh((2, 2), ("x", "y"))


def put(shape, spec, mesh=None):
    x = jnp.arange(float(np.prod(shape))).reshape(shape)
    return calque.device_put(x, NamedSharding(mesh or explicit(), spec))


def spec_of(f, *args):
    """The spec in the type of the traced result and on the computed one, which must agree."""
    (aval,) = calque.jit(f).trace(*args).jaxpr.out_avals
    got = calque.jit(f)(*args).sharding
    assert got.spec == aval.sharding.spec
    return aval.sharding.spec


def test_types_know_places_and_print_them():
    types = (AxisType.Explicit, AxisType.Auto, AxisType.Manual)
    mesh = AbstractMesh((2, 2, 2), ("a", "b", "c"), axis_types=types)
    aval = ShapedArray((4, 2), np.float32)
    placed = aval.update(
        sharding=NamedSharding(mesh, P(("a", "b"), "c")),
        manual_axis_type=ManualAxisType(varying={"c"}),
    )
    assert placed.str_short() == "f32[4@a,2]{V:c}" and placed.sharding.spec == P("a", None)
    assert placed is not aval and placed.without_place() is aval
    assert placed.update(dtype=np.dtype("int32")).str_short() == "i32[4@a,2]{V:c}"
    with pytest.raises(ValueError, match="should be of type `Manual`"):
        aval.update(
            sharding=NamedSharding(mesh, P()), manual_axis_type=ManualAxisType(varying={"a"})
        )


@four_devices
def test_values_inside_a_map_know_what_varies():
    seen = []

    def f(v):
        total = lax.psum(v, "x")
        seen.extend([calque.typeof(v).mat, calque.typeof(total).mat])
        inner = calque.jit(lambda a, b: a * b)(v, total)
        seen.append(calque.typeof(inner).mat.varying)
        assert calque.sharding.get_abstract_mesh().manual_axes == ("x", "y")
        return inner

    x = put((4, 4), P("x", "y"))
    expected = np.asarray(x) * np.tile(np.asarray(x)[:2] + np.asarray(x)[2:], (2, 1))
    for g in (lambda h: h, calque.jit):
        seen.clear()
        out = g(calque.shard_map(f, mesh=explicit(), out_specs=P("x", "y")))(x)
        np.testing.assert_array_equal(out, expected)
        assert out.sharding.spec == P("x", "y")
        varying = ManualAxisType(varying={"x", "y"})
        assert seen == [varying, ManualAxisType(varying={"y"}), {"x", "y"}]


@four_devices
def test_sums_that_are_still_to_be_made():
    x = put((4,), P("x"), calque.make_mesh((4,), ("x",)))
    mesh = x.sharding.mesh

    @calque.jit
    @calque.shard_map(mesh=mesh, in_specs=P("x"), out_specs=P(unreduced={"x"}), check_vma=False)
    def summands(v):
        return v * 2

    out = summands(x)
    assert out.sharding.spec.unreduced == {"x"} and "unreduced={'x'}" in str(out)
    parts = [np.asarray(s.data) for s in out.addressable_shards]
    np.testing.assert_array_equal(sum(parts), [12])
    back = calque.shard_map(
        lambda v: v, mesh=mesh, in_specs=P(unreduced={"x"}), out_specs=P("x"), check_vma=False
    )(out)
    np.testing.assert_array_equal(np.asarray(back).sum(), 12)
    with pytest.raises(ValueError, match="should be equal to the unreduced present"):
        calque.shard_map(lambda v: v, mesh=mesh, in_specs=P(), out_specs=P())(out)


def test_meshes_are_one_object():
    devices = np.array(calque.devices()[:1])
    assert Mesh(devices, ("i",)) is Mesh(devices, ("i",))
    with pytest.raises(ValueError, match="cannot be None"):
        Mesh(devices, (None,))
    auto = AbstractMesh((2,), ("i",))
    assert auto.update_axis_types({"i": AxisType.Manual}).manual_axes == ("i",)


def line():
    return calque.make_mesh((4,), ("x",))


@four_devices
def test_gradients_are_where_their_primals_ask():
    mesh = line()

    def f(x, w):
        inner = calque.shard_map(lambda a, b: a * b, mesh=mesh, out_specs=P("x"))
        return inner(x, w).sum()

    x = put((8,), P("x"), mesh)
    w = calque.device_put(jnp.arange(2.0), NamedSharding(mesh, P(reduced={"x"})))
    for g in (calque.grad(f, (0, 1)), calque.jit(calque.grad(f, (0, 1)))):
        dx, dw = g(x, w)
        assert dx.sharding.spec == P("x") and dw.sharding.spec == P(None, unreduced={"x"})
        np.testing.assert_array_equal(dx, np.tile([0, 1], 4))
        np.testing.assert_array_equal(np.asarray(dw), np.arange(8.0).reshape(4, 2).sum(0))


@four_devices
def test_loops_and_branches_keep_what_varies():
    def swapping(v, w):
        return lax.scan(lambda c, _: ((c[1], c[0]), ()), (v, w), (), length=2)[0]

    f = calque.shard_map(swapping, mesh=line(), in_specs=(P("x"), P()), out_specs=P("x"))
    with pytest.raises(TypeError, match=r"pcast\(..., \('x',\).* to the initial"):
        f(jnp.arange(8.0), jnp.arange(2.0))


@four_devices
def test_maps_say_what_they_miss():
    x = put((4,), P("x"), line())
    spec = P(unreduced={"x"})
    f = calque.shard_map(lambda v: lax.psum(v, "x"), mesh=line(), in_specs=P("x"), out_specs=spec)
    for g in (f, calque.jit(f)):
        with pytest.raises(ValueError, match="is a Varying->Unreduced collective"):
            g(x)
    abstract = AbstractMesh((4,), ("x",))
    h = calque.shard_map(lambda v: v, mesh=abstract, in_specs=P("x"), out_specs=P("x"))
    with pytest.raises(ValueError, match="with a `NamedSharding` as input"):
        h(jnp.arange(4.0))
