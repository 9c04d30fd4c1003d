"""`pjit`: the name that `jit` over several devices once had."""

from calque.transforms.devices.axes_of_kinds import auto_axes, explicit_axes
from calque.transforms.devices.sharding_constraint import reshard, with_sharding_constraint
from calque.transforms.devices.types import ManualAxisType
from calque.transforms.jit.decorator import jit as pjit

__all__ = [
    "ManualAxisType", "auto_axes", "explicit_axes", "pjit", "reshard", "with_sharding_constraint",
]  # fmt: skip
