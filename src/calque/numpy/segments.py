"""Folds of segments: elements with the same number are summed, multiplied, or the largest or
smallest of them taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calque.core import guards as _guards
from calque.core.arrays import is_concrete
from calque.core.dims import as_size, whole
from calque.core.dtypes import canonicalize, is_integer
from calque.numpy import reductions
from calque.numpy.creation import full, placed
from calque.numpy.padding import pad
from calque.numpy.promotion import arrays, convert
from calque.numpy.shaping import broadcast_to, reshape, where
from calque.ops.dimension_numbers import GatherScatterMode
from calque.ops.found_sizes import found_size
from calque.ops.reductions import largest, smallest
from calque.transforms.devices.several_processes import values_of
from calque.transforms.functions.vmap import vmap

CLIP = ("clip", GatherScatterMode.CLIP)

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]


def _fold(
    name: str, update: str, neutral: Callable[[Any], Any], over: Callable[..., Any], doc: str
) -> Any:
    def fold(
        data: Any,
        segment_ids: Any,
        num_segments: int | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        bucket_size: int | None = None,
        mode: Any = None,
        out_sharding: Any = None,
    ) -> Any:
        data, ids = arrays(name, data, segment_ids)
        if not is_integer(ids.dtype):
            raise TypeError(f"{name}: segment_ids must be integers, got {ids.dtype.name}")
        data = _for_each(name, data, ids)
        count = _count(name, ids, num_segments)
        ids = _wide_enough(ids)

        def folded(part: Any, places: Any) -> Any:
            start = full((count, *part.shape[places.ndim :]), neutral(part.dtype), part.dtype)
            options = {
                "indices_are_sorted": indices_are_sorted,
                "unique_indices": unique_indices,
                "mode": mode or "drop",
            }
            return getattr(start.at[_places(places, mode)], update)(part, **options)

        if bucket_size is None:
            return folded(data, ids)
        folds = vmap(folded)(*_buckets(name, data, ids, bucket_size))
        return convert(over(folds, axis=0), data.dtype)

    fold.__name__ = fold.__qualname__ = name
    fold.__doc__ = doc
    return placed(fold)


def _for_each(name: str, data: Any, ids: Any) -> Any:
    """Data with an entry for each number; one that is for all of them is repeated."""
    if ids.shape == data.shape[: ids.ndim]:
        return data
    try:
        return broadcast_to(data, (*ids.shape, *data.shape[1:]))
    except ValueError as e:
        raise ValueError(
            f"{name}: data of shape {data.shape} does not begin with the shape of segment_ids,"
            f" {ids.shape}, and cannot be repeated for each of them"
        ) from e


def _count(name: str, ids: Any, num_segments: int | None) -> Any:
    if num_segments is None:
        if is_concrete(ids):
            return int(values_of(ids).max()) + 1 if ids.size else 0
        return found_size(reductions.max(convert(ids, canonicalize(int)), initial=-1) + 1, name)
    count = as_size(num_segments, f"{name}: num_segments")
    if count < 0:
        raise ValueError(f"{name}: num_segments must be non-negative, got {count}")
    return count


def _wide_enough(ids: Any) -> Any:
    """The numbers in a dtype whose largest one lies outside of any array."""
    return convert(ids, np.dtype("int32")) if ids.dtype.itemsize < 4 else ids


def _places(ids: Any, mode: Any) -> Any:
    """The numbers as indices: negative ones do not count from the end here, they lie outside (or at
    0, for "clip")."""
    if ids.dtype.kind == "u":
        return ids
    return where(
        ids < 0, np.asarray(0 if mode in CLIP else np.iinfo(ids.dtype).max, ids.dtype), ids
    )


def _buckets(name: str, data: Any, ids: Any, size: int) -> tuple[Any, Any]:
    """Data and numbers in rows of `size`; what fills the last one is of no segment."""
    size = whole(size, "size")
    if size <= 0:
        raise ValueError(f"{name}: bucket_size must be positive, got {size}")
    if ids.ndim != 1:
        raise ValueError(f"{name}: bucket_size needs segment_ids of rank 1, got shape {ids.shape}")
    rest = -ids.shape[0] % size
    ids = pad(ids, (0, rest), constant_values=np.iinfo(ids.dtype).max)
    data = pad(data, ((0, rest),) + ((0, 0),) * (data.ndim - 1))
    return reshape(data, (-1, size, *data.shape[1:])), reshape(ids, (-1, size))


segment_sum = _fold(
    "segment_sum",
    "add",
    lambda dtype: 0,
    reductions.sum,
    """The sum of the elements of each segment; `segment_ids` says of which segment each is.

    >>> import calque, calque.numpy as jnp
    >>> calque.ops.segment_sum(jnp.arange(4.0), jnp.array([0, 0, 2, 2]), num_segments=3)
    Array([1., 0., 5.], dtype=float32)

    Numbers that are no segment are left out. Without `num_segments` there are as many as the
    largest number says. With `bucket_size` that many elements are folded at a time, and the
    results of the buckets then.""",
)
segment_prod = _fold(
    "segment_prod",
    "multiply",
    lambda dtype: 1,
    reductions.prod,
    "The product of each segment; 1 of an empty one.",
)
segment_max = _fold(
    "segment_max",
    "max",
    smallest,
    reductions.max,
    "The largest of each segment; the lowest number of an empty one.",
)
segment_min = _fold(
    "segment_min",
    "min",
    largest,
    reductions.min,
    "The smallest of each segment; the highest number of an empty one.",
)


_guards.guard_public(globals())
