"""Memory of accelerators shared with other libraries, by DLPack: jaxlib makes capsules and takes
them."""

from __future__ import annotations

import ctypes
from typing import Any, Final

from calque.core.avals import ShapedArray
from calque.core.dtypes import as_dtype, canonicalize
from calque.core.primitives import do
from calque.machine import foreign_parts
from calque.machine.call.arrays import pending_arrays
from calque.transforms.devices.sharding import SingleDeviceSharding
from calque.xla import jaxlib
from calque.xla.buffers import Place

# the kinds of elements as DLPack numbers them, by what their names begin with
KINDS: Final = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}


class Tensor(ctypes.Structure):
    """The description of an array that every capsule of the old protocol begins with."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("kind", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
    )


def described(capsule: Any) -> ShapedArray:
    """The type of the array of a capsule."""
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = Tensor.from_address(pointer_of(capsule, b"dltensor"))
    kind = KINDS.get(tensor.kind)
    if kind is None or tensor.lanes != 1:
        raise TypeError(
            f"from_dlpack: elements of DLPack's kind {tensor.kind} in groups of {tensor.lanes} have"
            " no dtype here"
        )
    name = kind if kind == "bool" else f"{kind}{tensor.bits}"
    return ShapedArray(tuple(tensor.shape[: tensor.ndim]), as_dtype(name))


def exported(x: Any, device: Any, stream: Any) -> Any:
    """A capsule for an array on a device, which `stream` may read."""
    buffer = Place(x.aval, None, [device]).brought(x)
    return jaxlib.jaxlib().extension.buffer_to_dlpack_managed_tensor(buffer, stream=stream)


def adopted(x: Any, device: Any, copy: bool | None) -> Any:
    """An array that shares the memory of one of another library on a device, unless it is to be a
    copy. The other library is told on which stream it will be read."""
    try:
        stream = device.xla.get_stream_for_external_ready_events()
    except jaxlib.runtime_errors() as e:
        if "UNIMPLEMENTED" not in str(e):
            raise
        stream = None
    capsule = x.__dlpack__(stream=stream)
    aval = described(capsule)
    place = Place(aval, None, [device])
    take = jaxlib.jaxlib().extension.dlpack_managed_tensor_to_buffer
    with foreign_parts.withheld("jax"):  # whose sharding the array would have
        buffer = take(capsule, device.xla, stream, False if copy is False else None)
        buffer = buffer._rewrap_with_aval_and_sharding(place.kind, place.sharding)
    (found,) = pending_arrays((aval,), [buffer], (SingleDeviceSharding(device),))
    dtype = canonicalize(aval.dtype)  # not wider than arrays may be
    if dtype != aval.dtype:
        return do.convert_element_type(found, new_dtype=dtype)
    return do.copy(found) if copy else found
