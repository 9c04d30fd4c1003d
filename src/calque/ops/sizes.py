"""A symbolic size as a number of the running program."""

from typing import Any

import numpy as np

from calque.core import dims
from calque.core.avals import ShapedArray, nbytes
from calque.core.dims import may_exceed
from calque.core.dtypes import canonicalize
from calque.core.primitives import Primitive, do
from calque.machine.call.arrays import wrap_numpy
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


dims.traced_value.install(value_of)


def index_dtype(*sizes: Any) -> np.dtype:
    """The dtype of places along axes of these sizes, or beyond their ends by one size. Of sizes
    that have names nothing is known: places in them are as wide as integers are."""
    large = [n for n in sizes if may_exceed(n, 2**31 - 2)]
    if all(type(n) is dims.Dim and n.symbols.named for n in large):
        return np.dtype(canonicalize(int) if large else "int32")
    return np.dtype("int64")


def exactly(x: np.ndarray) -> Any:
    """An operand of the very dtype of `x`: of 64 bits also where those are not enabled, which
    places in long arrays need."""
    if canonicalize(x.dtype) == x.dtype:
        return x
    plain = np.ascontiguousarray(x).reshape(x.shape)
    return wrap_numpy(ShapedArray(x.shape, x.dtype), plain)


def places(n: Any, dtype: Any = np.int32) -> Any:
    """0, 1, ... n - 1: known while tracing, unless the size is free."""
    if type(n) is dims.Dim:
        return do.iota(dtype=np.dtype(dtype), shape=(n,), dimension=0)
    nbytes(ShapedArray((max(n, 0),), np.dtype(dtype)))  # refuses what nobody can address
    return exactly(np.arange(n, dtype=dtype))


def as_number(n: Any, dtype: Any) -> Any:
    """A size as an operand of this dtype: a NumPy scalar, or a traced number where the size is
    free."""
    if type(n) is dims.Dim:
        return do.convert_element_type(value_of(n), new_dtype=np.dtype(dtype))
    if abs(n) >= 1 << 63:
        raise MemoryError(f"an axis of {n} elements: more than a process can address")
    return exactly(np.asarray(n).astype(dtype))
