"""gather: slices of an array at positions that another array holds; and index_take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.arrays import Array
from calque.core.avals import ShapedArray
from calque.core.dims import surely_less
from calque.core.dtypes import iinfo, is_complex, is_extended, is_float, is_integer, is_signed
from calque.core.errors import ConcretizationTypeError
from calque.core.jaxprs import Jaxpr
from calque.core.primitives import Primitive, Zero, do
from calque.core.trace import trace_to_jaxpr, typeof, value_if_known
from calque.core.trace_state import Tracer
from calque.core.types import ArrayLike
from calque.machine.caches import memo
from calque.ops.common import front, index_operand, zero_like, zeros
from calque.ops.common import operand as as_operand
from calque.ops.conversions import real_constant_of
from calque.ops.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from calque.ops.layout import Shape, canonical_shape, expand_dims, unary_transpose
from calque.ops.sizes import index_dtype
from calque.ops.window_checks import (
    check_apart,
    check_batching,
    check_dims,
    check_distinct,
    check_index_map,
)

# ------------------------------------------------ positions: what gather and scatter have in common


def offsets_of(ndim: int, dropped: Sequence[int]) -> Shape:
    """The dimensions of 0..ndim-1 that are not in `dropped`."""
    return tuple([d for d in range(ndim) if d not in dropped])


def window_starts(
    indices: np.ndarray, ndim: int, index_map: Shape, batching: Shape, indices_batching: Shape
) -> dict[int, np.ndarray]:
    """Operand dimension -> where each window starts in it, an array that broadcasts to the indices'
    batch shape."""
    out: dict[int, np.ndarray] = {}
    # indices are compared with sizes as signed numbers: uint64 ones beyond int64 are out of bounds
    # in any case
    wide = (
        np.minimum(indices, np.iinfo(np.int64).max).astype(np.int64)
        if indices.dtype == np.uint64
        else indices.astype(np.int64)
    )
    for k, d in enumerate(index_map):
        out[d] = wide[..., k]
    for d, b in zip(batching, indices_batching):
        shape = [1] * (indices.ndim - 1)
        shape[b] = indices.shape[b]
        out[d] = np.arange(indices.shape[b]).reshape(shape)
    return out


def windows_inside(
    starts: dict[int, np.ndarray], shape: Shape, sizes: Sequence[int], batch: Shape
) -> np.ndarray:
    """Which windows lie wholly inside the operand."""
    inside = np.ones(batch, bool)
    for d, s in starts.items():
        inside = inside & (s >= 0) & (s <= shape[d] - sizes[d])
    return inside


def clipped(
    starts: dict[int, np.ndarray], shape: Shape, sizes: Sequence[int]
) -> dict[int, np.ndarray]:
    """Starts moved so that the windows lie inside."""
    return {d: np.clip(s, 0, shape[d] - sizes[d]) for d, s in starts.items()}


def element_indices(
    starts: dict[int, np.ndarray], sizes: Sequence[int], dropped: Sequence[int], batch: Shape
) -> tuple[np.ndarray, ...]:
    """For each operand dimension the position of each element of each window: arrays that broadcast
    to (batch dimensions, window dimensions), the window dimensions being those not in `dropped`."""
    kept = offsets_of(len(sizes), dropped)
    out = []
    for d, n in enumerate(sizes):
        at = np.broadcast_to(starts.get(d, np.zeros((), np.int64)), batch)
        at = at.reshape(batch + (1,) * len(kept))
        if d in kept:
            along = [1] * len(kept)
            along[kept.index(d)] = n
            at = at + np.arange(n).reshape(along)
        out.append(at)
    return tuple(out)


# ---------------------------------------------------------------- gather: shape


def _gather_shape(
    x: ShapedArray,
    indices: ShapedArray,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Shape,
    unique_indices: bool,
    indices_are_sorted: bool,
    mode: GatherScatterMode,
    fill_value: Any,
) -> ShapedArray:
    offset, collapsed, _, batching, _ = dimension_numbers
    if not is_integer(indices.dtype) or indices.ndim == 0:
        raise TypeError(
            "gather: start indices must be integers with an index vector dimension, got"
            f" {indices.str_short()}"
        )
    ndim = indices.ndim - 1 + len(offset)
    _check_numbers(x, indices, dimension_numbers, ndim)
    dropped = (*collapsed, *batching)
    _check_slices(x, slice_sizes, offset, collapsed, batching, bool(indices.size))
    batch, window = (
        iter(indices.shape[:-1]),
        iter([n for d, n in enumerate(slice_sizes) if d not in dropped]),
    )
    return ShapedArray(
        tuple([next(window if d in offset else batch) for d in range(ndim)]), x.dtype, x.weak_type
    )


def _check_numbers(
    x: ShapedArray, indices: ShapedArray, numbers: GatherDimensionNumbers, ndim: int
) -> None:
    """The lists of dimensions, one by one and together."""
    offset, collapsed, index_map, batching, indices_batching = numbers
    if list(offset) != sorted(offset):
        raise TypeError(f"offset_dims in gather op must be sorted; got {offset}")
    check_distinct("gather", "offset_dims", offset)
    for k, d in enumerate(offset):
        if not 0 <= d < ndim:
            raise TypeError(
                f"Offset dimension {k} in gather op is out of bounds; got {d}, but should have been"
                f" in [0, {ndim})"
            )
    check_index_map("gather", "start_index_map", "", index_map, x, indices)
    check_dims("gather", "collapsed_slice_dims", collapsed, x.ndim)
    check_dims("gather", "operand_batching_dims", batching, x.ndim)
    own = "operand_batching_dims"
    check_apart("gather", "collapsed_slice_dims", collapsed, own, batching)
    check_apart("gather", "start_index_map", index_map, own, batching)
    check_batching("gather", "start_indices_batching_dims", batching, indices_batching, x, indices)


def _check_slices(
    x: ShapedArray,
    sizes: Shape,
    offset: Shape,
    collapsed: Shape,
    batching: Shape,
    within: bool,
) -> None:
    """What is taken at each place; it lies `within` the operand unless there are no places."""
    if len(sizes) != x.ndim:
        raise TypeError(
            "Gather op must have one slice size for every input dimension; got slice_sizes"
            f" {sizes} for operand {x.str_short()}"
        )
    if len(sizes) != len(offset) + len(collapsed) + len(batching):
        raise TypeError(
            "All components of the offset index in a gather op must either be a offset dimension or"
            f" explicitly collapsed/batching; got slice_sizes {sizes}, offset_dims {offset},"
            f" collapsed_slice_dims {collapsed}, operand_batching_dims {batching}."
        )
    for k, (n, size) in enumerate(zip(sizes, x.shape)):
        if n < 0 or (within and surely_less(size, n)):
            raise TypeError(
                f"Slice size at index {k} in gather op is out of range, must be within [0,"
                f" {size} + 1), got {n}."
            )
    for what, dims in (
        ("collapse slice dims with bound 1", collapsed),
        ("have operand batching dims with bound 0/1", batching),
    ):
        for k, d in enumerate(dims):
            if sizes[d] > 1:
                raise TypeError(
                    f"Gather op can only {what}, but bound is {sizes[d]} for index {d} at position"
                    f" {k}."
                )


# ---------------------------------------------------------------- gather: meaning


def _fill_number(dtype: Any, fill_value: Any) -> Any:
    """What `gather` is told to fill with: a number, and not one that the program computes."""
    fill_value = value_if_known(fill_value)
    if isinstance(fill_value, Tracer):
        raise ConcretizationTypeError(
            "fill_value is part of the program, and must be a number that is known when it is"
            f" traced, got {fill_value}. Put it in afterwards: jnp.where(outside, fill_value, x)"
        )
    if type(fill_value) is complex and not is_extended(dtype):
        real_constant_of("fill_value", fill_value, dtype)
    return fill_of(dtype, fill_value)


def fill_of(dtype: Any, fill_value: Any) -> Any:
    """The value of elements out of bounds: NaN, the least signed integer, the largest unsigned one,
    or True, unless given."""
    if fill_value is not None:
        return fill_value
    if is_float(dtype) or is_complex(dtype):
        return float("nan")
    if is_integer(dtype):
        return int(iinfo(dtype).min if is_signed(dtype) else iinfo(dtype).max)
    if dtype.kind == "V":  # random keys: all bits of their words are set
        return 2**32 - 1
    return True


def _gather_meaning(
    x: np.ndarray,
    indices: np.ndarray,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Shape,
    unique_indices: bool,
    indices_are_sorted: bool,
    mode: GatherScatterMode,
    fill_value: Any,
) -> np.ndarray:
    """Dimensions that are read whole stand last, so that NumPy copies them as runs; the others by
    computed positions."""
    offset, collapsed, index_map, batching, indices_batching = dimension_numbers
    batch = indices.shape[:-1]
    starts = window_starts(indices, x.ndim, index_map, batching, indices_batching)
    safe = clipped(starts, x.shape, slice_sizes)
    dropped = (*collapsed, *batching)
    whole = [
        d
        for d in range(x.ndim)
        if d not in starts and d not in dropped and slice_sizes[d] == x.shape[d]
    ]
    picked = [d for d in range(x.ndim) if d not in whole]
    turned = np.transpose(x, [*picked, *whole])
    position = {d: i for i, d in enumerate(picked)}
    at = element_indices(
        {position[d]: s for d, s in safe.items()},
        [slice_sizes[d] for d in picked],
        [position[d] for d in dropped],
        batch,
    )
    # without any picked dimension the result is still a copy for each index vector
    out = turned[at] if picked else np.broadcast_to(turned, batch + turned.shape)
    if mode is GatherScatterMode.FILL_OR_DROP and starts:
        inside = windows_inside(starts, x.shape, slice_sizes, batch)
        if not inside.all():
            out = np.asarray(out).copy()  # of a lone key NumPy's scalar, a view that is not written
            out[~inside] = np.asarray(fill_of(x.dtype, fill_value)).astype(x.dtype)
    window = [
        d for d in picked if d not in dropped
    ] + whole  # the order in which `out` has the window dimensions
    place = {d: o for d, o in zip(offsets_of(x.ndim, dropped), offset)}
    target = [*offsets_of(out.ndim, offset), *[place[d] for d in window]]
    return np.transpose(out, np.argsort(target))


# ---------------------------------------------------------------- gather: derivatives and batching


def _gather_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
    x, indices = primals
    out = do.gather(x, indices, **params)
    if type(tangents[0]) is Zero:
        return out, zero_like(out)
    if params["mode"] is GatherScatterMode.FILL_OR_DROP:
        params = {**params, "fill_value": 0}
    return out, do.gather(tangents[0], indices, **params)


@unary_transpose
def _gather_transpose(
    ct: Any,
    aval: ShapedArray,
    indices: Any,
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Shape,
    unique_indices: bool,
    indices_are_sorted: bool,
    mode: GatherScatterMode,
    fill_value: Any,
) -> Any:
    numbers = ScatterDimensionNumbers(*dimension_numbers)
    if mode is not GatherScatterMode.FILL_OR_DROP:
        mode = (
            GatherScatterMode.CLIP
            if mode is GatherScatterMode.CLIP
            else GatherScatterMode.PROMISE_IN_BOUNDS
        )
    dtype = typeof(ct).dtype  # of the cotangent, which rules of users may give another precision
    like = aval if dtype == aval.dtype else ShapedArray(aval.shape, dtype)
    return add_at(zeros(like), indices, ct, numbers, indices_are_sorted, unique_indices, mode)


@memo("programs that scatters combine elements with", 1024, programs=True)
def combiner(name: str, dtype: Any) -> Jaxpr:
    """The program of two scalars that a scatter combines its elements with: `{ lambda ; a b. let c
    = add a b in (c,) }`."""
    scalar = ShapedArray((), dtype)
    return trace_to_jaxpr(lambda a, b: [do[name](a, b)], [scalar, scalar]).jaxpr


def add_at(
    x: Any,
    indices: Any,
    updates: Any,
    numbers: ScatterDimensionNumbers,
    is_sorted: bool,
    unique: bool,
    mode: GatherScatterMode,
) -> Any:
    """`scatter_add` for rules: every parameter given."""
    return do.scatter_add(
        x,
        indices,
        updates,
        dimension_numbers=numbers,
        indices_are_sorted=is_sorted,
        unique_indices=unique,
        mode=mode,
        update_jaxpr=combiner("add", typeof(x).dtype),
        update_consts=(),
    )


def _later(dims: Shape) -> Shape:
    return tuple([d + 1 for d in dims])


def _gather_batch(
    args: Sequence[Any],
    dims: Sequence[int | None],
    *,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Shape,
    **params: Any,
) -> tuple[Any, int]:
    (x, indices), (bx, bi) = args, dims
    offset, collapsed, index_map, batching, indices_batching = dimension_numbers
    if bi is None:
        x = front(x, bx, 0)
        size = typeof(x).shape[0]
        numbers = GatherDimensionNumbers(
            (0, *_later(offset)),
            _later(collapsed),
            _later(index_map),
            _later(batching),
            indices_batching,
        )
        return (
            do.gather(
                x, indices, dimension_numbers=numbers, slice_sizes=(size, *slice_sizes), **params
            ),
            0,
        )
    indices = front(indices, bi, 0)
    if bx is None:
        numbers = GatherDimensionNumbers(
            _later(offset), collapsed, index_map, batching, _later(indices_batching)
        )
        params = {**params, "indices_are_sorted": False, "unique_indices": False}
        return (
            do.gather(x, indices, dimension_numbers=numbers, slice_sizes=slice_sizes, **params),
            0,
        )
    x = front(x, bx, 0)
    numbers = GatherDimensionNumbers(
        _later(offset),
        _later(collapsed),
        _later(index_map),
        (0, *_later(batching)),
        (0, *_later(indices_batching)),
    )
    one = min(typeof(x).shape[0], 1)
    return (
        do.gather(x, indices, dimension_numbers=numbers, slice_sizes=(one, *slice_sizes), **params),
        0,
    )


gather_p = Primitive(
    "gather",
    meaning=_gather_meaning,
    shape=_gather_shape,
    jvp=_gather_jvp,
    transpose=_gather_transpose,
    batch=_gather_batch,
)


# ---------------------------------------------------------------- lax functions


def gather(
    operand: ArrayLike,
    start_indices: ArrayLike,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Gives slices of an array that start at given positions.

    Args:
        operand: An array.
        start_indices: Integers; the last dimension holds the position of one slice.
        dimension_numbers: How the dimensions of operand, indices and result belong together.
        slice_sizes: The size of a slice, for each dimension of `operand`.
        unique_indices: A promise that no slice comes twice.
        indices_are_sorted: A promise that the positions come in order.
        mode: What happens to slices that are not inside: "clip" moves them, "fill" gives
            `fill_value`, and "promise_in_bounds", which None means, says that there are none (they
            are moved).
        fill_value: The value for "fill"; None means NaN for floats, the least signed and the
            largest unsigned integer.

    Returns:
        An array.

    >>> rows = lax.GatherDimensionNumbers((1,), collapsed_slice_dims=(0,), start_index_map=(0,))
    >>> lax.gather(jnp.arange(6).reshape(3, 2), jnp.array([[2], [0]]), rows, (1, 2))
    Array([[4, 5],
           [0, 1]], dtype=int32)"""
    operand, start_indices = as_operand(operand), index_operand(start_indices)
    # the default is what JAX's is: a promise, which out-of-bounds indices break without harm
    parsed = (
        GatherScatterMode.PROMISE_IN_BOUNDS if mode is None else GatherScatterMode.from_any(mode)
    )
    fill = (
        _fill_number(typeof(operand).dtype, fill_value)
        if parsed is GatherScatterMode.FILL_OR_DROP
        else None
    )
    return do.gather(
        operand,
        start_indices,
        dimension_numbers=dimension_numbers,
        slice_sizes=canonical_shape(slice_sizes, "slice_sizes"),
        unique_indices=bool(unique_indices),
        indices_are_sorted=bool(indices_are_sorted),
        mode=parsed,
        fill_value=fill,
    )


def index_take(src: ArrayLike, idxs: Sequence[Any], axes: Sequence[int]) -> Array:
    """Gives the elements of an array at positions along some axes.

    Args:
        src: An array.
        idxs: An array of positions for each of `axes`, of one shape. They count modulo the size.
        axes: The axes.

    Returns:
        An array: the shape of the positions, then the other axes of `src`.

    >>> lax.index_take(jnp.array([[1, 2], [3, 4]]), (jnp.array([1, 0]),), (0,))
    Array([[3, 4],
           [1, 2]], dtype=int32)"""
    src, columns = as_operand(src), [as_operand(i) for i in idxs]
    shape = typeof(src).shape
    vectors = [
        expand_dims(_wrapped(i, shape[a]), (typeof(i).ndim,))
        for i, a in zip(columns, axes, strict=True)
    ]
    last = typeof(vectors[0]).ndim - 1
    indices = vectors[0] if len(vectors) == 1 else do.concatenate(*vectors, dimension=last)
    kept = len(shape) - len(axes)
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(range(last, last + kept)),
        collapsed_slice_dims=tuple(sorted(axes)),
        start_index_map=tuple(axes),
    )
    sizes = [1 if d in axes else n for d, n in enumerate(shape)]
    return gather(src, indices, numbers, sizes)


def _wrapped(i: Any, size: Any) -> Any:
    """Positions modulo the size, as index_take counts them; the result has the sign of the size."""
    own = typeof(i).dtype
    dtype = own if size <= iinfo(own).max else index_dtype(size)
    i = i if dtype == own else do.convert_element_type(i, new_dtype=dtype)
    shape = typeof(i).shape
    n = do.broadcast_in_dim(np.asarray(max(size, 1), dtype), shape=shape, broadcast_dimensions=())
    rest = do.rem(i, n)
    if not is_signed(dtype):
        return rest
    return do.select_n(do.lt(rest, zeros(typeof(rest))), rest, do.add(rest, n))
