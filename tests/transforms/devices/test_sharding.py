"""Meshes, partition specs, shardings; jit with shardings; arrays made of parts."""

import pickle

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.experimental import checkify
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


def test_partition_specs():
    assert [repr(s) for s in (P(), P("x"), P("x", ("x", "y"), None), P(("x",)), P(("x", "y")))] == [
        "P()", "P('x',)", "P('x', ('x', 'y'), None)", "P('x',)", "P(('x', 'y'),)",
    ]  # fmt: skip
    assert (
        repr(P("x", unreduced={"y"})) == "P('x', unreduced={'y'})"
        and repr(P(P.UNCONSTRAINED)) == "P(UNCONSTRAINED,)"
    )
    assert (
        P("x") == P(("x",)) != P("x", None) and P("x") != ("x",) and hash(P("x")) == hash(P(("x",)))
    )
    assert (
        len(P("x", None)) == 2
        and P("x", "y")[1] == "y"
        and tuple(P("x")) == ("x",)
        and P("x") + P("y") == P("x", "y")
    )
    assert P("x", "y").index("y") == 1 and pickle.loads(pickle.dumps(P("x", None))) == P("x", None)


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
        assert lax.with_sharding_constraint(jnp.ones(2), P("x")).sharding == NamedSharding(
            mesh, P("x")
        )
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
def test_arrays_know_their_parts():
    s = NamedSharding(square(), P("x", None))
    x = calque.device_put(jnp.arange(16.0).reshape(4, 4), s)
    assert (
        x.sharding is s
        and x.device is s
        and len(x.devices()) == 4
        and x.committed
        and not x.is_fully_replicated
    )
    assert [(p.device.id, p.replica_id) for p in x.addressable_shards] == [
        (0, 0),
        (1, 1),
        (2, 0),
        (3, 1),
    ]
    part = x.global_shards[2]
    np.testing.assert_array_equal(part.data, np.arange(16.0).reshape(4, 4)[2:])
    assert part.data.device.id == 2
    assert repr(part).startswith(
        "Shard(device=CpuDevice(id=2), index=(slice(2, 4, None), slice(None, None, None)),"
        " replica_id=0, data=[["
    )
    np.testing.assert_array_equal(x.addressable_data(0), np.arange(8.0).reshape(2, 4))
    keys = calque.device_put(
        calque.random.split(calque.random.key(0), 4), NamedSharding(square(), P("x"))
    )
    assert keys.addressable_shards[2].data.shape == (2,)
    with pytest.raises(
        ValueError,
        match="valid for values of rank at least 2, but was applied to a value of rank 1",
    ):
        calque.device_put(jnp.ones(4), s)


@four_devices
def test_shardings_follow_values():
    x = calque.device_put(jnp.arange(16.0).reshape(4, 4), NamedSharding(square(), P("x", None)))
    f = calque.jit(lambda v: (jnp.sin(v) + 1, v.sum(0), v.T))
    cases = [
        (jnp.sin(x), P("x", None)), (x.sum(), P()), (x.sum(1), P("x")), (x @ x.T, P("x", None)),
        (x.T, P(None, "x")), (x[0], P()),
        (x.reshape(16), P("x")), (x.reshape(2, 2, 4), P("x")), (x + 1, P("x", None)),
        (x * x, P("x", None)),
        (x[:, 1:], P("x", None)), (jnp.where(x > 1, x, 0.0), P("x", None)), (jnp.sort(x, 0), P()),
        (x[:, None], P("x")),
        (f(x)[0], P("x", None)), (f(x)[1], P()), (f(x)[2], P(None, "x")), (x.astype(int), P("x",
        None)),
    ]  # fmt: skip
    for i, (y, want) in enumerate(cases):
        assert y.sharding.spec == want, (i, y.sharding)
    assert f(jnp.ones((4, 4)))[0].sharding == SingleDeviceSharding(calque.devices()[0])
    compiled = f.lower(x).compile()
    assert compiled(x)[0].sharding.spec == P("x", None)


@four_devices
def test_jit_with_shardings():
    s, r = NamedSharding(square(), P("x")), NamedSharding(square(), P())
    f = calque.jit(
        lambda a, b: (a + b, {"t": a.sum()}), in_shardings=(s, r), out_shardings=(s, None)
    )
    for _ in range(2):
        u, v = f(jnp.arange(4.0), jnp.ones(4))
        np.testing.assert_array_equal(u, [1, 2, 3, 4])
        assert u.sharding == s and v["t"].sharding.spec == P()
    np.testing.assert_array_equal(
        calque.grad(lambda a: f(a, jnp.ones(4))[0].sum())(jnp.ones(4)), [1] * 4
    )
    np.testing.assert_array_equal(
        calque.vmap(f, (None, 0))(jnp.ones(4), jnp.ones((3, 4)))[0], 2 * np.ones((3, 4))
    )
    g = calque.jit(lambda a, n: a * n, static_argnums=1, in_shardings=(s,), out_shardings=r)
    assert g(jnp.ones(4), 3).sharding == r
    with calque.set_mesh(square()):
        assert calque.jit(lambda a: a, out_shardings=P("y"))(jnp.ones(4)).sharding.spec == P("y")


@four_devices
def test_jit_with_shardings_refuses():
    s = NamedSharding(square(), P("x"))

    def same(a):
        return a

    with pytest.raises(ValueError, match="dimension size is 3"):
        calque.jit(same, in_shardings=s)(jnp.ones(3))
    with pytest.raises(
        ValueError,
        match=(
            r"pytree key path a is incompatible .* rank 0. For scalars the PartitionSpec should be"
            r" P\(\)"
        ),
    ):
        calque.jit(same, in_shardings=s)(1.0)
    with pytest.raises(ValueError, match="dimension size is 3"):
        calque.jit(same, out_shardings=s)(jnp.ones(3))
    with pytest.raises(
        ValueError,
        match="wrong length: got a tuple or list of length 2 for an args tuple of length 1",
    ):
        calque.jit(same, in_shardings=(s, s))(jnp.ones(4))
    with pytest.raises(ValueError, match="pjit out_shardings"):
        calque.jit(same, out_shardings=(s, s))(jnp.ones(4))
    with pytest.raises(ValueError, match="does not support kwargs"):
        calque.jit(same, in_shardings=s)(a=jnp.ones(4))
    with pytest.raises(
        ValueError, match=r"does not match the sharding on the respective arg(.|\n)*P\('y',\)"
    ):
        calque.jit(same, in_shardings=s)(
            calque.device_put(jnp.ones(4), NamedSharding(square(), P("y")))
        )
    with pytest.raises(RuntimeError, match="requires a non-empty mesh"):
        calque.jit(same, in_shardings=P("x"))(jnp.ones(4))


@four_devices
def test_constraints():
    s = NamedSharding(square(), P("x"))
    f = calque.jit(lambda a: lax.with_sharding_constraint({"v": a * 2}, {"v": s})["v"] + 1)
    for _ in range(2):
        assert f(jnp.ones(4)).sharding.spec == P("x")
    text = str(calque.make_jaxpr(lambda a: lax.with_sharding_constraint(a, s))(jnp.ones(4)))
    assert "sharding_constraint[" in text and "sharding=NamedSharding(mesh=Mesh('x': 2" in text
    batched = calque.vmap(lambda a: lax.with_sharding_constraint(a, s))(jnp.ones((3, 4)))
    assert batched.sharding.spec == P(None, "x")
    np.testing.assert_array_equal(calque.grad(lambda a: f(a).sum())(jnp.ones(4)), [2] * 4)


def test_the_sharding_of_a_type_without_a_mesh_places_nothing():
    def f(x):
        kept = calque.typeof(x).sharding
        return x + calque.random.normal(calque.random.key(0), x.shape, out_sharding=kept)

    x = jnp.ones(3)
    for made in (f(x), calque.jit(f)(x)):
        assert made.sharding == x.sharding and made.devices() == x.devices()
    primitives = [e.primitive.name for e in calque.make_jaxpr(f)(x).eqns]
    assert "sharding_constraint" not in primitives


@four_devices
def test_placed_values_may_be_looked_at_by_what_has_no_results():
    x = calque.device_put(jnp.arange(4.0), NamedSharding(square(), P("x")))
    checkify.check(x[0] == 0, "the first is {}", x)  # its payload is placed
    with pytest.raises(ValueError, match="the first is"):
        checkify.check(x[0] == 1, "the first is {}", x)


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
