"""Arrays built from the parts that devices hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.core import pytrees
from calque.core.arrays import Array, ArrayImpl, adopted, from_storage, to_numpy
from calque.core.avals import ShapedArray
from calque.core.devices import Device, is_mine
from calque.core.dtypes import canonicalize
from calque.core.errors import UnexpectedTracerError
from calque.core.trace import typeof
from calque.core.trace_state import Tracer
from calque.transforms.devices.mesh import consult_mesh
from calque.transforms.devices.several_processes import spanning
from calque.transforms.devices.sharding import Index, NamedSharding, Sharding, resolved
from calque.transforms.devices.sharding_arrays import device_put, placed, sharding_of
from calque.transforms.devices.summands import of_parts_on_devices


def _assembled(
    aval: ShapedArray, sharding: Sharding, parts: Sequence[Any], order: Sequence[Device]
) -> Any:
    """The whole of parts, of which `parts[i]` is on the device `order[i]`."""
    shape, wanted = aval.shape, sharding.shard_shape(aval.shape)
    for own in [typeof(p) for p in parts]:
        if own.shape != wanted:
            raise ValueError(
                f"Expected shard shape {wanted} doesn't match the single device array shape"
                f" {own.shape}. Shape of Array is {aval.str_short()} with sharding {sharding}"
            )
        if own.dtype != aval.dtype:
            raise ValueError(
                "Input buffers to `Array` must have matching dtypes. Got "
                f"{own.dtype}, expected {aval.dtype} for the part of shape {own.shape}"
            )
    if not sharding.is_fully_addressable:
        return spanning.call(aval, sharding, dict(zip(order, parts)))
    if isinstance(sharding, NamedSharding) and sharding.spec.unreduced:
        return of_parts_on_devices(aval, sharding, dict(zip(order, parts)))
    whole = np.zeros(shape, to_numpy(parts[0]).dtype)
    index = dict(zip(sharding.device_order, sharding.indices(shape)))
    # of replicas that differ, the first counts
    for device, part in reversed(list(zip(order, parts))):
        whole[index[device]] = to_numpy(part)
    return placed(from_storage(whole, aval), sharding)


def make_array_from_callback(
    shape: Sequence[int],
    sharding: Sharding,
    data_callback: Callable[[Index], Any],
    dtype: Any = None,
) -> Array:
    """Makes an array whose part on each device is what a function gives for that part.

    Args:
        shape: The shape of the whole array.
        sharding: How it is laid out over devices.
        data_callback: Takes a tuple of slices of the whole and gives the data of that part; it is
            called once for each part.
        dtype: The dtype; it must be that of the parts. Needed only if this process has none.

    Returns:
        An array of this shape and sharding.

    >>> s = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    >>> jax.make_array_from_callback((3,), s, lambda index: np.arange(3.0)[index])
    Array([0., 1., 2.], dtype=float32)"""
    whole = tuple(map(int, shape))
    if not isinstance(sharding, Sharding):
        raise TypeError(
            f"sharding should be an instance of `calque.sharding.Sharding`. Got {sharding!r} of"
            f" type {type(sharding)}"
        )
    sharding.check(whole)
    found: dict[Any, Any] = {}
    parts = []
    own = [d for d in sharding.device_order if is_mine(d)]
    everywhere = sharding.devices_indices_map(whole)
    for index in [everywhere[d] for d in own]:
        key = tuple((i.start, i.stop) for i in index)
        if key not in found:
            found[key] = _one_part(data_callback(index))
        parts.append(found[key])
    aval = ShapedArray(whole, _own_dtype(parts, dtype, "jax.make_array_from_callback"))
    return _assembled(aval, sharding, parts, own)


def _own_dtype(parts: Sequence[Any], asked: Any, name: str) -> Any:
    """The dtype of an array of these parts, of which `asked` is not to say another one."""
    if not parts and asked is None:
        raise ValueError(
            "If the Array has no addressable shards, `dtype` must be provided via the `dtype`"
            f" argument to `{name}`."
        )
    own = typeof(parts[0]).dtype if parts else canonicalize(asked)
    if asked is not None and canonicalize(asked) != own:
        raise ValueError(
            f"If `dtype` is provided to `{name}`, it must match the dtype of the addressable"
            f" shards. Got dtype={canonicalize(asked).name} and shard dtype={own.name}"
        )
    return own


def _one_part(part: Any) -> Any:
    if isinstance(part, Tracer):
        raise UnexpectedTracerError(
            "jax.make_array_from_callback cannot be called within a traced context: its callback"
            f" returned a traced value of type {part.aval.str_short()}"
        )
    return part if isinstance(part, ArrayImpl) else adopted(np.asarray(part))


def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Sharding, arrays: Sequence[Any], *, dtype: Any = None
) -> Array:
    """Makes an array of parts, each of which lies on the device that holds it.

    Args:
        shape: The shape of the whole array.
        sharding: How it is laid out over devices.
        arrays: A list with one array for each device of the sharding, in any order.
        dtype: The dtype; it must be that of the parts. Needed only if there are none.

    Returns:
        An array of this shape and sharding.

    >>> s = jax.NamedSharding(jax.make_mesh((1,), ("x",)), jax.P("x"))
    >>> part = jax.device_put(jnp.ones(2), jax.devices()[0])
    >>> jax.make_array_from_single_device_arrays((2,), s, [part])
    Array([1., 1.], dtype=float32)"""
    name = "jax.make_array_from_single_device_arrays"
    if not isinstance(arrays, (list, tuple)):
        raise TypeError(f"{name} `arrays` argument must be a list or tuple, but got {type(arrays)}")
    if not all(isinstance(a, ArrayImpl) for a in arrays):
        raise ValueError(
            f"{name} requires a list of concrete arrays as input, but got types"
            f" {set(map(type, arrays))}"
        )
    aval = ShapedArray(tuple(map(int, shape)), _own_dtype(arrays, dtype, name))
    return from_arrays(aval, sharding, arrays)


def from_arrays(
    aval: ShapedArray, sharding: Sharding, arrays: Sequence[Any], committed: bool = True
) -> Any:
    """The array of this type whose parts are `arrays`, each on one device of the sharding."""
    parts = list(arrays)
    sharding.check(aval.shape)
    for a in parts:
        if sharding_of(a).num_devices != 1:
            raise ValueError(
                "When making an array from single-device arrays the input arrays must have one"
                f" shard each. An argument array had {sharding_of(a).num_devices} shard(s)."
            )
    own = sharding.addressable_devices
    if len(parts) != len(own):
        raise ValueError(
            f"Expected {len(own)} per-device arrays (this is how many devices are"
            f" addressable by the sharding), but got {len(parts)}"
        )
    order = [sharding_of(a).device_order[0] for a in parts]
    _check_places([d.id for d in order], {d.id for d in own})
    made = _assembled(aval, sharding, parts, order)
    return made if committed or sharding.num_devices > 1 else placed(made, None)


def _check_places(found: list[int], wanted: set[int]) -> None:
    if len(set(found)) != len(found):
        raise ValueError(
            "When making an array from single-device arrays, the input arrays must be from"
            f" distinct devices, but got device IDs {found}"
        )
    missing, strangers = wanted - set(found), set(found) - wanted
    if missing or strangers:
        raise ValueError(
            "Addressable devices and per-device arrays devices do not match."
            + (
                f" Sharding contains devices {missing} that are not present in per-device arrays."
                if missing
                else ""
            )
            + (
                f" Per-device arrays contain devices {strangers} that are not present in the"
                " sharding."
                if strangers
                else ""
            )
        )


def make_array_from_process_local_data(
    sharding: Any, local_data: Any, global_shape: Any = None
) -> Any:
    """Makes an array, or a tree of them, from the data of this process.

    Where there is one process, its data is the whole array.

    Args:
        sharding: Shardings, devices and, under a current mesh, PartitionSpecs: one, or a tree of
            them that `local_data` begins with.
        local_data: A tree of NumPy arrays.
        global_shape: The shape of the whole; None, or that of the data.

    Returns:
        The tree with an array in place of each leaf.

    >>> s = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    >>> jax.make_array_from_process_local_data(s, np.arange(3))
    Array([0, 1, 2], dtype=int32)"""
    leaves, tree = pytrees.flatten(local_data)
    targets = pytrees.prefix_broadcast(sharding, local_data)
    shapes = pytrees.prefix_broadcast(
        global_shape, local_data, is_leaf=lambda x: x is None or isinstance(x, tuple)
    )
    out = []
    for data, target, shape in zip(leaves, targets, shapes, strict=True):
        where = resolved(target, "make_array_from_process_local_data", consult_mesh())
        if not where.is_fully_addressable:
            out.append(_of_this_process(where, np.asarray(data), shape))
            continue
        if shape is not None and tuple(shape) != np.shape(data):
            raise ValueError(
                "When calling `make_array_from_process_local_data` on a single process,"
                f" global_shape should be None or equal to local_data.shape. Got"
                f" global_shape={shape} and local_data.shape={np.shape(data)}."
            )
        out.append(device_put(data, where))
    return pytrees.unflatten(tree, out)


def _of_this_process(sharding: Sharding, data: np.ndarray, shape: Any) -> Any:
    """The array of which this process has `data`: the tiles of its devices, side by side."""
    counts = sharding.parts((0,) * data.ndim)
    grid = sharding.devices_indices_map(counts)  # the tiles as elements
    own = {d: tuple(i.start or 0 for i in grid[d]) for d in grid if is_mine(d)}
    if not own:
        raise ValueError(
            "make_array_from_process_local_data: this process has no device of"
            f" {sharding}: make_array_from_single_device_arrays(shape, sharding, [], dtype=...)"
            " makes an array of which it has nothing"
        )
    mine = [sorted({at[k] for at in own.values()}) for k in range(data.ndim)]
    for k, (size, tiles) in enumerate(zip(data.shape, mine)):
        if size % len(tiles):
            raise ValueError(
                f"make_array_from_process_local_data: dimension {k} of the local data, of size"
                f" {size}, is cut into {len(tiles)} tiles by {sharding}"
            )
    sizes = [size // len(tiles) for size, tiles in zip(data.shape, mine)]
    whole = tuple(n * size for n, size in zip(counts, sizes))
    if shape is not None and tuple(shape) not in (whole, data.shape):
        raise ValueError(
            f"make_array_from_process_local_data: the parts of all processes make an array of shape"
            f" {whole}, not global_shape={tuple(shape)}"
        )
    parts = {}
    for device, at in own.items():
        places = [tiles.index(i) * size for i, tiles, size in zip(at, mine, sizes)]
        if shape is not None and tuple(shape) == data.shape != whole:  # all of it is here
            whole_index = sharding.devices_indices_map(data.shape)[device]
            parts[device] = data[whole_index]
            continue
        parts[device] = data[tuple(slice(p, p + size) for p, size in zip(places, sizes))]
    final = data.shape if shape is not None and tuple(shape) == data.shape else whole
    return spanning.call(ShapedArray(final, canonicalize(data.dtype)), sharding, parts)


def new(cls: type, aval: Any, sharding: Any, arrays: Any, committed: bool = True, **_: Any) -> Any:
    """`ArrayImpl(aval, sharding, arrays, committed)`, as libraries make arrays of parts."""
    plain = ShapedArray(aval.shape, aval.dtype, aval.weak_type)
    return from_arrays(plain, sharding, arrays, committed)
