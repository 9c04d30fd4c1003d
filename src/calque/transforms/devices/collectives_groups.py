"""Collectives within groups of the members of an axis (`axis_index_groups`): each group as an axis
of its own."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.primitives import REGISTRY, do
from calque.core.trace import typeof
from calque.ops.common import front, repeated, scalar_of
from calque.ops.indexing import index_take
from calque.transforms.engines.axes import Axis, names_of, size_of
from calque.transforms.engines.batching import Dim, batch

Groups = tuple[tuple[int, ...], ...] | None


def checked_groups(groups: Any, axis_name: Any, what: str, equal: bool = True) -> Groups:
    """The groups as tuples: each position of the axis in one of them, and with `equal` all of one
    size."""
    if groups is None:
        return None
    names = names_of(axis_name)
    if any(isinstance(n, int) for n in names):
        raise ValueError(
            f"{what}: axis_index_groups only supported for sums over just named axes, got"
            f" {axis_name}"
        )
    if not isinstance(groups, Sequence) or any(
        not isinstance(g, (Sequence, np.ndarray)) for g in groups
    ):
        raise TypeError(
            f"{what}: axis_index_groups must be a list of lists of positions, got {groups!r}"
        )
    found = tuple([tuple([int(i) for i in g]) for g in groups])
    size = size_of(names)
    if sorted(i for g in found for i in g) != list(range(size)) or () in found:
        raise ValueError(
            f"{what}: axis_index_groups must cover all indices exactly once: the positions 0 to"
            f" {size - 1} of the axis {names[0]!r}, got {groups}"
        )
    if equal and len({len(g) for g in found}) > 1:
        raise ValueError(
            f"{what}: axis_index_groups must all be of one size, got sizes"
            f" {[len(g) for g in found]}"
        )
    return found


def group_size(axis_name: Any, groups: Groups) -> int:
    """The number of members that take part with this one."""
    return size_of(axis_name) if groups is None else len(groups[0])


def _taken(x: Any, rows: np.ndarray) -> Any:
    """These rows of `x`."""
    if np.array_equal(rows, np.arange(typeof(x).shape[0])):
        return x
    return index_take(x, [rows.astype(np.int32)], (0,))


def _reshaped(x: Any, shape: Sequence[int]) -> Any:
    return do.reshape(x, new_sizes=tuple(shape))


def grouped_along(
    x: Any, axis: Axis, groups: Groups, along: Callable[[Any, Axis], tuple[Any, Dim]]
) -> tuple[Any, Dim]:
    """`along(values, axis)` for each group: it gives a result and its batch dimension, None if all
    members have the same.

    The first dimension of `x` is the axis; so is that of the result."""
    if groups is None:
        return along(x, axis)
    order = np.array(groups).reshape(-1)
    count, size = len(groups), len(groups[0])
    parts = _reshaped(_taken(x, order), (count, size, *typeof(x).shape[1:]))

    def one(rows: Any) -> list[Any]:
        out, dim = along(rows, Axis(axis.name, size))
        return [front(out, dim, size)]

    (out,), dims = batch(one, Axis(None, count), [parts], [0])
    out = front(out, dims[0], count)
    return _taken(_reshaped(out, (count * size, *typeof(out).shape[2:])), np.argsort(order)), 0


def reduced_in_groups(
    x: Any, d: Dim, axis: Axis, groups: Any, reduce: str, params: dict[str, Any]
) -> tuple[Any, Dim]:
    """The sum, maximum or minimum over each group, for each of its members. Groups may be of
    different sizes."""
    x = front(x, d, axis.size)

    def fold(rows: Any) -> Any:
        return REGISTRY[reduce].bind(rows, axes=(0,), **params)

    if len({len(g) for g in groups}) == 1:
        return grouped_along(x, axis, groups, lambda rows, _: (fold(rows), None))
    parts = [repeated(fold(_taken(x, np.array(g))), len(g)) for g in groups]
    order = np.array([i for g in groups for i in g])
    return _taken(do.concatenate(*parts, dimension=0), np.argsort(order)), 0


def members(axis_name: Any, groups: Groups, dtype: Any) -> Any:
    """How many members this one's group has: a number, or a value that varies when the groups
    differ."""
    if groups is None or len({len(g) for g in groups}) == 1:
        return scalar_of(dtype, group_size(axis_name, groups))
    sizes = np.zeros(size_of(axis_name), np.int32)
    for g in groups:
        sizes[list(g)] = len(g)
    (name,) = names_of(axis_name)
    own = do.dynamic_slice(sizes, do.axis_index(axis_name=name), slice_sizes=(1,))
    own = do.squeeze(own, dimensions=(0,))
    return do.convert_element_type(own, new_dtype=dtype)


def rowless(aval: ShapedArray, d: Dim) -> ShapedArray:
    """The type of one member's value."""
    return aval if d is None else ShapedArray(aval.shape[:d] + aval.shape[d + 1 :], aval.dtype)
