"""`jax._src.sharding_impls`, as programs and as jaxlib's machine code ask it."""

import pytest

import calque
from calque.compat.private import sharding_impls
from calque.xla import jaxlib


def test_one_device() -> None:
    (device, *_) = calque.devices()
    made = sharding_impls.make_single_device_sharding(device)
    assert made == calque.sharding.SingleDeviceSharding(device)
    with pytest.raises(ValueError, match="memory"):
        sharding_impls.make_single_device_sharding(device, memory_kind="nowhere")


def test_devices_of_jaxlib_have_its_own_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(jaxlib, "one_device", asked.append)
    foreign = object()
    sharding_impls.make_single_device_sharding(foreign)
    assert asked == [foreign]
