"""The elements of NumPy arrays as Arrays: in memory of their own, so that nobody can write an Array
through NumPy, or in the memory that the caller has just made for them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.dtypes import canonicalize, float0, storage
from calque.machine.call.arrays import copied, wrap_numpy

__all__ = ["adopted", "from_numpy", "from_storage", "refuse_masked"]


def _aval(x: np.ndarray, weak_type: bool) -> ShapedArray:
    return ShapedArray(x.shape, x.dtype if x.dtype == float0 else canonicalize(x.dtype), weak_type)


def from_numpy(x: np.ndarray, weak_type: bool = False) -> Any:
    """An Array with these values and this dtype (canonicalised), in memory of its own."""
    aval = _aval(x, weak_type)
    flags = x.flags
    if type(x) is np.ndarray and x.dtype == aval.dtype and flags.c_contiguous and flags.aligned:
        return copied(aval, x.nbytes, x)
    return wrap_numpy(aval, np.array(x, aval.dtype, order="C", copy=True))


def adopted(x: np.ndarray, weak_type: bool = False) -> Any:
    """As `from_numpy`, of a NumPy array that nobody else will write: an Array on its memory where
    that is in order."""
    aval = _aval(x, weak_type)
    return wrap_numpy(aval, _in_order(x, aval))


def from_storage(x: np.ndarray, aval: ShapedArray) -> Any:
    """An Array of a known type, whatever flags say, from elements in the form in which memory holds
    them, which nobody else will write."""
    return wrap_numpy(aval, _in_order(x, aval))


def _in_order(x: np.ndarray, aval: ShapedArray) -> np.ndarray:
    """The elements as they stand in an Array."""
    y = np.ascontiguousarray(x, storage(aval.dtype)).reshape(aval.shape)
    return y if y.flags.aligned else y.copy()


def refuse_masked(x: Any) -> None:
    """Masked arrays are refused wherever a value comes in: their mask would be lost."""
    if type(x) is not np.ndarray and _is_masked(x):
        raise ValueError(
            "numpy masked arrays are not supported as direct inputs to calque functions. Use"
            " arr.filled() to convert the value to a standard numpy array."
        )


def _is_masked(x: Any) -> bool:
    """Whether this is a masked array; nobody has one before the module of theirs is imported."""
    masked = sys.modules.get("numpy.ma")
    return masked is not None and isinstance(x, masked.MaskedArray)
