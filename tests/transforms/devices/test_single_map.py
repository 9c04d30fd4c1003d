import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.sharding import (
    AbstractDevice,
    ManualAxisType,
    Mesh,
    NamedSharding,
    PartitionSpec,
    auto_axes,
    explicit_axes,
)
from tests.transforms.devices.four_devices import four_devices

P = PartitionSpec


def mesh(n=1):
    return Mesh(np.array(calque.devices()[:n]), ("x",))


@four_devices
def test_over_devices():
    def f(v, w):
        return {"sum": lax.psum(v, "x"), "own": v * w}

    with calque.set_mesh(mesh(4)):
        out = calque.smap(f, in_axes=(1, None), out_axes={"sum": None, "own": 1}, axis_name="x")(
            jnp.arange(8.0).reshape(2, 4), 2.0
        )
    np.testing.assert_array_equal(out["own"], 2 * np.arange(8.0).reshape(2, 4))
    np.testing.assert_array_equal(out["sum"], [[6.0], [22.0]])


def test_on_one_device():
    with calque.set_mesh(mesh()):

        @calque.smap(in_axes=0, out_axes=0, axis_name="x")
        def double(v):
            return v * 2

        np.testing.assert_array_equal(double(jnp.arange(3.0)), [0, 2, 4])
    with pytest.raises(TypeError, match="in_axes must be None, a dimension from 0 on"):
        calque.smap(lambda v: v, in_axes=-1, out_axes=0, axis_name="x")
    with pytest.raises(TypeError, match="a single axis"):
        calque.smap(lambda v: v, in_axes=0, out_axes=0, axis_name=("x", "y"))


def test_shardings_at_the_border():
    explicit = Mesh(mesh().devices, ("x",), (calque.sharding.AxisType.Explicit,))
    with calque.set_mesh(explicit):
        f = auto_axes(lambda x: x + 1, axes="x", out_sharding=P("x"))
        assert f(jnp.zeros(2)).sharding.spec == P("x")
        assert auto_axes(lambda x: x + 1)(jnp.zeros(2), out_sharding=P()).tolist() == [1, 1]
        with pytest.raises(TypeError, match="Missing required keyword argument: 'out_sharding'"):
            auto_axes(lambda x: x)(jnp.zeros(2))
        with pytest.raises(ValueError, match=r"\['y'\] are not axes of the current mesh"):
            auto_axes(lambda x: x, axes="y", out_sharding=P())(jnp.zeros(2))
    with calque.set_mesh(mesh()):
        seen = explicit_axes(lambda x: x, in_sharding=P("x"))(jnp.zeros(2))
        assert seen.sharding == NamedSharding(mesh(), P("x"))


@four_devices
def test_kinds_of_axes_inside():
    explicit = calque.make_mesh((2, 2), ("x", "y"))
    x = calque.device_put(jnp.arange(16.0).reshape(4, 4), NamedSharding(explicit, P("x", "y")))
    seen = []

    def product(v):
        seen.append(calque.typeof(v).sharding.spec)
        return v @ v.T if seen[-1] == P(None, None) else v * 2

    with calque.set_mesh(explicit):
        for axes in (None, "y"):
            f = auto_axes(product, axes=axes, out_sharding=P("y", None))
            for run in (f, calque.jit(f)):
                out = run(x)
                assert out.sharding == NamedSharding(explicit, P("y", None))
                want = np.asarray(x) @ np.asarray(x).T if axes is None else 2 * np.asarray(x)
                np.testing.assert_array_equal(out, want)
    assert seen == [P(None, None)] * 2 + [P("x", None)] * 2
    auto = Mesh(explicit.devices, ("x", "y"))
    x = calque.device_put(np.asarray(x), NamedSharding(auto, P("x")))
    with calque.set_mesh(auto):
        out = calque.jit(
            explicit_axes(
                lambda v: (seen.append(calque.typeof(v)), v * 2)[1], in_sharding=P("y", "x")
            )
        )(x)
        assert seen[-1].sharding.spec == P("y", "x")
        assert out.sharding == NamedSharding(auto, P("y", "x"))
        with pytest.raises(NotImplementedError, match="Going from `Manual`"):
            calque.shard_map(
                lambda v: auto_axes(lambda a: a, out_sharding=P())(v),
                in_specs=P("x"),
                out_specs=P("x"),
            )(x)
    away = auto_axes(lambda v: v + 1, axes="x", out_sharding=NamedSharding(explicit, P("x")))
    assert calque.jit(away)(jnp.zeros(4)).sharding.spec == P("x")


def test_descriptions():
    assert AbstractDevice("TPU v5", 2, "tpu").num_cores == 2
    kind = ManualAxisType(varying={"x"}, unreduced={"y"})
    assert kind == ManualAxisType(varying=["x"], unreduced=["y"]) and "varying={'x'}" in repr(kind)
    with pytest.raises(ValueError, match="both varying and reduced"):
        ManualAxisType(varying={"x"}, reduced={"x"})
