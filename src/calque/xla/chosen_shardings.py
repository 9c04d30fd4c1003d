"""Where XLA puts the arguments and results of a program over several devices that nobody placed, in
the words of the mesh."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.transforms.devices.mesh import Mesh
from calque.transforms.devices.sharding import NamedSharding
from calque.transforms.devices.specs import PartitionSpec
from calque.xla import jaxlib


def cut(program: jaxlib.LoadedProgram) -> list[list[Any]]:
    """How XLA cuts the arguments of a program on several devices, and how the results: one for all
    if they are equal."""
    loaded, read = program.loaded, jaxlib.jaxlib().client.HloSharding.from_proto
    pairs = loaded.get_parameter_shardings(), loaded.get_output_shardings()
    return [[read(s) for s in found or ()] for found in pairs]


def chosen_shardings(
    tiles: Sequence[Any], mesh: Mesh, shapes: Sequence[tuple[int, ...]], free: Sequence[bool]
) -> list[NamedSharding | None]:
    """The shardings of the `free` ones among values of these shapes, over the mesh, as XLA says
    them; None of the others, and where no PartitionSpec says what XLA has chosen."""
    tiles = list(tiles) * (len(shapes) if len(tiles) == 1 else 1)
    if len(tiles) != len(shapes):
        return [None] * len(shapes)
    return [
        named(t, mesh, shape) if is_free else None
        for t, shape, is_free in zip(tiles, shapes, free, strict=True)
    ]


def named(tiles: Any, mesh: Mesh, shape: Sequence[int]) -> NamedSharding | None:
    """XLA's sharding of arrays of this shape over a mesh; None if it is none of axes, or cuts
    unequal parts."""
    whole = by_axes(tiles, mesh, len(shape))
    if whole is None:
        return None
    entries = list(whole.spec)
    while entries and not entries[-1]:
        entries.pop()
    chosen = NamedSharding(mesh, PartitionSpec(*entries))
    return chosen if all(d % n == 0 for d, n in zip(shape, chosen.counts(len(shape)))) else None


def by_axes(tiles: Any, mesh: Mesh, ndim: int) -> NamedSharding | None:
    """XLA's sharding of arrays of this rank over a mesh, which says something of each dimension;
    None if it is none of axes."""
    places = places_of(tiles, mesh.size)
    if places is None:
        return None
    grid = np.indices(mesh.axis_sizes).reshape(len(mesh.axis_names), -1)
    found = [axes_of(column, mesh, grid) for column in places]
    entries = [e for e in found if e is not None]
    if len(entries) < len(found) or any(entries[ndim:]):
        return None
    del entries[ndim:]
    entries += [()] * (ndim - len(entries))
    return NamedSharding(
        mesh, PartitionSpec(*[e[0] if len(e) == 1 else e or None for e in entries])
    )


def places_of(tiles: Any, devices: int) -> list[np.ndarray] | None:
    """For each dimension that XLA speaks of which tile each device has; None where it says this in
    another way."""
    if tiles.is_replicated():
        return []
    if not tiles.is_tiled() or len(tiles.subgroup_types()) > 1:
        return None
    counts = tiles.tile_assignment_dimensions()
    order = np.asarray(tiles.tile_assignment_devices())
    if order.size != devices:
        return None
    found = np.empty((len(counts), devices), int)
    found[:, order] = np.indices(counts).reshape(len(counts), -1)
    return list(found[:-1] if tiles.replicate_on_last_tile_dim() else found)


def axes_of(places: np.ndarray, mesh: Mesh, grid: np.ndarray) -> tuple[Any, ...] | None:
    """The axes of a mesh that a dimension is cut along whose tiles have these places: the one of
    the longest step first. None where it is not cut along whole axes."""
    sizes = mesh.axis_sizes
    first = [math.prod(sizes[k + 1 :]) for k in range(len(sizes))]  # the second device of each axis
    steps = {k: int(places[at]) for k, at in enumerate(first) if sizes[k] > 1 and places[at] > 0}
    order = sorted(steps, key=lambda k: -steps[k])
    again = np.zeros(len(places), int)
    for k in order:
        again = again * sizes[k] + grid[k]
    return tuple([mesh.axis_names[k] for k in order]) if np.array_equal(again, places) else None
