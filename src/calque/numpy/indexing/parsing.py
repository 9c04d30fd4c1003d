"""What an index says: its parts, made whole for the shape that it indexes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from calque.core import errors, pytrees
from calque.core.arrays import ArrayImpl, is_concrete
from calque.core.dims import Dim, as_size
from calque.core.dtypes import is_integer
from calque.core.extents import slice_bounds
from calque.core.origins import origin
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.trace_state import Tracer
from calque.numpy.indexing import found_sizes as found
from calque.numpy.indexing.dynamic_slices import Slice, opened
from calque.numpy.promotion import as_operand, broadcast_shapes, promote_dtypes
from calque.ops.dimension_numbers import GatherScatterMode
from calque.transforms.devices.several_processes import values_of

MODES: Final = {
    None: None,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "clip": GatherScatterMode.CLIP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
    "wrap": "wrap",
}


@dataclass
class Plan:
    """A parsed index for an array of known shape.

    Each axis of the operand is either advanced (its entry of `arrays` is an integer array) or
    sliced (start, length, step). `result` says how the axes of the final result arise: ("slice",
    axis) or "advanced" or "new"."""

    shape: tuple[int, ...]
    arrays: dict[int, Any]
    slices: dict[int, tuple[int, int, int]]
    result: list[Any]
    advanced_at: int
    advanced_shape: tuple[int, ...]


def mode_of(mode: Any) -> Any:
    if isinstance(mode, GatherScatterMode):
        return mode
    try:
        return MODES[mode]
    except (KeyError, TypeError):
        raise ValueError(
            "mode must be one of 'fill', 'drop', 'clip', 'promise_in_bounds', 'wrap' or None; got"
            f" {mode!r}"
        ) from None


# ---------------------------------------------------------------- parsing


def expand(index: Any, shape: tuple[int, ...]) -> list[Any]:
    """The parts of an index, Ellipsis filled in, boolean masks turned into integer arrays: one part
    per axis, and Nones."""
    parts = [mask_to_arrays(p) for p in parts_of(index)]
    flat: list[Any] = []
    for p in parts:
        flat += p if isinstance(p, _Mask) else [p]
    used = sum(p is not None and p is not Ellipsis for p in flat)
    if sum(p is Ellipsis for p in flat) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if used > len(shape):
        raise IndexError(
            f"Too many indices: array is {len(shape)}-dimensional, but {used} were indexed:"
            f" its shape is {shape}"
        )
    fill = [slice(None)] * (len(shape) - used)
    at = next((i for i, p in enumerate(flat) if p is Ellipsis), len(flat))
    return opened(flat[:at] + fill + flat[at + 1 :])


def parts_of(index: Any) -> list[Any]:
    """What an index is made of, lists as arrays. A list alone is none: NumPy once read it as a
    tuple, and reads it as an array now."""
    if isinstance(index, (list, range)):
        is_like_a_tuple = any(
            p is None or p is Ellipsis or isinstance(p, (slice, list, tuple)) or np.ndim(p)
            for p in index
        )
        remedy = "arr[tuple(seq)]" if is_like_a_tuple else "arr[array(seq)]"
        raise TypeError(
            "Using a non-tuple sequence for multidimensional indexing is not allowed; use"
            f" {remedy} instead of arr[seq]; got {index!r}"
        )
    parts = index if isinstance(index, tuple) else (index,)
    return [_array_of_list(p) if isinstance(p, (list, tuple)) else p for p in parts]


def _array_of_list(p: Any) -> Any:
    """A list within an index as the array that it stands for."""
    if not any(isinstance(v, Tracer) for v in pytrees.leaves(p)):
        array = np.asarray(p)
        return array if array.size else array.astype(np.int32)
    rows = [_array_of_list(v) if isinstance(v, (list, tuple)) else as_operand(v) for v in p]
    rows = [do.reshape(v, new_sizes=(1, *typeof(v).shape)) for v in promote_dtypes(*rows)]
    return rows[0] if len(rows) == 1 else do.concatenate(*rows, dimension=0)


class _Mask(list):
    """The integer arrays that a boolean mask stands for."""


def mask_to_arrays(p: Any) -> Any:
    """A concrete boolean mask becomes the integer arrays of its true places."""
    if p is None or p is Ellipsis or isinstance(p, (slice, Slice)) or type(p) is int:
        return p
    if isinstance(p, (bool, float, complex, np.bool_)):
        p = np.asarray(p)
    if isinstance(p, (ArrayImpl, Tracer, np.ndarray, np.generic)) or hasattr(p, "__jax_array__"):
        p = (
            p.__jax_array__()
            if hasattr(p, "__jax_array__") and not isinstance(p, (ArrayImpl, Tracer))
            else p
        )
        dtype = typeof(p).dtype
        if dtype == np.dtype(bool):
            return _Mask(mask_places(p))
        if not is_integer(dtype):
            raise TypeError(
                f"Indexer must have integer or boolean type, got indexer with type {dtype.name},"
                f" indexer value {p}"
            )
        return p
    if isinstance(p, str):
        raise TypeError(
            f"As JAX does not support string indexing, calque does not; got {p!r}: arrays have no"
            " named fields"
        )
    try:
        return as_size(p)
    except TypeError:
        raise TypeError(
            f"an index holds ints, slices, None, Ellipsis and arrays; got {p!r} of type {type(p)}"
        ) from None


def mask_places(mask: Any) -> list[Any]:
    if typeof(mask).ndim == 0:
        raise errors.NonConcreteBooleanIndexError(
            "Array boolean indices must be concrete where they are scalars; got"
            f" {typeof(mask).str_short()}: use jnp.where.{origin(mask)}"
        )
    if not is_concrete(mask):
        return list(found.places_found(mask, "x[mask]"))
    m = values_of(mask)
    return [
        np.asarray(i, np.int32 if max(m.shape, default=0) < 2**31 else np.int64)
        for i in np.nonzero(m)
    ]


def check_mask_shapes(index: Any, shape: tuple[int, ...]) -> None:
    """A mask has the sizes of the axes that it stands for."""
    axis = 0
    parts = parts_of(index)
    count = sum(
        getattr(p, "ndim", 1) if _is_mask(p) else p is not None and p is not Ellipsis for p in parts
    )
    for p in parts:
        if p is Ellipsis:
            axis += len(shape) - count
        elif _is_mask(p):
            sizes = p.shape
            own = shape[axis : axis + len(sizes)]
            # a mask of nothing selects nothing
            if len(own) < len(sizes) or any(m not in (0, n) for m, n in zip(sizes, own)):
                raise IndexError(
                    f"boolean index did not match shape of indexed array in index {axis}: got"
                    f" {sizes}, expected {shape[axis : axis + len(sizes)]}"
                )
            axis += len(sizes)
        elif p is not None:
            axis += 1


def _is_mask(p: Any) -> bool:
    if not isinstance(p, (ArrayImpl, Tracer, np.ndarray)):
        return False
    aval = typeof(p)
    return aval.dtype == np.dtype(bool) and aval.ndim > 0


def parse(index: Any, shape: tuple[int, ...]) -> Plan:
    """Every axis of the operand gets a slice or an integer array."""
    check_mask_shapes(index, shape)
    parts = expand(index, shape)
    arrays: dict[int, Any] = {}
    slices: dict[int, tuple[int, int, int]] = {}
    result: list[Any] = []
    places: list[int] = []  # where advanced parts stand in the index
    axis = 0
    has_arrays = any(_is_array_part(p) for p in parts)
    for position, p in enumerate(parts):
        if p is None:
            result.append("new")
            continue
        if isinstance(p, slice):
            slices[axis] = slice_extent(p, shape[axis])
            result.append(("slice", axis))
        elif isinstance(p, (int, Dim)) and not has_arrays:
            slices[axis] = int_extent(p, shape[axis], axis)  # type: ignore[arg-type]
        else:
            arrays[axis] = p
            places.append(position)
            if len(result) == 0 or result[-1] != "advanced":
                result.append("advanced")
        axis += 1
    advanced = broadcast_shapes(
        "indexing",
        *[np.shape(a) if isinstance(a, int) else typeof(a).shape for a in arrays.values()],
    )
    together = places == list(range(places[0], places[-1] + 1)) if places else True
    where = result.index("advanced") if places and together else 0
    result = [r for r in result if r != "advanced"]
    return Plan(shape, arrays, slices, result, where, advanced)


def _is_array_part(p: Any) -> bool:
    return isinstance(p, (ArrayImpl, Tracer, np.ndarray, np.generic))


def slice_extent(s: slice, size: int) -> tuple[int, int, int]:
    """(start, length, step) of a slice of an axis."""
    return slice_bounds(s, size)


def int_extent(i: int, size: int, axis: int) -> tuple[int, int, int]:
    """A static int: negative from the end, clamped as every read is."""
    if size == 0:
        raise IndexError(f"index {i} is out of bounds for axis {axis} with size 0")
    i = i + size if i < 0 else i
    return 0 if i < 0 else i if i < size else size - 1, -1, 1
