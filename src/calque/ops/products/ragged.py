"""Ragged products: the rows of one array, in consecutive groups of sizes known only while running,
each group with a matrix of its own: ragged_dot, ragged_dot_general."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.arrays import Array
from calque.core.avals import ShapedArray
from calque.core.dtypes import is_integer
from calque.core.primitives import NotApplicable, Primitive, Zero, do
from calque.core.trace import trace_to_jaxpr, typeof
from calque.core.types import ArrayLike, DTypeLike
from calque.ops.common import front, instantiate, move, zero_like, zeros
from calque.ops.common import operand as as_operand
from calque.ops.dimension_numbers import (
    RaggedDotDimensionNumbers,
    canonical_precision,
    preferred_dtype,
)
from calque.ops.layout import Shape, permuted
from calque.ops.products.dot import (
    DimensionNumbers,
    beside,
    canonical_numbers,
    dot_general_p,
    free_dims,
    free_place,
    product_dtype,
)
from calque.ops.scalar_programs import jvp_scalars

Params = dict[str, Any]


def _numbers(p: Params) -> tuple[DimensionNumbers, int, Shape]:
    """The dimensions of the dot, the ragged dimension of lhs, the group dimensions of rhs."""
    numbers = p["ragged_dot_dimension_numbers"]
    return (
        numbers.dot_dimension_numbers,
        numbers.lhs_ragged_dimensions[0],
        tuple(numbers.rhs_group_dimensions),
    )


def _dot_params(p: Params) -> Params:
    """What the product of one group takes."""
    return {k: p[k] for k in ("precision", "preferred_element_type", "out_sharding")}


def _mode(p: Params) -> str:
    """What the ragged dimension of lhs is in the dot."""
    ((lc, _), (lb, _)), ragged, _ = _numbers(p)
    return "contracting" if ragged in lc else "batch" if ragged in lb else "free"


# ---------------------------------------------------------------- shape


def _shape(lhs: ShapedArray, rhs: ShapedArray, sizes: ShapedArray, **p: Any) -> ShapedArray:
    (((lc, rc), (lb, rb)), _, groups), mode = _numbers(p), _mode(p)
    if p["group_offset"] is not None:
        raise NotImplementedError(
            "ragged_dot_general: group_offset is not supported: pass the rows and sizes of those"
            " groups alone"
        )
    if not is_integer(sizes.dtype) or not sizes.ndim:
        raise TypeError(
            "ragged_dot_general: group_sizes must be integers, one for each group, got"
            f" {sizes.str_short()}"
        )
    _check_groups(mode, groups, (*rc, *rb))
    prefix = tuple([lhs.shape[d] for d in _before(p, lhs.ndim)])
    if sizes.ndim > 1 and sizes.shape[:-1] != prefix:
        raise TypeError(
            "ragged_dot_general: expected group_sizes to have shape"
            f" {(*prefix, sizes.shape[-1])}, got {sizes.shape}"
        )
    if groups and rhs.shape[groups[0]] != sizes.shape[-1]:
        raise TypeError(
            f"ragged_dot_general: expected rhs group dimension size to be {sizes.shape[-1]}, got"
            f" {rhs.shape[groups[0]]} in dimension {groups[0]} of rhs {rhs.str_short()}"
        )
    for i, j in zip(lc + lb, rc + rb, strict=True):
        if lhs.shape[i] != rhs.shape[j]:
            raise TypeError(
                f"ragged_dot_general: dimension {i} of lhs {lhs.str_short()} and {j} of rhs"
                f" {rhs.str_short()} must have the same size"
            )
    shape = [lhs.shape[i] for i in (*lb, *free_dims(lhs.ndim, lc, lb))]
    shape += [rhs.shape[i] for i in free_dims(rhs.ndim, rc, rb, groups)]
    shape = [sizes.shape[-1], *shape] if mode == "contracting" else shape
    return ShapedArray(tuple(shape), *product_dtype(lhs, rhs, p["preferred_element_type"]))


def _check_groups(mode: str, groups: Shape, others: Shape) -> None:
    if mode == "free" and len(groups) != 1:
        raise TypeError(
            "ragged_dot_general requires exactly one rhs group dimension when lhs ragged dimension"
            f" is noncontracting, got {groups}"
        )
    if mode != "free" and groups:
        raise TypeError(
            "ragged_dot_general requires zero group dimensions in the rhs when lhs ragged dimension"
            f" is contracting or batch, got {groups}"
        )
    if set(groups) & set(others):
        raise TypeError(
            "ragged_dot_general requires rhs group dimension numbers to be distinct from"
            f" contracting and batch dimensions, got {groups} and {others}"
        )


def _before(p: Params, ndim: int) -> Shape:
    """The dimensions of lhs for each of whose elements `group_sizes` may have a row: the batch
    dimensions, and those of the ragged one's kind that stand before it."""
    ((lc, _), (lb, _)), ragged, _ = _numbers(p)
    mode = _mode(p)
    kind = {"contracting": lc, "batch": lb, "free": free_dims(ndim, lc, lb)}[mode]
    before = tuple(kind[: tuple(kind).index(ragged)])
    return before if mode == "batch" else (*lb, *before)


# ---------------------------------------------------------------- meaning


def _spread(sizes: Any, dims: Shape, ndim: int) -> tuple[Shape, Shape]:
    """The shape that puts groups in front and rows of sizes where they belong in lhs, and the order
    of the dimensions of `sizes` for that."""
    rank = len(sizes.shape)
    if rank == 1:
        return (sizes.shape[0], *(1,) * ndim), (0,)
    own = sorted(range(rank - 1), key=lambda k: dims[k])
    full = [1] * ndim
    for k, d in enumerate(dims):
        full[d] = sizes.shape[k]
    return (sizes.shape[-1], *full), (rank - 1, *own)


def _meaning(lhs: np.ndarray, rhs: np.ndarray, sizes: np.ndarray, **p: Any) -> np.ndarray:
    """Group by group: the rows that belong to it, times its matrix. Rows of no group give zeros."""
    (((lc, rc), batch), ragged, groups), mode = _numbers(p), _mode(p)
    dot = _dot_params(p)
    numbers: DimensionNumbers = ((lc, rc), batch)
    if mode == "batch":
        return dot_general_p.meaning(lhs, rhs, dimension_numbers=numbers, **dot)
    if groups:  # the matrix of one group lacks the group dimension

        def lower(ds: Sequence[int]) -> tuple[int, ...]:
            return tuple([d - (d > groups[0]) for d in ds])

        numbers = ((lc, lower(rc)), (batch[0], lower(batch[1])))
    shape, order = _spread(sizes, _before(p, lhs.ndim), lhs.ndim)
    counts = sizes.astype(np.int64)
    ends = np.cumsum(counts, axis=-1).transpose(order).reshape(shape)
    counts = counts.transpose(order).reshape(shape)
    at = np.arange(lhs.shape[ragged]).reshape([-1 if d == ragged else 1 for d in range(lhs.ndim)])
    outs = []
    for g, (end, size) in enumerate(zip(ends, counts)):
        rows = np.where((at >= end - size) & (at < end), lhs, np.zeros((), lhs.dtype))
        matrix = np.take(rhs, g, groups[0]) if groups else rhs
        outs.append(dot_general_p.meaning(rows, matrix, dimension_numbers=numbers, **dot))
    avals = [ShapedArray(x.shape, x.dtype) for x in (lhs, rhs, sizes)]
    aval = _shape(*avals, **p)
    if not outs:
        return np.zeros(aval.shape, aval.dtype)
    return (
        np.stack(outs)
        if mode == "contracting"
        else np.asarray(sum(outs[1:], outs[0])).astype(aval.dtype)
    )


# ---------------------------------------------------------------- rules


def as_dot_general(lhs: Any, rhs: Any, sizes: Any, **p: Any) -> Any:
    """One dot_general: lhs repeated for each group, with zeros in the rows of the others."""
    (((lc, rc), (lb, rb)), ragged, groups), mode = _numbers(p), _mode(p)
    dot = _dot_params(p)
    if mode == "batch":
        return do.dot_general(lhs, rhs, dimension_numbers=((lc, rc), (lb, rb)), **dot)
    aval, index = typeof(lhs), typeof(sizes)
    shape = (index.shape[-1], *aval.shape)
    ones, order = _spread(index, _before(p, aval.ndim), aval.ndim)

    def spread(v: Any) -> Any:
        v = do.reshape(permuted(v, order), new_sizes=ones)
        return do.broadcast_in_dim(v, shape=shape, broadcast_dimensions=tuple(range(len(shape))))

    ends = do.cumsum(sizes, axis=index.ndim - 1, reverse=False)
    at = do.iota(dtype=index.dtype, shape=shape, dimension=ragged + 1)
    mine = do.and_(do.ge(at, spread(do.sub(ends, sizes))), do.lt(at, spread(ends)))
    repeated = do.broadcast_in_dim(
        lhs, shape=shape, broadcast_dimensions=tuple(range(1, len(shape)))
    )
    rows = do.select_n(mine, zeros(ShapedArray(shape, aval.dtype)), repeated)

    def later(ds: Sequence[int]) -> tuple[int, ...]:
        return tuple([d + 1 for d in ds])

    lc, lb = later(lc), later(lb)
    if mode == "free":
        lc, rc = (0, *lc), (*groups, *rc)
    out = do.dot_general(rows, rhs, dimension_numbers=((lc, rc), (lb, rb)), **dot)
    return out if mode == "free" else move(out, len(lb), 0)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **p: Any) -> tuple[Any, Any]:
    out = do.ragged_dot_general(*primals, **p)
    if all(type(t) is Zero for t in tangents[:2]):
        return out, zero_like(out)
    closed = trace_to_jaxpr(lambda *xs: [as_dot_general(*xs, **p)], [typeof(x) for x in primals])
    _, (tangent,) = jvp_scalars(
        closed.jaxpr, closed.consts, primals, [*tangents[:2], zero_like(primals[2])]
    )
    return out, instantiate(tangent)


def _batch(args: Sequence[Any], dims: Sequence[int | None], **p: Any) -> tuple[Any, int]:
    """As for dot_general: one more batch dimension, or one more free dimension of the operand that
    has it."""
    (lhs, rhs, sizes), (bl, br, bs) = args, dims
    if bs is not None or typeof(sizes).ndim > 1:
        lhs, rhs, sizes = _all_batched(args, dims, p)
        bl = br = 0
    (((lc, rc), (lb, rb)), ragged, groups), mode = _numbers(p), _mode(p)

    lc, lb, (ragged,) = beside(lc, bl), beside(lb, bl), beside((ragged,), bl)
    rc, rb, groups = beside(rc, br), beside(rb, br), beside(groups, br)
    first = 1 if mode == "contracting" else 0
    if bl is not None and br is not None:
        lb, rb, at = (bl, *lb), (br, *rb), first
    else:
        left = free_dims(typeof(lhs).ndim, lc, lb)
        right = free_dims(typeof(rhs).ndim, rc, rb, groups)
        at = first + len(lb) + free_place(bl, br, left, right)
    numbers = RaggedDotDimensionNumbers(((lc, rc), (lb, rb)), (ragged,), groups)
    return (
        do.ragged_dot_general(lhs, rhs, sizes, **{**p, "ragged_dot_dimension_numbers": numbers}),
        at,
    )


def _all_batched(args: Sequence[Any], dims: Sequence[int | None], p: Params) -> list[Any]:
    """The operands with the batch dimension in front of each, and sizes for all that comes before
    the ragged dimension."""
    n = next(typeof(x).shape[d] for x, d in zip(args, dims) if d is not None)
    lhs, rhs, sizes = (front(x, d, n) for x, d in zip(args, dims))
    if typeof(sizes).ndim == 2:
        own = tuple([typeof(lhs).shape[d + 1] for d in _before(p, typeof(lhs).ndim - 1)])
        groups = typeof(sizes).shape[-1]
        sizes = do.broadcast_in_dim(
            sizes, shape=(n, *own, groups), broadcast_dimensions=(0, len(own) + 1)
        )
    return [lhs, rhs, sizes]


ragged_dot_general_p = Primitive(
    "ragged_dot_general",
    meaning=_meaning,
    shape=_shape,
    jvp=_jvp,
    transpose=NotApplicable(
        "ragged_dot_general is transposed through the dot_general of its derivative"
    ),
    batch=_batch,
)


# ---------------------------------------------------------------- lax functions


def ragged_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: ArrayLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """Multiplies two arrays in groups along one dimension of the left one.

    If that is a free dimension, each group has its own matrix in `rhs`; if it is contracted, the
    result has one product for each group, in front.

    Args:
        lhs: The left array.
        rhs: The right array.
        group_sizes: The sizes of the groups, integers.
        ragged_dot_dimension_numbers: A `RaggedDotDimensionNumbers`.
        precision: How exact the product is, as of `dot_general`.
        preferred_element_type: The dtype of the result; None takes that of the operands.
        group_offset: Must be None: the number of the first group, for groups on several devices.
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> numbers = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    >>> x, w = jnp.ones((4, 3)), jnp.ones((2, 3, 5))
    >>> lax.ragged_dot_general(x, w, jnp.array([1, 3]), numbers).shape
    (4, 5)"""
    lhs, rhs, sizes = as_operand(lhs), as_operand(rhs), as_operand(group_sizes)
    given = ragged_dot_dimension_numbers
    if len(given.lhs_ragged_dimensions) != 1:
        raise TypeError(
            "ragged_dot_general expects exactly one lhs ragged dimension, got"
            f" {given.lhs_ragged_dimensions}"
        )
    if not 0 <= given.lhs_ragged_dimensions[0] < typeof(lhs).ndim:
        raise TypeError(
            "ragged_dot_general requires lhs ragged dimension numbers to be nonnegative and less"
            f" than the number of axes of the lhs, got {given.lhs_ragged_dimensions} for"
            f" {typeof(lhs).str_short()}"
        )
    dot = canonical_numbers(given.dot_dimension_numbers, typeof(lhs), typeof(rhs))
    numbers = RaggedDotDimensionNumbers(
        dot, tuple(given.lhs_ragged_dimensions), tuple(given.rhs_group_dimensions)
    )
    return do.ragged_dot_general(
        lhs,
        rhs,
        sizes,
        ragged_dot_dimension_numbers=numbers,
        precision=canonical_precision(precision),
        preferred_element_type=preferred_dtype(preferred_element_type),
        group_offset=group_offset,
        out_sharding=out_sharding,
    )


def ragged_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: ArrayLike | None = None,
    out_sharding: Any = None,
) -> Array:
    """Multiplies the rows of a matrix, in consecutive groups, each with its own matrix.

    Args:
        lhs: An array of shape (m, k).
        rhs: An array of shape (groups, k, n).
        group_sizes: The number of rows of each group, integers.
        precision: How exact the product is, as of `dot_general`.
        preferred_element_type: The dtype of the result; None takes that of the operands.
        group_offset: Must be None: the number of the first group, for groups on several devices.
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array of shape (m, n).

    >>> lax.ragged_dot(jnp.ones((4, 3)), jnp.ones((2, 3, 5)), jnp.array([1, 3])).shape
    (4, 5)"""
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    return ragged_dot_general(
        lhs,
        rhs,
        group_sizes,
        numbers,
        precision,
        preferred_element_type,
        group_offset,
        out_sharding,
    )
