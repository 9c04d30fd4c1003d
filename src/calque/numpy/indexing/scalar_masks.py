"""Indexes that hold a boolean of rank 0: a new axis, of one element where it is true and of none
where it is false."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from calque.core.arrays import ArrayImpl
from calque.core.primitives import do
from calque.core.trace import ConstantTracer, value_if_known
from calque.core.trace_state import Tracer

_ONE, _NONE = np.zeros(1, np.int32), np.zeros(0, np.int32)
_ARRAYS: tuple[Any, ...] = (ArrayImpl, Tracer, np.ndarray, np.generic)


def with_known(index: Any) -> Any:
    """An index with the numbers of the program that Python may ask for as Arrays."""
    if type(index) is tuple:
        parts = [with_known(p) for p in index]
        return index if all(map(operator.is_, parts, index)) else tuple(parts)
    if type(index) is slice:
        bounds = index.start, index.stop, index.step
        return slice(*map(value_if_known, bounds)) if ConstantTracer in map(type, bounds) else index
    return value_if_known(index)


def is_scalar_mask(p: Any) -> bool:
    """Whether this part of an index is a concrete boolean of rank 0. A traced one has no known
    size, which is said where masks are read."""
    return type(p) is bool or (
        isinstance(p, _ARRAYS)
        and p.dtype == np.dtype(bool)
        and p.ndim == 0
        and not isinstance(p, Tracer)
    )


def opened(x: Any, index: Any) -> tuple[Any, Any]:
    """The array with an axis of one element for each boolean of rank 0, and the index with an
    integer array in its place."""
    index = with_known(index)
    parts = index if isinstance(index, tuple) else (index,)
    if not any(map(is_scalar_mask, parts)):
        return x, index
    used = [0 if is_scalar_mask(p) else _axes(p) for p in parts]
    rest = x.ndim - sum(used)
    if not any(p is Ellipsis for p in parts):
        parts, used = (*parts, Ellipsis), [*used, 0]
    axis, shape, out = 0, list(x.shape), []
    for p, n in zip(parts, used):
        if is_scalar_mask(p):
            shape.insert(axis, 1)
            axis += 1
            out.append(_ONE if bool(p) else _NONE)
        else:
            axis += max(rest, 0) if p is Ellipsis else n
            out.append(p)
    return do.reshape(x, new_sizes=tuple(shape)), tuple(out)


def _axes(p: Any) -> int:
    if p is None or p is Ellipsis:
        return 0
    return p.ndim if isinstance(p, _ARRAYS) and p.dtype == np.dtype(bool) else 1
