"""Devices under the names that libraries ask for."""

import pytest

import calque
from calque.compat.private import xla_bridge
from calque.core.backends import PLUGIN_PATHS
from calque.xla.plugin_libraries import libraries
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
from calque.core.backends import PLUGIN_PATHS
from calque.xla.plugin_libraries import libraries
assert xla_bridge._backends == {} and not xla_bridge.backends_are_initialized()
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=3"
assert calque.device_count() == 3
print(list(xla_bridge._backends), xla_bridge._backends["cpu"].device_count())"""
    assert run("-c", code, XLA_FLAGS="") == "['cpu'] 3"


def test_backends_are_those_of_the_library():
    assert xla_bridge.get_backend().platform == "cpu" and "cpu" in xla_bridge.backends()


def test_plugins_are_registered_by_their_libraries(monkeypatch):
    monkeypatch.setenv(PLUGIN_PATHS, "abacus:/a.so")
    xla_bridge.register_plugin("rule", library_path="/b.so", options=None)
    xla_bridge.register_plugin("dial", priority=500, library_path="/c.so")
    assert list(libraries().items())[-3:] == [
        ("dial", "/c.so"), ("abacus", "/a.so"), ("rule", "/b.so"),
    ]  # fmt: skip
    with pytest.raises(NotImplementedError, match="'rule' is known by library_path alone"):
        xla_bridge.register_plugin("rule")
    with pytest.raises(NotImplementedError, match="factory cannot be taken here"):
        xla_bridge.register_plugin("rule", library_path="/b.so", factory=list)
