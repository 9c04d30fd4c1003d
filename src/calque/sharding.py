"""Layouts of arrays over devices, in JAX's names: meshes, partition specs, shardings."""

from calque.core import guards as _guards
from calque.transforms.devices.abstract_mesh import AbstractDevice, AbstractMesh, AxisType
from calque.transforms.devices.axes_of_kinds import auto_axes, explicit_axes
from calque.transforms.devices.mesh import (
    Mesh,
    get_abstract_mesh,
    get_mesh,
    make_mesh,
    set_mesh,
    use_abstract_mesh,
    use_mesh,
)
from calque.transforms.devices.sharding import (
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    make_single_device_sharding,
)
from calque.transforms.devices.sharding_arrays import Shard
from calque.transforms.devices.sharding_constraint import reshard
from calque.transforms.devices.specs import PartitionSpec
from calque.transforms.devices.types import ManualAxisType

P = PartitionSpec

__all__ = [
    "AbstractDevice", "AbstractMesh", "AxisType", "ManualAxisType", "Mesh", "NamedSharding", "P",
    "PartitionSpec", "Shard", "Sharding", "SingleDeviceSharding",
    "auto_axes", "explicit_axes", "get_abstract_mesh", "get_mesh", "make_mesh",
    "make_single_device_sharding", "reshard", "set_mesh", "use_abstract_mesh", "use_mesh",
]  # fmt: skip

_guards.guard_public(globals())
