"""What arrays say of where they live, and placing them."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.sharding import AxisType, Mesh, NamedSharding, SingleDeviceSharding
from calque.sharding import PartitionSpec as P
from calque.transforms.devices.sharding_arrays import device_put, placed_like, put_as_asked, shards
from tests.transforms.devices.four_devices import four_devices


def square():
    return Mesh(np.array(calque.devices()[:4]).reshape(2, 2), ("x", "y"))


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


def test_targets_may_be_trees_that_values_begin_with():
    d = calque.devices()[0]
    got = device_put({"a": 1.0, "b": (np.arange(2), np.arange(3))}, {"a": None, "b": d})
    assert all(isinstance(v, calque.Array) for v in calque.tree.leaves(got))
    np.testing.assert_array_equal(got["b"][1], np.arange(3))
    with pytest.raises(ValueError, match=r"tree prefix(.|\n)*Mismatch details"):
        device_put({"a": 1.0}, {"b": d})
    with pytest.raises(ValueError, match="Received invalid value: cpu"):
        device_put(1.0, {"a": "cpu"})


def test_memory_is_shared_unless_forbidden():
    x = jnp.arange(4.0)
    where = x.unsafe_buffer_pointer()
    assert device_put(x, calque.devices()[0]).unsafe_buffer_pointer() == where
    kept, apart = device_put((x, x), may_alias=(True, False))
    assert kept.unsafe_buffer_pointer() == where != apart.unsafe_buffer_pointer()
    np.testing.assert_array_equal(apart, x)
    with pytest.raises(ValueError, match="cannot be True at the same time"):
        device_put(x, donate=True, may_alias=True)
    with pytest.raises(ValueError, match="may_alias specification must be a tree prefix"):
        device_put((x, x), may_alias=(True,))


def test_arrays_that_were_never_placed():
    x = jnp.arange(3.0)
    d = calque.devices()[0]
    assert x.sharding == SingleDeviceSharding(d) and x.device is d and x.devices() == {d}
    assert not x.committed and x.is_fully_replicated and x.is_fully_addressable
    (part,) = shards(x)
    assert part.device is d and part.replica_id == 0
    np.testing.assert_array_equal(part.data, x)
    with pytest.raises(NotImplementedError, match="stream"):
        x.to_device(d, stream=1)
    with pytest.raises(ValueError, match="Please set a mesh"):
        device_put(x, P())
    x.delete()
    assert x._arrays is None and not x.committed
    with pytest.raises(RuntimeError, match=r"deleted with shape=f(loat)?32\[3\]"):
        x._check_if_deleted()


@four_devices
def test_values_go_where_others_are():
    s = NamedSharding(square(), P("x"))
    model = device_put(jnp.zeros(4), s)
    assert placed_like(jnp.ones(4), model).sharding is s
    traced = calque.jit(lambda v: placed_like(v, model))
    assert traced(jnp.ones(4)).sharding == s
    plain = jnp.ones(4)
    assert placed_like(plain, jnp.zeros(4)) is plain
    model.delete()
    assert placed_like(plain, model) is plain


@four_devices
def test_out_sharding_speaks_of_all_dimensions_of_explicit_meshes():
    mesh = calque.make_mesh((2, 2), ("x", "y"))
    x = jnp.ones((4, 4))
    assert put_as_asked(x, NamedSharding(mesh, P("x"))).sharding.spec == P("x", None)
    with calque.set_mesh(mesh):
        assert put_as_asked(x, P("y")).sharding == NamedSharding(mesh, P("y", None))
        with pytest.raises(ValueError, match="One of out_sharding's results"):
            put_as_asked(x, P("x", None, "y"))
    with pytest.raises(ValueError, match="passed to ones cannot contain axis names that are of"):
        put_as_asked(x, NamedSharding(square(), P("x")), "ones")


@four_devices
def test_nothing_goes_to_another_device_inside_a_map():
    def f(v):
        return calque.device_put(v, calque.devices()[1])

    with pytest.raises(ValueError, match="explicit device not allowed within shard_map"):
        calque.shard_map(f, mesh=square(), in_specs=P("x"), out_specs=P("x"))(jnp.ones(4))


@four_devices
def test_one_member_holds_a_sum_that_is_still_to_be_made():
    mesh = calque.make_mesh((2, 2), ("x", "y"))
    x = device_put(jnp.arange(4.0), NamedSharding(mesh, P("y", unreduced={"x"})))
    parts = np.stack([np.asarray(p.data) for p in shards(x)])
    np.testing.assert_array_equal(parts, [[0, 1], [2, 3], [0, 0], [0, 0]])


@four_devices
def test_arrays_like_a_placed_one_are_placed():
    lone = device_put(jnp.ones(3), calque.devices()[2])
    likes = [jnp.zeros_like, lambda x: jnp.full_like(x, 2), lambda x: calque.lax.full_like(x, 2)]
    for like in likes:
        assert like(lone).sharding == lone.sharding and like(lone).committed
        assert not like(jnp.ones(3)).committed
    for made in (jnp.zeros_like(lone, shape=(2,)), calque.lax.full_like(lone, 1, shape=(2,))):
        assert made.shape == (2,) and made.sharding == lone.sharding
    split = device_put(jnp.ones((8, 2)), NamedSharding(square(), P("x")))
    for like in likes:
        assert like(split).sharding == split.sharding
    assert not jnp.zeros_like(split, shape=(3,)).committed


def test_arrays_like_one_that_varies_vary():
    mesh = calque.make_mesh((calque.device_count(),), ("x",))

    def f(v):
        like = calque.eval_shape(lambda x: x.sum(), v)
        assert calque.typeof(like).vma == {"x"}
        found = [jnp.zeros_like(v), jnp.full_like(like, 1), calque.lax.full_like(v, 2, shape=(1,))]
        assert all(calque.typeof(x).vma == {"x"} for x in found)
        assert calque.typeof(jnp.zeros(3)).vma == set()
        return v + found[0] + found[1] + found[2]

    mapped = calque.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    x = jnp.ones(calque.device_count())
    assert mapped(x).tolist() == calque.jit(mapped)(x).tolist() == [4] * len(x)


@four_devices
def test_the_default_device_is_that_of_what_is_placed_nowhere():
    first, second, third = calque.devices()[:3]
    double = calque.jit(lambda x: x * 2)
    assert double(jnp.ones(2)).devices() == {first}
    with calque.default_device(second):
        x = jnp.arange(3.0)
        made = [x, x + 1, double(x), calque.jit(lambda: jnp.ones(3))(), calque.random.key(0)]
        assert all(y.devices() == {second} and not y.committed for y in made)
        placed = calque.device_put(x, third)
        assert {(placed + x).device, double(placed).device} == {third}
        assert calque.devices()[0] is first
    assert double(x).devices() == {first}
    try:
        calque.config.update("jax_default_device", third)
        assert jnp.ones(2).device == third
    finally:
        calque.config.update("jax_default_device", None)


@four_devices
def test_arrays_like_a_type_with_a_sharding_are_there():
    s = NamedSharding(square(), P("x", "y"))
    model = calque.ShapeDtypeStruct((4, 4), jnp.float32, sharding=s)
    likes = [jnp.zeros_like, jnp.empty_like, lambda x: calque.lax.full_like(x, 2)]
    for like in likes:
        assert like(model).sharding == s
        assert calque.jit(lambda like=like: like(model) + 1)().sharding == s
    assert jnp.ones_like(model, shape=(4, 4)).sharding == s
    assert jnp.ones_like(model, shape=(8, 4)).sharding != s


@four_devices
def test_parts_come_in_the_order_of_the_mesh():
    devices = [calque.devices()[i] for i in (2, 0, 3, 1)]
    x = calque.device_put(np.arange(4), NamedSharding(Mesh(np.array(devices), ("x",)), P("x")))
    assert [p.device for p in x.addressable_shards] == devices
    assert [p.data.tolist() for p in x.global_shards] == [[0], [1], [2], [3]]
    assert x.addressable_data(1).tolist() == [1]


@four_devices
def test_results_of_one_program_are_on_the_same_devices():
    s = NamedSharding(square(), P("x", "y"))
    f = calque.jit(lambda: (jnp.zeros(3), jnp.ones((4, 4))), out_shardings=(None, s))
    for _ in range(3):  # however the call is served
        whole, split = f()
        assert split.sharding == s and whole.sharding == NamedSharding(square(), P())
        assert whole.tolist() == [0, 0, 0]


@four_devices
def test_constants_of_a_program_are_placed_where_it_says():
    mesh = Mesh(np.array(calque.devices()[:4]).reshape(2, 2), ("x", "y"), (AxisType.Auto,) * 2)
    where, values = NamedSharding(mesh, P("x", "y")), np.arange(8.0).reshape(4, 2)
    for make in (jnp.array, calque.device_put):
        out = calque.jit(lambda: make(values, device=where))()
        assert out.sharding == where
        np.testing.assert_array_equal(out, values)


@four_devices
def test_memory_of_arrays_on_several_devices_has_no_single_address():
    mesh = Mesh(np.array(calque.devices()[:4]), ("x",))
    for spec in (P("x"), P()):
        x = calque.device_put(np.arange(4.0, dtype=np.float32), NamedSharding(mesh, spec))
        with pytest.raises(RuntimeError, match=r"only for unsharded arrays.* on 4 devices"):
            x.unsafe_buffer_pointer()
        for f in (np.from_dlpack, lambda a: a.__dlpack__(), lambda a: a.__dlpack_device__()):
            with pytest.raises(BufferError, match=r"Sharding over 4 devices.*addressable_shards"):
                f(x)
        shard = x.addressable_shards[3].data
        assert shard.unsafe_buffer_pointer() and np.from_dlpack(shard)[-1] == 3
