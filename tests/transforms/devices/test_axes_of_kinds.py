"""Functions whose arguments' or results' shardings are said."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.sharding import Mesh, NamedSharding
from calque.sharding import PartitionSpec as P
from calque.transforms.devices.axes_of_kinds import auto_axes, explicit_axes
from tests.transforms.devices.four_devices import four_devices


def mesh(n=1):
    return Mesh(np.array(calque.devices()[:n]), ("x",))


def test_shardings_at_the_border():
    with calque.set_mesh(mesh()):
        f = auto_axes(lambda x: x + 1, axes="x", out_sharding=P("x"))
        assert f(jnp.zeros(2)).sharding.spec == P("x")
        assert auto_axes(lambda x: x + 1)(jnp.zeros(2), out_sharding=P()).tolist() == [1, 1]
        seen = explicit_axes(lambda x: x, in_sharding=P("x"))(jnp.zeros(2))
        assert seen.sharding.spec == P("x")
        with pytest.raises(TypeError, match="Missing required keyword argument: 'out_sharding'"):
            auto_axes(lambda x: x)(jnp.zeros(2))
        with pytest.raises(ValueError, match=r"\['y'\] are not axes of the current mesh"):
            auto_axes(lambda x: x, axes="y", out_sharding=P())(jnp.zeros(2))


def test_what_callers_give_comes_before_what_was_given():
    where = NamedSharding(mesh(), P("x"))

    @auto_axes(out_sharding=P())
    def doubled(v, *, by=2):
        return v * by

    @explicit_axes(in_sharding=(P(), P()))
    def added(v, w, *, more=0):
        return v + w + more

    with calque.set_mesh(mesh()):
        assert doubled(jnp.ones(2), by=3, out_sharding=P("x")).sharding == where
        assert doubled(jnp.ones(2)).sharding.spec == P()
        total = added(jnp.ones(2), jnp.ones(2), more=1, in_sharding=(P("x"), P("x")))
        assert total.sharding == where and total.tolist() == [3, 3]
    assert doubled.__name__ == "doubled" and added.__name__ == "added"


def test_refusals():
    f = explicit_axes(lambda v: v)
    with calque.set_mesh(mesh()):
        with pytest.raises(TypeError, match="Missing required keyword argument: 'in_sharding'"):
            f(jnp.ones(2))
        with pytest.raises(ValueError, match=r"\['z'\] are not axes of the current mesh"):
            explicit_axes(lambda v: v, axes=("x", "z"), in_sharding=P())(jnp.ones(2))
        with pytest.raises(TypeError, match="auto_axes"):
            auto_axes(3, out_sharding=P())(jnp.ones(2))


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


def test_without_a_mesh_there_is_nothing_to_decide_about():
    same = calque.sharding.auto_axes(lambda x: x + 1, out_sharding=calque.P())
    assert calque.jit(same)(1.0) == same(1.0) == 2
    with pytest.raises(Exception, match="mesh"):
        calque.sharding.auto_axes(lambda x: x, out_sharding=calque.P("x"))(jnp.ones(2))
