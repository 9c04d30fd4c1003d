"""Sharing memory with other libraries through DLPack."""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np

from calque.core.arrays import Array, ArrayImpl, adopted, from_numpy, to_numpy
from calque.core.backends import known
from calque.core.dtypes import as_dtype, bfloat16
from calque.core.trace_state import Tracer
from calque.numpy.calls.marks import python_only
from calque.numpy.conversions import asarray
from calque.numpy.creation import placed
from calque.numpy.signatures import Placement
from calque.transforms.devices.sharding import Sharding, is_in_own_memory

__all__ = ["export", "from_dlpack"]

_BFLOAT = 4  # DLPack's number of the kind of dtype
_OFFSETS: Final = {
    b"dltensor": 20,
    b"dltensor_versioned": 52,
}  # from the start of the managed tensor to the code of its dtype

ACCELERATORS: Final = {2: "cuda", 10: "rocm"}  # by DLPack's numbers of types of devices

# Before, NumPy's arrays know only the old protocol, which does not say that memory is read-only.
_SPEAKS_VERSION_1 = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


def device_of(x: Any) -> Any:
    """The device whose memory others share by means of its own; None for the memory of the
    host."""
    where = x._extra
    if not isinstance(where, Sharding):  # of a deleted array it says so
        return None
    if len(where.device_order) != 1 or not is_in_own_memory(where):
        return None
    (device,) = where.device_order
    return device if hasattr(device, "exported") else None


def export(x: Any, max_version: Any = None, dl_device: Any = None, copy: bool | None = None) -> Any:
    """A DLPack capsule of an array. Consumers that speak version 1 are told that the memory is
    read-only; older ones must not write."""
    values = to_numpy(x)
    is_bfloat = values.dtype == bfloat16
    if not is_bfloat and (values.dtype.kind == "V" or values.dtype.name not in np.sctypeDict):
        raise BufferError(
            f"DLPack export of dtype {values.dtype.name} is not supported: bitcast it with"
            " .view(jnp.uint16) or .view(jnp.uint8) first"
        )
    bits = values.view(np.uint16) if is_bfloat else values.view()
    bits = (
        bits.copy()
        if copy
        else bits
        if _SPEAKS_VERSION_1 and max_version and max_version[0] >= 1
        else _writeable_alias(bits)
    )
    if _SPEAKS_VERSION_1:
        capsule = bits.__dlpack__(max_version=max_version, dl_device=dl_device)
    elif dl_device is None or tuple(dl_device) == bits.__dlpack_device__():
        capsule = bits.__dlpack__()
    else:
        raise BufferError(f"DLPack export to the device {tuple(dl_device)} needs NumPy 2.1")
    if is_bfloat:
        _mark_as_bfloat(capsule)
    return capsule


def _writeable_alias(x: np.ndarray) -> np.ndarray:
    """NumPy refuses to export read-only arrays to consumers of the old protocol."""
    address, _ = x.__array_interface__["data"]

    class Holder:
        __array_interface__ = {**x.__array_interface__, "data": (address, False)}
        base = x

    return np.asarray(Holder()) if x.size else np.empty(x.shape, x.dtype)


def _mark_as_bfloat(capsule: Any) -> None:
    """The integers of a capsule declared to be bfloat16, which NumPy cannot say itself."""
    api = ctypes.pythonapi
    name_of, pointer_of = api.PyCapsule_GetName, api.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name = name_of(capsule)
    ctypes.c_uint8.from_address(pointer_of(capsule, name) + _OFFSETS[name]).value = _BFLOAT


@python_only
@placed
def from_dlpack(x: Any, /, *, device: Placement = None, copy: bool | None = None) -> Array:
    """An array that shares the memory of an array of another library, where it can.

    Args:
        x: an object with `__dlpack__`: a PyTorch tensor, a NumPy array.
        device: where the array lies: a device or a sharding. None leaves it where it is.
        copy: True copies in any case, False refuses where a copy is needed, None decides.
    Returns:
        An array. Whoever writes into the memory of the other changes it too.

    >>> jnp.from_dlpack(np.arange(3, dtype=np.int32))
    Array([0, 1, 2], dtype=int32)"""
    if isinstance(x, (ArrayImpl, Tracer)):
        return asarray(x, copy=copy)
    if not (hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")):
        raise TypeError(
            f"from_dlpack takes an object with __dlpack__ and __dlpack_device__, got {type(x)}"
        )
    kind, number = map(int, x.__dlpack_device__())
    if kind in ACCELERATORS:
        return _device_of_number(kind, number).adopted(x, copy)  # type: ignore[no-any-return]
    if kind not in (1, 3, 11):
        raise ValueError(
            "from_dlpack takes arrays in the memory of CPUs, GPUs of CUDA and of ROCm, got one on"
            f" DLPack device type {kind}"
        )
    values = _values_of(x)
    out = from_numpy(values) if copy else adopted(values)
    if copy is False and values.size and not np.shares_memory(to_numpy(out), values):
        raise ValueError(
            "from_dlpack with copy=False: the elements must be copied, since they are not"
            f" contiguous, not aligned or of a dtype that is not enabled ({values.dtype}, shape"
            f" {values.shape}, strides {values.strides})"
        )
    return out


def _device_of_number(kind: int, number: int) -> Any:
    """The device of an accelerator, by what DLPack calls it."""
    platform = ACCELERATORS[kind]
    for device in known.devices_of(platform):
        if device.dlpack_device() == (kind, number):
            return device
    raise ValueError(f"from_dlpack: the array is on {platform}:{number}, which XLA does not have")


def _values_of(x: Any) -> np.ndarray:
    if isinstance(x, np.ndarray):
        return x
    try:
        return np.from_dlpack(x)
    except (RuntimeError, BufferError):
        # bfloat16 is not known to NumPy: its bits are
        bits = x.view(_torch_bits(x)) if hasattr(x, "view") else None
        if bits is None:
            raise
        return np.from_dlpack(bits).view(as_dtype("bfloat16"))


def _torch_bits(x: Any) -> Any:
    name = str(x.dtype).rpartition(".")[2]
    if name != "bfloat16":
        raise TypeError(f"from_dlpack: dtype {x.dtype} is not supported; view it as integers first")
    return type(x.dtype)("int16") if not hasattr(x, "int") else x.new_empty(0).short().dtype
