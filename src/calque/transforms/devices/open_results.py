"""Results and arguments whose shardings the compiler of another engine chooses: which these are,
and what it has chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calque.core.jaxprs import ClosedJaxpr
from calque.transforms.devices.mesh import Mesh
from calque.transforms.devices.sharding import NamedSharding, Sharding, is_in_own_memory
from calque.transforms.devices.sharding_propagation import CHOSEN, said_shortly


def left_open(closed: ClosedJaxpr, where: Sequence[Sharding | None]) -> tuple[bool, ...]:
    """Which results of a program may lie otherwise than our own rules say: neither the caller nor a
    type says where they are, and the axes of their mesh are the compiler's."""
    chosen = closed.cache.get(CHOSEN) or (False,) * len(where)
    return tuple([
        not kept and getattr(a, "place", None) is None and _is_automatic(s)
        for s, a, kept in zip(where, closed.out_avals, chosen, strict=True)
    ])  # fmt: skip


def unsaid(
    closed: ClosedJaxpr, ins: Sequence[Sharding | None], outs: Sequence[Sharding | None]
) -> tuple[bool, ...]:
    """Which arguments of a program may lie as its compiler likes: those that were placed nowhere,
    where all that is said is of automatic axes."""
    said = [s for s in (*ins, *outs) if isinstance(s, NamedSharding)]
    if not said or not all(map(_is_automatic, said)):
        return (False,) * len(ins)
    return tuple([
        s is None and getattr(a, "place", None) is None
        for s, a in zip(ins, closed.in_avals, strict=True)
    ])  # fmt: skip


def _is_automatic(sharding: Sharding | None) -> bool:
    return (
        isinstance(sharding, NamedSharding)
        and isinstance(sharding.mesh, Mesh)
        and sharding.mesh.size > 1
        and len(sharding.mesh.auto_axes) == len(sharding.mesh.axis_names)
        and is_in_own_memory(sharding)
    )


def as_chosen(
    closed: ClosedJaxpr,
    given: Sequence[Sharding | None],
    where: list[Sharding | None],
    executable: Any,
) -> list[Sharding | None]:
    """The shardings of the results of a program whose arguments have the `given` ones: those that
    its compiler has chosen, and of the others the known ones."""
    chosen = getattr(executable, "chosen", ())
    if not any(chosen):
        return where
    found = [own or known for own, known in zip(chosen, where, strict=True)]
    return said_shortly(closed, given, found)
