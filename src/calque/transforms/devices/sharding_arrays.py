"""Arrays and their shardings: what an array says of where it lives, placing arrays, and building
them from parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, overload

import numpy as np

from calque.core import backends, lazy, pytrees, trace_state
from calque.core.arrays import (
    Array,
    ArrayImpl,
    from_storage,
    is_deleted,
    offered,
    share,
    to_array,
    to_numpy,
)
from calque.core.devices import DEFAULT_DEVICE, Device, Space, all_devices, how_to_ask, is_mine
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.trace_state import Tracer
from calque.machine.caches import Table
from calque.machine.objects.plain import WHY_DELETED
from calque.machine.state import Hook, process
from calque.transforms.devices import transfers
from calque.transforms.devices.abstract_mesh import AbstractMesh, AxisType
from calque.transforms.devices.layouts import Format, row_major, without_layout
from calque.transforms.devices.mesh import (
    Mesh,
    ambient_mesh,
    checks_variance,
    consult_mesh,
    current_mesh,
    devices_of,
    get_abstract_mesh,
    mesh_that_is_set,
    over_devices,
)
from calque.transforms.devices.program_devices import check_context
from calque.transforms.devices.several_processes import brought, own_parts, spans
from calque.transforms.devices.sharding import (
    Index,
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    Summands,
    default_sharding,
    is_in_own_memory,
    resolved,
)
from calque.transforms.devices.specs import PartitionSpec, names_of_spec
from calque.transforms.devices.types import in_mesh_order, mat_of, typed
from calque.transforms.functions.shapes import ShapeDtypeStruct

if TYPE_CHECKING:
    from calque.core.generics import Asked
    from calque.core.types import ArrayLike


class Shard:
    """The part of an array that one device holds, as `array.addressable_shards` lists them.

    Args:
        device: Where it is.
        index: Which part of the whole it is: a slice for each dimension.
        replica_id: Which of several equal copies it is, counted from 0.
        array: The whole array.

    >>> shard = jnp.arange(3).addressable_shards[0]
    >>> shard.device, shard.index, shard.data
    (CpuDevice(id=0), (slice(None, None, None),), Array([0, 1, 2], dtype=int32))"""

    __slots__ = ("_array", "_data", "device", "index", "replica_id")

    def __init__(self, device: Device, index: Index, replica_id: int, array: Any):
        self.device, self.index, self.replica_id, self._array = device, index, replica_id, array
        self._data: Any = None

    @property
    def data(self) -> Any:
        """The part, as an array on the device. It shares the memory of the whole where its elements
        are neighbours. None, if it is in another process."""
        if self._data is None:
            self._data = self._part()
        return self._data

    def _part(self) -> Any:
        whole, where = self._array.aval, self._array._extra
        if not is_mine(self.device):
            return None
        sharding = sharding_of(self._array)
        if not sharding.is_fully_addressable:
            part = own_parts.call(self._array, sharding)[self.device]
        elif type(where) is Summands:
            part = where.row(self.device)[self.index]
        else:
            part = to_numpy(self._array)[self.index]
        if self.replica_id and type(where) is not Summands and _is_partial(where, self.device):
            part = np.zeros_like(part)
        found = from_storage(part, whole.without_place().update(shape=part.shape))
        if not where:
            return found
        return placed(found, SingleDeviceSharding(self.device, memory_kind=sharding.memory_kind))

    def __repr__(self) -> str:
        return (
            f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id},"
            f" data={self.data})"
        )


_INTERNED: Final[Table[Sharding, Sharding]] = Table("shardings on other engines", 1024)


def names_no_device(sharding: Sharding | None) -> bool:
    """Whether this is the sharding of a type that was made without a mesh, which leaves everything
    where it is."""
    mesh = sharding.mesh if isinstance(sharding, NamedSharding) else None
    return isinstance(mesh, AbstractMesh) and not mesh.axis_names


def _is_partial(sharding: Any, device: Device) -> bool:
    """Whether the device holds a summand that is zero: of an array that is still to be added over
    some axes, the first member along them has the sum, and the others have nothing to add."""
    unreduced = sharding.spec.unreduced if isinstance(sharding, NamedSharding) else ()
    if not unreduced:
        return False
    (at,) = np.argwhere(sharding.mesh.device_ids == device.id)
    return any(k and n in unreduced for k, n in zip(at, sharding.mesh.axis_names))


def placed(x: Any, sharding: Sharding | None) -> Any:
    """The array with this sharding; the same memory, since the devices share it."""
    if names_no_device(sharding):
        return x
    if type(sharding) is Summands and x._extra is not sharding:
        sharding = sharding.sharding
    if isinstance(sharding, SingleDeviceSharding) and len(all_devices()) == 1:
        own = sharding.device_order[0].engine == DEFAULT_DEVICE.engine
        if own and is_in_own_memory(sharding) and not backends.known.leaves_home():
            # there is no other place: arrays without a sharding take the quickest ways
            sharding = None
    elif isinstance(sharding, NamedSharding) and not isinstance(sharding.mesh, Mesh):
        sharding = _with_devices(sharding, x._extra)
    if x._extra is sharding:
        return x
    if sharding is not None and sharding.device_order[0].engine != DEFAULT_DEVICE.engine:
        sharding = _INTERNED.setdefault(sharding, sharding)  # calls are told apart by identity
    aval = x.aval.without_place()
    out = share(x, aval if sharding is None else typed(aval, sharding))
    out._extra = sharding
    return out


def located(x: Any, sharding: Sharding, *, checked: bool = False) -> Any:
    """The array with this sharding, its elements in the processes that it names. With `checked`
    those make sure that they all put the same."""
    if spans(sharding) or spans(x._extra):
        return brought.call(x, sharding, checked=checked)
    return placed(x, sharding)


def _with_devices(sharding: NamedSharding, own: Sharding | None) -> NamedSharding:
    """The sharding over the devices of an array on a mesh of the same axes, else over those of the
    current mesh; as it is where neither is so."""
    known = (own.mesh if isinstance(own, NamedSharding) else None, current_mesh())
    found = (over_devices(sharding.mesh, m) for m in known)
    mesh = next((m for m in found if m is not None), None) or devices_of(sharding.mesh)
    return sharding if mesh is None else sharding.update(mesh=mesh)


def sharding_of(x: Any) -> Sharding:
    """How an array is laid out over devices; one that was never placed lives on the first device,
    or on all those of the mesh that is set.

    Args:
        x: The array.

    Returns:
        A Sharding.

    >>> jnp.ones(2).sharding
    SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)"""
    found = x._extra
    if found is not None and not is_deleted(x):
        return found.sharding if type(found) is Summands else found
    mesh = mesh_that_is_set()
    if mesh.empty:
        return default_sharding()
    entries = [None] * x.aval.ndim if mesh.explicit_axes else []
    return NamedSharding(mesh, PartitionSpec(*entries))


def _format(x: Any) -> Format:
    """How the array lies in memory, and where.

    Returns:
        A Format.

    >>> jnp.ones((2, 3)).format.layout
    Layout(major_to_minor=(0, 1))"""
    return row_major(x.aval.ndim, sharding_of(x))


def _device(x: Any) -> Any:
    """The device of the array, or its sharding if it lives on several.

    Args:
        x: The array.

    Returns:
        A Device or a Sharding.

    >>> jnp.ones(2).device
    CpuDevice(id=0)"""
    s = sharding_of(x)
    order = s.device_order
    return order[0] if len(order) == 1 else s


def shards(x: Any) -> list[Shard]:
    """The parts of an array, one for each device of its sharding.

    Args:
        x: The array.

    Returns:
        A list of Shards, in the order of the devices in the sharding.

    >>> [s.data.shape for s in jnp.ones(2).addressable_shards]
    [(2,)]"""
    s = sharding_of(x)
    seen: dict[Any, int] = {}
    out = []
    for device, index in zip(s.device_order, s.indices(x.aval.shape)):
        key = tuple((i.start, i.stop) for i in index)
        seen[key] = replica = seen.get(key, -1) + 1
        out.append(Shard(device, index, replica, x))
    return out


def own_shards(x: Any) -> list[Shard]:
    """The parts of an array that are in this process, one for each of its devices.

    Args:
        x: The array.

    Returns:
        A list of Shards, in the order of the devices in the sharding.

    >>> [s.data.shape for s in jnp.ones(2).addressable_shards]
    [(2,)]"""
    return [s for s in shards(x) if is_mine(s.device)]


def _per_device(x: Any) -> list[Any] | None:
    """The parts as arrays, one for each device; None once the array is deleted."""
    return None if is_deleted(x) else [s.data for s in own_shards(x)]


def _fully_replicated(x: Any) -> Any:
    return own_shards(x)[0].data


def _to_device(x: Any, device: Any, *, stream: Any = None) -> Any:
    """Gives the array on a device, or with a sharding.

    Args:
        x: The array.
        device: A device or a sharding.
        stream: Must be None: a CPU has no streams.

    Returns:
        An array.

    >>> jnp.ones(2).to_device(jax.devices()[0])
    Array([1., 1.], dtype=float32)"""
    if stream is not None:
        raise NotImplementedError("to_device with a stream: the CPU devices have none")
    return device_put(x, device)


def _check_if_deleted(self: Any) -> None:
    """An error if the array has been deleted or donated."""
    if is_deleted(self):
        raise RuntimeError(
            f"Array has been deleted with shape={self.aval.str_short()}. {WHY_DELETED}"
        )


def _devices(self: Any) -> Any:
    """The set of devices that the array lives on.

    Returns:
        A set.

    >>> jnp.ones(2).devices()
    {CpuDevice(id=0)}"""
    return sharding_of(self).device_set


def _addressable_data(self: Any, index: int) -> Any:
    """Gives the part of the array that one device holds.

    Args:
        index: The number of the part.

    Returns:
        An array.

    >>> jnp.ones(2).addressable_data(0)
    Array([1., 1.], dtype=float32)"""
    return own_shards(self)[index].data


def _is_fully_replicated(self: Any) -> bool:
    """Whether every device holds the whole array.

    Returns:
        A bool.

    >>> jnp.ones(2).is_fully_replicated
    True"""
    return sharding_of(self).is_fully_replicated


def _is_fully_addressable(self: Any) -> bool:
    """Whether all devices of the array are of this process.

    Returns:
        A bool.

    >>> jnp.ones(2).is_fully_addressable
    True"""
    return sharding_of(self).is_fully_addressable


def _is_committed(self: Any) -> bool:
    """Whether the array was placed where it is, so that what is computed from it stays there.

    Returns:
        A bool.

    >>> jnp.ones(2).committed
    False"""
    return self._extra is not None and not is_deleted(self)


_PUBLIC: Final[dict[str, Any]] = {
    "sharding": property(sharding_of),
    "device": property(_device),
    "format": property(_format),
    "devices": _devices,
    "addressable_shards": property(own_shards),
    "global_shards": property(shards),
    "is_fully_replicated": property(_is_fully_replicated),
    "is_fully_addressable": property(_is_fully_addressable),
    "committed": property(_is_committed),
    "addressable_data": _addressable_data,
    "to_device": _to_device,
}
_ASKED_FOR_BY_LIBRARIES: Final[dict[str, Any]] = {
    "_committed": property(_is_committed),
    "_arrays": property(_per_device, doc="The parts, as libraries ask for them."),
    "_npy_value": property(lambda self: None, doc="A copy kept on the host: there is none."),
    "_fully_replicated_shard": _fully_replicated,
    "_value": property(to_numpy, doc="The elements as a NumPy array."),
    "_sharding": property(sharding_of, doc="The name under which libraries ask for `sharding`."),
    "_check_if_deleted": _check_if_deleted,
}
for _name, _value in _PUBLIC.items():
    setattr(ArrayImpl, _name, offered(_name, _value))
    setattr(Array, _name, _value)  # where `help` and completion look
for _name, _value in _ASKED_FOR_BY_LIBRARIES.items():
    setattr(ArrayImpl, _name, _value)
ArrayImpl.__new__ = staticmethod(lazy.function("calque.transforms.devices.assembling", "new"))


def placed_like(x: Any, model: Any) -> Any:
    """`x` where `model` is, as far as that is known: its sharding, or what its type says of it. Of
    another shape, on the device of `model` if it is one. Inside `shard_map` it varies as `model`
    does."""
    same_shape = np.shape(x) == tuple(getattr(model, "shape", ()))
    own: Any = model.sharding if isinstance(model, ShapeDtypeStruct) else None
    if isinstance(own, NamedSharding) and not isinstance(own.mesh, Mesh):
        own = None  # it has no devices: types speak of it
    if isinstance(model, ArrayImpl):
        own = None if is_deleted(model) else model._extra
    if isinstance(own, SingleDeviceSharding) or (own is not None and same_shape):
        return constraint.call(x, own) if isinstance(x, Tracer) else placed(x, own)
    if own is not None or isinstance(model, ArrayImpl):
        return x
    place = getattr(getattr(model, "aval", None), "place", None)
    if place is None:
        return x
    missing = in_mesh_order(place.mesh, place.mat.varying - mat_of(typeof(x)).varying)
    if missing and checks_variance():
        x = do.pvary(x, axes=missing)
    if not place.mesh.explicit_axes or not same_shape:
        return x
    return constraint.call(x, place.sharding)


def mesh_of_specs() -> Any:
    """The mesh that PartitionSpecs refer to here."""
    mesh, here = consult_mesh(), get_abstract_mesh()
    return mesh if here.empty or here == mesh.abstract_mesh else here


def put_as_asked(x: Any, target: Any, what: str = "out_sharding") -> Any:
    """`x` with the sharding that `out_sharding` asks for, which speaks of all its dimensions where
    types speak of the mesh."""
    mesh = mesh_of_specs()
    if isinstance(target, PartitionSpec) and mesh.empty and consult_mesh().empty:
        of = "" if what == "out_sharding" else f" of {what}"
        raise ValueError(
            "Using PartitionSpec when you are not under a mesh context is not allowed: the"
            f" out_sharding {target}{of} needs a mesh. Enter one with calque.set_mesh(mesh), or"
            " pass a NamedSharding."
        )
    if isinstance(target, PartitionSpec) and not mesh.empty:
        target = NamedSharding(mesh, target)
    if isinstance(target, NamedSharding):
        check_context(target, mesh, what)
        check_explicit(target, what)
        if target.memory_kind not in (None, "device"):
            raise ValueError(
                f"sharding with memory_kind is not allowed in the out_sharding of {what}: {target}"
            )
    if isinstance(target, NamedSharding) and target.mesh.explicit_axes:
        ndim = typeof(x).ndim
        check_shape("One of out_sharding's results", target, typeof(x).shape)
        target = target.update(spec=target.spec.update(partitions=target.spec.padded(ndim)))
    return device_put(x, target)


def check_explicit(target: NamedSharding, what: str) -> None:
    """The axes that a sharding names are those that types speak of."""
    mesh = target.mesh
    for name, kind in zip(mesh.axis_names, mesh.axis_types):
        if name in names_of_spec(target.spec) and kind is not AxisType.Explicit:
            raise ValueError(
                f"PartitionSpec passed to {what} cannot contain axis names that are of type Auto or"
                f" Manual. Got PartitionSpec: {target.spec} with axis name: {name} of type:"
                f" AxisType.{kind.name}"
            )


def _is_target(x: Any) -> bool:
    return x is None or isinstance(x, (Sharding, Device, PartitionSpec, Space, Format))


def _check_targets(tree: Any) -> None:
    for x in pytrees.leaves(tree, is_leaf=_is_target):
        if not _is_target(x):
            raise ValueError(
                "`calque.device_put` only accepts `None`, `calque.sharding.Sharding`,"
                f" `calque.Device`, or a pytree of these values. Received invalid value: {x}"
                + (f". A device is {how_to_ask(x)}" if isinstance(x, str) else "")
            )


def _not_constrained(value: Any, place: Any) -> Any:
    raise RuntimeError("nothing places traced values: import calque")


moved: Final[Hook[Callable[[Any, Space], Any]]] = process.hook(
    "values in other memories", _not_constrained
)
constraint: Final[Hook[Callable[[Any, Sharding], Any]]] = process.hook(
    "places of traced values", _not_constrained
)


def _put(x: Any, target: Any) -> Any:
    value = to_array(x)
    target = without_layout(target, value.ndim, "device_put")
    if target is None:
        transfers.check_put(x, default_sharding())
        return value
    if isinstance(target, Space):
        return moved.call(value, target)
    mesh = consult_mesh()
    inside = ambient_mesh().manual_axes and trace_state.is_evaluating()
    if inside and isinstance(target, (Device, SingleDeviceSharding)):
        raise ValueError(
            "device_put with explicit device not allowed within shard_map-ped functions, but got"
            f" device {target}"
        )
    if isinstance(target, PartitionSpec) and mesh.empty:
        why = "Please set a mesh via `calque.set_mesh` if a PartitionSpec is passed to device_put"
        raise ValueError(why)
    sharding = resolved(target, "device_put", mesh)
    check_shape("One of device_put args", sharding, typeof(value).shape)
    # a program says itself where its constants are: what they were outside of it is not asked
    is_said = isinstance(sharding, NamedSharding) and not trace_state.is_evaluating()
    if isinstance(value, Tracer) or is_said:
        return constraint.call(value, sharding)
    transfers.check_put(x, sharding)
    return located(value, sharding, checked=True)


def check_shape(what: str, sharding: Sharding, shape: Sequence[int]) -> None:
    """The sharding is for arrays of this shape; `what` begins the message if it is not."""
    if len(getattr(sharding, "spec", ())) > len(shape):
        try:
            sharding.check(shape)
        except ValueError as e:
            raise ValueError(
                f"{what} is incompatible with its sharding annotation {sharding}: {e}"
            ) from None
    sharding.check(shape)


@overload
def device_put(
    x: ArrayLike,
    device: Any = None,
    *,
    src: Any = None,
    donate: Any = False,
    may_alias: Any = None,
) -> Array: ...


@overload
def device_put(
    x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None
) -> Asked: ...  # type: ignore[type-var]


def device_put(
    x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None
) -> Any:
    """Puts the leaves of a tree on a device, or lays them out with a sharding.

    Args:
        x: A tree of arrays, NumPy arrays and numbers.
        device: A device, a sharding, a layout or a `jax.memory.Space`, or a tree of these that `x`
            begins with. None makes arrays of the leaves and leaves them where they are.
        src: Where they come from; it need not be said.
        donate: Whether the memory of `x` may be taken over: one bool, or a tree of them. The array
            is kept here all the same.
        may_alias: Whether the result may share the memory of `x`; None and True allow it, False
            makes a copy.

    Returns:
        The tree with an array in place of each leaf.

    >>> jax.device_put({"a": 1.0, "b": [2, 3]}, jax.devices()[0])["b"]
    [Array(2, dtype=int32, weak_type=True), Array(3, dtype=int32, weak_type=True)]"""
    _check_targets(device)
    if donate is not False or may_alias is not None:
        x = _unaliased(x, donate, may_alias)
    if _is_target(device):
        return pytrees.tree_map(lambda leaf: _put(leaf, device), x)
    leaves, tree = pytrees.flatten(x)
    try:
        targets = pytrees.prefix_broadcast(device, x, is_leaf=_is_target)
    except ValueError:
        found = list(pytrees.differences(device, x, _is_target, "device_put device"))
        raise ValueError(
            "device_put device specification must be a tree prefix of the corresponding value; \n "
            f" Mismatch details ({len(found)} found):\n  " + "\n  ".join(found)
        ) from None
    return pytrees.unflatten(tree, [_put(leaf, t) for leaf, t in zip(leaves, targets, strict=True)])


def _unaliased(x: Any, donate: Any, may_alias: Any) -> Any:
    """The tree with copies of the leaves whose memory is not to be shared."""
    leaves, tree = pytrees.flatten(x)
    options = []
    for name, given in (("donate", donate), ("may_alias", may_alias)):
        try:
            options.append(pytrees.prefix_broadcast(given, x, is_leaf=lambda v: v is None))
        except ValueError:
            why = pytrees.difference(given, x, lambda v: v is None, f"device_put {name}")
            raise ValueError(
                f"device_put {name} specification must be a tree prefix of the corresponding value;"
                f" \n{why}"
            ) from None
    for d, a in zip(*options):
        if a and d:
            raise ValueError("device_put: may_alias and donate cannot be True at the same time.")
    return pytrees.unflatten(
        tree, [_apart(v) if a is False else v for v, a in zip(leaves, options[1])]
    )


def _apart(x: Any) -> Any:
    if not isinstance(x, ArrayImpl):
        return x  # of another library: copied on the way in; of a program: no memory yet
    if spans(x._extra):
        return do.copy(x)
    return placed(from_storage(to_numpy(x).copy(), x.aval.without_place()), x._extra)
