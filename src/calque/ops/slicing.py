"""Slices: static (slice), at positions known only while running (dynamic_slice,
dynamic_update_slice), and their wrappers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.dims import surely_less
from calque.core.dtypes import canonicalize, iinfo, is_integer, is_unsigned
from calque.core.primitives import Primitive, UndefinedPrimal, Zero, do
from calque.core.trace import VALUES, typeof
from calque.core.trace_state import Tracer
from calque.ops import common
from calque.ops.common import batch_size, front, instantiate, zero_like, zeros
from calque.ops.common import operand as as_operand
from calque.ops.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from calque.ops.layout import (
    Shape,
    broadcast_in_dim,
    canonical_axis,
    canonical_shape,
    linear_jvp,
    unary_transpose,
)
from calque.ops.sizes import as_number, index_dtype

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
        covered = (n - 1) * step + 1 if n > 0 else 0
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
        first = np.zeros((), typeof(indices[0]).dtype if indices else canonicalize(int))
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
        first = np.zeros((), typeof(indices[0]).dtype if indices else canonicalize(int))
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


# ---------------------------------------------------------------- lax functions: static


def slice(
    operand: Any,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Any:
    """The part of `operand` from `start_indices` up to, without, `limit_indices`, in steps of
    `strides`.

    >>> lax.slice(jnp.arange(6), (1,), (6,), (2,))
    Array([1, 3, 5], dtype=int32)
    """
    steps = None if strides is None else canonical_shape(strides, "strides")
    starts, limits = (
        canonical_shape(start_indices, "start_indices"),
        canonical_shape(limit_indices, "limit_indices"),
    )
    return do.slice(as_operand(operand), start_indices=starts, limit_indices=limits, strides=steps)


def slice_in_dim(
    operand: Any, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Any:
    """`slice` along one axis; None and negative positions mean what they mean in `x[start:limit]`.

    >>> lax.slice_in_dim(jnp.arange(5), 1, -1)
    Array([1, 2, 3], dtype=int32)
    """
    operand = as_operand(operand)
    shape = typeof(operand).shape
    axis = canonical_axis(axis, len(shape))
    size = shape[axis]
    start = 0 if start_index is None else start_index
    limit = size if limit_index is None else limit_index
    start, limit = start + size if start < 0 else start, limit + size if limit < 0 else limit
    starts = [0] * len(shape)
    limits, steps = list(shape), [1] * len(shape)
    starts[axis], limits[axis], steps[axis] = start, limit, stride
    return slice(operand, starts, limits, steps)


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Any:
    """The slice of size 1 at a position of an axis; without that axis if `keepdims=False`.

    >>> lax.index_in_dim(jnp.arange(5), 2, keepdims=False)
    Array(2, dtype=int32)
    """
    operand = as_operand(operand)
    shape = typeof(operand).shape
    axis, index = canonical_axis(axis, len(shape)), int(index)
    if not -shape[axis] <= index < shape[axis]:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {shape[axis]}")
    index = index + shape[axis] if index < 0 else index
    out = slice_in_dim(operand, index, index + 1, 1, axis)
    return out if keepdims else do.squeeze(out, dimensions=(axis,))


# ---------------------------------------------------------------- lax functions: dynamic


def _start_index(i: Any, size: Any, dtype: Any, allow_negative: bool) -> Any:
    """A start index with the negative ones counted from the end, as JAX does; numbers known now
    become constants."""
    if not isinstance(i, Tracer):
        value = int(i)
        value = value + size if value < 0 and allow_negative else value
        return as_number(_near(value, size) if type(value) is int else value, dtype)
    i = _as_type(i, dtype)
    aval = i.aval
    if is_unsigned(aval.dtype) or not allow_negative:
        return i
    strong = do.convert_element_type(i, new_dtype=aval.dtype) if aval.weak_type else i
    negative = do.lt(i, as_number(0, aval.dtype))
    return do.select_n(negative, i, do.add(strong, as_number(size, aval.dtype)))


def _near(value: int, size: Any) -> int:
    """A start index that means the same and is no further from an axis than its size: windows are
    moved inside."""
    return min(max(value, 0), size if type(size) is int else np.iinfo(np.int32).max)


def _as_type(i: Any, dtype: Any) -> Any:
    if i.aval.dtype == dtype:
        return i
    return do.convert_element_type(i, new_dtype=dtype)


def _start_indices(
    name: str, x: Any, start_indices: Any, allow_negative_indices: bool | Sequence[bool]
) -> list[Any]:
    shape = typeof(x).shape
    if isinstance(start_indices, (*VALUES, np.ndarray)):
        start_indices = _components(start_indices)
    if len(start_indices) != len(shape):
        raise ValueError(
            f"Length of start_indices must match the rank of the operand: got {len(start_indices)}"
            f" for shape {shape}"
        )
    indices = [i if _is_integer_number(i) else as_operand(i) for i in start_indices]
    avals = [None if _is_integer_number(i) else typeof(i) for i in indices]
    if any(a is not None and not is_integer(a.dtype) for a in avals):
        raise TypeError(f"start indices must be integers, got {', '.join(str(a) for a in avals)}")
    strong = {typeof(i).dtype for i in indices if type(i) is not int and not typeof(i).weak_type}
    if len(strong) > 1:
        raise TypeError(
            f"index arguments to {name} must be integers of the same type, got:"
            f" {', '.join(sorted(d.name for d in strong))}"
        )
    dtype = _start_dtype([a for a in avals if a is not None], shape)
    allow = (
        [allow_negative_indices] * len(shape)
        if isinstance(allow_negative_indices, bool)
        else allow_negative_indices
    )
    return [_start_index(i, n, dtype, a) for i, n, a in zip(indices, shape, allow, strict=True)]


def _is_integer_number(i: Any) -> bool:
    return type(i) is int or (
        isinstance(i, (np.ndarray, np.generic)) and i.shape == () and i.dtype.kind in "iu"
    )


def _start_dtype(avals: Sequence[ShapedArray], shape: Sequence[Any]) -> Any:
    """The one dtype of all start indices: that of the first array if it counts as far as the axes
    are long."""
    least = index_dtype(*shape)
    dtype = next((a.dtype for a in avals if not a.weak_type), None)
    dtype = dtype or next((a.dtype for a in avals), least)
    far = np.iinfo(np.int32).max if least.itemsize == 8 else 0
    far = max([far, *(n for n in shape if type(n) is int)])
    wide = dtype if iinfo(dtype).max >= far else least
    widest = max((a.dtype.itemsize for a in avals), default=0)
    return np.dtype("int64") if widest == 8 and wide.itemsize < 8 else wide


def _components(vector: Any) -> list[Any]:
    """The elements of a rank-1 array of start indices."""
    aval = typeof(vector)
    if aval.ndim != 1:
        raise ValueError(
            "start_indices must be a sequence of scalars or an array of rank 1, got shape"
            f" {aval.shape}"
        )
    if not isinstance(vector, Tracer):
        return list(np.asarray(vector))
    return [index_in_dim(vector, i, 0, keepdims=False) for i in range(aval.shape[0])]


def dynamic_slice(
    operand: Any,
    start_indices: Any,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Any:
    """A window of `operand` of static size at a position known only while running, moved inside
    where it does not fit.

    >>> lax.dynamic_slice(jnp.arange(5), (4,), (2,))
    Array([3, 4], dtype=int32)
    """
    operand = as_operand(operand)
    indices = _start_indices("dynamic_slice", operand, start_indices, allow_negative_indices)
    return do.dynamic_slice(
        operand, *indices, slice_sizes=canonical_shape(slice_sizes, "slice_sizes")
    )


def dynamic_slice_in_dim(
    operand: Any,
    start_index: Any,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Any:
    """`dynamic_slice` along one axis.

    >>> lax.dynamic_slice_in_dim(jnp.arange(5), 1, 2)
    Array([1, 2], dtype=int32)
    """
    operand = as_operand(operand)
    sizes = list(typeof(operand).shape)
    axis = canonical_axis(axis, len(sizes))
    starts: list[Any] = [0] * len(sizes)
    starts[axis], sizes[axis] = start_index, slice_size
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(
    operand: Any,
    index: Any,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Any:
    """The slice of size 1 at a position of an axis known only while running.

    >>> lax.dynamic_index_in_dim(jnp.arange(5), 2, keepdims=False)
    Array(2, dtype=int32)
    """
    axis = canonical_axis(axis, typeof(operand).ndim)
    out = dynamic_slice_in_dim(
        operand, index, 1, axis, allow_negative_indices=allow_negative_indices
    )
    return out if keepdims else do.squeeze(out, dimensions=(axis,))


def dynamic_update_slice(
    operand: Any,
    update: Any,
    start_indices: Any,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Any:
    """`operand` with the window at `start_indices` replaced by `update`. The window is moved inside
    where it does not fit.

    >>> lax.dynamic_update_slice(jnp.zeros(4), jnp.ones(2), (1,))
    Array([0., 1., 1., 0.], dtype=float32)
    """
    operand, update = common.same_dtypes(
        "dynamic_update_slice", [as_operand(operand), as_operand(update)]
    )
    return do.dynamic_update_slice(
        operand,
        update,
        *_start_indices("dynamic_update_slice", operand, start_indices, allow_negative_indices),
    )


def dynamic_update_slice_in_dim(
    operand: Any, update: Any, start_index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Any:
    """`dynamic_update_slice` along one axis.

    >>> lax.dynamic_update_slice_in_dim(jnp.zeros(4), jnp.ones(2), 1, 0)
    Array([0., 1., 1., 0.], dtype=float32)
    """
    ndim = typeof(operand).ndim
    starts: list[Any] = [0] * ndim
    starts[canonical_axis(axis, ndim)] = start_index
    return dynamic_update_slice(
        operand, update, starts, allow_negative_indices=allow_negative_indices
    )


def dynamic_update_index_in_dim(
    operand: Any, update: Any, index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Any:
    """`operand` with the slice at `index` of an axis replaced by `update`, which may lack that
    axis.

    >>> lax.dynamic_update_index_in_dim(jnp.zeros(3), 1., 2, 0)
    Array([0., 0., 1.], dtype=float32)
    """
    operand, update = common.same_dtypes(
        "dynamic_update_index_in_dim", [as_operand(operand), as_operand(update)]
    )
    ndim, aval = typeof(operand).ndim, typeof(update)
    axis = canonical_axis(axis, ndim)
    if aval.ndim != ndim:
        if aval.ndim + 1 != ndim:
            raise TypeError(
                f"update of rank {aval.ndim} does not fit operand of rank {ndim}: it must have that"
                " rank or one less"
            )
        kept = tuple([d for d in range(ndim) if d != axis])
        update = broadcast_in_dim(update, (*aval.shape[:axis], 1, *aval.shape[axis:]), kept)
    return dynamic_update_slice_in_dim(
        operand, update, index, axis, allow_negative_indices=allow_negative_indices
    )
