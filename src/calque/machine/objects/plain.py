"""Arrays in plain Python, for interpreters whose structs machine code does not know: what `objects`
and `subscript` offer, slowly."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from calque.machine import memory
from calque.machine.state import Hook, process

WHY_DELETED: Final = (
    "It was donated to a function (donate_argnums), or deleted: use that function's result, or"
    " pass a copy."
)


class _Deleted:
    """Stands where an array says where it lives, once it has been deleted."""

    def __repr__(self) -> str:
        return "deleted"


DELETED = _Deleted()


class Block:
    """Memory of the allocator; given back with its last reference."""

    __slots__ = ("address",)

    def __init__(self, address: int) -> None:
        self.address = address

    def __del__(self) -> None:
        if memory is not None:  # as it is while the interpreter goes down
            memory.free(self.address)


class Array:
    """An immutable array: an aval and the memory that holds its elements."""

    __slots__ = ("__weakref__", "_block", "_owner", "_place", "_ptr", "aval")

    aval: Any
    _ptr: int
    _owner: Any
    _block: int
    _place: Any

    @property
    def _extra(self) -> Any:
        """Where it says it lives; None for nowhere in particular."""
        return self._place

    @_extra.setter
    def _extra(self, place: Any) -> None:
        object.__setattr__(self, "_place", place)

    def __new__(cls, *args: Any, **kwargs: Any) -> Array:
        raise TypeError("cannot create 'calque.ArrayImpl' instances")

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "_extra":
            raise refused(name)
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        raise refused(name)

    def __getitem__(self, index: Any) -> Any:
        return _subscript.call(self, index)

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(buffers.call(self))


def refused(name: str) -> AttributeError:
    known = name in Array.__slots__
    return AttributeError(
        "readonly attribute" if known else f"'calque.ArrayImpl' object has no attribute {name!r}"
    )


Array.__module__, Array.__name__, Array.__qualname__ = "calque", "ArrayImpl", "ArrayImpl"
ArrayImpl: Any = Array


def _no_source(array: Any) -> Any:
    raise BufferError("nothing knows the elements of arrays: import calque")


# what exports the memory of an array to others: an object with the buffer protocol
buffers: Final[Hook[Callable[[Any], Any]]] = process.hook("buffers of plain arrays", _no_source)


def _not_indexed(array: Any, index: Any) -> Any:
    raise RuntimeError("nothing indexes arrays: import calque")


_subscript: Final[Hook[Callable[[Any, Any], Any]]] = process.hook("subscripts", _not_indexed)


def make(aval: Any, address: int, owner: Any) -> Any:
    """An Array on memory that `owner` keeps alive."""
    array = object.__new__(Array)
    fields = {"aval": aval, "_ptr": address, "_owner": owner, "_block": 0, "_place": None}
    for name, value in fields.items():
        object.__setattr__(array, name, value)
    return array


def move(array: Any, address: int, owner: Any) -> None:
    """Give an Array other memory."""
    object.__setattr__(array, "_ptr", address)
    object.__setattr__(array, "_owner", owner)


def _nobody(array: Any) -> Any:
    raise RuntimeError("nothing knows the memory of other engines: import calque")


# the elements of a pending array as an ndarray whose memory its owner keeps
arrivals: Final[Hook[Callable[[Any], Any]]] = process.hook("arrivals of plain arrays", _nobody)


def pending_arrays(avals: tuple[Any, ...], owners: list[Any], places: tuple[Any, ...]) -> list[Any]:
    """Arrays whose elements these owners have; they live at these places, None for nowhere in
    particular."""
    made = [make(aval, 0, owner) for aval, owner in zip(avals, owners, strict=True)]
    for array, place in zip(made, places, strict=True):
        array._extra = place
    return made


def set_owner(array: Any, owner: Any, where: Any = None) -> None:
    """What keeps the memory of an Array alive from now on; `where` is for machine code."""
    check("set_owner", array)
    move(array, array._ptr, owner)


def check(function: str, array: Any) -> None:
    """Refuse what is no Array, or one without memory; wait for that of a pending one."""
    if type(array) is not Array:
        raise TypeError(f"{function} takes an Array")
    if array._extra is DELETED:
        aval = array.aval
        text = (
            f"{aval.dtype}[{','.join(map(str, aval.shape))}]"
            if hasattr(aval, "shape")
            else repr(aval)
        )
        raise RuntimeError(f"Array has been deleted with shape={text}. {WHY_DELETED}")
    if array._ptr == 0 and array._owner is not None and function not in ("share", "set_owner"):
        move(array, arrivals.call(array).ctypes.data, array._owner)


def new_array(aval: Any, nbytes: int) -> Any:
    """An Array on fresh, uninitialised memory."""
    if nbytes < 0:
        raise ValueError("a negative number of bytes")
    block = Block(memory.allocate(max(nbytes, 1)))
    return make(aval, block.address, block)


def filled(aval: Any, nbytes: int, scalar: Any, width: int) -> Array:
    """An Array of `nbytes` that repeats the `width` bytes of the Array `scalar`."""
    check("filled", scalar)
    array = new_array(aval, nbytes)
    ctypes.memmove(array._ptr, ctypes.string_at(scalar._ptr, width) * (nbytes // width), nbytes)
    return array


def copied(aval: Any, nbytes: int, source: np.ndarray[Any, Any]) -> Any:
    """An Array with the bytes of a C-ordered, aligned, native ndarray in memory of its own."""
    array = new_array(aval, nbytes)
    ctypes.memmove(array._ptr, wrap_numpy(aval, source)._ptr, nbytes)
    return array


def wrap_numpy(aval: Any, source: np.ndarray[Any, Any]) -> Any:
    """An Array on the memory of a C-ordered, aligned, native ndarray, which it keeps alive."""
    if type(source) is not np.ndarray or not (
        source.flags.c_contiguous and source.flags.aligned and source.dtype.isnative
    ):
        raise TypeError(
            "wrap_numpy takes a C-contiguous, aligned numpy.ndarray in native byte order"
        )
    return make(aval, source.ctypes.data, source)


def share(array: Any, aval: Any) -> Any:
    """Another Array on the same memory."""
    check("share", array)
    return make(aval, array._ptr, array._owner)


def delete_array(array: Any) -> None:
    """Give the memory of an Array back; using it raises from now on."""
    if type(array) is not Array:
        raise TypeError("delete_array takes an Array")
    array._extra = DELETED
    move(array, 0, None)


class Window:
    """Memory as NumPy asks for it; keeps the owner alive."""

    def __init__(self, address: int, nbytes: int, owner: Any) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "version": 3,
            "data": (address, True),
            "shape": (nbytes,),
            "typestr": "|u1",
        }


def as_numpy(array: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """A read-only ndarray on the memory of an Array."""
    if type(array) is not Array or not isinstance(dtype, np.dtype) or type(shape) is not tuple:
        raise TypeError("as_numpy takes an Array, a dtype and a tuple of integers")
    check("as_numpy", array)
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes:
        out = np.asarray(Window(array._ptr, nbytes, array._owner)).view(dtype).reshape(shape)
    else:
        out = np.empty(shape, dtype)
    out.flags.writeable = False
    return out


# ---- subscripts: plain Python looks at each index ----


def learn_source(aval: Any, shape: tuple[int, ...], itemsize: int) -> None:
    """Nothing is kept."""


def learn_result(aval: Any, shape: tuple[int, ...], result: Any) -> None:
    """Nothing is kept."""


def basic_shape(x: Any, index: Any) -> tuple[int, ...] | None:
    """Not known here."""
    return None


def basic_part(x: Any, index: Any) -> Any:
    """Not known here."""
    return None


def set_fallback(function: Callable[[Any, Any], Any]) -> None:
    """What indexes an array."""
    _subscript.install(function)


def checked_pair(
    function: Callable[[Any], Any], check: Callable[[Any], tuple[Any, Any]]
) -> Callable[[Any], tuple[Any, Any]]:
    """What `function` gives, checked."""
    return lambda x: check(function(x))


def instance_check(meta: type, otherwise: Callable[[Any, Any], bool]) -> Callable[..., bool]:
    """`__instancecheck__` of a metaclass."""
    return otherwise
