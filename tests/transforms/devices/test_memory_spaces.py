"""Memories of the host and of the device: where arrays say that they are."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.ad_checkpoint import checkpoint_name
from calque.memory import Space
from calque.sharding import NamedSharding, SingleDeviceSharding
from calque.sharding import PartitionSpec as P
from tests.xla.mlir import needs_jaxlib

KINDS = ("device", "pinned_host", "unpinned_host")


def device(platform):
    return calque.devices(platform)[0]


@pytest.fixture(params=[None, pytest.param("xla_cpu", marks=needs_jaxlib)])
def kinds(request):
    """The sharding in each memory of a device."""
    d = device(request.param)
    return {kind: SingleDeviceSharding(d, memory_kind=kind) for kind in KINDS}


def kind_of(x):
    return x.sharding.memory_kind


def test_memories_of_a_device():
    d = calque.devices()[0]
    assert [m.kind for m in d.addressable_memories()] == list(KINDS)
    assert d.default_memory() == d.memory("device") == d.addressable_memories()[0]
    assert d.memory("pinned_host") != d.memory("device") and len({*d.addressable_memories()}) == 3
    assert d.memory("pinned_host").addressable_by_devices() == [d]
    assert (d.default_memory().process_index, d.default_memory().platform) == (0, d.platform)
    with pytest.raises(ValueError, match=r"memory kinds: device, pinned_host, .* kind: hbm"):
        d.memory("hbm")


def test_shardings_tell_memories_apart(kinds):
    own, host = kinds["device"], kinds["pinned_host"]
    assert own == SingleDeviceSharding(own.device_order[0]) != host
    assert host.with_memory_kind("device") == own and "memory_kind=pinned_host)" in repr(host)
    assert not host.is_equivalent_to(own, 1) and host.is_equivalent_to(host, 1)
    assert pickle.loads(pickle.dumps(host)) == host
    mesh = calque.make_mesh((1,), ("x",))
    named = NamedSharding(mesh, P("x"), memory_kind="unpinned_host")
    assert named.update(spec=P()).memory_kind == "unpinned_host"
    assert not named.is_equivalent_to(NamedSharding(mesh, P("x")), 1)
    assert kind_of(calque.device_put(jnp.ones(2), named)) == "unpinned_host"
    with pytest.raises(ValueError, match="Got memory kind: hbm"):
        named.with_memory_kind("hbm")


def test_arrays_go_to_memories_and_back(kinds):
    for a in KINDS:
        x = calque.device_put(np.arange(4.0), kinds[a])
        assert kind_of(x) == a and x.addressable_shards[0].data.sharding == kinds[a]
        for b in KINDS:
            y = calque.device_put(x, kinds[b])
            assert y.sharding == kinds[b] and y.tolist() == [0, 1, 2, 3]
    host = calque.device_put(x, Space.Host)
    assert kind_of(host) == "pinned_host" and host.devices() == x.devices()
    assert kind_of(calque.device_put(host, Space.Device)) == "device"
    assert kind_of(calque.device_put(host, Space.Any)) == "pinned_host"
    assert calque.device_put(host, Space.Device).tolist() == [0, 1, 2, 3]


def test_results_are_where_their_operands_are(kinds):
    x = calque.device_put(jnp.arange(4.0), kinds["pinned_host"])
    double = calque.jit(lambda a: a * 2)
    for y in (x + 1, jnp.sin(x), x[0], x * x, double(x), double(x), double(double(x))):
        assert kind_of(y) == "pinned_host"
    here = calque.device_put(x, kinds["device"])
    for f in (jnp.add, calque.jit(lambda a, b: a + b)):
        with pytest.raises(ValueError, match=r"memory_space of all inputs .* must be the same"):
            f(x, here)
    assert double(here).tolist() == double(x).tolist() == [0, 2, 4, 6]


def test_programs_move_values(kinds):
    x = calque.device_put(jnp.arange(3.0), kinds["device"])
    there = calque.jit(lambda a: calque.device_put(a, Space.Host))
    assert kind_of(there(x)) == "pinned_host" and kind_of(there(there(x))) == "pinned_host"
    back = calque.jit(lambda a: calque.device_put(calque.device_put(a, Space.Host), Space.Device))
    assert kind_of(back(x)) == "device" and kind_of(back(there(x))) == "device"
    for kind in KINDS:
        put = calque.jit(lambda a, kind=kind: calque.device_put(a * 2, kinds[kind]))
        out = calque.jit(lambda a: a * 2, out_shardings=kinds[kind])
        for f in (put, out):
            assert kind_of(f(x)) == kind and f(x).tolist() == [0, 2, 4]
    told = calque.jit(lambda a: a + 1, in_shardings=kinds["pinned_host"])
    assert told(there(x)).tolist() == [1, 2, 3]
    for other in (x, jnp.ones(3)):
        with pytest.raises(ValueError, match="Got jit memory kind: pinned_host, arg memory kind"):
            told(other)


def test_parts_on_several_devices():
    mesh = calque.make_mesh((len(calque.devices()),), ("x",))
    host = NamedSharding(mesh, P("x"), memory_kind="pinned_host")
    x = calque.device_put(np.arange(8.0), host)
    assert kind_of(x) == kind_of(x + 1) == "pinned_host"
    assert {kind_of(s.data) for s in x.addressable_shards} == {"pinned_host"}
    moved = calque.jit(lambda a: calque.device_put(a, host.with_memory_kind("device")) * 2)(x)
    assert kind_of(moved) == "device" and moved.tolist() == [2 * i for i in range(8)]
    assert calque.jit(lambda a: a, out_shardings=host)(moved).sharding == host
    auto = calque.make_mesh((len(calque.devices()),), ("x",), (calque.sharding.AxisType.Auto,))
    there = NamedSharding(auto, P("x"), memory_kind="pinned_host")
    constrained = calque.jit(lambda a: lax.with_sharding_constraint(a, there))(moved)
    assert kind_of(constrained) == "pinned_host"
    made = calque.jit(lambda a: (a, calque.device_put(jnp.ones(3), Space.Host)))(moved)[1]
    assert kind_of(made) == "pinned_host" and made.sharding.device_set == moved.sharding.device_set


def test_transformations():
    def f(x):
        return calque.device_put(jnp.sin(x), Space.Host)

    x = jnp.arange(3.0)
    np.testing.assert_array_equal(calque.grad(lambda a: f(a).sum())(x), jnp.cos(x))
    assert kind_of(calque.grad(lambda a: f(a).sum())(x)) == "device"
    y, t = calque.jvp(f, (x,), (x,))
    assert kind_of(y) == kind_of(t) == "pinned_host"
    assert kind_of(calque.vmap(f)(x)) == "pinned_host"
    np.testing.assert_array_equal(calque.jit(calque.vmap(f))(x), jnp.sin(x))
    number = calque.value_and_grad(lambda a: calque.device_put(a, Space.Device) * 2)(1.0)
    assert (float(number[0]), float(number[1])) == (2, 2)
    assert str(calque.make_jaxpr(f)(x)).count("device_put[space=MemorySpace.Host]") == 1


def loss(policy):
    def f(x):
        def step(c, _):
            c = checkpoint_name(jnp.sin(c), "kept")
            return checkpoint_name(jnp.sin(c) * 2, "away"), None

        c, _ = lax.scan(step, checkpoint_name(jnp.cos(x), "away"), None, length=3)
        return c.sum()

    return f if policy is None else calque.checkpoint(f, policy=policy)


def test_checkpoints_keep_values_in_the_memory_of_the_host():
    policies = calque.checkpoint_policies
    policy = policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["kept"],
        names_which_can_be_offloaded=["away"],
        offload_src="device",
        offload_dst="pinned_host",
    )
    x = jnp.linspace(0.0, 1.0, 5)
    wanted = calque.grad(loss(None))(x)
    text = str(calque.make_jaxpr(calque.grad(loss(policy)))(x))
    assert text.count("MemorySpace.Host") == text.count("MemorySpace.Device") == 2
    for d in {calque.devices()[0], calque.devices("cpu")[0]}:
        found = calque.jit(calque.grad(loss(policy)))(calque.device_put(x, d))
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
        assert kind_of(found) == "device"
    both = policies.save_from_both_policies(policies.nothing_saveable, policy)
    assert str(calque.make_jaxpr(calque.grad(loss(both)))(x)).count("MemorySpace.Host") == 2
    with pytest.raises(ValueError, match=r"should not intersect .*'away'"):
        policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["away"],
            names_which_can_be_offloaded=["away"],
            offload_src="device",
            offload_dst="pinned_host",
        )


def test_products_are_kept_in_the_memory_of_the_host():
    policy = calque.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host")

    def f(x):
        return jnp.sin(jnp.sin(x @ x) @ x).sum()

    x = jnp.eye(3) * 0.5
    text = str(calque.make_jaxpr(calque.grad(calque.checkpoint(f, policy=policy)))(x))
    assert text.count("MemorySpace.Host") == text.count("MemorySpace.Device") == 2
    np.testing.assert_allclose(
        calque.jit(calque.grad(calque.checkpoint(f, policy=policy)))(x),
        calque.grad(f)(x),
        rtol=1e-6,
    )


def test_the_first_act_of_a_process_can_be_to_choose_a_memory():
    act = "calque.device_put(1.0, calque.memory.Space.Host).sharding.memory_kind"
    code = f"import calque; print({act})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "pinned_host\n", done.stderr
