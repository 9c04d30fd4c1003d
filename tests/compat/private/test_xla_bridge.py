"""Devices under the names that libraries ask for."""

import calque
from calque.compat.private import xla_bridge


def test_devices_are_those_of_the_library():
    assert xla_bridge.devices() == calque.devices() and xla_bridge.device_count() >= 1
    assert xla_bridge.backends_are_initialized() is True  # they were asked for
    assert xla_bridge._backends == {} and xla_bridge.default_backend() == "cpu"
