"""Tests that need four devices run in a process of their own that has them: see
test_four_devices.py."""

import pytest

import calque

four_devices = pytest.mark.skipif(
    calque.device_count() < 4, reason="runs in the process of test_four_devices.py"
)
