"""The methods of arrays that need their values: conversions to Python and NumPy, text, memory."""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np

from calque.core.arrays import (
    adopted,
    delete,
    from_storage,
    is_deleted,
    is_pending,
    share,
    to_numpy,
    wait_for,
)
from calque.core.avals import ShapedArray
from calque.core.dtypes import is_extended, is_integer
from calque.core.errors import CalqueRuntimeError
from calque.core.lazy import LazyModule
from calque.core.primitives import do
from calque.transforms.devices.several_processes import spans

sharing = LazyModule("calque.numpy.sharing")


def _keys_text(self: Any) -> str:
    """Random keys: their shape and kind, over the bits that they are made of."""
    return (
        f"Array({self.aval.shape}, dtype={self.aval.dtype.name})"
        f" overlaying:\n{_str(do.random_unwrap(self))}"
    )


def _summands(self: Any) -> str | None:
    """The text of an array whose parts are still to be added: its elements are nowhere."""
    sharding = self._extra
    if sharding is None or not getattr(getattr(sharding, "spec", None), "unreduced", None):
        return None
    return f"Array(shape={self.aval.shape}, dtype={self.aval.dtype}, sharding={sharding})"


def _is_elsewhere(x: Any) -> bool:
    """Whether other processes have elements that this one has not."""
    return (
        not is_deleted(x)
        and spans(x._extra)
        and not (x._extra.is_fully_replicated and x._extra.addressable_devices)
    )


def _str(self: Any) -> str:
    if is_extended(self.aval.dtype):
        return _keys_text(self)
    if _is_elsewhere(self):
        return _repr(self)
    return _summands(self) or str(to_numpy(self))


def _repr(self: Any) -> str:
    if is_extended(self.aval.dtype):
        return _keys_text(self)
    summands = _summands(self)
    if summands is not None:
        return summands
    dtype = f"dtype={self.aval.dtype.name}" + (", weak_type=True" if self.aval.weak_type else "")
    prefix = "Array("
    if _is_elsewhere(self):
        return f"{prefix}shape={self.aval.shape}, {dtype})"
    x = to_numpy(self)
    if x.size == 0 and x.ndim != 1:
        return f"{prefix}[], shape={x.shape}, {dtype})"
    body = np.array2string(
        x,
        separator=", ",
        prefix=prefix,
        suffix=",",
        max_line_width=np.get_printoptions()["linewidth"],
    )
    last = body[body.rfind("\n") + 1 :] if "\n" in body else prefix + body
    wide = len(last) + len(dtype) + 3 > np.get_printoptions()["linewidth"]
    return f"{prefix}{body},{chr(10) + ' ' * len(prefix) if wide else ' '}{dtype})"


def _format(self: Any, spec: str) -> str:
    if self.aval.ndim == 0 and not is_extended(self.aval.dtype):
        return format(to_numpy(self)[()], spec)
    try:
        return format(str(self), spec)
    except ValueError:
        raise TypeError(
            f"unsupported format string {spec!r} passed to an array of shape {self.aval.shape}: it"
            " is for a number. jnp.array_str(x, precision=2) rounds what is printed, and so does"
            " the block `with jnp.printoptions(precision=2)`"
        ) from None


def _item(self: Any, *args: Any) -> Any:
    """Gives an element as a Python number.

    Args:
        *args: Its position: one int in the flattened array, or one for each axis; none where there
            is but one element.

    Returns:
        A bool, int, float or complex.

    >>> jnp.array([1.5, 2.5]).item(1)
    2.5"""
    if not args and self.aval.size != 1:
        raise ValueError(
            "can only convert an array of size 1 to a Python scalar, got one of shape"
            f" {self.aval.shape}: item(n) gives an element, tolist() all of them"
        )
    return to_numpy(self).item(*args)


def _tolist(self: Any) -> Any:
    """Gives the elements as nested lists of Python numbers; of an array without axes, the number.

    Returns:
        A list.

    >>> jnp.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]"""
    return to_numpy(self).tolist()


def _tobytes(self: Any, order: str = "C") -> bytes:
    r"""Gives the bytes of the elements.

    Args:
        order: "C" takes the last axis first, "F" the first one.

    Returns:
        A bytes object.

    >>> jnp.array([1, 2], "uint8").tobytes()
    b'\x01\x02'"""
    return to_numpy(self).tobytes(order)  # type: ignore[arg-type]


def _scalar(self: Any, what: str) -> Any:
    if self.aval.size != 1 or self.aval.ndim:
        raise TypeError(
            f"Only scalar arrays can be converted to Python scalars; got {self.aval.ndim=}".replace(
                "self.aval.ndim", "arr.ndim"
            )
        )
    return to_numpy(self)


def _bool(self: Any) -> bool:
    if self.aval.size != 1:
        raise ValueError(
            "The truth value of an array with more than one element is ambiguous. Use a.any() or"
            " a.all()"
            if self.aval.size
            else "The truth value of an empty array is ambiguous. Use a.size > 0."
        )
    return bool(to_numpy(self).reshape(()))


def _index(self: Any) -> int:
    if not is_integer(self.aval.dtype) or self.aval.ndim:
        raise TypeError(
            "Only integer scalar arrays can be converted to a scalar index; got"
            f" {self.aval.str_short()}"
        )
    return int(to_numpy(self))


def _np_array(self: Any, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    """Gives the elements as a NumPy array: `np.asarray(x)`.

    Args:
        dtype: The dtype; None keeps that of the array.
        copy: True asks for a copy; otherwise the memory is shared where it can be, read-only.

    Returns:
        A NumPy array.

    >>> np.asarray(jnp.arange(3))
    array([0, 1, 2], dtype=int32)"""
    if is_extended(self.aval.dtype):
        raise TypeError(
            "JAX array with PRNGKey dtype cannot be converted to a NumPy array. Use"
            f" random.key_data(keys) to get the bits of an array of dtype {self.aval.dtype.name}."
        )
    x = to_numpy(self)
    if dtype is not None and np.dtype(dtype) != x.dtype:
        if copy is False:
            raise ValueError(f"a conversion from {x.dtype} to {dtype} needs a copy, but copy=False")
        return x.astype(dtype)
    return x.copy() if copy else x


def _reduce(self: Any) -> Any:
    values = to_numpy(self).copy()
    if is_extended(self.aval.dtype):
        return from_storage, (values, self.aval)
    return _rebuild, (values, self.aval.weak_type)


def _base_array(self: Any) -> Any:
    """The words that random keys are made of, in the same memory: deleted if the keys are. As JAX's
    arrays of keys have."""
    if not is_extended(self.aval.dtype):
        raise AttributeError(f"{type(self).__name__!r} object has no attribute '_base_array'")
    words = ShapedArray(self.shape + self.aval.dtype.impl.key_shape, np.dtype("uint32"))
    if not is_deleted(self):
        return share(self, words)
    gone = from_storage(np.empty(words.shape, words.dtype), words)
    delete(gone)
    return gone


def _impl(self: Any) -> Any:
    """The algorithm of random keys. As JAX's arrays of keys have."""
    if not is_extended(self.aval.dtype):
        raise AttributeError(f"{type(self).__name__!r} object has no attribute '_impl'")
    return self.aval.dtype.impl


def _rebuild(x: np.ndarray, weak_type: bool) -> Any:
    return adopted(x, weak_type)


def _copied(self: Any) -> Any:
    if not is_deleted(self) and spans(self._extra):
        return do.copy(self)
    make, parts = _reduce(self)
    return make(*parts)


def _deeply_copied(self: Any, memo: Any) -> Any:
    return _copied(self)


def _alive(self: Any) -> Any:
    """The array itself; RuntimeError when it has been deleted."""
    if is_deleted(self):
        to_numpy(self)
    return self


def _awaited(self: Any) -> Any:
    """Waits until the array is computed. Only programs on XLA return before they are done.

    Returns:
        The array itself.

    Raises:
        RuntimeError: The array has been deleted, or the program failed.

    >>> jnp.arange(3).block_until_ready()
    Array([0, 1, 2], dtype=int32)"""
    if self._ptr == 0 or self._extra is not None:
        wait_for(_alive(self))
    return self


def _begin_copy(self: Any) -> None:
    """Begins to copy the array to the host. Its memory is the host's already.

    >>> jnp.arange(3).copy_to_host_async()"""
    _alive(self)  # there is nowhere to copy to: the memory is the host's


def _delete(self: Any) -> None:
    """Gives the memory back at once. The array must not be used any more.

    >>> x = jnp.arange(3)
    >>> x.delete()
    >>> x.is_deleted()
    True"""
    delete(self)


def _is_ready(self: Any) -> bool:
    """Tells whether the array is computed. That of a program on XLA may not be, yet.

    Returns:
        A bool.

    >>> jnp.arange(3).is_ready()
    True"""
    return not is_pending(_alive(self)) or bool(self._owner.is_ready())


def _buffer_pointer(self: Any) -> int:
    """Gives the address of the first element, in the memory of its device.

    Returns:
        An int.

    Raises:
        RuntimeError: The array is on several devices.

    >>> jnp.arange(3).unsafe_buffer_pointer() % 4
    0"""
    if _is_on_several(_alive(self)):
        raise CalqueRuntimeError(
            "unsafe_buffer_pointer() is supported only for unsharded arrays, and this one is on"
            f" {self.sharding.num_devices} devices: ask its addressable_shards, one by one"
        )
    if is_pending(self) or self._extra is not None:
        of_xla = getattr(self._owner, "unsafe_buffer_pointer", None)
        if of_xla is not None:  # the host may have a copy
            return int(of_xla())
    return int(self._ptr)


def _is_on_several(x: Any) -> bool:
    """Whether an array is on several devices, in parts or whole."""
    return x._extra is not None and x.sharding.num_devices > 1


def _refuse_several(x: Any, what: str) -> None:
    """BufferError where no single device has the array."""
    if not is_deleted(x) and spans(x._extra):
        raise BufferError(
            f"{what}: the array is on devices of several processes: export x.addressable_shards"
        )
    if _is_on_several(x):
        raise BufferError(
            f"{what} can only pack a dlpack tensor from an array on a singular device, but an array"
            f" with a Sharding over {x.sharding.num_devices} devices was provided: share its"
            " addressable_shards, or bring it to one device with device_put"
        )


def _size_on_device(self: Any) -> int:
    """Gives the bytes that the elements take.

    Returns:
        An int.

    >>> jnp.arange(3).on_device_size_in_bytes()
    12"""
    return int(self.aval.size * self.aval.dtype.itemsize)


def _dlpack(
    self: Any,
    *,
    stream: Any = None,
    max_version: Any = None,
    dl_device: Any = None,
    copy: bool | None = None,
) -> Any:
    """Shares the memory with another library, by the DLPack protocol.

    Args:
        stream: Of a GPU, the stream that reads the memory; else None: a CPU has no streams.
        max_version: The newest version of the protocol that the other library knows.
        dl_device: Must be None, the CPU, or where the array is.
        copy: True asks for a copy, False refuses one, None copies where it must.

    Returns:
        A capsule.

    >>> np.from_dlpack(jnp.arange(3))
    array([0, 1, 2], dtype=int32)"""
    _refuse_several(self, "__dlpack__")
    device = sharing.device_of(self)
    if device is not None and dl_device in (None, device.dlpack_device()):
        return device.exported(do.copy(self) if copy else self, stream)
    if device is not None and copy is False:
        raise BufferError(
            f"__dlpack__: the array is on {device}, and copy=False keeps it from {dl_device=}"
        )
    if device is None and stream is not None:
        raise BufferError(f"__dlpack__: arrays on a CPU have no streams, got stream={stream!r}")
    if dl_device is not None and tuple(dl_device) != (1, 0):
        raise BufferError(
            f"__dlpack__: the array is on {device or 'the CPU, (1, 0)'}, and is not copied to"
            f" {dl_device=}"
        )
    return sharing.export(self, max_version, dl_device, copy)


def _dlpack_device(self: Any) -> tuple[int, int]:
    """Tells where the array is, in numbers of DLPack: the type of its device, and which.

    >>> jnp.arange(3).__dlpack_device__()
    (1, 0)"""
    _refuse_several(self, "__dlpack_device__")
    device = sharing.device_of(self)
    return (1, 0) if device is None else device.dlpack_device()


def _as_dtype(self: Any) -> np.dtype[Any]:
    """What `np.dtype(x)` takes from an array: refused by later versions of JAX."""
    warnings.warn(
        "Implicit conversion of an array to a dtype is deprecated; rather than dtype=arr use"
        " dtype=arr.dtype.",
        DeprecationWarning,
        stacklevel=2,
    )
    return np.dtype(self.aval.dtype)


CONCRETE: Final[dict[str, Any]] = {
    "_base_array": property(_base_array),
    "_impl": property(_impl),
    "__numpy_dtype__": property(_as_dtype),
    "__repr__": _repr,
    "__str__": _str,
    "__format__": _format,
    "__bool__": _bool,
    "__int__": lambda self: int(_scalar(self, "int")),
    "__float__": lambda self: float(_scalar(self, "float")),
    "__complex__": lambda self: complex(_scalar(self, "complex")),
    "__index__": _index,
    "__array__": _np_array,
    "__reduce__": _reduce,
    "__copy__": _copied,
    "__deepcopy__": _deeply_copied,
    "__dlpack__": _dlpack,
    "__dlpack_device__": _dlpack_device,
    "item": _item,
    "tolist": _tolist,
    "tobytes": _tobytes,
    "block_until_ready": _awaited,
    "copy_to_host_async": _begin_copy,
    "delete": _delete,
    "is_deleted": is_deleted,
    "is_ready": _is_ready,
    "unsafe_buffer_pointer": _buffer_pointer,
    "on_device_size_in_bytes": _size_on_device,
}
