"""Arrays and their shardings: what an array says of where it lives, placing arrays, and building
them from parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from calque.core import pytrees
from calque.core.arrays import (
    ArrayImpl,
    adopted,
    from_storage,
    is_deleted,
    share,
    to_array,
    to_numpy,
)
from calque.core.avals import ShapedArray
from calque.core.devices import DEFAULT_DEVICE, Device, Space, all_devices
from calque.core.dtypes import canonicalize
from calque.core.trace import typeof
from calque.core.trace_state import Tracer
from calque.machine.state import Hook, process
from calque.transforms.devices.mesh import AbstractMesh, consult_mesh
from calque.transforms.devices.sharding import (
    DEFAULT,
    Index,
    NamedSharding,
    PartitionSpec,
    Sharding,
    SingleDeviceSharding,
    resolved,
)


class Shard:
    """The part of an array that one device holds."""

    __slots__ = ("_array", "device", "index", "replica_id")

    def __init__(self, device: Device, index: Index, replica_id: int, array: Any):
        self.device, self.index, self.replica_id, self._array = device, index, replica_id, array

    @property
    def data(self) -> Any:
        """The part, as an array on the device. It shares the memory of the whole where its elements
        are neighbours."""
        whole = self._array.aval
        part = to_numpy(self._array)[self.index]
        return placed(
            from_storage(part, whole.update(shape=part.shape)), SingleDeviceSharding(self.device)
        )

    def __repr__(self) -> str:
        return (
            f"Shard(device={self.device!r}, index={self.index}, replica_id={self.replica_id},"
            f" data={self.data})"
        )


def placed(x: Any, sharding: Sharding | None) -> Any:
    """The array with this sharding; the same memory, since the devices share it."""
    if isinstance(sharding, SingleDeviceSharding) and len(all_devices()) == 1:
        if sharding.device_order[0].engine == DEFAULT_DEVICE.engine:
            # there is no other place: arrays without a sharding take the quickest ways
            sharding = None
    if x._extra is sharding:
        return x
    out = share(x, x.aval)
    out._extra = sharding
    return out


# ---------------------------------------------------------------- what arrays know


def sharding_of(x: Any) -> Sharding:
    """How an array is laid out; arrays that were never placed live on the first device."""
    found = x._extra
    return DEFAULT if found is None or is_deleted(x) else found


def _device(x: Any) -> Any:
    s = sharding_of(x)
    order = s.device_order
    return order[0] if len(order) == 1 else s


def shards(x: Any) -> list[Shard]:
    """The parts of an array, one for each device of its sharding."""
    s = sharding_of(x)
    seen: dict[Any, int] = {}
    out = []
    for device, index in zip(s.device_order, s.indices(x.aval.shape)):
        key = tuple((i.start, i.stop) for i in index)
        seen[key] = replica = seen.get(key, -1) + 1
        out.append(Shard(device, index, replica, x))
    return sorted(out, key=lambda shard: shard.device.id) if len(out) > 1 else out


def _first(x: Any) -> Any:
    return shards(x)[0].data


def _to_device(x: Any, device: Any, *, stream: Any = None) -> Any:
    """The array on a device, or with a sharding."""
    if stream is not None:
        raise NotImplementedError("to_device with a stream: the CPU devices have none")
    return device_put(x, device)


def _check_if_deleted(self: Any) -> None:
    """An error if the array has been deleted or donated."""
    if is_deleted(self):
        raise RuntimeError(f"Array has been deleted with shape={self.aval.str_short()}.")


_NOWHERE = AbstractMesh((), ())


def _type_sharding(aval: ShapedArray) -> NamedSharding:
    """What a type says of where values are: along no mesh axis."""
    return NamedSharding(_NOWHERE, PartitionSpec(*[None] * aval.ndim))


setattr(ShapedArray, "sharding", property(_type_sharding))  # noqa: B010

for _name, _value in {
    "sharding": property(sharding_of, doc="How the array is laid out over devices."),
    "device": property(_device, doc="The device, or the sharding of an array on several."),
    "devices": lambda self: sharding_of(self).device_set,
    "addressable_shards": property(shards, doc="The parts of the array, one for each device."),
    "global_shards": property(shards, doc="The parts of the array, one for each device."),
    "is_fully_replicated": property(lambda self: sharding_of(self).is_fully_replicated),
    "is_fully_addressable": property(lambda self: True),
    "committed": property(lambda self: self._extra is not None and not is_deleted(self)),
    "_committed": property(lambda self: self._extra is not None and not is_deleted(self)),
    "_value": property(to_numpy, doc="The elements as a NumPy array."),
    "_sharding": property(sharding_of, doc="The name under which libraries ask for `sharding`."),
    "_check_if_deleted": _check_if_deleted,
    "addressable_data": lambda self, index: shards(self)[index].data,
    "to_device": _to_device,
}.items():
    setattr(ArrayImpl, _name, _value)


# ---------------------------------------------------------------- device_put


def _is_target(x: Any) -> bool:
    return x is None or isinstance(x, (Sharding, Device, PartitionSpec, Space))


def _check_targets(tree: Any) -> None:
    for x in pytrees.leaves(tree, is_leaf=_is_target):
        if not _is_target(x):
            raise ValueError(
                "`calque.device_put` only accepts `None`, `calque.sharding.Sharding`,"
                f" `calque.Device`, or a pytree of these values. Received invalid value: {x}"
            )


def _not_constrained(value: Any, sharding: Sharding) -> Any:
    raise RuntimeError("nothing places traced values: import calque")


# what places a traced value
constraint: Final[Hook[Callable[[Any, Sharding], Any]]] = process.hook(
    "places of traced values", _not_constrained
)


def _put(x: Any, target: Any) -> Any:
    value = x if isinstance(x, (ArrayImpl, Tracer)) else to_array(x)
    if target is None or isinstance(target, Space):  # there is one memory
        return value
    mesh = consult_mesh()
    if isinstance(target, PartitionSpec) and mesh.empty:
        raise ValueError(
            "Please set a mesh via `calque.set_mesh` if a PartitionSpec is passed to device_put"
        )
    sharding = resolved(target, "device_put", mesh)
    check_shape("One of device_put args", sharding, typeof(value).shape)
    return (
        constraint.call(value, sharding) if isinstance(value, Tracer) else placed(value, sharding)
    )


def check_shape(what: str, sharding: Sharding, shape: Sequence[int]) -> None:
    """The sharding is for arrays of this shape; `what` begins the message if it is not."""
    spec = getattr(sharding, "spec", ())
    if len(spec) > len(shape):
        try:
            sharding.check(shape)
        except ValueError as e:
            raise ValueError(
                f"{what} is incompatible with its sharding annotation {sharding}: {e}"
            ) from None
    sharding.check(shape)


def device_put(
    x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None
) -> Any:
    """The leaves of a tree as arrays on a device or with a sharding; `device` may be a tree that
    `x` begins with, and so may `donate` and `may_alias`. Memory is shared, unless `may_alias` is
    False. A donated array may be kept, as it is here.

    >>> calque.device_put({"a": 1.0, "b": [2, 3]}, calque.devices()[0])["b"]
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
        why = pytrees.difference(device, x, _is_target, "device_put device")
        raise ValueError(
            "device_put device specification must be a tree prefix of the corresponding value; \n "
            f" Mismatch details (1 found):\n  {why}"
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
    out = from_storage(to_numpy(x).copy(), x.aval)
    return placed(out, x._extra)


# ---------------------------------------------------------------- arrays from parts


def _assembled(
    shape: tuple[int, ...],
    sharding: Sharding,
    parts: Sequence[Any],
    dtype: Any,
    order: Sequence[Device],
) -> Any:
    """The whole of parts, of which `parts[i]` is on the device `order[i]`."""
    avals = [typeof(p) for p in parts]
    wanted = sharding.shard_shape(shape)
    dtype = avals[0].dtype if dtype is None else canonicalize(dtype)
    for aval in avals:
        if aval.shape != wanted:
            raise ValueError(
                f"Expected shard shape {wanted} doesn't match the single device array shape"
                f" {aval.shape}. Shape of Array is {ShapedArray(shape, dtype).str_short()} with"
                f" sharding {sharding}"
            )
        if aval.dtype != dtype:
            raise ValueError(
                "Input buffers to `Array` must have matching dtypes. Got "
                f"{aval.dtype}, expected {dtype} for the part of shape {aval.shape}"
            )
    first = to_numpy(parts[0])
    whole = np.empty(shape, first.dtype)
    index = dict(zip(sharding.device_order, sharding.indices(shape)))
    for device, part in reversed(
        list(zip(order, parts))
    ):  # of replicas that differ, the first counts
        whole[index[device]] = to_numpy(part)
    return placed(from_storage(whole, ShapedArray(shape, dtype)), sharding)


def make_array_from_callback(
    shape: Sequence[int],
    sharding: Sharding,
    data_callback: Callable[[Index], Any],
    dtype: Any = None,
) -> Any:
    """An array whose part on each device is `data_callback(index)`, where `index` is a tuple of
    slices of the whole.

    >>> s = calque.sharding.SingleDeviceSharding(calque.devices()[0])
    >>> calque.make_array_from_callback((3,), s, lambda index: np.arange(3.0)[index])
    Array([0., 1., 2.], dtype=float32)"""
    whole = tuple(map(int, shape))
    sharding.check(whole)
    found: dict[Any, Any] = {}
    parts = []
    for index in sharding.indices(whole):
        key = tuple((i.start, i.stop) for i in index)
        if key not in found:
            part = data_callback(index)
            found[key] = part if isinstance(part, ArrayImpl) else adopted(np.asarray(part, dtype))
        parts.append(found[key])
    return _assembled(whole, sharding, parts, dtype, sharding.device_order)


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Sharding, arrays: Sequence[Any], *, dtype: Any = None
) -> Any:
    """An array whose parts are the given arrays, each on the device that holds that part."""
    whole, parts = tuple(map(int, shape)), list(arrays)
    sharding.check(whole)
    if len(parts) != sharding.num_devices:
        raise ValueError(
            f"Expected {sharding.num_devices} per-device arrays (this is how many devices are"
            f" addressable by the sharding), but got {len(parts)}"
        )
    order = [sharding_of(a).device_order[0] for a in parts]
    ids = [d.id for d in order]
    if len(set(ids)) != len(ids):
        raise ValueError(
            "When making an array from single-device arrays, the input arrays must be from"
            f" distinct devices, but got device IDs {ids}"
        )
    strangers = set(order) - sharding.device_set
    if strangers:
        raise ValueError(
            "Addressable devices and per-device arrays devices do not match:"
            f" {sorted(d.id for d in strangers)} are not devices of the sharding {sharding}"
        )
    return _assembled(whole, sharding, parts, dtype, order)


def make_array_from_process_local_data(
    sharding: Sharding, local_data: Any, global_shape: Any = None
) -> Any:
    """An array from the data of this process. There is one process: its data is the whole array."""

    def one(data: Any, shape: Any) -> Any:
        value = data if isinstance(data, ArrayImpl) else to_array(np.asarray(data))
        wanted = value.aval.shape if shape is None else tuple(shape)
        if wanted != value.aval.shape:
            raise ValueError(
                "make_array_from_process_local_data: the only process has data of shape"
                f" {value.aval.shape}, which must be the global shape, got {wanted}"
            )
        check_shape("local_data", sharding, wanted)
        return placed(value, sharding)

    if isinstance(global_shape, tuple) or global_shape is None:
        return pytrees.tree_map(lambda data: one(data, global_shape), local_data)
    return pytrees.tree_map(one, local_data, global_shape)
