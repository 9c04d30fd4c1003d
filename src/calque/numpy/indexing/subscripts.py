"""`x[index]` of concrete arrays. Machine code serves ints, slices, None and Ellipsis
(`machine.subscript`); what it does not know yet comes here and is told to it, and so do the other
kinds of indexes."""

from __future__ import annotations

from typing import Any

from calque.core.arrays import ArrayImpl
from calque.core.avals import ShapedArray
from calque.core.dtypes import is_extended, storage
from calque.core.guards import guard
from calque.machine.call.arrays import (
    basic_part,
    basic_shape,
    learn_result,
    learn_source,
    set_fallback,
)
from calque.numpy.calls.cached import cached
from calque.numpy.indexing import gathering as indexing
from calque.transforms.jit.epochs import serving

_BASIC = frozenset((int, slice, type(None), type(Ellipsis)))


def is_basic(index: Any) -> bool:
    """Whether machine code can serve such an index."""
    return all(type(p) in _BASIC for p in (index if type(index) is tuple else (index,)))


def getitem(x: Any, index: Any) -> Any:
    """x[index]"""
    return indexing.getitem(x, index)


_with_arrays = cached(getitem)


def subscripted(x: Any, index: Any) -> Any:
    """x[index], when machine code does not know the answer."""
    if not is_basic(index):
        return _with_arrays(x, index)
    aval = x.aval
    if type(x) is not ArrayImpl or is_extended(aval.dtype) or not serving():
        return indexing.getitem(x, index)
    learn_source(aval, aval.shape, storage(aval.dtype).itemsize)
    shape = basic_shape(x, index)
    if shape is not None:
        learn_result(aval, shape, ShapedArray(shape, aval.dtype, aval.weak_type))
        out = basic_part(x, index)
        if out is not None:
            return out
    return indexing.getitem(x, index)


def install() -> None:
    """Let arrays be indexed."""
    set_fallback(guard(subscripted))
