"""Ragged products: the rows of one array, in consecutive groups of sizes known only while running,
each group with a matrix of its own: ragged_dot, ragged_dot_general."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.dtypes import is_integer
from calque.core.primitives import NotApplicable, Primitive, Zero, do
from calque.core.trace import trace_to_jaxpr, typeof
from calque.ops.common import instantiate, move, zero_like, zeros
from calque.ops.common import operand as as_operand
from calque.ops.dimension_numbers import (
    RaggedDotDimensionNumbers,
    canonical_precision,
    preferred_dtype,
)
from calque.ops.layout import Shape
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
    if sizes.ndim != 1 or not is_integer(sizes.dtype):
        raise NotImplementedError(
            f"ragged_dot_general: group_sizes must be a vector of integers, got {sizes.str_short()}"
        )
    if len(groups) != (1 if mode == "free" else 0):
        raise TypeError(
            f"ragged_dot_general: rhs has {len(groups)} group dimensions, where a ragged {mode}"
            f" dimension needs {1 if mode == 'free' else 0}"
        )
    if groups and rhs.shape[groups[0]] != sizes.shape[0]:
        raise TypeError(
            f"ragged_dot_general: rhs {rhs.str_short()} has {rhs.shape[groups[0]]} groups in"
            f" dimension {groups[0]}, group_sizes {sizes.str_short()}"
        )
    for i, j in zip(lc + lb, rc + rb, strict=True):
        if lhs.shape[i] != rhs.shape[j]:
            raise TypeError(
                f"ragged_dot_general: dimension {i} of lhs {lhs.str_short()} and {j} of rhs"
                f" {rhs.str_short()} must have the same size"
            )
    shape = [lhs.shape[i] for i in (*lb, *free_dims(lhs.ndim, lc, lb))]
    shape += [rhs.shape[i] for i in free_dims(rhs.ndim, rc, rb, groups)]
    shape = [sizes.shape[0], *shape] if mode == "contracting" else shape
    return ShapedArray(tuple(shape), *product_dtype(lhs, rhs, p["preferred_element_type"]))


# ---------------------------------------------------------------- meaning


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
    ends = np.cumsum(sizes.astype(np.int64))
    at = np.arange(lhs.shape[ragged]).reshape([-1 if d == ragged else 1 for d in range(lhs.ndim)])
    outs = []
    for g, (end, size) in enumerate(zip(ends, sizes.astype(np.int64))):
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


def _program(lhs: Any, rhs: Any, sizes: Any, **p: Any) -> Any:
    """One dot_general: lhs repeated for each group, with zeros in the rows of the others."""
    (((lc, rc), (lb, rb)), ragged, groups), mode = _numbers(p), _mode(p)
    dot = _dot_params(p)
    if mode == "batch":
        return do.dot_general(lhs, rhs, dimension_numbers=((lc, rc), (lb, rb)), **dot)
    aval, index = typeof(lhs), typeof(sizes)
    shape = (index.shape[0], *aval.shape)

    def spread(v: Any) -> Any:
        return do.broadcast_in_dim(v, shape=shape, broadcast_dimensions=(0,))

    ends = do.cumsum(sizes, axis=0, reverse=False)
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
    closed = trace_to_jaxpr(lambda *xs: [_program(*xs, **p)], [typeof(x) for x in primals])
    _, (tangent,) = jvp_scalars(
        closed.jaxpr, closed.consts, primals, [*tangents[:2], zero_like(primals[2])]
    )
    return out, instantiate(tangent)


def _batch(args: Sequence[Any], dims: Sequence[int | None], **p: Any) -> tuple[Any, int]:
    """As for dot_general: one more batch dimension, or one more free dimension of the operand that
    has it."""
    (lhs, rhs, sizes), (bl, br, bs) = args, dims
    if bs is not None:
        raise NotImplementedError(
            "ragged_dot_general cannot be batched over its group sizes: call it for each vector of"
            " sizes, with lax.map"
        )
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
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: Any = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
    out_sharding: Any = None,
) -> Any:
    """`dot_general` in groups along one ragged dimension of `lhs`. If that is a free dimension,
    each group has its own matrix in `rhs`; if it is contracted, the result has one product for each
    group, in front.

    >>> numbers = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    >>> lax.ragged_dot_general(jnp.ones((4, 3)), jnp.ones((2, 3, 5)), jnp.array([1, 3]),
    ...     numbers).shape
    (4, 5)
    """
    lhs, rhs, sizes = as_operand(lhs), as_operand(rhs), as_operand(group_sizes)
    given = ragged_dot_dimension_numbers
    if len(given.lhs_ragged_dimensions) != 1:
        raise TypeError(
            "ragged_dot_general expects exactly one ragged dimension, got"
            f" {given.lhs_ragged_dimensions}"
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
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
    out_sharding: Any = None,
) -> Any:
    """The rows of `lhs` [m, k] in consecutive groups, each times its own matrix of `rhs` [groups,
    k, n].

    >>> lax.ragged_dot(jnp.ones((4, 3)), jnp.ones((2, 3, 5)), jnp.array([1, 3])).shape
    (4, 5)
    """
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
