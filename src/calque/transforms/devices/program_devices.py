"""The devices that a program runs on: those of its operands and of the meshes it speaks of, which
must be the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from calque.core.arrays import ArrayImpl, is_deleted
from calque.core.avals import ShapedArray
from calque.core.devices import Device
from calque.core.jaxprs import ClosedJaxpr, Jaxpr, Var, subjaxprs
from calque.transforms.devices.mesh import Mesh
from calque.transforms.devices.sharding import NamedSharding, Sharding, SingleDeviceSharding
from calque.transforms.devices.specs import PartitionSpec


class IncompatibleDevicesError(ValueError):
    """A program is asked to run on devices of one mesh and on those of another.

    Args:
        sides: Two of those who ask: the number of an argument, or what else it is; how they are
            told apart; where they are.
        what: The name of the program."""

    def __init__(self, sides: Sequence[tuple[int | None, str, Sharding]], what: str):
        self.sides, self.what = sides, what
        super().__init__(self._message(()))

    def named(self, names: Sequence[str]) -> IncompatibleDevicesError:
        """The same error with the names of the arguments."""
        self.args = (self._message(names),)
        return self

    def _message(self, names: Sequence[str]) -> str:
        first, second = [self._side(*side, names) for side in self.sides]
        return (
            f"Received incompatible devices for jitted computation. Got {first} and {second}. Use"
            " device_put, outside of jit, to bring them together"
        )

    def _side(self, at: int | None, told: str, where: Sharding, names: Sequence[str]) -> str:
        if at is not None:
            name = names[at] if at < len(names) else at
            told = f"argument {name} of {self.what} with shape {told} and"
        ids, first = [d.id for d in where.device_order], where.device_order[0]
        platform = first.engine if first.engine == "xla_cpu" else first.platform
        return f"{told} with device ids {ids} on platform {platform.upper()}"


def common(
    shardings: Sequence[Sharding | None],
    avals: Sequence[ShapedArray],
    what: str,
    *,
    ordered: bool = False,
) -> Sharding | None:
    """The sharding whose devices the operation runs on; operands on different devices are
    refused; `ordered`: and those on the same ones in another order."""
    first: Sharding | None = None
    at = 0
    for i, s in enumerate(shardings):
        if s is None:
            continue
        if first is None or (is_abstract(first) and not is_abstract(s)):
            first, at = s, i
        elif is_abstract(s) or is_abstract(first):
            continue  # which devices these are is said later
        elif _devices(s) != _devices(first) or (ordered and _order(s) != _order(first)):
            sides = [(at, described(avals[at]), first), (i, described(avals[i]), s)]
            raise IncompatibleDevicesError(sides, what)
        elif isinstance(s, NamedSharding) and not isinstance(first, NamedSharding):
            first, at = s, i
    return first


def check_stays(
    x: Any,
    target: Any,
    what: str,
    *,
    ordered: bool = False,
    told: str = "sharding_constraint inside jit",
) -> None:
    """An array that was placed is not brought to other devices on the way, as device_put does;
    `ordered`: nor to the same ones in another order. `told` is what asks for them."""
    own = x._extra if isinstance(x, ArrayImpl) and not is_deleted(x) else None
    if isinstance(target, Device):
        target = SingleDeviceSharding(target)
    if own is None or not isinstance(target, Sharding) or is_abstract(target):
        return
    if _devices(own) != _devices(target) or (ordered and _order(own) != _order(target)):
        sides = [(0, described(x.aval), own), (None, told, target)]
        raise IncompatibleDevicesError(sides, what)


def is_abstract(sharding: Sharding) -> bool:
    """Whether the mesh of a sharding has no devices."""
    return isinstance(sharding, NamedSharding) and not isinstance(sharding.mesh, Mesh)


def check_context(target: NamedSharding, here: Any, what: str) -> None:
    """A sharding asked for where a mesh is set is over that mesh."""
    if here.empty or here.manual_axes or target.mesh.abstract_mesh == here.abstract_mesh:
        return
    raise ValueError(
        f"Context mesh {here.abstract_mesh} should match the mesh of sharding"
        f" {target.mesh.abstract_mesh} passed to {what}. Set that mesh, or give a PartitionSpec"
    )


def described(aval: ShapedArray) -> str:
    """int32[8], as errors for users name a type."""
    return aval.str_short(short_dtypes=False)


def _devices(s: Sharding) -> set[tuple[str, int]]:
    return set(_order(s))


def _order(s: Sharding) -> list[tuple[str, int]]:
    return [(d.engine, d.id) for d in s.device_order]


def of_read(
    closed: ClosedJaxpr, shardings: tuple[Sharding | None, ...]
) -> tuple[Sharding | None, ...]:
    """The shardings of the arguments that a program reads or gives back: it does not matter where
    the others are."""
    if not any(shardings):
        return shardings
    read = {a for e in closed.eqns for a in e.invars if isinstance(a, Var)}
    read.update(a for a in closed.jaxpr.outvars if isinstance(a, Var))
    return tuple([s if v in read else None for v, s in zip(closed.jaxpr.invars, shardings)])


def check_places(closed: ClosedJaxpr, shardings: tuple[Sharding | None, ...], name: str) -> None:
    """All that a program says of meshes, at any depth, is about the devices of its arguments."""
    key = ("places", shardings)
    if key in closed.cache:
        return
    shardings = of_read(closed, shardings)
    home = common(shardings, closed.in_avals, name, ordered=True)
    side: tuple[int | None, str, Sharding] | None = None
    if home is not None:
        at = next(i for i, s in enumerate(shardings) if s is home)
        side = (at, described(closed.in_avals[at]), home)
    for s, kind in _said(closed.jaxpr, "sharding_constraint"):
        if side is None:
            side = (None, kind, s)
        elif _order(side[2]) != _order(s):
            raise IncompatibleDevicesError([side, (None, kind, s)], name)
    closed.cache[key] = True


def _said(jaxpr: Jaxpr, kind: str) -> Iterator[tuple[Any, str]]:
    """The shardings over meshes that a program speaks of, and what speaks of them."""
    for e in jaxpr.eqns:
        mesh = e.params.get("mesh") if e.primitive.name == "shard_map" else None
        if isinstance(mesh, Mesh):
            yield NamedSharding(mesh, PartitionSpec()), "shard_map"
            continue  # what is inside speaks of the same devices
        target = e.params.get("sharding") if e.primitive.name == "sharding_constraint" else None
        if isinstance(target, NamedSharding) and isinstance(target.mesh, Mesh):
            yield target, f"{kind} inside jit"
        inner = "jit" if e.primitive.name == "jit" else kind
        for body in subjaxprs(e.params):
            yield from _said(body, inner)
