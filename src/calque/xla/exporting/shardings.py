"""Where the arguments and results of exported programs live: shardings over meshes that name no
devices, as they are written, and on the devices of a call."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from calque.core.avals import ShapedArray
from calque.core.jaxprs import ClosedJaxpr, Jaxpr, Var, subjaxprs
from calque.transforms.devices.abstract_mesh import AbstractDevice, AbstractMesh, AxisType
from calque.transforms.devices.mesh import Mesh
from calque.transforms.devices.sharding import NamedSharding
from calque.transforms.devices.sharding_propagation import shardings_of_results
from calque.transforms.devices.specs import PartitionSpec, names_in
from calque.transforms.devices.types import typed

_TYPES: Final = (AxisType.Auto, AxisType.Explicit, AxisType.Manual)  # numbered from 1
_NAMED: Final = 2  # the kind of a sharding over a mesh
Where = tuple[NamedSharding | None, ...]


# ---------------------------------------------------------------- of programs


def device_count(jaxpr: Jaxpr, placements: Sequence[Any]) -> int:
    """How many devices a program is for: those of the meshes that it speaks of."""
    found = [_count(s) for s in placements]
    for e in jaxpr.eqns:
        exported = e.params.get("exported")
        found.append(getattr(exported, "nr_devices", 1))
        found += [_count(e.params.get("sharding")), _size(e.params.get("mesh"))]
        found += [device_count(body, ()) for body in subjaxprs(e.params)]
    return max(found, default=1)


def _count(sharding: Any) -> int:
    return _size(sharding.mesh) if isinstance(sharding, NamedSharding) else 1


def _size(mesh: Any) -> int:
    return math.prod(mesh.axis_sizes) if isinstance(mesh, (Mesh, AbstractMesh)) else 1


def shardings_in(closed: ClosedJaxpr, placements: Sequence[Any]) -> tuple[Any, ...]:
    """Where the arguments live: where they were said to be, else where the program wants them."""
    wanted: dict[Any, Any] = {}
    for e in closed.jaxpr.eqns:
        if e.primitive.name == "sharding_constraint":
            wanted.setdefault(e.invars[0], e.params["sharding"])
    pairs = zip(placements, closed.jaxpr.invars, strict=True)
    return tuple(_on_mesh(s) or _on_mesh(wanted.get(v)) for s, v in pairs)


def shardings_out(closed: ClosedJaxpr, ins: Sequence[Any], name: str) -> tuple[Any, ...]:
    """Where the results live, as far as it is known."""
    if all(s is None or isinstance(s.mesh, Mesh) for s in ins):
        return tuple(map(_on_mesh, shardings_of_results(closed, tuple(ins), name)))
    return shardings_said(closed)


def shardings_said(closed: ClosedJaxpr) -> tuple[Any, ...]:
    """Where the program says that its results live."""
    made = {v: e for e in closed.jaxpr.eqns for v in e.outvars}
    last = [made.get(v) if isinstance(v, Var) else None for v in closed.jaxpr.outvars]
    return tuple(
        _on_mesh(e.params["sharding"]) if e is not None and "sharding" in e.params else None
        for e in last
    )


def _on_mesh(sharding: Any) -> Any:
    return sharding if isinstance(sharding, NamedSharding) and sharding.mesh.axis_names else None


def portable(shardings: Sequence[Any]) -> Where:
    """The same without devices."""
    return tuple(
        None if s is None else NamedSharding(_abstract(s.mesh), s.spec, memory_kind=s.memory_kind)
        for s in shardings
    )


def types_on_meshes(avals: Sequence[ShapedArray], shardings: Where) -> tuple[ShapedArray, ...]:
    """The types of what lives there, which speak of explicit axes."""
    return tuple(typed(a.without_place(), s) for a, s in zip(avals, shardings, strict=True))


def _abstract(mesh: Any) -> AbstractMesh:
    whole: AbstractMesh = mesh.abstract_mesh
    return whole.update()


def on_mesh(shardings: Where, mesh: Any) -> tuple[NamedSharding | None, ...]:
    """The same on a mesh of the caller, which has the axes of the one of the export."""
    found = []
    for s in shardings:
        if s is not None and _axes(s.mesh) != _axes(mesh):
            raise ValueError(
                f"NamedSharding new mesh {mesh} does not match the mesh used for export {s.mesh}:"
                " its axes need the same names, sizes and types"
            )
        found.append(None if s is None else NamedSharding(mesh, s.spec, memory_kind=s.memory_kind))
    return tuple(found)


def _axes(mesh: Any) -> tuple[Any, ...]:
    whole = mesh.abstract_mesh
    return whole.axis_names, whole.axis_sizes, whole.axis_types


# ---------------------------------------------------------------- written and read


def written(ins: Where, outs: Where) -> dict[str, Any]:
    """The fields of an exported program about shardings."""
    unique = list(dict.fromkeys(s for s in (*ins, *outs) if s is not None))
    meshes = list(dict.fromkeys(s.mesh for s in unique))
    rows = {s: _written_sharding(s, meshes) for s in unique}

    def fields(shardings: Where) -> tuple[list[Any], list[int]]:
        tables = [
            {} if s is None else {"kind": _NAMED, "named_sharding": rows[s]} for s in shardings
        ]
        return tables, [0 if s is None else 1 + unique.index(s) for s in shardings]

    (in_tables, in_places), (out_tables, out_places) = fields(ins), fields(outs)
    return {
        "in_shardings": in_tables,
        "out_shardings": out_tables,
        "unique_abstract_meshes": list(map(_written_mesh, meshes)),
        "unique_named_shardings": list(rows.values()),
        "in_shardings_idxs": in_places,
        "out_shardings_idxs": out_places,
    }


def _written_mesh(mesh: AbstractMesh) -> dict[str, Any]:
    device = mesh.abstract_device
    return {
        "axis_sizes": list(mesh.axis_sizes),
        "axis_names": list(map(str, mesh.axis_names)),
        "axis_types": [1 + _TYPES.index(t) for t in mesh.axis_types],
        "abstract_device": None if device is None else vars(device),
    }


def _written_sharding(s: NamedSharding, meshes: Sequence[AbstractMesh]) -> dict[str, Any]:
    spec = {
        "partitions": [{"axes": list(map(str, names_in(entry)))} for entry in s.spec],
        "reduced": sorted(map(str, s.spec.reduced)),
        "unreduced": sorted(map(str, s.spec.unreduced)),
    }
    return {
        "mesh": _written_mesh(s.mesh),
        "spec": spec,
        "memory_kind": s.memory_kind,
        "abstract_mesh_idx": meshes.index(s.mesh),
    }


def read(w: Mapping[str, Any], which: str, count: int) -> Where:
    """The shardings of the arguments ("in") or results ("out") that were written."""
    meshes = list(map(_read_mesh, w["unique_abstract_meshes"] or ()))
    unique = [_read_sharding(s, meshes) for s in w["unique_named_shardings"] or ()]
    places = w[f"{which}_shardings_idxs"]
    if places:
        return tuple(None if i == 0 else unique[i - 1] for i in places)
    tables = w[f"{which}_shardings"] or [{}] * count
    if any(t.get("hlo_sharding_proto") for t in tables):
        raise NotImplementedError(
            "the program was exported before shardings were written with their meshes: export it"
            " again, with JAX 0.9 or newer"
        )
    named = [t.get("named_sharding") for t in tables]
    return tuple(None if t is None else _read_sharding(t, meshes) for t in named)


def _read_mesh(w: Mapping[str, Any]) -> AbstractMesh:
    types = tuple(_TYPES[max(n, 1) - 1] for n in w["axis_types"] or ())
    device = w["abstract_device"]
    return AbstractMesh(
        tuple(w["axis_sizes"] or ()), tuple(w["axis_names"] or ()), types,
        abstract_device=None if device is None else AbstractDevice(**device),
    )  # fmt: skip


def _read_sharding(w: Mapping[str, Any], meshes: Sequence[AbstractMesh]) -> NamedSharding | None:
    mesh = meshes[w["abstract_mesh_idx"]] if meshes else _read_mesh(w["mesh"])
    if not mesh.axis_names:
        return None  # one device: nothing is said
    entries = [tuple(p["axes"] or ()) for p in w["spec"]["partitions"] or ()]
    spec = PartitionSpec(
        *[None if not e else e[0] if len(e) == 1 else e for e in entries],
        reduced=frozenset(w["spec"]["reduced"] or ()),
        unreduced=frozenset(w["spec"]["unreduced"] or ()),
    )
    return NamedSharding(mesh, spec, memory_kind=w.get("memory_kind"))
