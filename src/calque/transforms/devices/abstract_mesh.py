"""Meshes of names and sizes, without devices; what they and meshes of devices have in common."""

from __future__ import annotations

import enum
import math
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields
from types import NoneType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calque.transforms.devices.mesh import Mesh


class AxisType(enum.Enum):
    """Who places values along a mesh axis.

    Along `Auto` axes the compiler does, along `Explicit` ones the types of values say it, and along
    `Manual` ones each device computes with its part, as inside `shard_map`."""

    Auto = "auto"
    Explicit = "explicit"
    Manual = "manual"

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


def types_of_axes(axis_types: Any, n: int, default: AxisType) -> tuple[AxisType, ...]:
    """The AxisType of each of `n` axes."""
    if axis_types is None:
        return (default,) * n
    types = tuple(axis_types) if isinstance(axis_types, (tuple, list)) else (axis_types,)
    if not all(isinstance(t, AxisType) for t in types):
        raise TypeError(
            "axis_types passed to a mesh must be of type `calque.sharding.AxisType` or a tuple of"
            f" these; got {axis_types!r}"
        )
    if len(types) != n:
        raise ValueError(
            f"Number of axis names should match the number of axis_types. Got {n} axis names and"
            f" {len(types)} axis_types."
        )
    return types


@dataclass(frozen=True)
class AbstractDevice:
    """What is known of a device that need not exist.

    Args:
        device_kind: What devices of this kind are called.
        num_cores: How many cores it has, or None.
        platform: The platform, such as "cpu".

    >>> jax.sharding.AbstractDevice("cpu", None, "cpu").platform
    'cpu'"""

    device_kind: str
    num_cores: int | None
    platform: str

    def __repr__(self) -> str:
        return f"AbstractDevice({known_by_name(self)})"


def known_by_name(device: AbstractDevice) -> str:
    """What is known of a device."""
    return ", ".join(f"{f.name}={getattr(device, f.name)}" for f in fields(device))


class AnyMesh:
    """What meshes with and without devices know: names, sizes and types of their axes."""

    __slots__ = ("__weakref__", "axis_names", "axis_sizes", "axis_types")

    axis_names: tuple[Hashable, ...]
    axis_sizes: tuple[int, ...]
    axis_types: tuple[AxisType, ...]

    @property
    def shape(self) -> OrderedDict[Any, int]:
        """The size of each axis, by name."""
        return OrderedDict(zip(self.axis_names, self.axis_sizes))

    @property
    def shape_tuple(self) -> tuple[tuple[Any, int], ...]:
        return tuple(zip(self.axis_names, self.axis_sizes))

    @property
    def size(self) -> int:
        """The number of positions: the product of the sizes."""
        return math.prod(self.axis_sizes) if self.axis_names else 0

    @property
    def empty(self) -> bool:
        return not self.axis_names

    def _named(self, kind: AxisType) -> tuple[Any, ...]:
        return tuple(n for n, t in zip(self.axis_names, self.axis_types) if t is kind)

    @property
    def _name_to_type(self) -> dict[Any, AxisType]:
        """The name under which libraries ask for the type of each axis."""
        return dict(zip(self.axis_names, self.axis_types))

    auto_axes = property(lambda self: self._named(AxisType.Auto))
    explicit_axes = property(lambda self: self._named(AxisType.Explicit))
    manual_axes = property(lambda self: self._named(AxisType.Manual))
    are_all_axes_auto = property(lambda self: all(t is AxisType.Auto for t in self.axis_types))
    are_all_axes_explicit = property(
        lambda self: all(t is AxisType.Explicit for t in self.axis_types)
    )
    are_all_axes_manual = property(lambda self: all(t is AxisType.Manual for t in self.axis_types))

    def _axes_text(self) -> str:
        return ", ".join(f"{n!r}: {s}" for n, s in self.shape_tuple)


class AbstractMesh(AnyMesh):
    """A mesh of names and sizes, without devices.

    Args:
        axis_sizes: The size of each axis.
        axis_names: The name of each axis: a tuple, or one name.
        axis_types: The AxisType of each axis; None makes all Auto.
        abstract_device: What is known of the devices, an AbstractDevice; None, nothing.

    >>> print(jax.sharding.AbstractMesh((2, 2), ("x", "y")))
    AbstractMesh('x': 2, 'y': 2, axis_types=(Auto, Auto))"""

    __slots__ = ("_hash", "abstract_device", "concrete")

    def __init__(
        self, axis_sizes: Sequence[int], axis_names: Any, axis_types: Any = None, *,
        abstract_device: AbstractDevice | None = None,
    ):  # fmt: skip
        if not isinstance(abstract_device, (AbstractDevice, NoneType)):
            raise TypeError(
                f"AbstractMesh: abstract_device must be an AbstractDevice, got {abstract_device!r}"
            )
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if len(names) != len(axis_sizes):
            raise ValueError(f"AbstractMesh: {len(axis_sizes)} sizes but {len(names)} axis names")
        self.axis_names, self.axis_sizes = names, tuple(map(int, axis_sizes))
        self.axis_types = types_of_axes(axis_types, len(names), AxisType.Auto)
        self.abstract_device = abstract_device
        self._hash: int | None = None
        self.concrete: Mesh | None = None  # the mesh with devices that it was made from

    @property
    def abstract_mesh(self) -> AbstractMesh:
        return self

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, AbstractMesh)
            and key_of_axes(self) == key_of_axes(other)
            and self.abstract_device == other.abstract_device
        )

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((key_of_axes(self), self.abstract_device))
        return self._hash

    def update(
        self, axis_sizes: Any = None, axis_names: Any = None, axis_types: Any = None,
        **device: AbstractDevice | None,
    ) -> AbstractMesh:  # fmt: skip
        """Gives the mesh with some of its attributes replaced.

        Args:
            axis_sizes: New sizes; None keeps the old ones.
            axis_names: New names; None keeps the old ones.
            axis_types: New types; None keeps the old ones.
            device: What is known of the devices, as `abstract_device`; the old one by default.

        Returns:
            An AbstractMesh."""
        return AbstractMesh(
            self.axis_sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
            **{"abstract_device": self.abstract_device, **device},
        )

    def update_axis_types(self, types: dict[Any, AxisType]) -> AbstractMesh:
        """Gives the mesh with other types of some of its axes.

        Args:
            types: The AxisType by the name of the axis.

        Returns:
            An AbstractMesh."""
        return self.update(axis_types=tuple(map(types.get, self.axis_names, self.axis_types)))

    def __repr__(self) -> str:
        if self.empty:
            return "AbstractMesh((), axis_types=())"
        device = "" if self.abstract_device is None else f", {known_by_name(self.abstract_device)}"
        return f"AbstractMesh({self._axes_text()}, axis_types={self.axis_types}{device})"


def key_of_axes(mesh: AnyMesh) -> tuple[Any, ...]:
    """What two meshes of the same axes have in common, whatever is known of their devices."""
    return mesh.axis_names, mesh.axis_sizes, mesh.axis_types
