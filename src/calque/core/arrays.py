"""Concrete arrays: making them from NumPy and Python values and giving them back.

`Array` is the public abstract class (tracers are instances too); `ArrayImpl` the C type that holds
memory. Its methods and operators are attached by the library, to it and to tracers alike."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from calque.core.adopting import adopted, from_numpy, from_storage
from calque.core.avals import ShapedArray, nbytes
from calque.core.dtypes import PYTHON_SCALARS, canonicalize, storage
from calque.core.trace import ConstantTracer, as_constant, held, typeof, value_if_known
from calque.core.trace_state import Tracer
from calque.machine.call.arrays import (
    DELETED,
    ArrayImpl,
    arrivals,
    as_numpy,
    buffers,
    delete_array,
    filled,
    instance_check,
    new_array,
    share,
    wrap_numpy,
)

__all__ = [
    "Array",
    "ArrayImpl",
    "adopted",
    "as_it_is",
    "delete",
    "delete_array",
    "filled",
    "from_numpy",
    "from_storage",
    "is_concrete",
    "is_deleted",
    "is_pending",
    "new_array",
    "offered",
    "repeated",
    "scalar",
    "share",
    "to_array",
    "to_numpy",
    "wait_for",
]


if TYPE_CHECKING:
    from calque.core.array_interface import ArrayInterface
else:
    ArrayInterface = object


def _is_instance(cls: type, x: Any) -> bool:
    return isinstance(x, (ArrayImpl, Tracer)) or type.__instancecheck__(cls, x)


class _ArrayMeta(type):
    """`isinstance(x, Array)` holds for arrays and for tracers."""

    def __subclasscheck__(cls, sub: type) -> bool:
        return issubclass(sub, (ArrayImpl, Tracer)) or type.__subclasscheck__(cls, sub)


type.__setattr__(_ArrayMeta, "__instancecheck__", instance_check(_ArrayMeta, _is_instance))


class Array(ArrayInterface, metaclass=_ArrayMeta):
    """The type of calque's arrays, traced ones included: `isinstance(x, jax.Array)`.

    Arrays are immutable; `x.at[i].set(y)` gives a new one. They are made by functions such as
    `jnp.array` and `jnp.zeros`: calling the class is an error.

    Args:
        *args: Refused.
        **kwargs: Refused.

    >>> isinstance(jnp.ones(2), jax.Array)
    True"""

    def __new__(cls, *args: Any, **kwargs: Any) -> Array:
        raise TypeError("Array cannot be instantiated directly: use calque.numpy.array(...)")


def offered(name: str, member: Any) -> Any:
    """What arrays offer under a name, which a function made for it takes: `help` shows it."""
    if isinstance(member, property):
        named: Any = member  # typeshed knows this method from Python 3.13 on
        named.__set_name__(Array, name)  # errors of Python's say it
        return named
    own = getattr(member, "__name__", "")
    if type(member) is FunctionType and (own.startswith("_") or own == "method"):
        member.__name__, member.__qualname__ = name, f"Array.{name}"
    return member


def scalar(x: Any, dtype: Any, weak_type: bool = False) -> Any:
    return wrap_numpy(ShapedArray((), dtype, weak_type), np.asarray(x).astype(dtype))


def as_it_is(x: Any) -> Any:
    """A NumPy scalar or array of rank 0 of which operations keep the dtype: as an Array, where they
    would take it for one of 32 bits."""
    dtype = x.dtype
    return x if dtype.itemsize < 8 or canonicalize(dtype) == dtype else scalar(x, dtype)


def repeated(x: Any, aval: ShapedArray) -> Any:
    """An Array of this aval with the only element of `x`, an Array, everywhere."""
    size = storage(aval.dtype).itemsize
    return filled(aval, nbytes(aval), x, size)


def to_array(x: Any) -> Any:
    """Any operand as a concrete Array or a tracer."""
    if issubclass(type(x), (ArrayImpl, Tracer)):  # `isinstance` would ask a proxy for its class
        return x
    if hasattr(x, "__jax_array__"):
        return to_array(x.__jax_array__())
    aval = typeof(x)
    if isinstance(x, PYTHON_SCALARS):
        return as_constant(scalar(x, aval.dtype, aval.weak_type))
    if isinstance(x, (np.ndarray, np.generic)):
        return as_constant(from_numpy(np.asarray(x), aval.weak_type))
    return to_array(held(x))


def to_numpy(x: Any) -> np.ndarray:
    """The values as a NumPy array: a read-only view of an Array's memory."""
    x = value_if_known(x)
    if isinstance(x, ArrayImpl):
        aval = x.aval
        return as_numpy(x, storage(aval.dtype), aval.shape)
    if isinstance(x, (np.ndarray, np.generic)):
        return np.asarray(x)
    aval = typeof(x)
    return np.asarray(x).astype(aval.dtype)


_OWN_REFERENCES: Final = 2  # of an owner that one Array alone has: its own, and the call's
_WITH_FORMAT: Final = frozenset(np.dtype(c) for c in "?bhilqBHILQefdFD")
# what the buffer protocol has no format for, as XLA calls it
_FORMATLESS: Final = {"bfloat16": "BF16", "int2": "S2", "uint2": "U2", "int4": "S4", "uint4": "U4"}


def _buffer(x: Any) -> np.ndarray:
    """What exports the memory of an Array through the buffer protocol."""
    dtype = x.aval.dtype
    if dtype not in _WITH_FORMAT:
        name = str(getattr(dtype, "name", dtype))
        shown = _FORMATLESS.get(name, name.upper().replace("FLOAT", "F").replace("_", ""))
        raise BufferError(
            f"Buffers of type {shown} are not supported by the Python buffer protocol."
        )
    return to_numpy(x)


buffers.install(_buffer)


def is_deleted(x: Any) -> bool:
    """Tells whether the memory of this array was given away, or back.

    Args:
        x: The array.

    Returns:
        A bool.

    >>> jnp.ones(2).is_deleted()
    False"""
    return x._extra is DELETED


def is_pending(x: Any) -> bool:
    """Whether another engine has the elements of this Array, or is computing them."""
    return x._ptr == 0 and x._owner is not None and not is_deleted(x)


def wait_for(x: Any) -> None:
    """Wait until an Array has been computed; what went wrong is raised here."""
    if not is_pending(x):
        return
    failed: Exception | None = None
    try:
        x._owner.block_until_ready()
    except RuntimeError as e:
        failed = e
    if failed is not None:
        arrivals.call(x)  # meets the same error, and says what can be done about it
        raise failed


def delete(x: Any) -> None:
    """Give the memory of an Array back, also that of another engine; using it raises from now
    on."""
    if is_pending(x) and sys.getrefcount(x._owner) <= _OWN_REFERENCES:  # not a variable's: `_trim`
        x._owner.delete()
    delete_array(x)


def is_concrete(x: Any) -> bool:
    """Whether `x` has a value now."""
    return not isinstance(x, Tracer) or type(x) is ConstantTracer


def all_concrete(xs: Sequence[Any]) -> bool:
    return all(map(is_concrete, xs))
