"""Shardings: how an array is laid out over devices. `specs` says what a PartitionSpec is.

All devices of this process share one memory. A sharding therefore says which device holds which
part of an array, and the array has it as an attribute; the elements themselves stay together and
nothing is copied when a sharding changes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core import lazy
from calque.core.arrays import to_numpy
from calque.core.backends import known
from calque.core.config import config
from calque.core.devices import DEFAULT_DEVICE, KINDS, Device, Space, is_mine, of_engine
from calque.machine.caches import memo
from calque.transforms.devices.abstract_mesh import AbstractMesh
from calque.transforms.devices.mesh import EMPTY, Mesh
from calque.transforms.devices.specs import (
    UNCONSTRAINED,
    DuplicateSpecError,
    PartitionSpec,
    names_in,
    names_of_spec,
)

Index = tuple[slice, ...]


class IndivisibleError(ValueError):
    """A dimension cannot be cut into as many equal parts as its mesh axes ask for."""


# ---------------------------------------------------------------- shardings


class Sharding:
    """How an array is laid out over devices: what all kinds of shardings know.

    >>> isinstance(jnp.ones(2).sharding, jax.sharding.Sharding)
    True"""

    __slots__ = ("__weakref__", "memory_kind")

    memory_kind: str | None

    @property
    def device_order(self) -> tuple[Device, ...]:
        """The devices, in the order in which they hold parts."""
        raise NotImplementedError(f"{type(self).__name__} has no devices")

    def parts(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Tells into how many parts each dimension is cut.

        Args:
            shape: The shape of the whole array.

        Returns:
            A tuple of ints.

        Raises:
            ValueError: The shape cannot be cut so."""
        raise NotImplementedError(f"{type(self).__name__} cuts no shapes")

    @property
    def device_set(self) -> set[Device]:
        return set(self.device_order)

    @property
    def addressable_devices(self) -> set[Device]:
        return {d for d in self.device_order if is_mine(d)}

    @property
    def _device_assignment(self) -> tuple[Device, ...]:
        """The name under which libraries ask for the order of the devices."""
        return self.device_order

    @property
    def _addressable_device_assignment(self) -> tuple[Device, ...]:
        """The same, of those of this process."""
        return tuple([d for d in self.device_order if is_mine(d)])

    @property
    def num_devices(self) -> int:
        return len(self.device_order)

    @property
    def is_fully_addressable(self) -> bool:
        return all(map(is_mine, self.device_order))

    @property
    def has_addressable_devices(self) -> bool:
        return any(map(is_mine, self.device_order))

    @property
    def is_fully_replicated(self) -> bool:
        return True

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """Gives the shape of the part that each device holds.

        Args:
            global_shape: The shape of the whole array.

        Returns:
            A shape."""
        return tuple(d // n for d, n in zip(global_shape, self.parts(global_shape)))

    def indices(self, shape: tuple[int, ...]) -> list[Index]:
        """Tells what part of an array each device holds, in the order of the devices.

        Args:
            shape: The shape of the whole array.

        Returns:
            A list of tuples of slices."""
        return [(slice(None),) * len(shape)] * self.num_devices

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        """Tells what part of an array each device holds.

        Args:
            global_shape: The shape of the whole array.

        Returns:
            A dict from devices to tuples of slices."""
        shape = tuple(global_shape)
        self.check(shape)
        return dict(zip(self.device_order, self.indices(shape)))

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> dict[Device, Index]:
        """Tells what part of an array each device of this process holds.

        Args:
            global_shape: The shape of the whole array.

        Returns:
            A dict from devices to tuples of slices."""
        return {d: i for d, i in self.devices_indices_map(global_shape).items() if is_mine(d)}

    def check(self, shape: Sequence[int]) -> None:
        """Refuses shapes that this sharding is not for.

        Args:
            shape: The shape of the whole array."""
        self.parts(shape)

    check_compatible_aval = check

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Tells whether two shardings place each element of arrays of a rank on the same devices.

        Args:
            other: The other sharding.
            ndim: The rank.

        Returns:
            A bool."""
        return isinstance(other, Sharding) and placement(self, ndim) == placement(other, ndim)

    # what libraries ask for: the sharding in the terms of XLA and of Shardy, for a rank
    _to_xla_hlo_sharding = lazy.function("calque.transforms.devices.tiles", "tiles_of")
    _to_sdy_sharding = lazy.function("calque.transforms.devices.tiles", "sdy_of")

    def with_memory_kind(self, kind: str) -> Sharding:
        """Gives the sharding in another kind of memory.

        Args:
            kind: The kind: "device", "pinned_host" or "unpinned_host".

        Returns:
            A Sharding."""
        raise NotImplementedError(f"{type(self).__name__} knows no kinds of memory")


def _kind_without_devices(kind: str | None) -> str | None:
    """The kind of memory in a sharding whose devices are not known."""
    if kind is not None and kind not in KINDS:
        raise ValueError(f"Got invalid memory kind: {kind!r}. Valid memory kinds are {KINDS}")
    return kind


def in_space(sharding: Sharding, space: Space) -> Sharding:
    """The sharding in the memory of the host, or in that of the devices themselves."""
    own = _kinds_of(sharding)
    if space is Space.Any:
        return sharding
    kind = own[0] if space is Space.Device else next((k for k in own if k.endswith("host")), own[0])
    return sharding if sharding.memory_kind == kind else sharding.with_memory_kind(kind)


def is_in_own_memory(sharding: Sharding | None) -> bool:
    """Whether arrays that live so are in the memory of their devices, as those are that nobody
    placed."""
    if sharding is None or sharding.memory_kind is None:
        return True
    return sharding.memory_kind == _kinds_of(sharding)[0]


def _kinds_of(sharding: Sharding) -> tuple[str, ...]:
    """The kinds of memory of the devices; all that there are where those are not known."""
    is_abstract = isinstance(sharding, NamedSharding) and not isinstance(sharding.mesh, Mesh)
    return KINDS if is_abstract else sharding.device_order[0].memory_kinds


class SingleDeviceSharding(Sharding):
    """Lays the whole array out on one device.

    Args:
        device: The device.
        memory_kind: The kind of memory; None is that of the device itself.

    >>> jax.sharding.SingleDeviceSharding(jax.devices()[0])
    SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)"""

    __slots__ = ("_device",)

    def __init__(self, device: Device, *, memory_kind: str | None = None):
        found = device if isinstance(device, Device) else of_engine(device)
        if found is None:
            raise TypeError(
                f"SingleDeviceSharding takes a device of calque.devices(), got {device!r}"
            )
        self._device, self.memory_kind = found, found.kind_of_memory(memory_kind)

    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        """Gives the sharding in another kind of memory.

        Args:
            kind: The kind: "device", "pinned_host" or "unpinned_host".

        Returns:
            A SingleDeviceSharding."""
        return SingleDeviceSharding(self._device, memory_kind=kind)

    @property
    def device_order(self) -> tuple[Device, ...]:
        return (self._device,)

    def parts(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Tells into how many parts each dimension is cut: one.

        Args:
            shape: The shape of the array.

        Returns:
            A tuple of ones."""
        return (1,) * len(shape)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SingleDeviceSharding)
            and self._device is other._device
            and self.memory_kind == other.memory_kind
        )

    def __hash__(self) -> int:
        return hash(self._device)

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind={self.memory_kind})"

    def __reduce__(self) -> Any:
        return make_single_device_sharding, (self._device, self.memory_kind)


class NamedSharding(Sharding):
    """Lays an array out over the devices of a mesh.

    Args:
        mesh: The mesh, with devices or abstract.
        spec: A PartitionSpec: for each dimension the mesh axes that it is split along.
        memory_kind: The kind of memory; None is that of the devices themselves. An abstract mesh
            keeps what is given.

    >>> s = jax.NamedSharding(jax.make_mesh((1,), ("x",)), jax.P("x", None))
    >>> s.shard_shape((4, 3))
    (4, 3)"""

    __slots__ = ("_places", "mesh", "spec")

    def __init__(
        self, mesh: Mesh | AbstractMesh, spec: PartitionSpec, *, memory_kind: str | None = None
    ):
        if not isinstance(spec, PartitionSpec):
            raise TypeError(
                f"Unexpected {spec!r} of type {type(spec)} for the spec of a NamedSharding: pass a"
                " PartitionSpec, as P('x', None)"
            )
        check_spec(spec, mesh.axis_names)
        _check_axis_types(mesh, spec)
        self.mesh: Any = mesh
        self.spec = spec
        if isinstance(mesh, Mesh):
            self.memory_kind = mesh.devices.flat[0].kind_of_memory(memory_kind)
        else:
            self.memory_kind = _kind_without_devices(memory_kind)
        self._places: dict[int, Any] = {}

    @property
    def device_order(self) -> tuple[Device, ...]:
        if not isinstance(self.mesh, Mesh):
            raise ValueError(f"the sharding {self} has an abstract mesh: it has no devices")
        return tuple(self.mesh.devices.flat)

    @property
    def num_devices(self) -> int:
        return int(self.mesh.size)

    @property
    def is_fully_replicated(self) -> bool:
        if self.mesh.size == 1:
            return True
        sizes = self.mesh.shape
        return not self.spec.unreduced and all(sizes[n] == 1 for n in names_of_spec(self.spec))

    @property
    def replicated_axes(self) -> frozenset[Any]:
        used = names_of_spec(self.spec) | self.spec.unreduced | self.spec.reduced
        return frozenset(n for n in self.mesh.axis_names if n not in used)

    def counts(self, ndim: int) -> tuple[int, ...]:
        """Tells into how many parts each dimension is cut, whatever its size.

        Args:
            ndim: The number of dimensions.

        Returns:
            A tuple of ints."""
        sizes = self.mesh.shape
        return tuple(math.prod(sizes[n] for n in names_in(e)) for e in self.spec.padded(ndim))

    def parts(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Tells into how many parts each dimension is cut.

        Args:
            shape: The shape of the whole array.

        Returns:
            A tuple of ints.

        Raises:
            IndivisibleError: A dimension cannot be cut into equal parts."""
        if len(self.spec) > len(shape):
            scalar = " For scalars the PartitionSpec should be P()" if not shape else ""
            raise ValueError(
                f"Sharding {self} is only valid for values of rank at least {len(self.spec)}, but"
                f" was applied to a value of rank {len(shape)}.{scalar}"
            )
        counts = self.counts(len(shape))
        for k, (d, n) in enumerate(zip(shape, counts)):
            if d % n:
                raise IndivisibleError(
                    f"Sharding {self} implies that array axis {k} is partitioned {n} times, but the"
                    f" dimension size is {d} (full shape: {tuple(shape)}, per-dimension tiling"
                    f" factors: {list(counts)} should evenly divide the shape)"
                )
        return counts

    def indices(self, shape: tuple[int, ...]) -> list[Index]:
        """Tells what part of an array each device holds, in the order of the devices.

        Args:
            shape: The shape of the whole array.

        Returns:
            A list of tuples of slices."""
        counts = self.counts(len(shape))
        return [
            tuple(
                slice(None) if n == 1 else slice(i * (d // n), (i + 1) * (d // n))
                for i, d, n in zip(where, shape, counts)
            )
            for where in positions(self, len(shape))
        ]

    def update(
        self,
        *,
        mesh: Mesh | AbstractMesh | None = None,
        spec: PartitionSpec | Sequence[Any] | None = None,
        memory_kind: str | None = None,
    ) -> NamedSharding:
        """Gives the sharding with some of its attributes replaced.

        Args:
            mesh: A new mesh; None keeps the old one.
            spec: A new spec; None keeps the old one.
            memory_kind: A new kind of memory; None keeps the old one.

        Returns:
            A NamedSharding."""
        given = self.spec if spec is None else spec
        return NamedSharding(
            self.mesh if mesh is None else mesh,
            given if isinstance(given, PartitionSpec) else PartitionSpec(*given),
            memory_kind=self.memory_kind if memory_kind is None else memory_kind,
        )

    def with_memory_kind(self, kind: str) -> NamedSharding:
        """Gives the sharding in another kind of memory.

        Args:
            kind: The kind: "device", "pinned_host" or "unpinned_host".

        Returns:
            A NamedSharding."""
        return self.update(memory_kind=kind)

    def position(self, device: Device, names: Sequence[Any]) -> tuple[int, ...]:
        """Tells where a device is along mesh axes.

        Args:
            device: One of the devices of the mesh.
            names: The axes.

        Returns:
            A tuple with an int for each axis."""
        (at,) = np.argwhere(self.mesh.device_ids == device.id)
        where = dict(zip(self.mesh.axis_names, map(int, at)))
        return tuple(where[n] for n in names)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, NamedSharding)
            and self.spec == other.spec
            and self.mesh == other.mesh
            and self.memory_kind == other.memory_kind
        )

    def __hash__(self) -> int:
        return hash((self.mesh, self.spec))

    def __repr__(self) -> str:
        kind = "" if self.memory_kind is None else f", memory_kind={self.memory_kind}"
        return f"NamedSharding(mesh={self.mesh!s}, spec={self.spec}{kind})"

    def __reduce__(self) -> Any:
        return _named, (self.mesh, self.spec, self.memory_kind)


class Summands(NamedSharding):
    """Where an array is that is still to be added over some axes, and what each member has of it:
    `rows` begins with a dimension for each of these axes, in the order of the mesh. It is of one
    array alone: what is placed like that has `sharding`."""

    __slots__ = ("rows", "sharding")

    def __init__(self, sharding: NamedSharding, rows: Any):
        super().__init__(sharding.mesh, sharding.spec, memory_kind=sharding.memory_kind)
        self.sharding, self.rows = sharding, rows

    def row(self, device: Device) -> Any:
        """What the member on a device has, before it is cut."""
        names = [n for n in self.mesh.axis_names if n in self.spec.unreduced]
        return to_numpy(self.rows)[self.position(device, names)]


def _named(mesh: Mesh | AbstractMesh, spec: PartitionSpec, kind: str | None) -> NamedSharding:
    return NamedSharding(mesh, spec, memory_kind=kind)


def check_spec(spec: PartitionSpec, known: Sequence[Any]) -> None:
    """Every axis of the spec is known and stands in it once."""
    seen: set[Any] = set()
    for entry in spec.partitions:
        for name in names_in(entry):
            if name not in known:
                raise ValueError(
                    f"Resource axis: {name} of {spec} is not found in mesh: {tuple(known)}."
                )
            if name in seen:
                raise DuplicateSpecError(
                    "A single NamedSharding spec specification can map every mesh axis to at most"
                    f" one positional dimension, but {spec} has duplicate entries for `{name}`"
                )
            seen.add(name)


def _check_axis_types(mesh: Mesh | AbstractMesh, spec: PartitionSpec) -> None:
    """What is unreduced or reduced is so along Explicit axes; what is left to the compiler, along
    Auto ones."""
    for option, names in (("Unreduced", spec.unreduced), ("Reduced", spec.reduced)):
        for name in names:
            if name not in mesh.axis_names:
                raise ValueError(
                    f"{option} axes {name} is not found in mesh.axis_names={mesh.axis_names}. Got"
                    f" pspec={spec}"
                )
            if name not in mesh.explicit_axes:
                raise ValueError(
                    f"{option} axes can only refer to mesh axes that is of type `Explicit`. Got"
                    f" {option.lower()} axes: {set(names)} and mesh: {mesh}"
                )
    if UNCONSTRAINED in spec.partitions and not mesh.auto_axes:
        raise ValueError(
            f"{spec} cannot contain `P.UNCONSTRAINED` when no mesh axis_types are `Auto`. Got mesh"
            f" axis_types: {mesh.axis_types}"
        )


def positions(sharding: NamedSharding, ndim: int) -> list[tuple[int, ...]]:
    """For each device of the mesh, row by row, which part of each dimension it holds."""
    found = sharding._places.get(ndim)
    if found is None:
        mesh = sharding.mesh
        grid = dict(
            zip(mesh.axis_names, np.indices(mesh.axis_sizes).reshape(len(mesh.axis_names), -1))
        )
        columns = []
        for entry in sharding.spec.padded(ndim):
            at = np.zeros(math.prod(mesh.axis_sizes), int)
            for name in names_in(entry):
                at = at * mesh.shape[name] + grid[name]
            columns.append(at.tolist())
        found = list(zip(*columns)) if columns else [()] * math.prod(mesh.axis_sizes)
        sharding._places[ndim] = found
    return found


def placement(sharding: Sharding, ndim: int) -> Any:
    """What two shardings have in common when they place every element of arrays of this rank on the
    same devices, in the same kind of memory."""
    unreduced: Any = ()
    if isinstance(sharding, NamedSharding):
        counts = sharding.counts(ndim)
        places = tuple(positions(sharding, ndim))
        unreduced = sharding.spec.unreduced
        if not isinstance(sharding.mesh, Mesh):  # no devices: only their positions
            return counts, places, unreduced, sharding.memory_kind
    else:
        counts, places = (1,) * ndim, ((0,) * ndim,) * sharding.num_devices
    ids = tuple(d.id for d in sharding.device_order)
    return counts, ids, places, unreduced or (), sharding.memory_kind


def make_single_device_sharding(
    device: Device, memory_kind: str | None = None
) -> SingleDeviceSharding:
    """Makes the sharding of an array on one device.

    Args:
        device: The device.
        memory_kind: The kind of memory; None is that of the device itself.

    Returns:
        A SingleDeviceSharding.

    >>> jax.sharding.make_single_device_sharding(jax.devices()[0]).num_devices
    1"""
    return SingleDeviceSharding(device, memory_kind=memory_kind)


DEFAULT = SingleDeviceSharding(DEFAULT_DEVICE)


@memo("shardings of default devices", 64)
def _on_device(device: Device) -> SingleDeviceSharding:
    return SingleDeviceSharding(device)


def default_sharding() -> Sharding:
    """Where arrays are that were placed nowhere: on the default device, which is the first of the
    chosen platform, or of an accelerator."""
    if config.platforms or config.default_device is not None or known.accelerator():
        return _on_device(known.home())
    return DEFAULT


def resolved(sharding: Any, what: str, mesh: Mesh) -> Sharding:
    """A sharding from a sharding, a device, or a PartitionSpec over the current mesh."""
    if isinstance(sharding, Sharding):
        return sharding
    if isinstance(sharding, Device):
        return SingleDeviceSharding(sharding)
    if mesh is EMPTY or mesh.empty:
        raise RuntimeError(
            f"{what} requires a non-empty mesh in context if you are passing `PartitionSpec`s. You"
            " can define a context mesh via `calque.set_mesh(mesh)`. Alternatively, provide"
            " `Sharding`s and then the mesh context manager is not required."
        )
    return NamedSharding(mesh, sharding)
