"""Sharing memory with other libraries."""

from typing import Any, Final

import numpy as np

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
    """An array that shares the memory of any object with `__dlpack__` where it can:
    `calque.numpy.from_dlpack`.

    >>> calque.dlpack.from_dlpack(np.arange(3.0, dtype=np.float32))
    Array([0., 1., 2.], dtype=float32)"""
    return sharing.from_dlpack(external_array, device=device, copy=copy)


def is_supported_dtype(dtype: DTypeLike) -> bool:
    """Whether arrays of this dtype can be shared.

    >>> import calque
    >>> calque.dlpack.is_supported_dtype("float32")
    True"""
    return as_dtype(dtype) in _SUPPORTED
