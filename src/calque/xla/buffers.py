"""Arrays whose elements XLA has: buffers of its devices, as the owners of the memory of Arrays.

An Array that a program on XLA gives is pending: its owner is an array of jaxlib, and its memory is
asked for when the host first looks. An Array of the host that a program takes gets such an owner,
too, so that it is brought to the devices once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from calque.core.arrays import ArrayImpl, share, to_numpy
from calque.core.avals import ShapedArray
from calque.core.devices import is_mine
from calque.core.lazy import LazyModule
from calque.machine.caches import Table, Tables
from calque.machine.call.arrays import arrivals, pending_arrays, set_owner
from calque.transforms.devices import transfers
from calque.transforms.devices.sharding import (
    NamedSharding,
    Sharding,
    is_in_own_memory,
    positions,
)
from calque.transforms.devices.specs import names_in
from calque.xla import jaxlib
from calque.xla.failures import advised
from calque.xla.lower.programs import host_data
from calque.xla.text.types import type_of

staging: Any = LazyModule("calque.machine.call.staging")  # where the interpreter is known

NOTHING: Final = np.zeros(1, np.uint8)  # the memory of arrays without elements
ALIGNMENT: Final = 64  # of memory of the host that XLA reads where it is
STAGED: Final = 64 << 10  # bytes that are written anew rather than brought
ELSEWHERE: Final = (
    "Fetching value for an Array that spans non-addressable (non process local) devices is not"
    " possible: look at its addressable_shards, or bring the parts together with"
    " multihost_utils.process_allgather(x, tiled=True)"
)
_NUMBERS: Final[Tables[Any, Any]] = Tables("numbers on devices of XLA", 32)
_SHARDINGS: Final[Table[Any, Any]] = Table("shardings of jaxlib", 1024)
_WHERE: Final[Table[Any, Any]] = Table("types of buffers on devices of XLA", 4096)


# ---------------------------------------------------------------- from the devices to the host


def arrive(x: Any) -> np.ndarray:
    """The elements of a pending Array in the order of their places, in memory that its owner keeps;
    waits until they are there."""
    buffer = x._owner
    if type(buffer) is not jaxlib.buffer_class():
        return NOTHING
    host = buffer._npy_value
    if type(host) is not np.ndarray:
        where = buffer._sharding
        one = where.indices is None
        if not (where.is_here if one else where.indices):
            raise RuntimeError(ELSEWHERE)
        if where.platform != "cpu":  # there the host looks into the memory of the device
            transfers.check_fetch(x)
        try:
            host = np.ascontiguousarray(jaxlib.on_host(buffer)) if one else gathered(buffer)
            buffer._npy_value = host
        except jaxlib.runtime_errors() as e:
            raise advised(e) from None
    return host  # type: ignore[no-any-return]


arrivals.install(arrive)


def gathered(buffer: Any) -> np.ndarray:
    """The elements of an array of jaxlib over a mesh on the host."""
    parts = parts_of(buffer)
    indices = buffer._sharding.indices
    shape = buffer.aval.shape
    if parts[0].shape == shape:
        return np.ascontiguousarray(parts[0])
    if len(indices) < buffer._sharding.spanned:
        raise RuntimeError(ELSEWHERE)
    whole = np.empty(shape, parts[0].dtype)
    for part, index in zip(parts, indices, strict=True):
        whole[index.of(shape)] = part
    return whole


def parts_of(buffer: Any) -> list[np.ndarray]:
    """What each device of this process holds of an array of jaxlib over a mesh. XLA's programs do
    not always cut arrays without elements."""
    parts, shape = jaxlib.parts_on_host(buffer), buffer.aval.shape
    if 0 not in shape:
        return parts
    return [np.empty(shape, parts[0].dtype)[i.of(shape)] for i in buffer._sharding.indices]


# ---------------------------------------------------------------- where arrays are, for jaxlib


def sharding_for(sharding: Sharding | None, devices: Sequence[Any], ndim: int) -> Any:
    """The sharding of jaxlib for arrays of this rank that have this one, over the devices of a
    program. None: every device has the whole."""
    named = sharding if isinstance(sharding, NamedSharding) and len(devices) > 1 else None
    split = named and tuple(map(names_in, named.spec.padded(ndim)))
    kind = None
    if sharding is not None and not is_in_own_memory(sharding):
        kind = sharding.memory_kind
    key = (named and (named.mesh, split), tuple(devices), ndim, kind)
    found = _SHARDINGS.find(key)
    if found is None:
        found = _SHARDINGS[key] = _sharding(named, devices, ndim, kind)
    return found


def _sharding(
    named: NamedSharding | None, devices: Sequence[Any], ndim: int, kind: str | None
) -> Any:
    if len(devices) == 1:
        return jaxlib.one_device(devices[0].xla, kind)
    xla = [d.xla for d in devices]
    mine = [k for k, d in enumerate(devices) if is_mine(d)]
    if named is None:
        tiles = np.arange(len(devices)).reshape((1,) * ndim + (-1,))
        return jaxlib.tiled(xla, tiles, [Part((0,) * ndim, (1,) * ndim) for _ in mine], kind)
    counts, places = named.counts(ndim), positions(named, ndim)
    holders: dict[tuple[int, ...], list[int]] = {}
    for k, where in enumerate(places):
        holders.setdefault(tuple(where), []).append(k)
    ordered = [holders[i] for i in itertools.product(*map(range, counts))]
    tiles = np.array(ordered).reshape((*counts, -1))
    return jaxlib.tiled(xla, tiles, [Part(places[k], counts) for k in mine], kind)


def where_of(kind: Any, sharding: Any) -> Any:
    """What stands for buffers of this type with this sharding: machine code compares its
    address."""
    key = (kind, id(sharding))
    found = _WHERE.find(key)
    if found is None:
        found = _WHERE[key] = (kind, sharding)
    return found


class Part(NamedTuple):
    """Which tile of an array a device holds, of how many in each dimension."""

    place: Sequence[int]
    counts: Sequence[int]

    def of(self, shape: Sequence[int]) -> tuple[slice, ...]:
        """The part of an array of this shape."""
        return tuple(
            slice(i * (d // n), (i + 1) * (d // n))
            for i, n, d in zip(self.place, self.counts, shape)
        )


# ---------------------------------------------------------------- from the host to the devices


class Place:
    """Where an argument of a program belongs: its type and its sharding, as jaxlib knows them."""

    __slots__ = ("devices", "dtype", "kind", "numbers", "shape", "sharding", "where")

    def __init__(
        self,
        aval: Any,
        sharding: Sharding | None,
        devices: Sequence[Any],
        donated: bool = False,
    ) -> None:
        tensor = type_of(aval)
        self.kind = jaxlib.array_type(tensor.shape, tensor.dtype)
        self.sharding = sharding_for(sharding, devices, tensor.ndim)
        self.where = where_of(self.kind, self.sharding)
        self.devices = [d.xla for d in devices if is_mine(d)]
        self.shape, self.dtype = aval.shape, aval.dtype
        self.numbers = None if donated else _NUMBERS.new()  # those that were brought before

    def bringing(self) -> Callable[[Any], Any]:
        """`brought`, as a function that is quick for arrays of NumPy, which every call brings
        anew."""
        brought = self.brought
        if self.sharding.indices is not None or not self.devices:
            return brought
        put, copying = jaxlib.putting_a_copy()
        kind, sharding, devices, dtype = self.kind, self.sharding, self.devices, self.kind.dtype

        def bring(x: Any) -> Any:
            if type(x) is np.ndarray and x.dtype is dtype:
                return put(kind, sharding, [x], devices, **copying)
            return brought(x)

        return bring

    def stage(self) -> Any:
        """What writes small arguments into memory that XLA's CPU reads; None where there is none.
        Its results must say when they are ready."""
        dtype = self.kind.dtype
        nbytes = math.prod(self.shape) * dtype.itemsize
        plain = dtype.kind in "biufc" and dtype == self.dtype
        alone = self.sharding.indices is None and self.devices
        if not plain or self.numbers is None or not alone:
            return None
        if not 0 < nbytes <= STAGED or self.devices[0].platform != "cpu":
            return None

        def make() -> tuple[Any, int] | None:
            memory = aligned(nbytes)
            address = memory.ctypes.data
            buffer = self.put(memory[:nbytes].view(dtype).reshape(self.shape))
            return (buffer, address) if jaxlib.address_of(buffer) == address else None

        return staging.new_stage(dtype, self.shape, make, jaxlib.READY)

    def brought(self, x: Any) -> Any:
        """An argument as an array of jaxlib in this place; that is the owner of an Array from now
        on."""
        if type(x) is not ArrayImpl:
            return self.of_value(x)
        buffer = x._owner
        if (
            type(buffer) is jaxlib.buffer_class()
            and buffer._sharding is self.sharding
            and buffer.aval == self.kind
        ):
            set_owner(x, buffer, self.where)  # says so when it has been deleted
            return buffer
        if type(buffer) is jaxlib.buffer_class() and buffer._sharding is not self.sharding:
            if x._extra is None:  # else device_put has looked, which said where it is to be
                transfers.check(transfers.DEVICE_TO_DEVICE, x)
        if x.aval.shape != self.shape or x.aval.dtype != self.dtype:
            raise TypeError(
                f"a program compiled for {self.dtype}{list(self.shape)} was called with"
                f" {x.aval.str_short()}"
            )
        twin = share(x, x.aval)  # what XLA keeps alive is not `x`, which keeps the buffer alive
        buffer = self.put(host_data(twin))  # waits, and says so when it has been deleted
        if x._ptr:
            buffer._npy_value = twin
        set_owner(x, buffer, self.where)
        return buffer

    def put(self, host: np.ndarray, shared: bool = True) -> Any:
        """Elements as an array of jaxlib in this place; in memory of its own, unless it may be
        `shared`, since nobody will write it."""
        indices = self.sharding.indices
        if indices is None:
            parts = [host] if self.devices else []  # in another process
        else:
            parts = [np.asarray(host[i.of(host.shape)], order="C") for i in indices]
        return jaxlib.put(parts, self.kind, self.sharding, self.devices, shared)

    def of_value(self, x: Any) -> Any:
        """A number of Python, or an array of NumPy, which its owner may write later."""
        if type(x) is np.ndarray:
            return self.put(np.asarray(x, self.kind.dtype), shared=False)
        if self.numbers is None:
            return self.put(np.array(x, self.kind.dtype))
        # equal numbers are the same bits, but for zeros and parts of complex ones
        key = x if x and type(x) is not complex else np.array(x, self.kind.dtype).tobytes()
        known = self.numbers.find(key)
        if known is None:
            known = self.numbers[key] = self.put(np.array(x, self.kind.dtype))
        return known


def aligned(nbytes: int) -> np.ndarray:
    """Memory of so many bytes and a few more, which XLA takes as it is."""
    room = np.zeros(nbytes + 2 * ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    return room[start : start + nbytes + ALIGNMENT]


# ---------------------------------------------------------------- arrays over several processes


def spanning(aval: ShapedArray, sharding: Sharding, parts: Mapping[Any, Any]) -> Any:
    """An Array of which this process has these parts, by device, and others have the rest."""
    place = Place(aval, sharding, sharding.device_order)
    own = [d for d in sharding.device_order if is_mine(d)]
    # of NumPy's default dtypes 64 bits come where arrays have 32
    data = [np.asarray(host_data(parts[d]), place.kind.dtype, order="C") for d in own]
    buffer = jaxlib.put(data, place.kind, place.sharding, place.devices, False)
    return pending_arrays((aval,), [buffer], (sharding,))[0]


def own_parts(x: Any, sharding: Sharding) -> dict[Any, np.ndarray]:
    """The parts of an Array over several processes that are in this one, by device."""
    own = [d for d in sharding.device_order if is_mine(d)]
    if type(x._owner) is not jaxlib.buffer_class() or x._owner._sharding.indices is None:
        whole, index = to_numpy(x), sharding.devices_indices_map(x.aval.shape)
        return {d: whole[index[d]] for d in own}  # each process has the whole
    return dict(zip(own, parts_of(x._owner), strict=True))
