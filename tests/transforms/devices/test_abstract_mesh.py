"""Meshes of names and sizes, without devices."""

import pickle

import numpy as np
import pytest

import calque
from calque.sharding import (
    AbstractDevice,
    AbstractMesh,
    AxisType,
    Mesh,
    NamedSharding,
    PartitionSpec,
)

GRID = np.array([[calque.devices()[0]]])


def test_without_devices():
    mesh = AbstractMesh((2, 4), ("x", "y"))
    assert (
        mesh.size == 8 and mesh.abstract_mesh is mesh and mesh == AbstractMesh((2, 4), ("x", "y"))
    )
    assert mesh.update(axis_sizes=(3, 4)).axis_sizes == (3, 4)
    typed = mesh.update_axis_types({"x": AxisType.Explicit})
    assert typed != mesh and typed.axis_types[0] == AxisType.Explicit


def test_what_an_abstract_mesh_knows_of_its_devices():
    nothing = AbstractMesh((2, 4), ("x", "y"), abstract_device=None)
    assert nothing.abstract_device is None and nothing == AbstractMesh((2, 4), ("x", "y"))
    v5 = AbstractDevice("v5", 2, "tpu")
    known = AbstractMesh((2, 4), ("x", "y"), abstract_device=v5)
    assert known != nothing and known.update(abstract_device=None) == nothing
    renamed = known.update(axis_names=("p", "q"))
    assert renamed.abstract_device == v5 and known.update_axis_types({}) == known
    said = "axis_types=(Auto, Auto), device_kind=v5, num_cores=2, platform=tpu)"
    assert repr(known) == f"AbstractMesh('x': 2, 'y': 4, {said}"
    assert repr(v5) == "AbstractDevice(device_kind=v5, num_cores=2, platform=tpu)"
    with pytest.raises(TypeError, match="must be an AbstractDevice, got 'v5'"):
        AbstractMesh((2,), ("x",), abstract_device="v5")


def test_a_mesh_of_devices_knows_their_kind_without_them():
    abstract = Mesh(GRID, ("x", "y")).abstract_mesh
    device = calque.devices()[0]
    kind = AbstractDevice(device.device_kind, None, device.platform)
    assert abstract.abstract_device == kind
    assert abstract != AbstractMesh((1, 1), ("x", "y"))
    assert abstract == AbstractMesh((1, 1), ("x", "y"), abstract_device=kind)
    assert pickle.loads(pickle.dumps(abstract)) == abstract
    assert Mesh(np.empty((), dtype=object), ()).abstract_mesh.abstract_device is None


def test_an_abstract_mesh_without_a_device_stands_for_the_current_one():
    mesh = calque.make_mesh((1,), ("x",), axis_types=(AxisType.Auto,))
    sharding = NamedSharding(AbstractMesh((1,), ("x",)), PartitionSpec("x"))
    with calque.set_mesh(mesh):
        f = calque.jit(lambda v: calque.lax.with_sharding_constraint(v, sharding))
        assert f(calque.numpy.ones(2)).sharding.mesh == mesh
