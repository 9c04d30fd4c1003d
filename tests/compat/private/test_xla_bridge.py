"""Devices under the names that libraries ask for."""

import pytest

import calque
from calque.compat.private import xla_bridge
from tests.compat.shared import run


def test_devices_are_those_of_the_library():
    assert xla_bridge.devices() == calque.devices() and xla_bridge.device_count() >= 1
    assert xla_bridge.backends_are_initialized() is True  # they were asked for
    assert xla_bridge.default_backend() == "cpu"
    with pytest.raises(AttributeError, match="has no attribute 'clients'"):
        _ = xla_bridge.clients


def test_there_is_no_backend_before_devices_are_asked_for():
    code = """
import os
import calque
from calque.compat.private import xla_bridge
assert xla_bridge._backends == {} and not xla_bridge.backends_are_initialized()
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=3"
assert calque.device_count() == 3
print(list(xla_bridge._backends), xla_bridge._backends["cpu"].device_count())"""
    assert run("-c", code, XLA_FLAGS="") == "['cpu'] 3"
