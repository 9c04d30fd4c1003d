"""The CPUs beside devices: of this process' own, themselves."""

import numpy as np
import pytest

import calque
from calque.experimental import colocated_python
from calque.experimental.colocated_python import serialization


def test_cpu_devices_stand_beside_themselves():
    devices = tuple(calque.devices())
    assert colocated_python.colocated_cpu_devices(devices) == list(devices)
    assert serialization.DeviceList(devices) == devices
    mesh = calque.sharding.Mesh(np.array(devices[:1]), ("x",))
    assert colocated_python.colocated_cpu_devices(mesh) == mesh


def test_other_devices_need_a_cpu_each():
    class Other:
        engine = "another"

    assert colocated_python.colocated_cpu_devices([Other()]) == calque.devices()[:1]
    with pytest.raises(ValueError, match="CALQUE_NUM_CPU_DEVICES"):
        colocated_python.colocated_cpu_devices([Other()] * (len(calque.devices()) + 1))
