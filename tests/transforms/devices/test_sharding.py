"""Meshes, partition specs, shardings; jit with shardings; arrays made of parts."""

import pickle

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.sharding import (
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    PartitionSpec,
    SingleDeviceSharding,
)
from tests.transforms.devices.four_devices import four_devices

P = PartitionSpec


def square():
    return Mesh(np.array(calque.devices()[:4]).reshape(2, 2), ("x", "y"))


def test_meshes_of_one_device():
    mesh = calque.make_mesh((1, 1), ("x", "y"))
    assert str(mesh) == "Mesh('x': 1, 'y': 1, axis_types=(Explicit, Explicit))"
    assert (
        repr(mesh)
        == "Mesh(axis_sizes=(1, 1), axis_names=('x', 'y'), axis_types=(Explicit, Explicit))"
    )
    auto = calque.make_mesh((1, 1), ("x", "y"), (AxisType.Auto,) * 2)
    assert (
        auto.auto_axes == ("x", "y")
        and auto != mesh
        and auto == auto.update()
        and hash(auto) == hash(auto.update())
    )
    assert (
        mesh.size == 1
        and dict(mesh.shape) == {"x": 1, "y": 1}
        and not mesh.empty
        and pickle.loads(pickle.dumps(mesh)) == mesh
    )
    assert (
        repr(AbstractMesh((2, 3), ("x", "y")))
        == "AbstractMesh('x': 2, 'y': 3, axis_types=(Auto, Auto))"
    )
    with pytest.raises(ValueError, match=r"devices.ndim == 1 and len\(axis_names\) == 2"):
        Mesh(np.array(calque.devices()), ("x", "y"))
    with pytest.raises(ValueError, match="must differ"):
        Mesh(np.array(calque.devices()[:1]).reshape(1, 1), ("x", "x"))
    with pytest.raises(ValueError, match=r"must be >= the product of mesh_shape \(64,\)"):
        calque.make_mesh((64,), ("x",))
    with pytest.raises(TypeError, match="devices must be those of"):
        Mesh(np.array([1]), ("x",))


def test_the_current_mesh():
    mesh = calque.make_mesh((1,), ("x",))
    assert calque.sharding.get_mesh().empty and str(calque.sharding.get_mesh()) == "Mesh()"
    assert repr(calque.sharding.get_abstract_mesh()) == "AbstractMesh((), axis_types=())"
    with calque.set_mesh(mesh):
        assert (
            calque.sharding.get_mesh() is mesh
            and calque.sharding.get_abstract_mesh().axis_names == ("x",)
        )
        assert calque.reshard(jnp.ones(2), P("x")).sharding == NamedSharding(mesh, P("x"))
        with calque.sharding.use_mesh(calque.make_mesh((1,), ("z",))) as inner:
            assert calque.sharding.get_mesh() is inner
    assert calque.sharding.get_mesh().empty
    calque.set_mesh(mesh)
    assert calque.sharding.get_mesh() is mesh
    calque.set_mesh(None)
    assert calque.sharding.get_mesh().empty
    with mesh:
        assert calque.device_put(jnp.ones(2), P("x")).sharding.spec == P("x")
    with pytest.raises(RuntimeError, match="requires a non-empty mesh"):
        lax.with_sharding_constraint(jnp.ones(2), P("x"))


def test_single_device_shardings():
    d = calque.devices()[0]
    s = SingleDeviceSharding(d)
    assert (
        repr(s) == "SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)"
        and s == SingleDeviceSharding(d)
    )
    assert s.shard_shape((3, 2)) == (3, 2) and s.device_set == {d} and s.is_fully_replicated
    assert s.devices_indices_map((3,)) == {d: (slice(None),)}
    with pytest.raises(ValueError, match="Got memory kind: hbm"):
        SingleDeviceSharding(d, memory_kind="hbm")


@four_devices
def test_named_shardings():
    s = NamedSharding(square(), P("x", None))
    assert (
        repr(s)
        == "NamedSharding(mesh=Mesh('x': 2, 'y': 2, axis_types=(Auto, Auto)), spec=P('x', None),"
        " memory_kind=device)"
    )
    assert s.shard_shape((4, 4)) == (2, 4) and s.num_devices == 4 and not s.is_fully_replicated
    assert [i[0].start for i in s.devices_indices_map((4, 4)).values()] == [0, 0, 2, 2]
    assert s.is_equivalent_to(NamedSharding(square(), P("x")), 2) and s != NamedSharding(
        square(), P("x")
    )
    assert NamedSharding(square(), P()).is_equivalent_to(NamedSharding(square(), P(None)), 1)
    assert (
        not s.is_equivalent_to(NamedSharding(square(), P("y")), 2)
        and pickle.loads(pickle.dumps(s)) == s
    )
    both = NamedSharding(square(), P(("y", "x")))
    assert [i[0].start for i in both.devices_indices_map((8,)).values()] == [0, 4, 2, 6]
    with pytest.raises(
        ValueError, match=r"Resource axis: z of P\('z',\) is not found in mesh: \('x', 'y'\)"
    ):
        NamedSharding(square(), P("z"))
    with pytest.raises(ValueError, match="duplicate entries for `x`"):
        NamedSharding(square(), P("x", "x"))
    with pytest.raises(
        ValueError, match="array axis 0 is partitioned 2 times, but the dimension size is 3"
    ):
        s.shard_shape((3, 4))


@four_devices
def test_arrays_from_parts():
    s = NamedSharding(square(), P("x", "y"))
    whole = np.arange(16.0, dtype=np.float32).reshape(4, 4)
    x = calque.make_array_from_callback((4, 4), s, lambda i: whole[i])
    np.testing.assert_array_equal(x, whole)
    assert x.sharding == s
    with pytest.raises(
        ValueError, match=r"Expected shard shape \(2, 2\) doesn't match .* \(2, 3\)"
    ):
        calque.make_array_from_callback((4, 4), s, lambda i: np.ones((2, 3)))
    parts = [
        calque.device_put(whole[2 * (k // 2) :][:2, 2 * (k % 2) :][:, :2], d)
        for k, d in enumerate(calque.devices())
    ]
    np.testing.assert_array_equal(
        calque.make_array_from_single_device_arrays((4, 4), s, parts[::-1]), whole
    )
    row = NamedSharding(square(), P("x"))
    parts = [calque.device_put(jnp.ones(4) * k, d) for k, d in enumerate(calque.devices())]
    joined = calque.make_array_from_single_device_arrays((8,), row, parts)
    np.testing.assert_array_equal(joined, [0, 0, 0, 0, 2, 2, 2, 2])
    with pytest.raises(ValueError, match=r"Expected 4 per-device arrays .* but got 3"):
        calque.make_array_from_single_device_arrays((8,), row, parts[:3])
    with pytest.raises(ValueError, match=r"distinct devices, but got device IDs \[0, 0, 0, 0\]"):
        calque.make_array_from_single_device_arrays((8,), row, [jnp.ones(4)] * 4)
    assert calque.make_array_from_process_local_data(row, np.ones(8)).sharding == row
    with pytest.raises(ValueError, match="on a single process"):
        calque.make_array_from_process_local_data(row, np.ones(8), (16,))


def test_unknown_parts_of_a_sharding_are_refused():
    s = calque.NamedSharding(calque.make_mesh((1,), ("x",)), calque.P("x"))
    assert s.update(spec=(None, "x")).spec == calque.P(None, "x") and s.update() == s
    with pytest.raises(TypeError, match="unexpected keyword argument 'specs'"):
        s.update(specs=calque.P())
