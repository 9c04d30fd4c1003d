"""The devices of XLA: what they say of themselves, and what asks for those that are not there."""

import pickle

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import extend
from calque.core.config import config
from calque.sharding import SingleDeviceSharding
from calque.transforms.devices.program_devices import common
from calque.xla.devices import device_of
from tests.xla.mlir import needs_jaxlib


@needs_jaxlib
def test_what_devices_say_of_themselves() -> None:
    device = jax.devices("xla_cpu")[0]
    shown = (repr(device), str(device), device.platform, device.device_kind)
    assert shown == ("XlaCpuDevice(id=0)", "xla_cpu:0", "cpu", "cpu")
    assert device.engine == "xla_cpu" and device.default_memory().platform == "cpu"
    assert device.client.platform == "cpu" and jax.devices()[0] != device
    assert jax.device_count("xla_cpu") == len(jax.local_devices(backend="xla_cpu"))
    assert pickle.loads(pickle.dumps(device)) is device
    device.memory_stats()  # whatever the client keeps


@needs_jaxlib
def test_devices_as_jaxlib_knows_them_name_the_same() -> None:
    device = jax.devices("xla_cpu")[0]
    expected = jax.sharding.SingleDeviceSharding(device)
    assert jax.sharding.make_single_device_sharding(device.xla, memory_kind="device") == expected
    with pytest.raises(TypeError, match="takes a device"):
        jax.sharding.SingleDeviceSharding(object())  # type: ignore[arg-type]


@needs_jaxlib
def test_devices_that_are_not_there() -> None:
    with pytest.raises(ValueError, match="there is no device xla_cpu:99"):
        device_of(99)


def test_platforms_that_are_not_there_name_the_known_ones() -> None:
    with pytest.raises(RuntimeError, match=r"Unknown backend tpu.*'cpu', 'xla_cpu'"):
        jax.devices("tpu")
    with pytest.raises(RuntimeError, match="Unknown backend gpu"):
        jax.jit(lambda x: x, backend="gpu")


@needs_jaxlib
def test_platforms_are_what_programs_for_jax_ask_for() -> None:
    x = jax.device_put(jnp.ones(3), jax.devices("xla_cpu")[0])
    assert any(y is x for y in jax.live_arrays("cpu"))
    with config.override("calque_platforms", "xla_cpu"):
        (platform,) = {d.platform for d in jax.devices()}
        assert platform == jax.default_backend() == "cpu"
        assert extend.backend.backends()["xla_cpu"] is jax.devices()[0].client
    where = [SingleDeviceSharding(jax.devices(name)[0]) for name in ("xla_cpu", "cpu")]
    with pytest.raises(ValueError, match=r"on platform XLA_CPU.* on platform CPU"):
        common(where, [jax.typeof(x)] * 2, "f")


@needs_jaxlib
@pytest.mark.parametrize("platforms", [None, "xla_cpu"])
def test_the_default_device_chooses_the_engine(platforms: str | None) -> None:
    double = jax.jit(lambda x: x * 2)
    on_xla, here = jax.devices("xla_cpu")[0], jax.devices("cpu")[0]
    before = jax.config.calque_platforms
    try:
        jax.config.update("calque_platforms", platforms)
        for asked in (on_xla, "xla_cpu"):
            with jax.default_device(asked):
                x = double(jnp.arange(3.0))
                assert x.device == (x + 1).device == jax.random.key(0).device == on_xla
                assert "HloModule" in double.lower(x).compile().as_text()
        for asked in (here, "cpu"):
            with jax.default_device(asked):
                assert double(x).device == (x @ x).device == jnp.ones(2).device == here
                assert "HloModule" not in double.lower(x).compile().as_text()
        np.testing.assert_array_equal(double(x), [0, 4, 8])
    finally:
        jax.config.update("calque_platforms", before)
