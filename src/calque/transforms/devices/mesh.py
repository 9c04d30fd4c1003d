"""Meshes: devices in a grid whose axes have names, and the mesh that is current in a `with`
block."""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from calque.core.backends import known
from calque.core.devices import Device, is_mine
from calque.machine.caches import Table
from calque.machine.state import PerThread, ProcessValue, process
from calque.transforms.devices.abstract_mesh import (
    AbstractDevice,
    AbstractMesh,
    AnyMesh,
    AxisType,
    key_of_axes,
    types_of_axes,
)


def _known_of(device: Device) -> AbstractDevice:
    return AbstractDevice(device.device_kind, None, device.platform)


class Mesh(AnyMesh, contextlib.ContextDecorator):
    """Devices in a grid whose axes have names.

    As a context manager, it is the mesh that bare PartitionSpecs refer to.

    Args:
        devices: An array of devices with one dimension for each name, or a nested list of them.
        axis_names: The name of each axis: a tuple, or one name.
        axis_types: The AxisType of each axis; None makes all Auto.

    >>> mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(1, 1), ("x", "y"))
    >>> mesh.axis_names, dict(mesh.shape)
    (('x', 'y'), {'x': 1, 'y': 1})"""

    __slots__ = ("_abstract", "_hash", "devices")

    devices: np.ndarray
    _abstract: AbstractMesh
    _hash: int | None

    def __new__(cls, devices: Any, axis_names: Any, axis_types: Any = None) -> Mesh:
        grid = np.array(devices, dtype=object)
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        if None in names:
            raise ValueError(f"Mesh axis names cannot be None. Got axis_names={names}")
        if grid.ndim != len(names):
            raise ValueError(
                "Mesh requires the ndim of its first argument (`devices`) to equal the length of"
                f" its second argument (`axis_names`), but got devices.ndim == {grid.ndim} and"
                f" len(axis_names) == {len(names)}."
            )
        if len(set(names)) != len(names):
            raise ValueError(f"Mesh: the axis names must differ from each other, got {names}")
        _check_devices(grid if names else grid[None][:0])
        grid.flags.writeable = False
        types = types_of_axes(axis_types, len(names), AxisType.Auto)
        key = (tuple(grid.flat) if names else (), grid.shape, names, types)
        known = _meshes.find(key)
        if known is not None:
            return known
        self = object.__new__(cls)
        self.devices, self.axis_names, self.axis_sizes, self.axis_types = (
            grid,
            names,
            grid.shape,
            types,
        )
        self._hash = None
        device = _known_of(grid.flat[0]) if names else None
        self._abstract = AbstractMesh(self.axis_sizes, names, types, abstract_device=device)
        self._abstract.concrete = self
        return _meshes.setdefault(key, self)

    @property
    def size(self) -> int:
        return int(self.devices.size) if self.axis_names else 0

    @property
    def abstract_mesh(self) -> AbstractMesh:
        return self._abstract

    @property
    def device_ids(self) -> np.ndarray:
        ids = [d.id for d in self.devices.flat] if self.axis_names else []
        return np.array(ids, dtype=int).reshape(self.axis_sizes if self.axis_names else (0,))

    @property
    def _flat_devices_tuple(self) -> tuple[Device, ...]:
        """The name under which libraries ask for the devices, row by row."""
        return tuple(self.devices.flat) if self.axis_names else ()

    @property
    def local_mesh(self) -> Mesh:
        """The part with the devices of this process, which are neighbours along each axis."""
        if not self.is_multi_process:
            return self
        mine = np.array([is_mine(d) for d in self.devices.flat]).reshape(self.devices.shape)
        block = tuple(slice(at.min(), at.max() + 1) for at in np.nonzero(mine) if at.size)
        if not block or not mine[block].all():
            raise ValueError(
                "local_mesh: the devices of this process are no block of the mesh: it has"
                f" {[str(d) for d in self.local_devices]} among {self.device_ids.tolist()}. Order"
                " the devices so that those of a process are neighbours along each axis"
            )
        return Mesh(self.devices[block], self.axis_names)

    @property
    def local_devices(self) -> list[Device]:
        return [d for d in self._flat_devices_tuple if is_mine(d)]

    @property
    def is_multi_process(self) -> bool:
        return len(self.local_devices) != self.size

    def update(self, devices: Any = None, axis_names: Any = None, axis_types: Any = None) -> Mesh:
        """Gives the mesh with some of its attributes replaced.

        Args:
            devices: A new grid of devices; None keeps the old one.
            axis_names: New names; None keeps the old ones.
            axis_types: New types; None keeps the old ones.

        Returns:
            A new Mesh.

        >>> mesh = jax.make_mesh((1,), ("x",))
        >>> mesh.update(axis_names=("y",)).axis_names
        ('y',)"""
        return Mesh(
            self.devices if devices is None else devices,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    def __enter__(self) -> Mesh:
        _current.meshes = (*_current.meshes, (self, False))
        return self

    def __exit__(self, *exc: Any) -> None:
        _current.meshes = _current.meshes[:-1]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Mesh)
            and key_of_axes(self) == key_of_axes(other)
            and bool((self.device_ids == other.device_ids).all())
        )

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((key_of_axes(self), self.device_ids.tobytes()))
        return self._hash

    def __str__(self) -> str:
        return (
            "Mesh()" if self.empty else f"Mesh({self._axes_text()}, axis_types={self.axis_types})"
        )

    def __repr__(self) -> str:
        if self.empty:
            return "Mesh(axis_sizes=(), axis_names=(), axis_types=())"
        return (
            f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names!r},"
            f" axis_types={self.axis_types})"
        )

    def __reduce__(self) -> Any:
        return Mesh, (self.devices, self.axis_names, self.axis_types)


def _check_devices(grid: np.ndarray) -> None:
    for d in grid.flat:
        if not isinstance(d, Device):
            raise TypeError(
                f"Mesh: devices must be those of calque.devices(), got {d!r} of type {type(d)}"
            )
    if len({d.id for d in grid.flat}) != grid.size:
        raise ValueError(f"Mesh: each device may stand in one position only, got {grid.tolist()}")


_meshes: Final[Table[Any, Mesh]] = Table("meshes", 256)  # equal ones are one object
EMPTY_ABSTRACT = AbstractMesh((), ())
EMPTY = Mesh(np.empty((), dtype=object), ())


# ---------------------------------------------------------------- making meshes


def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: Any,
    axis_types: Any = None,
    *,
    devices: Sequence[Device] | None = None,
) -> Mesh:
    """Makes a mesh of the first devices, row by row.

    Args:
        axis_shapes: The size of each axis. Their product is at most the number of devices.
        axis_names: The name of each axis.
        axis_types: The AxisType of each axis; None makes all Explicit.
        devices: The devices to use, exactly as many as positions; None takes the first of
            `devices()`.

    Returns:
        A Mesh.

    >>> print(jax.make_mesh((1,), ("data",)))
    Mesh('data': 1, axis_types=(Explicit,))"""
    try:
        shape = tuple(map(operator.index, axis_shapes))
    except TypeError:
        raise ValueError(
            f"`axis_shapes` passed to `make_mesh` should be a sequence of ints, got {axis_shapes}"
        ) from None
    names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
    chosen = list(known.default_devices() if devices is None else devices)
    n = math.prod(shape)
    if len(chosen) < n:
        raise ValueError(
            f"Number of devices {len(chosen)} must be >= the product of mesh_shape {shape}"
            + (f"; set CALQUE_NUM_CPU_DEVICES={n} for more" if devices is None else "")
        )
    if devices is not None and len(chosen) != n:
        raise ValueError(
            f"Number of devices {len(chosen)} must equal the product of mesh_shape {shape}"
        )
    return Mesh(
        grid_of(chosen[:n], shape), names, types_of_axes(axis_types, len(names), AxisType.Explicit)
    )


def grid_of(devices: Sequence[Device], shape: Sequence[int]) -> np.ndarray:
    """Devices as an array of this shape."""
    grid = np.empty(len(devices), dtype=object)
    grid[:] = devices
    return grid.reshape(tuple(shape))


# ---------------------------------------------------------------- the current mesh


class _Current(PerThread, name="current meshes"):
    checks: bool = True  # is it known inside shard_map which values vary?
    meshes: tuple[
        tuple[Mesh, bool], ...
    ] = ()  # (mesh, entered by set_mesh or use_mesh rather than by `with mesh`)
    abstract: tuple[AbstractMesh, ...] = ()
    mapped: Mesh | None = None  # over which `shard_map` computes, and whose devices are named
    consultations: int = 0


_current = _Current()
_globally: Final[ProcessValue[Mesh]] = process.value("mesh", EMPTY)


@contextlib.contextmanager
def _entered(mesh: Mesh, sets: bool) -> Iterator[Mesh]:
    with _current.inside(meshes=(*_current.meshes, (mesh, sets))):
        yield mesh


class set_mesh:
    """Makes a mesh the current one: for the whole process when called, or inside a `with` block.

    Args:
        mesh: The mesh, or None for none.

    >>> with jax.set_mesh(jax.make_mesh((1,), ("x",))):
    ...     print(jax.sharding.get_mesh())
    Mesh('x': 1, axis_types=(Explicit,))"""

    def __init__(self, mesh: Mesh | None):
        if mesh is not None and not isinstance(mesh, Mesh):
            raise ValueError(f"Expected mesh of type `calque.sharding.Mesh`. Got {type(mesh)}")
        if mesh is not None and mesh.manual_axes:
            raise ValueError(f"set_mesh: {mesh} contains manual axes, which shard_map makes")
        self._before, self._mesh = _globally.value, mesh
        _globally.value = EMPTY if mesh is None else mesh
        self._entry: Any = None

    def __enter__(self) -> Mesh | None:
        _globally.value = self._before
        self._entry = _entered(EMPTY if self._mesh is None else self._mesh, sets=True)
        self._entry.__enter__()
        return self._mesh

    def __exit__(self, *exc: Any) -> None:
        if self._entry is not None:
            self._entry.__exit__(*exc)


def use_mesh(mesh: Mesh) -> Any:
    """A `with` block in which a mesh is the current one.

    Args:
        mesh: The mesh.

    Returns:
        A context manager that gives the mesh.

    >>> with jax.sharding.use_mesh(jax.make_mesh((1,), ("x",))):
    ...     print(jax.sharding.get_mesh())
    Mesh('x': 1, axis_types=(Explicit,))"""
    return _entered(mesh, sets=True)


@contextlib.contextmanager
def use_abstract_mesh(mesh: AbstractMesh) -> Iterator[AbstractMesh]:
    """A `with` block in which `get_abstract_mesh()` gives this mesh.

    Args:
        mesh: An AbstractMesh.

    Returns:
        A context manager that gives the mesh.

    >>> with jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((2,), ("x",))):
    ...     print(jax.sharding.get_abstract_mesh())
    AbstractMesh('x': 2, axis_types=(Auto,))"""
    with _current.inside(abstract=(*_current.abstract, mesh)):
        yield mesh


def consult_mesh() -> Mesh:
    """The current mesh, for code whose meaning depends on it: programs traced meanwhile are for
    this mesh alone."""
    _current.consultations += 1
    return current_mesh()


def consultations() -> int:
    """How often this thread has consulted the current mesh."""
    return _current.consultations


def current_mesh() -> Mesh:
    """The innermost mesh of `with mesh`, `use_mesh` or `set_mesh`; the empty mesh if there is
    none."""
    if _current.meshes:
        return _current.meshes[-1][0]
    return _globally.value


def get_mesh() -> Mesh:
    """Gives the current mesh of devices.

    Returns:
        The mesh of the innermost `set_mesh` or `use_mesh`; the empty mesh if there is none.

    >>> jax.sharding.get_mesh().empty
    True"""
    consult_mesh()
    for mesh, sets in reversed(_current.meshes):
        if sets:
            return mesh
    return _globally.value


def get_abstract_mesh() -> AbstractMesh:
    """Gives the names, sizes and types of the axes of the current mesh.

    Inside `shard_map` the axes that it maps are Manual.

    Returns:
        An AbstractMesh, empty if there is no current mesh.

    >>> jax.sharding.get_abstract_mesh().empty
    True"""
    return _current.abstract[-1] if _current.abstract else get_mesh().abstract_mesh


def ambient_mesh() -> AbstractMesh:
    """As `get_abstract_mesh`, for what asks with every program that is traced: those that are
    traced on one mesh are kept apart from others anyway."""
    if _current.abstract:
        return _current.abstract[-1]
    for mesh, sets in reversed(_current.meshes):
        if sets:
            return mesh.abstract_mesh
    return _globally.value.abstract_mesh


def meshes_here() -> Any:
    """The current mesh, and the abstract one where that says more: part of the key of what is
    traced here."""
    if not _current.abstract and not _current.meshes:
        return _globally.value
    mesh, abstract = current_mesh(), ambient_mesh()
    return mesh if abstract is mesh.abstract_mesh else (mesh, abstract)


def devices_of(mesh: AbstractMesh) -> Mesh | None:
    """The mesh of devices that an abstract one stands for here."""
    here = current_mesh()
    return here if key_of_axes(here) == key_of_axes(mesh) else mesh.concrete


def over_devices(mesh: AbstractMesh, devices: Any) -> Mesh | None:
    """An abstract mesh over the devices of another mesh; None where these are not as many, or not
    known. Manual axes, which devices have inside `shard_map`, are Auto outside."""
    if not isinstance(devices, Mesh) or math.prod(mesh.axis_sizes) != devices.size:
        return None
    if key_of_axes(devices) == key_of_axes(mesh):
        return devices
    types = [AxisType.Auto if t is AxisType.Manual else t for t in mesh.axis_types]
    return Mesh(devices.devices.reshape(mesh.axis_sizes), mesh.axis_names, tuple(types))


def mesh_that_is_set() -> Mesh:
    """The mesh that `set_mesh` or `use_mesh` made current, the empty mesh if there is none: for
    what asks of values at hand."""
    if not _current.meshes:
        return _globally.value
    return next((m for m, sets in reversed(_current.meshes) if sets), _globally.value)


@contextlib.contextmanager
def manual_region(mesh: AbstractMesh, checks: bool, devices: Mesh | None = None) -> Iterator[None]:
    """A `with` block inside which `mesh`, with its manual axes, is the current one, over these
    devices where the values of the members are at hand."""
    mapped = _current.mapped if devices is None else devices
    with _current.inside(checks=checks, mapped=mapped), use_abstract_mesh(mesh):
        yield


def mapped_mesh(mesh: AbstractMesh) -> Mesh | None:
    """The devices over which a map of this mesh computes here; None where they are not known."""
    return over_devices(mesh, _current.mapped or current_mesh())


def checks_variance() -> bool:
    """Whether it is known here which values vary along manual axes."""
    return _current.checks
