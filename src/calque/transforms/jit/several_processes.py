"""What goes from process to process: arrays that are brought to devices of several of them, and
values that each of them has."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from calque.core.arrays import to_numpy
from calque.core.avals import ShapedArray
from calque.core.backends import known
from calque.core.devices import number_of_processes, process_number
from calque.machine.caches import memo
from calque.transforms.devices.mesh import Mesh
from calque.transforms.devices.several_processes import spanning, spans
from calque.transforms.devices.sharding import NamedSharding, Sharding
from calque.transforms.devices.specs import PartitionSpec
from calque.transforms.jit.decorator import jit


def _same(x: Any) -> Any:
    return x


@memo("programs that lay arrays out over processes", 256, programs=True)
def _laying(sharding: Sharding) -> Any:
    """The program whose result has this sharding and the elements of its argument."""
    return jit(_same, out_shardings=sharding)


def brought(x: Any, sharding: Sharding, *, checked: bool) -> Any:
    """The array with this sharding, where it or its own one has devices of several processes. With
    `checked` the processes make sure that they all put the same."""
    own = x._extra
    if not spans(own):
        return _spread(x, sharding, checked)
    if own == sharding:
        return x
    if set(own.device_order) != set(sharding.device_order):
        raise ValueError(
            "device_put: an array over devices of several processes stays on those, since no"
            f" process has all of it: it is on {_listed(own)}, asked for was {_listed(sharding)}."
            " Give a sharding over the same devices, look at its addressable_shards, or gather it"
            " with multihost_utils.process_allgather(x, tiled=True)"
        )
    if own.device_order == sharding.device_order:
        return _laying(sharding)(x)
    return _laid_out(np.asarray(whole_of(x)), x.aval, sharding)  # a program has one order


def whole_of(x: Any) -> Any:
    """An array over several processes with all of it in each of them."""
    own = x._extra
    if own.is_fully_replicated:
        return x
    return _laying(NamedSharding(own.mesh, PartitionSpec()))(x)


def _listed(sharding: Sharding) -> str:
    return ", ".join(map(str, sharding.device_order))


def _spread(x: Any, sharding: Sharding, checked: bool) -> Any:
    """An array of this process alone, of which all others have the same, over devices of all."""
    if x._extra is not None:
        raise ValueError(
            f"device_put: the array is committed to {_listed(x._extra)}, and {sharding} has devices"
            " of other processes, which do not have it. Give values that are on no device, or let"
            " each process give its part: jax.make_array_from_process_local_data"
        )
    data = to_numpy(x)
    if checked and len({d.process_index for d in sharding.device_order}) == number_of_processes():
        _check_same(data, x.aval)
    return _laid_out(data, x.aval, sharding)


def _laid_out(data: np.ndarray, aval: ShapedArray, sharding: Sharding) -> Any:
    index = sharding.devices_indices_map(aval.shape)
    parts = {d: data[index[d]] for d in sharding.addressable_devices}
    return spanning.call(aval.without_place(), sharding, parts)


def _check_same(data: np.ndarray, aval: ShapedArray) -> None:
    digest = hashlib.blake2b(np.ascontiguousarray(data).tobytes(), digest_size=16).digest()
    every = of_all(np.frombuffer(digest, np.uint8))
    if (every != every[process_number()]).any():
        raise AssertionError(
            f"device_put: {aval.str_short()} is not the same in each process. Give the same values"
            " in all of them, or let each give its part: jax.make_array_from_process_local_data"
        )


def of_all(x: np.ndarray) -> np.ndarray:
    """The values of all processes in a row, bit by bit; all have the same shape and dtype."""
    count = number_of_processes()
    if count == 1 or x.size == 0:
        return np.stack([x] * count)
    first = {d.process_index: d for d in reversed(known.default_devices())}
    mesh = Mesh(np.array([first[i] for i in sorted(first)]), ("processes",))
    own = np.frombuffer(np.ascontiguousarray(x).tobytes(), np.uint8)[None]
    rows = NamedSharding(mesh, PartitionSpec("processes"))
    aval = ShapedArray((count, own.size), own.dtype)
    found = np.asarray(whole_of(spanning.call(aval, rows, {first[process_number()]: own})))
    return np.frombuffer(found.tobytes(), x.dtype).reshape(count, *x.shape)
