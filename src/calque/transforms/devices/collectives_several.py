"""Data movement over several named axes at once, as one movement over each: the axes are the digits
of a position."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.ops.common import scalar_of, zeros
from calque.ops.indexing import index_take
from calque.transforms.engines.axes import size_of

Names = Sequence[Hashable]
_INT = np.dtype("int32")


def _reshaped(x: Any, shape: Sequence[int]) -> Any:
    return do.reshape(x, new_sizes=tuple(shape))


def _merged(x: Any, first: int, count: int) -> Any:
    """The dimensions first .. first + count - 1 as one."""
    shape = typeof(x).shape
    size = int(np.prod(shape[first : first + count], dtype=int))
    return _reshaped(x, (*shape[:first], size, *shape[first + count :]))


def _digits(x: Any, k: int, names: Names, tiled: bool, what: str) -> Any:
    """The dimension k as one dimension for each axis, and with `tiled` another one for what each
    member has."""
    shape, sizes = typeof(x).shape, [size_of(n) for n in names]
    n = int(np.prod(sizes))
    if shape[k] % n or (not tiled and shape[k] != n):
        relation = "be divisible by" if tiled else "match"
        raise ValueError(
            f"{what}: dimension {k} of size {shape[k]} must {relation} the size {n} of the axes"
            f" {tuple(names)}"
        )
    return _reshaped(x, (*shape[:k], *sizes, *([shape[k] // n] if tiled else []), *shape[k + 1 :]))


def gather_over(x: Any, names: Names, k: int, tiled: bool) -> Any:
    """all_gather: the last axis first, each before the dimensions of those gathered already."""
    for name in reversed(names):
        x = do.all_gather(
            x,
            all_gather_dimension=k,
            axis_index_groups=None,
            axis_name=(name,),
            axis_size=size_of(name),
            tiled=False,
        )
    return _merged(x, k, len(names) + tiled)


def rows_of_group(x: Any, names: Names, groups: Sequence[Sequence[int]]) -> tuple[Any, Any]:
    """What the members of the own group have, along a new first dimension, and the own place among
    them. The groups, of one size, are of positions counted through several axes."""
    everything = gather_over(x, names, 0, False)
    group = np.zeros(size_of(tuple(names)), np.int32)
    place = np.zeros_like(group)
    for g, members in enumerate(groups):
        for k, i in enumerate(members):
            group[i], place[i] = g, k
    where = position_over(names)
    row = element(np.array(groups, np.int32), element(group, where))
    return index_take(everything, [row], (0,)), element(place, where)


def element(table: np.ndarray, index: Any) -> Any:
    """The element, or row, of a table at a traced position."""
    zeros_after = [scalar_of(_INT, 0)] * (table.ndim - 1)
    part = do.dynamic_slice(table, index, *zeros_after, slice_sizes=(1, *table.shape[1:]))
    return do.squeeze(part, dimensions=(0,))


def position_over(names: Names) -> Any:
    """The own position, counted through several axes."""
    where: Any = scalar_of(_INT, 0)
    for name in names:
        own = do.axis_index(axis_name=name)
        where = do.add(do.mul(where, scalar_of(_INT, size_of(name))), own)
    return where


def group_gather(x: Any, names: Names, groups: Any, k: int, tiled: bool) -> Any:
    """all_gather within groups of positions counted through several axes."""
    rows, _ = rows_of_group(x, names, groups)
    rows = do.transpose(rows, permutation=(*range(1, k + 1), 0, *range(k + 1, typeof(rows).ndim)))
    return _merged(rows, k, 2) if tiled else rows


def group_scatter(x: Any, names: Names, groups: Any, k: int, tiled: bool) -> Any:
    """psum_scatter within groups of positions counted through several axes."""
    rows, place = rows_of_group(x, names, groups)
    total = do.reduce_sum(rows, axes=(0,))
    shape, n = typeof(total).shape, len(groups[0])
    size = shape[k] // n
    if shape[k] % n or (not tiled and size != 1):
        relation = "be divisible by" if tiled else "match"
        raise ValueError(
            f"psum_scatter: dimension {k} of size {shape[k]} must {relation} the size {n} of the"
            " groups"
        )
    start: list[Any] = [scalar_of(_INT, 0)] * len(shape)
    start[k] = do.mul(place, scalar_of(_INT, size))
    part = do.dynamic_slice(total, *start, slice_sizes=(*shape[:k], size, *shape[k + 1 :]))
    return part if tiled else do.squeeze(part, dimensions=(k,))


def group_sum(x: Any, names: Names, groups: Any) -> Any:
    """psum within groups, of one size, of positions counted through several axes."""
    return do.reduce_sum(rows_of_group(x, names, groups)[0], axes=(0,))


def scatter_over(x: Any, names: Names, k: int, tiled: bool) -> Any:
    """psum_scatter: each axis takes its own digit of the dimension."""
    x = _digits(x, k, names, tiled, "psum_scatter")
    for name in names:
        x = do.reduce_scatter(
            x,
            axis_index_groups=None,
            axis_name=(name,),
            axis_size=size_of(name),
            scatter_dimension=k,
            tiled=False,
        )
    return x


def swap_over(x: Any, names: Names, split: int, concat: int, tiled: bool) -> Any:
    """all_to_all: each axis changes places with its own digit of the split dimension."""
    m = len(names)
    x = _digits(x, split, names, tiled, "all_to_all")
    for i, name in enumerate(names):
        at = split + i
        x = do.all_to_all(
            x, axis_index_groups=None, axis_name=name, concat_axis=at, split_axis=at, tiled=False
        )
    digits = list(range(split, split + m))  # now those of the sender
    rest = [d for d in range(typeof(x).ndim) if d not in digits]
    x = do.transpose(x, permutation=(*rest[:concat], *digits, *rest[concat:]))
    return _merged(x, concat, m + tiled)


def permute_over(x: Any, names: Names, perm: Sequence[tuple[int, int]]) -> Any:
    """ppermute: every member reads from the gathered values the one that is sent to it."""
    n = size_of(tuple(names))
    source = dict((d, s) for s, d in perm)
    if (
        len(source) != len(perm)
        or len({s for s, _ in perm}) != len(perm)
        or not all(0 <= v < n for p in perm for v in p)
    ):
        raise ValueError(
            f"ppermute sources and destinations must be unique and lie in range({n}), got"
            f" {tuple(perm)}."
        )
    everything = gather_over(x, names, 0, False)
    nothing = zeros(ShapedArray((1, *typeof(x).shape), typeof(x).dtype))
    table = do.concatenate(everything, nothing, dimension=0)
    where = position_over(names)
    senders = np.array([source.get(i, n) for i in range(n)], np.int32)
    sender = do.squeeze(do.dynamic_slice(senders, where, slice_sizes=(1,)), dimensions=(0,))
    zero = [scalar_of(_INT, 0)] * typeof(x).ndim
    row = do.dynamic_slice(table, sender, *zero, slice_sizes=(1, *typeof(x).shape))
    return do.squeeze(row, dimensions=(0,))
