"""Sorting along a dimension, and the largest k."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from calque.core.arrays import Array
from calque.core.avals import ShapedArray
from calque.core.dims import as_size, whole
from calque.core.dtypes import is_complex, is_extended, is_float
from calque.core.primitives import Primitive, Zero, do
from calque.core.trace import typeof
from calque.core.types import ArrayLike
from calque.ops.common import (
    PLAIN,
    axis_in,
    batch_size,
    move,
    operand,
    refuse_dtype,
    repeated,
    tangent_aval,
    zeros,
)
from calque.ops.compare import total_order
from calque.ops.conversions import wide
from calque.ops.dimension_numbers import GatherDimensionNumbers, GatherScatterMode
from calque.ops.kinds import not_linear

_INT32 = np.dtype("int32")


def taken(x: Any, indices: Any, axis: int) -> Any:
    """`x[..., indices[...], ...]`: an element of `x` along `axis` for each index, other dimensions
    walked together."""
    aval, ndim = typeof(indices), typeof(x).ndim
    length = typeof(x).shape[axis]
    if type(length) is int and length == 0:  # there is nothing to take, and nothing is asked for
        return zeros(ShapedArray(aval.shape, typeof(x).dtype))
    others = tuple(i for i in range(ndim) if i != axis)
    places = do.reshape(indices, new_sizes=(*aval.shape, 1))
    return do.gather(
        x,
        places,
        dimension_numbers=GatherDimensionNumbers((), (axis,), (axis,), others, others),
        slice_sizes=tuple(
            1 if i == axis else builtins.min(d, 1) for i, d in enumerate(typeof(x).shape)
        ),
        unique_indices=False,
        indices_are_sorted=False,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
        fill_value=None,
    )


# ---------------------------------------------------------------- sort


def ranks(x: np.ndarray) -> list[np.ndarray]:
    """Integers in the order of the keys, the most significant first: -0 and 0 are equal, NaN is
    last."""
    if is_complex(x.dtype):
        return [*ranks(x.real), *ranks(x.imag)]
    if not is_float(x.dtype):
        return [x.astype(np.int64) if x.dtype.kind == "V" else x]
    w = wide(x)
    return [total_order(np.where(np.isnan(w), np.nan, w + 0.0))]


def _sort_meaning(
    *xs: np.ndarray, dimension: int, is_stable: bool, num_keys: int
) -> list[np.ndarray]:
    keys = [rank for x in xs[:num_keys] for rank in ranks(x)]
    order = np.lexsort(keys[::-1], axis=dimension)
    return [np.take_along_axis(x, order, axis=dimension) for x in xs]


def _sort_shape(
    *avals: ShapedArray, dimension: int, is_stable: bool, num_keys: int
) -> list[ShapedArray]:
    if not avals:
        raise TypeError("sort needs at least one operand")
    if not 1 <= num_keys <= len(avals):
        raise ValueError(
            f"sort: num_keys={num_keys} must be between 1 and the number of operands, {len(avals)}"
        )
    if any(a.shape != avals[0].shape for a in avals):
        raise TypeError(
            "Arguments to sort must have equal shapes, got:"
            f" {' '.join(str(a.shape) for a in avals)}"
        )
    if not 0 <= dimension < avals[0].ndim:
        raise ValueError(f"sort: dimension {dimension} is out of bounds for {avals[0].str_short()}")
    for i, a in enumerate(avals[:num_keys]):
        if is_extended(a.dtype) or a.dtype not in PLAIN:
            raise refuse_dtype("sort", a.dtype, PLAIN, i)
    return list(avals)


def _sort_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], **params: Any
) -> tuple[list[Any], list[Any]]:
    """Positions are sorted along with the operands: they say where each tangent goes."""
    if all(type(t) is Zero for t in tangents):
        out = do.sort(*primals, **params)
        return out, [Zero(tangent_aval(typeof(o))) for o in out]
    axis = params["dimension"]
    positions = do.iota(dtype=_INT32, shape=typeof(primals[0]).shape, dimension=axis)
    *out, order = do.sort(*primals, positions, **params)
    return out, [t if type(t) is Zero else taken(t, order, axis) for t in tangents]


def _sort_batch(
    args: Sequence[Any], dims: Sequence[int | None], *, dimension: int, **params: Any
) -> tuple[list[Any], list[int]]:
    d = next(d for d in dims if d is not None)
    size = batch_size(args, dims)
    args = [repeated(x, size, d) if b is None else move(x, b, d) for x, b in zip(args, dims)]
    return do.sort(*args, dimension=dimension + (dimension >= d), **params), [d] * len(args)


sort_p = Primitive(
    "sort",
    meaning=_sort_meaning,
    shape=_sort_shape,
    jvp=_sort_jvp,
    transpose=not_linear("sort"),
    batch=_sort_batch,
    multiple_results=True,
)

# ---------------------------------------------------------------- top_k and approx_top_k


def ranks_of_largest(x: np.ndarray, descending: bool) -> np.ndarray:
    """Integers in the total order of floats, or against it."""
    rank = total_order(x) if x.dtype.kind != "V" or is_float(x.dtype) else x.astype(np.int64)
    return ~rank if descending else rank


def _largest(x: np.ndarray, k: int, axis: int, descending: bool = True) -> list[np.ndarray]:
    """In the total order of floats; of equal elements the first one first."""
    order = np.argsort(ranks_of_largest(x, descending), axis=axis, kind="stable")
    order = order.take(np.arange(k), axis=axis)
    return [np.take_along_axis(x, order, axis=axis), order.astype(np.int32)]


def _picked_avals(name: str, x: ShapedArray, k: int, axis: int) -> list[ShapedArray]:
    if is_complex(x.dtype):
        raise ValueError(f"{name} is not compatible with complex inputs.")
    if x.dtype not in PLAIN:
        raise refuse_dtype(name, x.dtype, PLAIN)
    if not 0 <= axis < x.ndim:
        raise ValueError(f"{name}: axis {axis} is out of bounds for {x.str_short()}")
    if k < 0:
        raise ValueError(f"k argument to {name} must be nonnegative, got {k}")
    if k > x.shape[axis]:
        raise ValueError(
            f"k argument to {name} must be no larger than size along axis; got k={k} with"
            f" shape={list(x.shape)} and axis={axis}"
        )
    limit = np.iinfo(np.int32).max
    if type(x.shape[axis]) is int and x.shape[axis] > limit:
        raise ValueError(
            f"{name} returns int32 indices, which will overflow for array dimensions larger than"
            f" the maximum int32 ({limit}). Got {x.str_short()}"
        )
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return [ShapedArray(shape, x.dtype, x.weak_type), ShapedArray(shape, _INT32)]


def _picked_jvp(out: list[Any], t: Any, axis: int) -> tuple[list[Any], list[Any]]:
    values, indices = out
    none = Zero(tangent_aval(typeof(indices)))
    if type(t) is Zero:
        return out, [Zero(tangent_aval(typeof(values))), none]
    return out, [taken(t, indices, axis), none]


def _top_k_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, k: int, axis: int
) -> tuple[list[Any], list[Any]]:
    return _picked_jvp(do.top_k(primals[0], k=k, axis=axis), tangents[0], axis)


def _top_k_batch(
    args: Sequence[Any], dims: Sequence[int], *, k: int, axis: int
) -> tuple[list[Any], list[int]]:
    d = dims[0]
    return do.top_k(args[0], k=k, axis=axis + (axis >= d)), [d, d]


top_k_p = Primitive(
    "top_k",
    meaning=lambda x, *, k, axis: _largest(x, k, axis),
    shape=lambda x, *, k, axis: _picked_avals("top_k", x, k, axis),
    jvp=_top_k_jvp,
    transpose=not_linear("top_k"),
    batch=_top_k_batch,
    multiple_results=True,
)


def _approx_meaning(
    x: np.ndarray, *, k: int, reduction_dimension: int, is_max_k: bool, **_: Any
) -> list[np.ndarray]:
    return _largest(x, k, reduction_dimension % x.ndim, is_max_k)


def _approx_shape(
    x: ShapedArray, *, k: int, reduction_dimension: int, **_: Any
) -> list[ShapedArray]:
    return _picked_avals("approx_top_k", x, k, axis_in("approx_top_k", reduction_dimension, x.ndim))


def _approx_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], **params: Any
) -> tuple[list[Any], list[Any]]:
    axis = params["reduction_dimension"] % typeof(primals[0]).ndim
    return _picked_jvp(do.approx_top_k(primals[0], **params), tangents[0], axis)


def _approx_batch(
    args: Sequence[Any], dims: Sequence[int], **params: Any
) -> tuple[list[Any], list[int]]:
    (x,), (d,) = args, dims
    axis = params["reduction_dimension"] % (typeof(x).ndim - 1)
    return do.approx_top_k(x, **{**params, "reduction_dimension": axis + (axis >= d)}), [d, d]


approx_top_k_p = Primitive(
    "approx_top_k",
    meaning=_approx_meaning,
    shape=_approx_shape,
    jvp=_approx_jvp,
    transpose=not_linear("approx_top_k"),
    batch=_approx_batch,
    multiple_results=True,
)

# ---------------------------------------------------------------- public functions


@overload
def sort(
    operand: ArrayLike, dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> Array: ...


@overload
def sort(
    operand: Sequence[ArrayLike], dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> tuple[Array, ...]: ...


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """Puts an array, or several together, in ascending order along a dimension.

    Args:
        operand: An array, or a tuple of arrays of one shape. NaN comes last.
        dimension: The dimension.
        is_stable: Whether equal elements keep their order.
        num_keys: How many of several arrays decide the order, one after the other; the others go
            along.

    Returns:
        An array, or a tuple of them.

    >>> lax.sort((jnp.array([3, 1, 2]), jnp.array([7, 8, 9])))
    (Array([1, 2, 3], dtype=int32), Array([8, 9, 7], dtype=int32))"""
    several = isinstance(operand, (tuple, list))
    xs = _as_operands(operand if several else [operand])
    if not xs:
        raise TypeError("Sort requires at least one operand")
    axis = axis_in("sort", dimension, typeof(xs[0]).ndim)
    out = sort_p.bind(*xs, dimension=axis, is_stable=bool(is_stable), num_keys=int(num_keys))
    return tuple(out) if several else out[0]


def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """Puts keys in ascending order, and values in the same order.

    Args:
        keys: An array; NaN comes last.
        values: An array of the same shape.
        dimension: The dimension.
        is_stable: Whether values of equal keys keep their order.

    Returns:
        A pair (keys, values).

    >>> lax.sort_key_val(jnp.array([3, 1]), jnp.array([7, 8]))
    (Array([1, 3], dtype=int32), Array([8, 7], dtype=int32))"""
    keys, values = sort((keys, values), dimension, is_stable, num_keys=1)
    return keys, values


def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> list[Array]:
    """Gives the largest elements along an axis, in descending order, and where they stand.

    Args:
        operand: An array. Of equal elements the first one comes first; NaN is the largest.
        k: How many.
        axis: The axis.

    Returns:
        A pair (values, positions as int32), in which the axis has size `k`.

    >>> lax.top_k(jnp.array([1.0, 5.0, 3.0]), 2)
    [Array([5., 3.], dtype=float32), Array([1, 2], dtype=int32)]"""
    (x,) = _as_operands([operand])
    if not typeof(x).ndim:
        raise TypeError(f"top_k operand must have >= 1 dimension, got {typeof(x).str_short()}")
    return top_k_p.bind(x, k=as_size(k, "top_k: k"), axis=axis_in("top_k", axis, typeof(x).ndim))


def approx_max_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """Gives the largest elements along a dimension, in descending order, and where they stand.

    On this processor it is exact.

    Args:
        operand: An array of floats.
        k: How many.
        reduction_dimension: The dimension.
        recall_target: The share of the right elements that an approximation must find; it finds
            all.
        reduction_input_size_override: The size to compute the approximation for; it changes nothing
            here.
        aggregate_to_topk: Whether exactly `k` elements are given; they always are.

    Returns:
        A list of two arrays: the values and their positions.

    >>> lax.approx_max_k(jnp.array([1.0, 5.0, 3.0]), 2)
    [Array([5., 3.], dtype=float32), Array([1, 2], dtype=int32)]"""
    return _approx(
        operand,
        k,
        reduction_dimension,
        recall_target,
        True,
        reduction_input_size_override,
        aggregate_to_topk,
    )


def approx_min_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> list[Array]:
    """Gives the smallest elements along a dimension, in ascending order, and where they stand.

    On this processor it is exact.

    Args:
        operand: An array of floats.
        k: How many.
        reduction_dimension: The dimension.
        recall_target: The share of the right elements that an approximation must find; it finds
            all.
        reduction_input_size_override: The size to compute the approximation for; it changes nothing
            here.
        aggregate_to_topk: Whether exactly `k` elements are given; they always are.

    Returns:
        A list of two arrays: the values and their positions.

    >>> lax.approx_min_k(jnp.array([1.0, 5.0, 3.0]), 2)
    [Array([1., 3.], dtype=float32), Array([0, 2], dtype=int32)]"""
    return _approx(
        operand,
        k,
        reduction_dimension,
        recall_target,
        False,
        reduction_input_size_override,
        aggregate_to_topk,
    )


def _approx(
    x: Any, k: int, axis: int, recall: float, largest: bool, size: int, aggregate: bool
) -> Any:
    return approx_top_k_p.bind(
        _as_operands([x])[0],
        k=whole(k, "approx_max_k and approx_min_k: k"),
        reduction_dimension=int(axis),
        recall_target=float(recall),
        is_max_k=largest,
        reduction_input_size_override=int(size),
        aggregate_to_topk=bool(aggregate),
    )


def _as_operands(xs: Sequence[Any]) -> list[Any]:
    return [operand(x) for x in xs]
