"""Shardings in XLA's terms: how many tiles each dimension has, and which position of the devices
holds which tile. Nothing here needs XLA; libraries ask for these descriptions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calque.core.devices import Device
from calque.transforms.devices.sharding import (
    Index,
    IndivisibleError,
    NamedSharding,
    Sharding,
)
from calque.transforms.devices.specs import names_in


@dataclass(frozen=True)
class HloSharding:
    """Tiles of an array over positions of devices: iota over `reshape_dims`, transposed by
    `transpose_perm`, in the shape `dims`. With `replicated_last` the last of `dims` counts devices
    with the same tile. No dims: every device has the whole."""

    dims: tuple[int, ...] = ()
    reshape_dims: tuple[int, ...] = ()
    transpose_perm: tuple[int, ...] = ()
    replicated_last: bool = False
    unreduced: bool = False

    @staticmethod
    def replicate() -> HloSharding:
        return HloSharding()

    @staticmethod
    def iota_tile(
        dims: Sequence[int],
        reshape_dims: Sequence[int] = (),
        transpose_perm: Sequence[int] = (),
        subgroup_types: Sequence[Any] = (),
    ) -> HloSharding:
        """Tiles in the order of an iota; a subgroup type stands for one more dimension of devices
        that hold the same."""
        reshape = tuple(reshape_dims) or (math.prod(dims),)
        perm = tuple(transpose_perm) or tuple(range(len(reshape)))
        return HloSharding(tuple(dims), *_simplified(reshape, perm), bool(subgroup_types))

    def is_replicated(self) -> bool:
        return not self.dims and not self.unreduced

    def is_unreduced(self) -> bool:
        return not self.dims and self.unreduced

    def is_tiled(self) -> bool:
        return bool(self.dims)

    def is_manual(self) -> bool:
        return False

    def is_maximal(self) -> bool:
        return False

    def is_unknown(self) -> bool:
        return False

    def is_tile_assignment_iota(self) -> bool:
        return True

    def replicate_on_last_tile_dim(self) -> bool:
        return self.replicated_last

    def subgroup_types(self) -> list[Any]:
        return []

    def tuple_elements(self) -> list[Any]:
        return []

    def num_dimensions(self) -> int:
        return len(self.dims)

    def num_devices(self) -> int:
        return math.prod(self.dims)

    def tile_assignment_dimensions(self) -> list[int]:
        return list(self.dims) or [0]

    def tile_assignment_devices(self) -> list[int]:
        return self._grid().ravel().tolist() if self.dims else [0]

    def get_axis_sizes(self) -> list[int]:
        """The sizes of the axes that the devices are counted through."""
        if self.dims == () or len(self.dims) == 0:
            return []
        cuts = {1, math.prod(self.dims)}
        sizes = [self.reshape_dims[k] for k in self.transpose_perm]
        for shape in (sizes, list(self.dims)):
            cuts |= {math.prod(shape[k:]) for k in range(len(shape))}
        edges = sorted(cuts)
        if all(b % a == 0 for a, b in itertools.pairwise(edges)):
            found = [b // a for a, b in itertools.pairwise(edges)][::-1]
            return self._in_iota_order(found, sizes)
        return list(self.reshape_dims)

    def _in_iota_order(self, found: list[int], sizes: list[int]) -> list[int]:
        parts: list[list[int]] = [[] for _ in sizes]
        left, k = found[:], 0
        for f in left:
            parts[k].append(f)
            if math.prod(parts[k]) == sizes[k]:
                k += 1
        by_axis = dict(zip(self.transpose_perm, parts))
        return [f for axis in sorted(by_axis) for f in by_axis[axis]]

    def _grid(self) -> np.ndarray:
        iota = np.arange(math.prod(self.dims)).reshape(self.reshape_dims)
        return iota.transpose(self.transpose_perm).reshape(self.dims)

    def counts(self, ndim: int) -> tuple[int, ...]:
        """Into how many tiles each dimension is cut."""
        return self.dims[:ndim] if self.dims else (1,) * ndim

    def positions(self, ndim: int, n: int) -> list[tuple[int, ...]]:
        """For each device, which tile of each dimension it has."""
        if not self.dims:
            return [(0,) * ndim] * n
        found: list[tuple[int, ...]] = [()] * n
        for at, device in np.ndenumerate(self._grid()):
            found[int(device)] = at[:ndim]
        return found

    def __repr__(self) -> str:
        if not self.dims:
            return "{unreduced}" if self.unreduced else "{replicated}"
        perm = (
            ""
            if list(self.transpose_perm) == sorted(self.transpose_perm)
            else (f"T({','.join(map(str, self.transpose_perm))})")
        )
        last = " last_tile_dim_replicate" if self.replicated_last else ""
        return (
            f"{{devices=[{','.join(map(str, self.dims))}]<="
            f"[{','.join(map(str, self.reshape_dims))}]{perm}{last}}}"
        )


def _simplified(
    sizes: Sequence[int], perm: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The same order of positions, with neighbours that stay neighbours as one."""
    order = [k for k in perm if sizes[k] != 1]
    groups: list[list[int]] = []
    kept = [k for k in range(len(sizes)) if sizes[k] != 1]
    follows = dict(itertools.pairwise(kept))
    for k in order:
        if groups and follows.get(groups[-1][-1]) == k:
            groups[-1].append(k)
        else:
            groups.append([k])
    first = sorted(range(len(groups)), key=lambda g: groups[g][0])
    shape = tuple(math.prod(sizes[k] for k in groups[g]) for g in first)
    rank = {g: i for i, g in enumerate(first)}
    return shape or (1,), tuple(rank[g] for g in range(len(groups))) or (0,)


def tiles_of(sharding: Sharding, ndim: int) -> HloSharding:
    """A sharding of arrays of this rank in XLA's terms."""
    if isinstance(sharding, GSPMDSharding):
        return sharding.tiles
    if not isinstance(sharding, NamedSharding):
        return HloSharding()
    mesh = sharding.mesh
    counts = sharding.counts(ndim)
    unreduced = bool(sharding.spec.unreduced)
    if all(n == 1 for n in counts):
        return HloSharding(unreduced=unreduced)
    used = [n for e in sharding.spec.padded(ndim) for n in names_in(e)]
    rest = [n for n in mesh.axis_names if n not in used]
    left = math.prod(mesh.shape[n] for n in rest)
    perm = [mesh.axis_names.index(n) for n in (*used, *rest)]
    dims = (*counts, left) if left > 1 else counts
    return HloSharding(dims, *_simplified(mesh.axis_sizes, perm), left > 1, unreduced)


class GSPMDSharding(Sharding):
    """Tiles of an array over devices in an order."""

    __slots__ = ("_devices", "tiles")

    def __init__(
        self, devices: Sequence[Device], op_sharding: HloSharding, *, memory_kind: Any = None
    ):
        self._devices, self.tiles = tuple(devices), op_sharding
        self.memory_kind = self._devices[0].kind_of_memory(memory_kind)

    @staticmethod
    def get_replicated(devices: Sequence[Device], *, memory_kind: Any = None) -> GSPMDSharding:
        """The whole on every device."""
        return GSPMDSharding(devices, HloSharding(), memory_kind=memory_kind)

    def with_memory_kind(self, kind: str) -> GSPMDSharding:
        """The same tiles in another kind of memory."""
        return GSPMDSharding(self._devices, self.tiles, memory_kind=kind)

    @property
    def device_order(self) -> tuple[Device, ...]:
        return self._devices

    @property
    def is_fully_replicated(self) -> bool:
        return are_equal(self.tiles, HloSharding())

    def parts(self, shape: Sequence[int]) -> tuple[int, ...]:
        counts = self.tiles.counts(len(shape))
        for k, (d, n) in enumerate(zip(shape, counts)):
            if d % n:
                raise IndivisibleError(
                    f"Sharding {self} implies that array axis {k} is partitioned {n} times, but"
                    f" the dimension size is {d} (full shape: {tuple(shape)})"
                )
        return counts

    def indices(self, shape: tuple[int, ...]) -> list[Index]:
        counts = self.tiles.counts(len(shape))
        return [
            tuple(
                slice(None) if n == 1 else slice(i * (d // n), (i + 1) * (d // n))
                for i, d, n in zip(at, shape, counts)
            )
            for at in self.tiles.positions(len(shape), len(self._devices))
        ]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, GSPMDSharding)
            and self._devices == other._devices
            and are_equal(self.tiles, other.tiles)
            and self.memory_kind == other.memory_kind
        )

    def __hash__(self) -> int:
        return hash((self._devices, None if self.is_fully_replicated else self.tiles))

    def __repr__(self) -> str:
        return f"GSPMDSharding({self.tiles!r}, memory_kind={self.memory_kind})"

    def __reduce__(self) -> Any:
        return _tiled, (self._devices, self.tiles, self.memory_kind)


def _tiled(devices: Sequence[Device], tiles: HloSharding, kind: str) -> GSPMDSharding:
    return GSPMDSharding(devices, tiles, memory_kind=kind)


def are_equal(a: HloSharding, b: HloSharding) -> bool:
    """Whether both cut arrays in the same way."""
    if is_replicated(a) and is_replicated(b):
        return True
    return (a.counts(len(a.dims)), a.tile_assignment_devices(), a.unreduced) == (
        b.counts(len(b.dims)),
        b.tile_assignment_devices(),
        b.unreduced,
    )


def is_replicated(tiles: HloSharding) -> bool:
    """Whether every device has the whole."""
    counts = tiles.dims[: len(tiles.dims) - tiles.replicated_last]
    return not tiles.unreduced and all(n == 1 for n in counts)


def ways_sharded(tiles: HloSharding) -> tuple[list[int], int]:
    """Into how many parts each dimension is cut, and how many devices have the same part."""
    if not tiles.dims:
        return [], 1
    last = tiles.replicated_last
    return list(tiles.dims[: len(tiles.dims) - last]), tiles.dims[-1] if last else 1


# ---------------------------------------------------------------- in Shardy's terms


@dataclass(frozen=True)
class SdyDim:
    """The axes that a dimension is split along; an open one may be split further."""

    axes: tuple[Any, ...]
    is_open: bool


@dataclass(frozen=True, kw_only=True)
class SdyArray:
    """A sharding as axes of each dimension."""

    mesh_shape: tuple[tuple[Any, int], ...] | None
    dim_shardings: tuple[SdyDim, ...]
    replicated_axes: frozenset[Any] = frozenset()
    unreduced_axes: frozenset[Any] = frozenset()


def sdy_of(sharding: Sharding, ndim: int, *_: Any) -> SdyArray:
    if isinstance(sharding, NamedSharding):
        dims = tuple(SdyDim(names_in(e), False) for e in sharding.spec.padded(ndim))
        unreduced = frozenset(sharding.spec.unreduced)
        return SdyArray(
            mesh_shape=sharding.mesh.shape_tuple, dim_shardings=dims, unreduced_axes=unreduced
        )
    if not isinstance(sharding, GSPMDSharding) or not sharding.tiles.dims:
        return SdyArray(mesh_shape=None, dim_shardings=(SdyDim((), False),) * ndim)
    tiles = sharding.tiles
    sizes = tiles.get_axis_sizes()
    names = [f"_axis_{k}" for k in range(len(sizes))]
    parts: list[SdyDim] = []
    todo = list(zip(names, sizes))
    for n in tiles.counts(ndim):
        own: list[Any] = []
        while math.prod(size for _, size in own) < n and todo:
            own.append(todo.pop(0))
        parts.append(SdyDim(tuple(name for name, _ in own), False))
    return SdyArray(mesh_shape=tuple(zip(names, sizes)), dim_shardings=tuple(parts))
