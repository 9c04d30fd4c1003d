"""Devices: how many there are, what they say of themselves, putting values on them."""

import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from tests.transforms.devices.four_devices import four_devices


def test_lists():
    n = calque.device_count()
    assert len(calque.devices()) == len(calque.local_devices()) == calque.local_device_count() == n
    assert calque.devices("cpu") == calque.devices() and [d.id for d in calque.devices()] == list(
        range(n)
    )
    assert (
        calque.process_count() == 1
        and calque.process_index() == 0
        and calque.default_backend() == "cpu"
    )
    with pytest.raises(RuntimeError, match="Unknown backend gpu"):
        calque.devices("gpu")


def test_attributes():
    d = calque.devices()[0]
    assert (repr(d), str(d), d.platform, d.device_kind) == (
        "CpuDevice(id=0)",
        "cpu:0",
        "cpu",
        "cpu",
    )
    assert d.id == d.process_index == d.local_hardware_id == 0
    assert (
        pickle.loads(pickle.dumps(d)) is d
        and copy.deepcopy(d) is d
        and isinstance(d, calque.Device)
    )
    assert d.default_memory().kind == "device" and d.memory("device").device is d
    with pytest.raises(ValueError, match="memory kind: hbm"):
        d.memory("hbm")


def test_arrays_that_were_never_placed():
    x = jnp.arange(6.0).reshape(2, 3)
    d = calque.devices()[0]
    assert x.device is d and x.devices() == {d} and not x.committed
    assert x.sharding == calque.sharding.SingleDeviceSharding(d)
    assert x.is_fully_replicated and x.is_fully_addressable
    (shard,) = x.addressable_shards
    assert shard.device is d and shard.replica_id == 0 and shard.index == (slice(None), slice(None))
    np.testing.assert_array_equal(shard.data, x)


def test_device_put_of_trees():
    d = calque.devices()[-1]
    out = calque.device_put({"a": 1.0, "b": [np.arange(3), None]}, {"a": d, "b": None})
    assert (
        float(out["a"]) == 1
        and out["a"].devices() == {d}
        and out["b"][0].shape == (3,)
        and out["b"][1] is None
    )
    assert calque.device_put(2.0).weak_type and calque.device_put(np.float32(2)).dtype == np.float32
    np.testing.assert_array_equal(
        calque.jit(lambda x: calque.device_put(x, d) + 1)(jnp.ones(2)), [2, 2]
    )
    np.testing.assert_array_equal(
        calque.grad(lambda x: calque.device_put(x, d).sum())(jnp.ones(2)), [1, 1]
    )


def test_device_put_refuses():
    with pytest.raises(ValueError, match=r"invalid value: cpu\. .* calque.devices\('cpu'\)\[0\]"):
        calque.device_put(1.0, "cpu")
    with pytest.raises(ValueError, match=r"A device is calque.devices\('xla_cpu'\)\[3\]"):
        calque.device_put(1.0, "xla_cpu:3")  # as a device prints itself
    d = calque.devices()[0]
    with pytest.raises(ValueError, match=r"lengths of list at key path\n    device_put device"):
        calque.device_put([1.0, 2.0], [d, d, d])
    with pytest.raises(ValueError, match="Please set a mesh"):
        calque.device_put(jnp.ones(2), calque.P("x"))


def test_device_get():
    out = calque.device_get({"a": jnp.arange(3), "b": "text"})
    assert isinstance(out["a"], np.ndarray) and out["b"] == "text"


@pytest.mark.parametrize("value", ["0", "two"])
def test_the_number_must_be_one(value):
    env = {**os.environ, "CALQUE_NUM_CPU_DEVICES": value}
    done = subprocess.run(
        [sys.executable, "-c", "import calque"], env=env, capture_output=True, text=True
    )
    assert "CALQUE_NUM_CPU_DEVICES must be a positive integer" in done.stderr


@four_devices
def test_results_follow_their_operands():
    a, b = calque.devices()[1], calque.devices()[2]
    x = calque.device_put(jnp.arange(4.0), a)
    assert x.device is a and x.committed and not jnp.ones(4).committed
    twice = calque.jit(lambda v: v * 2)
    assert twice(jnp.arange(4.0)).device is calque.devices()[0]
    for y in (
        x + 1,
        x * jnp.ones(4),
        2 / x[1:],
        jnp.sin(x),
        x.sum(),
        twice(x),
        jnp.concatenate([x, x]),
        x @ x,
    ):
        assert y.device is a, y
    assert twice(jnp.arange(4.0)).device is calque.devices()[0]
    assert x.to_device(b).device is b and x.device is a
    z = calque.device_put(jnp.ones(4), b)
    for f in (lambda u, v: u + v, calque.jit(lambda u, v: u + v)):
        with pytest.raises(
            ValueError, match=r"incompatible devices .* device ids \[1\] .* device ids \[2\]"
        ):
            f(x, z)
