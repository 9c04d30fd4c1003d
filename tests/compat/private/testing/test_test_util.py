"""What tests of libraries ask before they choose what to run."""

import unittest

import pytest

import calque
from calque.compat.private.testing import test_util


def test_what_tests_ask_of_devices():
    mesh = test_util.create_mesh((1,), ("x",))
    assert mesh.shape == {"x": 1} and mesh.axis_types == (calque.sharding.AxisType.Auto,)
    assert test_util.create_mesh((1,), ("x",), iota_order=True) == mesh
    with pytest.raises(unittest.SkipTest, match="1000 devices"):
        test_util.create_mesh((1000,), ("x",))
    own = calque.default_backend()
    assert test_util.device_under_test() == own and test_util.test_device_matches([own, "tpu"])
    assert not test_util.test_device_matches(["no platform"])
    if own == "cpu":
        asked = (test_util.is_device_tpu, test_util.is_device_cuda, test_util.is_device_rocm)
        assert not any(ask() for ask in asked)
        assert not test_util.is_cuda_compute_capability_at_least("9.0")
