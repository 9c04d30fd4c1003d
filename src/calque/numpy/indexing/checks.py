"""Indices out of range, where `calque_debug_index` or `calque_check_static_indices` asks for an
error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.arrays import is_concrete
from calque.core.dtypes import is_signed
from calque.core.primitives import do
from calque.core.source import here
from calque.core.trace import typeof
from calque.ops.sizes import as_number
from calque.transforms.devices.several_processes import values_of
from calque.transforms.functions.checks import raise_if


def check_bounds(shape: Sequence[Any], arrays: dict[int, Any], parts: Sequence[Any]) -> None:
    """IndexError for what lies outside of its axis, now or while the program runs
    (`calque_debug_index`)."""
    where = here()
    own = [p for p in parts if p is not None]
    for axis, n in enumerate(shape):
        i = arrays.get(axis, own[axis])
        if isinstance(i, slice) or (isinstance(i, int) and -n <= i < n):
            continue

        def error(found: Any, n: int = n, axis: int = axis) -> Exception:
            bad = found[(found < -n) | (found >= n)] if found.ndim else found
            number = int(bad.reshape(-1)[0])
            return IndexError(
                f"index {number} is out of bounds for axis {axis} with size {n}, at {where}"
            )

        raise_if(outside_of(i, n), error, [np.asarray(i) if isinstance(i, int) else i])


def check_static(shape: Sequence[Any], parts: Sequence[Any]) -> None:
    """IndexError for a Python int outside of its axis (`calque_check_static_indices`)."""
    for axis, (i, n) in enumerate(zip([p for p in parts if p is not None], shape)):
        if isinstance(i, int) and not -n <= i < n:
            raise IndexError(f"index {i} out of bounds for axis {axis} with size {n}, at {here()}")


def outside_of(i: Any, n: Any) -> Any:
    """The elements of an index that lie outside of an axis of size n."""
    if isinstance(i, int) or is_concrete(i):
        found = np.asarray(i if isinstance(i, int) else values_of(i))
        return (found < -n) | (found >= n)
    dtype = typeof(i).dtype
    if n > np.iinfo(dtype).max:
        return np.zeros((), bool)
    if not is_signed(dtype):
        return do.ge(i, as_number(n, dtype))
    if (
        isinstance(n, int) and n > 0
    ):  # as an unsigned number what is still negative is large: one comparison
        from_front = do.select_n(do.lt(i, as_number(0, dtype)), i, do.add(i, as_number(n, dtype)))
        unsigned = np.dtype(f"uint{8 * dtype.itemsize}")
        return do.ge(
            do.convert_element_type(from_front, new_dtype=unsigned),
            as_number(n, unsigned),
        )
    return do.or_(do.ge(i, as_number(n, dtype)), do.lt(i, as_number(-n, dtype)))
