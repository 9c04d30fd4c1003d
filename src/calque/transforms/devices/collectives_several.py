"""Data movement over several named axes at once, as one movement over each: the axes are the digits
of a position."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.ops.common import scalar_of, zeros
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
    where: Any = scalar_of(_INT, 0)
    for name in names:
        own = do.axis_index(axis_name=name)
        where = do.add(do.mul(where, scalar_of(_INT, size_of(name))), own)
    senders = np.array([source.get(i, n) for i in range(n)], np.int32)
    sender = do.squeeze(do.dynamic_slice(senders, where, slice_sizes=(1,)), dimensions=(0,))
    zero = [scalar_of(_INT, 0)] * typeof(x).ndim
    row = do.dynamic_slice(table, sender, *zero, slice_sizes=(1, *typeof(x).shape))
    return do.squeeze(row, dimensions=(0,))
