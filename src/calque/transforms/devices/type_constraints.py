"""What the types of a program say, as equations: a `sharding_constraint` after each operation whose
result is on a mesh with explicit axes. So do compilers learn of it that read no types."""

from __future__ import annotations

from typing import Any

from calque.core.jaxprs import ClosedJaxpr, DropVar, Eqn, Jaxpr, Var, without_places
from calque.transforms.devices.mesh import EMPTY
from calque.transforms.devices.shard_map_equation import shard_map_p
from calque.transforms.devices.sharding_constraint import sharding_constraint_p
from calque.transforms.devices.types import MeshPlace


def with_constraints(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with what its types say written out, and without it in the types."""
    return without_places(stated(closed))


def stated(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with what its types say written out."""
    found: ClosedJaxpr = _inner(closed)
    return found


def _stated(jaxpr: Jaxpr) -> Jaxpr:
    names: dict[Any, Any] = {}
    eqns: list[Eqn] = []
    for e in jaxpr.eqns:
        e = e.replace(
            invars=[names.get(a, a) for a in e.invars],
            params={k: _inner(v) for k, v in e.params.items()},
        )
        eqns.append(e)
        for v in e.outvars:
            place = getattr(v.aval, "place", None)
            if (
                e.primitive is sharding_constraint_p
                or e.primitive is shard_map_p  # says it itself
                or isinstance(v, DropVar)
                or not isinstance(place, MeshPlace)
                or not place.mesh.explicit_axes
            ):
                continue
            names[v] = Var(v.aval)
            params: dict[str, Any] = {
                "sharding": place.sharding,
                "layout": None,
                "context_mesh": EMPTY,
                "unconstrained_dims": frozenset(),
            }
            eqns.append(Eqn(sharding_constraint_p, [v], [names[v]], params, e.source))
    return jaxpr.replace(eqns=eqns, outvars=[names.get(a, a) for a in jaxpr.outvars])


def _inner(value: Any) -> Any:
    if isinstance(value, ClosedJaxpr):
        if "with constraints" not in value.cache:
            value.cache["with constraints"] = (
                ClosedJaxpr(_stated(value.jaxpr), value.consts)
                if without_places(value) is not value
                else value
            )
        return value.cache["with constraints"]
    if isinstance(value, (tuple, list)) and any(isinstance(v, ClosedJaxpr) for v in value):
        return type(value)(_inner(v) for v in value)
    return value
