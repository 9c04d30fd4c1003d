"""A symbolic size as a number of the running program."""

from typing import Any

import numpy as np

from calque.core import dims
from calque.core.avals import ShapedArray
from calque.core.dtypes import canonicalize
from calque.core.primitives import Primitive, do
from calque.ops.layout import NO_OPERANDS, constant_jvp

size_value_p = Primitive(
    "size_value",
    meaning=lambda *, dim: np.asarray(int(dim), canonicalize(int)),
    shape=lambda *, dim: ShapedArray((), canonicalize(int), True),
    jvp=constant_jvp("size_value"),
    transpose=NO_OPERANDS,
    batch=NO_OPERANDS,
)


def value_of(d: dims.Dim) -> Any:
    return do.size_value(dim=d)


dims.set_value_of(value_of)


def places(n: Any, dtype: Any = np.int32) -> Any:
    """0, 1, ... n - 1: known while tracing, unless the size is free."""
    if type(n) is dims.Dim:
        return do.iota(dtype=np.dtype(dtype), shape=(n,), dimension=0, sharding=None)
    return np.arange(n, dtype=dtype)


def as_number(n: Any, dtype: Any) -> Any:
    """A size as an operand of this dtype: a NumPy scalar, or a traced number where the size is
    free."""
    if type(n) is dims.Dim:
        return do.convert_element_type(
            value_of(n), new_dtype=np.dtype(dtype), weak_type=False, sharding=None
        )
    return np.asarray(n).astype(dtype)
