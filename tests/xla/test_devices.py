"""The devices of XLA: what they say of themselves, and what asks for those that are not there."""

import pickle

import pytest

import calque as jax
from calque.xla.devices import device_of
from tests.xla.mlir import needs_jaxlib


@needs_jaxlib
def test_what_devices_say_of_themselves() -> None:
    device = jax.devices("xla_cpu")[0]
    shown = (repr(device), str(device), device.platform, device.device_kind)
    assert shown == ("XlaCpuDevice(id=0)", "xla_cpu:0", "xla_cpu", "cpu")
    assert device.client.platform == "cpu" and jax.devices()[0] != device
    assert jax.device_count("xla_cpu") == len(jax.local_devices(backend="xla_cpu"))
    assert pickle.loads(pickle.dumps(device)) is device
    device.memory_stats()  # whatever the client keeps


@needs_jaxlib
def test_devices_that_are_not_there() -> None:
    with pytest.raises(ValueError, match="there is no device xla_cpu:99"):
        device_of(99)


def test_platforms_that_are_not_there_name_the_known_ones() -> None:
    with pytest.raises(RuntimeError, match=r"Unknown backend tpu.*'cpu', 'xla_cpu'"):
        jax.devices("tpu")
    with pytest.raises(RuntimeError, match="Unknown backend gpu"):
        jax.jit(lambda x: x, backend="gpu")
