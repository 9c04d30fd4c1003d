"""The devices of this machine as a topology."""

import pytest

from calque.experimental import topologies


def test_attached_devices():
    topology = topologies.get_attached_topology("cpu")
    mesh = topologies.make_mesh(topology, (1, 1), ("x", "y"))
    assert mesh.axis_names == ("x", "y") and mesh.devices.flat[0] in topology.devices
    with pytest.raises(ValueError, match="no device of the platform"):
        topologies.get_attached_topology("tpu")
    with pytest.raises(ValueError, match="needs 4096 devices"):
        topologies.make_mesh(topology, (64, 64), ("x", "y"))
    with pytest.raises(NotImplementedError, match="topology not implemented"):
        topologies.get_topology_desc("v5e:2x2")
