"""Joining and cutting: concatenate, pad, rev, tile, split, stack, unstack."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.arrays import Array
from calque.core.avals import ShapedArray
from calque.core.primitives import Primitive, UndefinedPrimal, Zero, do
from calque.core.trace import VALUES, typeof
from calque.core.types import ArrayLike
from calque.ops import common
from calque.ops.common import batch_size, front, instantiate, move, zeros
from calque.ops.common import operand as as_operand
from calque.ops.layout import Shape, canonical_axis, canonical_shape, linear_jvp, unary_transpose

# ---------------------------------------------------------------- concatenate


def same_dtype(name: str, avals: Sequence[ShapedArray]) -> None:
    """All operands have one dtype, or a TypeError that names them all."""
    first = avals[0].dtype
    for a in avals:
        if a.dtype != first:
            raise TypeError(
                f"{name} requires arguments to have the same dtypes, got"
                f" {', '.join(v.dtype.name for v in avals)}; convert them first (jnp functions do)"
            )


def _concatenate_shape(*avals: ShapedArray, dimension: int) -> ShapedArray:
    if not avals:
        raise TypeError("concatenate expects at least one operand, got 0.")
    first, total, weak = avals[0], 0, True
    ndim, dtype = first.ndim, first.dtype
    if not 0 <= dimension < ndim:
        raise TypeError(
            f"concatenate dimension out of bounds: dimension {dimension} for shapes"
            f" {', '.join(str(a.shape) for a in avals)}."
        )
    rest = first.shape[:dimension] + first.shape[dimension + 1 :]
    for a in avals:
        shape = a.shape
        if a.ndim != ndim:
            raise TypeError(
                "Cannot concatenate arrays with different numbers of dimensions: got"
                f" {', '.join(str(x.shape) for x in avals)}"
            )
        if a is not first and shape[:dimension] + shape[dimension + 1 :] != rest:
            raise TypeError(
                "Cannot concatenate arrays with shapes that differ in dimensions other than the"
                f" one being concatenated: concatenating along dimension {dimension} for shapes"
                f" {', '.join(str(v.shape) for v in avals)}."
            )
        if a.dtype != dtype:
            same_dtype("concatenate", avals)
        total = total + shape[dimension]
        weak = weak and a.weak_type
    return ShapedArray(
        (*first.shape[:dimension], total, *first.shape[dimension + 1 :]), dtype, weak
    )


def _concatenate_transpose(ct: Any, *operands: Any, dimension: int) -> list[Any]:
    avals = [x.aval if type(x) is UndefinedPrimal else typeof(x) for x in operands]
    if type(ct) is Zero:
        return [Zero(x.aval) if type(x) is UndefinedPrimal else None for x in operands]
    ends = list(itertools.accumulate(a.shape[dimension] for a in avals))
    return [
        _cut(ct, dimension, end - a.shape[dimension], end) if type(x) is UndefinedPrimal else None
        for x, a, end in zip(operands, avals, ends)
    ]


def _cut(x: Any, dimension: int, start: Any, stop: Any) -> Any:
    shape = typeof(x).shape
    starts = tuple([start if i == dimension else 0 for i in range(len(shape))])
    limits = tuple([stop if i == dimension else n for i, n in enumerate(shape)])
    return do.slice(x, start_indices=starts, limit_indices=limits)


def _concatenate_batch(
    args: Sequence[Any], dims: Sequence[int | None], *, dimension: int
) -> tuple[Any, int]:
    size = batch_size(args, dims)
    return (
        do.concatenate(*[front(x, d, size) for x, d in zip(args, dims)], dimension=dimension + 1),
        0,
    )


concatenate_p = Primitive(
    "concatenate",
    meaning=lambda *xs, dimension: np.concatenate(xs, dimension),
    shape=_concatenate_shape,
    jvp=linear_jvp("concatenate", operands=0),
    transpose=_concatenate_transpose,
    batch=_concatenate_batch,
)


def concatenate(operands: Sequence[ArrayLike], dimension: int) -> Array:
    """Puts arrays one after the other along a dimension.

    Args:
        operands: Arrays of one dtype, whose shapes differ in this dimension only.
        dimension: The dimension.

    Returns:
        An array.

    >>> lax.concatenate([jnp.array([1, 2]), jnp.array([3])], 0)
    Array([1, 2, 3], dtype=int32)"""
    if len(operands) == 0:
        raise ValueError("concatenate requires a non-empty sequences of arrays")
    if len(operands) == 1 and isinstance(operands[0], VALUES):
        return operands[0]
    return do.concatenate(*[as_operand(x) for x in operands], dimension=dimension)


# ---------------------------------------------------------------- pad


def _pad_shape(
    x: ShapedArray, value: ShapedArray, *, padding_config: tuple[Shape, ...]
) -> ShapedArray:
    if value.ndim:
        raise ValueError(f"padding_value must be a scalar; got shape {value.shape}")
    if x.dtype != value.dtype:
        raise TypeError(
            f"pad: operand and padding_value must be same dtype: got {x.dtype.name} and"
            f" {value.dtype.name}"
        )
    if len(padding_config) != x.ndim:
        raise ValueError(
            "length of padding_config must equal the number of axes of operand, got padding_config"
            f" {padding_config} for operand shape {x.shape}"
        )
    shape = []
    for size, (low, high, interior) in zip(x.shape, padding_config):
        if interior < 0:
            raise ValueError(
                "interior padding in padding_config must be nonnegative, got padding_config"
                f" {padding_config}"
            )
        out = low + high + size
        if interior and size > 1:
            out = out + (size - 1) * interior
        if out < 0:
            raise ValueError(
                f"Dimension size after padding is not at least 0, got {out} for operand shape"
                f" {x.shape} and padding_config {padding_config}"
            )
        shape.append(out)
    return ShapedArray(tuple(shape), x.dtype, x.weak_type and value.weak_type)


def _pad_meaning(
    x: np.ndarray, value: np.ndarray, *, padding_config: tuple[Shape, ...]
) -> np.ndarray:
    """Place the elements that are left in an array of the padding value: element `k` stands at
    `low + k * step`. No array is larger than the result."""
    sizes, places, taken = [], [], []
    for size, (low, high, interior) in zip(x.shape, padding_config):
        step = interior + 1
        n = low + max(size + (size - 1) * interior, 0) + high
        first = max(-(low // step), 0)  # the first one that is not cut off
        last = min(max((n - 1 - low) // step + 1, first), size)
        sizes.append(n)
        taken.append(slice(first, last))
        start = low + first * step
        places.append(slice(start, start + (last - first - 1) * step + 1, step))
    out = np.full(sizes, value, x.dtype)
    left = x[tuple(taken)]
    if left.size:
        out[tuple(places)] = left
    return out


def _pad_transpose(ct: Any, x: Any, value: Any, *, padding_config: tuple[Shape, ...]) -> list[Any]:
    linear = [type(v) is UndefinedPrimal for v in (x, value)]
    if type(ct) is Zero:
        return [Zero(v.aval) if is_linear else None for v, is_linear in zip((x, value), linear)]
    inside = _unpad(ct, padding_config)
    x_ct = inside if linear[0] else None
    if not linear[1]:
        return [x_ct, None]
    return [x_ct, do.sub(_total(ct), _total(inside))]


def _total(x: Any) -> Any:
    ndim = typeof(x).ndim
    return do.reduce_sum(x, axes=tuple(range(ndim))) if ndim else x


def _unpad(ct: Any, padding_config: tuple[Shape, ...]) -> Any:
    """The elements of the padded array that came from the operand; zero for those that negative
    padding cut away."""
    zero = common.scalar_of(typeof(ct).dtype, 0)
    out = do.pad(
        ct, zero, padding_config=tuple([(-low, -high, 0) for low, high, _ in padding_config])
    )
    steps = tuple([interior + 1 for _, _, interior in padding_config])
    if all(s == 1 for s in steps):
        return out
    shape = typeof(out).shape
    return do.slice(out, start_indices=(0,) * len(shape), limit_indices=shape, strides=steps)


def _pad_batch(
    args: Sequence[Any], dims: Sequence[int | None], *, padding_config: tuple[Shape, ...]
) -> tuple[Any, int]:
    (x, value), (d, dv) = args, dims
    if dv is None:
        assert d is not None
        config = (*padding_config[:d], (0, 0, 0), *padding_config[d:])
        return do.pad(x, value, padding_config=config), d
    x = front(x, d, typeof(value).shape[0])
    aval, config = typeof(x), ((0, 0, 0), *padding_config)
    padded = do.pad(x, common.scalar_of(aval.dtype, 0), padding_config=config)
    inside = do.pad(common.filled(aval.shape, np.True_), np.False_, padding_config=config)
    shape = typeof(padded).shape
    around = do.broadcast_in_dim(value, shape=shape, broadcast_dimensions=(0,))
    return do.select_n(inside, around, padded), 0


pad_p = Primitive(
    "pad",
    meaning=_pad_meaning,
    shape=_pad_shape,
    jvp=linear_jvp("pad", operands=2),
    transpose=_pad_transpose,
    batch=_pad_batch,
)


def pad(
    operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]
) -> Array:
    """Surrounds an array with a value, and puts it between the elements.

    Args:
        operand: An array.
        padding_value: The value, an array without axes of the same dtype.
        padding_config: For each dimension (how much before, how much after, how much between two
            elements). Negative numbers before and after cut.

    Returns:
        An array.

    >>> lax.pad(jnp.array([1.0, 2.0]), 0.0, ((1, 0, 1),))
    Array([0., 1., 0., 2.], dtype=float32)"""
    operand, padding_value = common.same_dtypes(
        "pad", [as_operand(operand), as_operand(padding_value)]
    )
    config = tuple([canonical_shape(c, "padding_config") for c in padding_config])
    return do.pad(operand, padding_value, padding_config=config)


# ---------------------------------------------------------------- rev


def _rev_shape(x: ShapedArray, *, dimensions: Shape) -> ShapedArray:
    if len(set(dimensions)) != len(dimensions):
        raise TypeError(f"rev dimensions must be unique, got {dimensions}.")
    if any(not 0 <= d < x.ndim for d in dimensions):
        raise TypeError(f"rev dimensions out of bounds for array of rank {x.ndim}: {dimensions}")
    return x


def _rev_batch(
    args: Sequence[Any], dims: Sequence[int | None], *, dimensions: Shape
) -> tuple[Any, int]:
    (x,), (b,) = args, dims
    assert b is not None
    return do.rev(x, dimensions=tuple([d + (d >= b) for d in dimensions])), b


rev_p = Primitive(
    "rev",
    meaning=lambda x, *, dimensions: np.flip(x, dimensions),
    shape=_rev_shape,
    jvp=linear_jvp("rev"),
    transpose=unary_transpose(lambda ct, aval, *, dimensions: do.rev(ct, dimensions=dimensions)),
    batch=_rev_batch,
)


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Turns the order of the elements around.

    Args:
        operand: An array.
        dimensions: The dimensions along which it is turned.

    Returns:
        An array of the same shape.

    >>> lax.rev(jnp.arange(3), (0,))
    Array([2, 1, 0], dtype=int32)"""
    return do.rev(as_operand(operand), dimensions=canonical_shape(dimensions, "dimensions"))


# ---------------------------------------------------------------- tile


def _tile_shape(x: ShapedArray, *, reps: Shape) -> ShapedArray:
    if len(reps) != x.ndim:
        raise TypeError(
            f"tile: reps must have one number for each dimension, got reps={reps} for operand shape"
            f" {x.shape}"
        )
    if any(r < 0 for r in reps):
        raise ValueError(f"tile: reps must be non-negative, got {reps}")
    return ShapedArray(tuple([n * r for n, r in zip(x.shape, reps)]), x.dtype, x.weak_type)


@unary_transpose
def _tile_transpose(ct: Any, aval: ShapedArray, *, reps: Shape) -> Any:
    split_shape = tuple([n for pair in zip(reps, aval.shape) for n in pair])
    ct = do.reshape(ct, new_sizes=split_shape)
    return do.reduce_sum(ct, axes=tuple(range(0, 2 * aval.ndim, 2)))


def _tile_batch(args: Sequence[Any], dims: Sequence[int | None], *, reps: Shape) -> tuple[Any, int]:
    (x,), (b,) = args, dims
    assert b is not None
    return do.tile(x, reps=(*reps[:b], 1, *reps[b:])), b


tile_p = Primitive(
    "tile",
    meaning=lambda x, *, reps: np.tile(x, reps),
    shape=_tile_shape,
    jvp=linear_jvp("tile"),
    transpose=_tile_transpose,
    batch=_tile_batch,
)


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """Lays copies of an array side by side.

    Args:
        operand: An array.
        reps: How often, for each dimension.

    Returns:
        An array.

    >>> lax.tile(jnp.array([1, 2]), (2,))
    Array([1, 2, 1, 2], dtype=int32)"""
    return do.tile(as_operand(operand), reps=canonical_shape(reps, "reps"))


# ---------------------------------------------------------------- split


def _split_shape(x: ShapedArray, *, sizes: Shape, axis: int) -> list[ShapedArray]:
    if not 0 <= axis < x.ndim:
        raise ValueError(f"split: axis {axis} is out of bounds for operand shape {x.shape}")
    total: Any = 0
    for n in sizes:
        if n < 0:
            raise ValueError(f"Sizes passed to split must be nonnegative, got {list(sizes)}")
        total = total + n
    if total != x.shape[axis]:
        raise ValueError(
            f"Sum of sizes {total} must be equal to dimension {axis} of the operand shape"
            f" {list(x.shape)}"
        )
    return [
        ShapedArray((*x.shape[:axis], n, *x.shape[axis + 1 :]), x.dtype, x.weak_type) for n in sizes
    ]


def _split_meaning(x: np.ndarray, *, sizes: Shape, axis: int) -> list[np.ndarray]:
    return np.split(x, list(itertools.accumulate(sizes))[:-1], axis) if sizes else []


def _split_transpose(
    cts: Sequence[Any], x: UndefinedPrimal, *, sizes: Shape, axis: int
) -> list[Any]:
    if all(type(ct) is Zero for ct in cts):
        return [Zero(x.aval)]
    parts = [
        zeros(a) if type(ct) is Zero else ct
        for ct, a in zip(cts, _split_shape(x.aval, sizes=sizes, axis=axis))
    ]
    return [do.concatenate(*parts, dimension=axis)]


def _split_batch(
    args: Sequence[Any], dims: Sequence[int | None], *, sizes: Shape, axis: int
) -> tuple[list[Any], list[int]]:
    (x,), (b,) = args, dims
    assert b is not None
    return do.split(x, sizes=sizes, axis=axis + (axis >= b)), [b] * len(sizes)


split_p = Primitive(
    "split",
    meaning=_split_meaning,
    shape=_split_shape,
    jvp=linear_jvp("split"),
    transpose=_split_transpose,
    batch=_split_batch,
    multiple_results=True,
)


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Cuts an array into consecutive pieces.

    Args:
        operand: An array.
        sizes: The sizes of the pieces; their sum is the size of the axis.
        axis: The axis along which to cut.

    Returns:
        A list of arrays.

    >>> lax.split(jnp.arange(5), (2, 3))
    [Array([0, 1], dtype=int32), Array([2, 3, 4], dtype=int32)]"""
    operand = as_operand(operand)
    return do.split(
        operand,
        sizes=canonical_shape(sizes, "sizes"),
        axis=canonical_axis(axis, typeof(operand).ndim),
    )


# ---------------------------------------------------------------- stack and unstack


def _stack_shape(*avals: ShapedArray, axis: int) -> ShapedArray:
    if not avals:
        raise ValueError("stack expects at least one operand, got 0.")
    first = avals[0]
    if any(a.shape != first.shape for a in avals):
        raise ValueError(
            f"stack requires operands of one shape, got {', '.join(str(a.shape) for a in avals)}"
        )
    same_dtype("stack", avals)
    if not 0 <= axis <= first.ndim:
        raise ValueError(f"stack: axis {axis} is out of bounds for operands of rank {first.ndim}")
    shape = (*first.shape[:axis], len(avals), *first.shape[axis:])
    return ShapedArray(shape, first.dtype, all(a.weak_type for a in avals))


def _stack_transpose(ct: Any, *operands: Any, axis: int) -> list[Any]:
    if type(ct) is Zero:
        return [Zero(x.aval) if type(x) is UndefinedPrimal else None for x in operands]
    return [
        part if type(x) is UndefinedPrimal else None
        for x, part in zip(operands, do.unstack(ct, axis=axis))
    ]


def _stack_batch(args: Sequence[Any], dims: Sequence[int | None], *, axis: int) -> tuple[Any, int]:
    size = batch_size(args, dims)
    return do.stack(*[front(x, d, size) for x, d in zip(args, dims)], axis=axis + 1), 0


stack_p = Primitive(
    "stack",
    meaning=lambda *xs, axis: np.stack(xs, axis),
    shape=_stack_shape,
    jvp=linear_jvp("stack", operands=0),
    transpose=_stack_transpose,
    batch=_stack_batch,
)


def _unstack_shape(x: ShapedArray, *, axis: int) -> list[ShapedArray]:
    if not 0 <= axis < x.ndim:
        raise ValueError(f"unstack: axis {axis} is out of bounds for operand shape {x.shape}")
    out = ShapedArray(x.shape[:axis] + x.shape[axis + 1 :], x.dtype, x.weak_type)
    return [out] * x.shape[axis]


def _unstack_transpose(cts: Sequence[Any], x: UndefinedPrimal, *, axis: int) -> list[Any]:
    if all(type(ct) is Zero for ct in cts):
        return [Zero(x.aval)]
    return [do.stack(*[instantiate(ct) for ct in cts], axis=axis)]


def _unstack_batch(
    args: Sequence[Any], dims: Sequence[int | None], *, axis: int
) -> tuple[list[Any], list[int]]:
    (x,), (b,) = args, dims
    assert b is not None
    outs = do.unstack(move(x, b, 0), axis=axis + 1)
    return outs, [0] * len(outs)


unstack_p = Primitive(
    "unstack",
    meaning=lambda x, *, axis: list(np.moveaxis(x, axis, 0)),
    shape=_unstack_shape,
    jvp=linear_jvp("unstack"),
    transpose=_unstack_transpose,
    batch=_unstack_batch,
    multiple_results=True,
)


def stack(operands: Sequence[ArrayLike], axis: int = 0) -> Array:
    """Puts arrays side by side along a new axis.

    Args:
        operands: Arrays of one shape and dtype.
        axis: Where the new axis stands in the result.

    Returns:
        An array.

    >>> lax.stack([jnp.zeros(2), jnp.ones(2)])
    Array([[0., 0.],
           [1., 1.]], dtype=float32)"""
    if len(operands) == 0:
        raise ValueError("stack requires a non-empty sequence of arrays")
    xs = [as_operand(x) for x in operands]
    return do.stack(*xs, axis=canonical_axis(axis, typeof(xs[0]).ndim + 1))


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """Gives the slices of an array along an axis, without that axis.

    Args:
        x: An array.
        axis: The axis.

    Returns:
        A tuple of arrays.

    >>> lax.unstack(jnp.array([[1, 2], [3, 4]]))
    (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))"""
    x = as_operand(x)
    return tuple(do.unstack(x, axis=canonical_axis(axis, typeof(x).ndim)))
