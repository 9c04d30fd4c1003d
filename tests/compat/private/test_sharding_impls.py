"""Shardings under the names that libraries, and the machine code of jaxlib, ask for."""

import pytest

import calque
from calque.compat.private import sharding_impls
from calque.xla import jaxlib


def test_the_sharding_of_one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    (device,) = calque.devices()[:1]
    made = sharding_impls.make_single_device_sharding(device)
    assert made == calque.sharding.SingleDeviceSharding(device)
    of_jaxlib = object()
    monkeypatch.setattr(jaxlib, "one_device", lambda d: ("one of jaxlib", d))
    found = sharding_impls.make_single_device_sharding(of_jaxlib)
    assert found == ("one of jaxlib", of_jaxlib)
