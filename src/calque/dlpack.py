"""Sharing memory with other libraries."""

from typing import Any, Final

import numpy as np

from calque.core import guards as _guards
from calque.core.arrays import Array
from calque.core.dtypes import COMPLEX, as_dtype, bfloat16
from calque.core.types import ArrayLike, DTypeLike
from calque.numpy import sharing

__all__ = ["from_dlpack", "is_supported_dtype"]

_SUPPORTED: Final = {
    np.dtype(n)
    for n in (
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "float64",
    )
} | {bfloat16, *COMPLEX}


def from_dlpack(external_array: ArrayLike, device: Any = None, copy: bool | None = None) -> Array:
    """Makes an array of any object with `__dlpack__`; it shares the memory where it can.

    Args:
        external_array: The object, such as an array of NumPy or a tensor of PyTorch.
        device: Where the array goes, a device or a sharding; None leaves it.
        copy: True asks for a copy, False refuses one, None copies where it must.

    Returns:
        An array.

    >>> jax.dlpack.from_dlpack(np.arange(3.0, dtype=np.float32))
    Array([0., 1., 2.], dtype=float32)"""
    return sharing.from_dlpack(external_array, device=device, copy=copy)


def is_supported_dtype(dtype: DTypeLike) -> bool:
    """Tells whether arrays of a dtype can be shared.

    Args:
        dtype: The dtype.

    Returns:
        A bool.

    >>> jax.dlpack.is_supported_dtype("float32")
    True"""
    return as_dtype(dtype) in _SUPPORTED


_guards.guard_public(globals())
