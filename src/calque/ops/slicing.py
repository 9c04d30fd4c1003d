"""Slices: static (slice), at positions known only while running (dynamic_slice,
dynamic_update_slice), and their wrappers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.dims import surely_less
from calque.core.dtypes import canonicalize, is_integer
from calque.core.primitives import Primitive, UndefinedPrimal, Zero, do
from calque.core.trace import typeof
from calque.ops import common
from calque.ops.common import batch_size, front, instantiate, scalar_of, zero_like, zeros
from calque.ops.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from calque.ops.layout import (
    Shape,
    linear_jvp,
    unary_transpose,
)

_slice = slice  # Python's own: the public function below has its name

# ---------------------------------------------------------------- slice


def _slice_shape(
    x: ShapedArray, *, start_indices: Shape, limit_indices: Shape, strides: Shape | None
) -> ShapedArray:
    if not len(start_indices) == len(limit_indices) == x.ndim or (
        strides is not None and len(strides) != x.ndim
    ):
        raise TypeError(
            "slice needs one start, limit and stride for each dimension of operand"
            f" {x.str_short()}, got start_indices {start_indices}, limit_indices {limit_indices},"
            f" strides {strides}"
        )
    shape = []
    for i, (size, start, limit) in enumerate(zip(x.shape, start_indices, limit_indices)):
        if surely_less(start, 0) or surely_less(limit, start) or surely_less(size, limit):
            raise TypeError(
                "slice start_indices must be greater than or equal to zero, not beyond"
                f" limit_indices, which must be within operand shape {x.shape}; got start_indices"
                f" {start_indices} and limit_indices {limit_indices}"
            )
        step = 1 if strides is None else strides[i]
        if step < 1:
            raise TypeError(f"slice strides must be positive, got {strides}")
        shape.append(limit - start if step == 1 else (limit - start + step - 1) // step)
    return ShapedArray(tuple(shape), x.dtype, x.weak_type)


def _slice_meaning(
    x: np.ndarray, *, start_indices: Shape, limit_indices: Shape, strides: Shape | None
) -> np.ndarray:
    steps = strides or (1,) * x.ndim
    return x[tuple([_slice(*s) for s in zip(start_indices, limit_indices, steps)])]


@unary_transpose
def _slice_transpose(
    ct: Any, aval: ShapedArray, *, start_indices: Shape, limit_indices: Shape, strides: Shape | None
) -> Any:
    config = []
    for i, (size, start, n) in enumerate(zip(aval.shape, start_indices, typeof(ct).shape)):
        step = 1 if strides is None else strides[i]
        covered = n if step == 1 else (n - 1) * step + 1 if n > 0 else 0
        config.append((start, size - start - covered, step - 1))
    return do.pad(ct, common.scalar_of(typeof(ct).dtype, 0), padding_config=tuple(config))


def _slice_batch(
    args: Sequence[Any],
    dims: Sequence[int | None],
    *,
    start_indices: Shape,
    limit_indices: Shape,
    strides: Shape | None,
) -> tuple[Any, int]:
    (x,), (b,) = args, dims
    assert b is not None
    starts = (*start_indices[:b], 0, *start_indices[b:])
    limits = (*limit_indices[:b], typeof(x).shape[b], *limit_indices[b:])
    steps = None if strides is None else (*strides[:b], 1, *strides[b:])
    return do.slice(x, start_indices=starts, limit_indices=limits, strides=steps), b


slice_p = Primitive(
    "slice",
    meaning=_slice_meaning,
    shape=_slice_shape,
    jvp=linear_jvp("slice"),
    transpose=_slice_transpose,
    batch=_slice_batch,
    defaults={"strides": None},
)

# ---------------------------------------------------------------- dynamic_slice


def _check_indices(name: str, x: ShapedArray, sizes: Shape, indices: Sequence[ShapedArray]) -> None:
    if len(indices) != x.ndim or len(sizes) != x.ndim:
        raise TypeError(
            f"{name}: operand {x.str_short()} needs {x.ndim} start indices and sizes, got"
            f" {len(indices)} indices and sizes {sizes}"
        )
    for i in indices:
        if i.ndim or not is_integer(i.dtype) or i.dtype != indices[0].dtype:
            raise TypeError(
                f"index arguments to {name} must be scalar integers of the same type, got:"
                f" {', '.join(a.str_short() for a in indices)}"
            )
    for size, n in zip(x.shape, sizes):
        if surely_less(n, 0) or surely_less(size, n):
            raise TypeError(
                f"{name}: slice sizes must be within operand shape {x.shape}, got {sizes}"
            )


def _dynamic_slice_shape(x: ShapedArray, *indices: ShapedArray, slice_sizes: Shape) -> ShapedArray:
    _check_indices("dynamic_slice", x, slice_sizes, indices)
    return ShapedArray(slice_sizes, x.dtype, x.weak_type)


def _window(shape: Shape, sizes: Shape, indices: Sequence[np.ndarray]) -> tuple[Any, ...]:
    """The slices of NumPy for a window whose start is moved so that it fits."""
    starts = [min(max(int(i), 0), size - n) for i, size, n in zip(indices, shape, sizes)]
    return tuple([_slice(s, s + n) for s, n in zip(starts, sizes)])


def _dynamic_slice_meaning(x: np.ndarray, *indices: np.ndarray, slice_sizes: Shape) -> np.ndarray:
    return x[_window(x.shape, slice_sizes, indices)]


@unary_transpose
def _dynamic_slice_transpose(ct: Any, aval: ShapedArray, *indices: Any, slice_sizes: Shape) -> Any:
    return do.dynamic_update_slice(zeros(aval), ct, *indices)


def _dynamic_slice_batch(
    args: Sequence[Any], dims: Sequence[int | None], *, slice_sizes: Shape
) -> tuple[Any, int]:
    x, indices = args[0], args[1:]
    b, ndim = dims[0], len(indices)
    if all(d is None for d in dims[1:]):
        assert b is not None
        first = scalar_of(typeof(indices[0]).dtype if indices else canonicalize(int), 0)
        sizes = (*slice_sizes[:b], typeof(x).shape[b], *slice_sizes[b:])
        return do.dynamic_slice(x, *indices[:b], first, *indices[b:], slice_sizes=sizes), b
    if b is None:
        numbers = GatherDimensionNumbers(tuple(range(1, ndim + 1)), (), tuple(range(ndim)))
        sizes = slice_sizes
    else:
        x = front(x, b, 0)
        later = tuple(range(1, ndim + 1))
        numbers = GatherDimensionNumbers(later, (), later, (0,), (0,))
        sizes = (min(typeof(x).shape[0], 1), *slice_sizes)
    starts = index_vectors(indices, dims[1:])
    out = do.gather(
        x,
        starts,
        dimension_numbers=numbers,
        slice_sizes=sizes,
        unique_indices=b is not None,
        indices_are_sorted=b is not None,
        mode=GatherScatterMode.CLIP,
        fill_value=None,
    )
    return out, 0


def index_vectors(indices: Sequence[Any], dims: Sequence[int | None]) -> Any:
    """Scalar indices, some of them batched, as one array [batch, number of indices]."""
    size = batch_size(indices, dims)
    columns = [
        do.broadcast_in_dim(i, shape=(size, 1), broadcast_dimensions=() if d is None else (0,))
        for i, d in zip(indices, dims)
    ]
    return columns[0] if len(columns) == 1 else do.concatenate(*columns, dimension=1)


dynamic_slice_p = Primitive(
    "dynamic_slice",
    meaning=_dynamic_slice_meaning,
    shape=_dynamic_slice_shape,
    jvp=linear_jvp("dynamic_slice"),
    transpose=_dynamic_slice_transpose,
    batch=_dynamic_slice_batch,
)


# ---------------------------------------------------------------- dynamic_update_slice


def _update_shape(x: ShapedArray, update: ShapedArray, *indices: ShapedArray) -> ShapedArray:
    if x.dtype != update.dtype:
        raise TypeError(
            "dynamic_update_slice: operand and update must have the same dtype, got"
            f" {x.str_short()} and {update.str_short()}"
        )
    if update.ndim != x.ndim:
        raise TypeError(
            "dynamic_update_slice update must have the same rank as operand, got update shape"
            f" {update.shape} for operand shape {x.shape}."
        )
    _check_indices("dynamic_update_slice", x, update.shape, indices)
    return ShapedArray(x.shape, x.dtype, x.weak_type and update.weak_type)


def _update_meaning(x: np.ndarray, update: np.ndarray, *indices: np.ndarray) -> np.ndarray:
    out = np.array(x)
    out[_window(x.shape, update.shape, indices)] = update
    return out


def _update_jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    x, update, *indices = primals
    out = do.dynamic_update_slice(x, update, *indices)
    if type(tangents[0]) is Zero and type(tangents[1]) is Zero:
        return out, zero_like(out)
    return out, do.dynamic_update_slice(
        instantiate(tangents[0]), instantiate(tangents[1]), *indices
    )


def _update_transpose(ct: Any, x: Any, update: Any, *indices: Any) -> list[Any]:
    linear = [type(v) is UndefinedPrimal for v in (x, update)]
    rest = [None] * len(indices)
    if type(ct) is Zero:
        return [
            Zero(v.aval) if is_linear else None for v, is_linear in zip((x, update), linear)
        ] + rest
    aval = update.aval if linear[1] else typeof(update)
    x_ct = (
        do.dynamic_update_slice(ct, zeros(ShapedArray(aval.shape, typeof(ct).dtype)), *indices)
        if linear[0]
        else None
    )
    return [
        x_ct,
        do.dynamic_slice(ct, *indices, slice_sizes=aval.shape) if linear[1] else None,
        *rest,
    ]


def _update_batch(args: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, int]:
    size = batch_size(args, dims)
    x, update = front(args[0], dims[0], size), front(args[1], dims[1], size)
    indices = args[2:]
    if all(d is None for d in dims[2:]):
        first = scalar_of(typeof(indices[0]).dtype if indices else canonicalize(int), 0)
        return do.dynamic_update_slice(x, update, first, *indices), 0
    later = tuple(range(1, len(indices) + 1))
    out = do.scatter(
        x,
        index_vectors(indices, dims[2:]),
        update,
        dimension_numbers=ScatterDimensionNumbers(later, (), later, (0,), (0,)),
        indices_are_sorted=True,
        unique_indices=True,
        mode=GatherScatterMode.CLIP,
        update_jaxpr=None,
        update_consts=(),
    )
    return out, 0


dynamic_update_slice_p = Primitive(
    "dynamic_update_slice",
    meaning=_update_meaning,
    shape=_update_shape,
    jvp=_update_jvp,
    transpose=_update_transpose,
    batch=_update_batch,
)
