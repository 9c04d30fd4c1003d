"""What the matrix decompositions share: matrices in the last two dimensions, batches before
them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.dtypes import is_complex, is_inexact, real_part
from calque.core.primitives import REGISTRY, Zero, do
from calque.core.trace import trace_to_jaxpr, typeof
from calque.ops import common
from calque.ops.common import batch_size, front, instantiate, scalar_of, zero_like
from calque.ops.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    canonical_precision,
)
from calque.ops.layout import Shape, permuted
from calque.ops.scalar_programs import jvp_scalars

INT = np.dtype("int32")
_LAPACK = frozenset(np.dtype(d) for d in ("float32", "float64", "complex64", "complex128"))

# ---------------------------------------------------------------- shapes


def check_matrix(name: str, x: ShapedArray, square: bool = False) -> tuple[Shape, int, int]:
    """(batch shape, rows, columns) of an operand that must be a matrix or a batch of matrices."""
    check_dtype(name, x)
    if x.ndim < 2:
        raise TypeError(f"{name} needs a matrix or a batch of matrices, got {x.str_short()}")
    *batch, m, n = x.shape
    if square and m != n:
        raise ValueError(f"{name} needs square matrices, got {x.str_short()}")
    return tuple(batch), m, n


def check_dtype(name: str, *avals: ShapedArray) -> None:
    for x in avals:
        if x.dtype not in _LAPACK:
            half = (
                is_inexact(x.dtype) and x.dtype.itemsize < 4
            )  # LAPACK has no such routines; the type itself is no mistake
            dtype = getattr(x.dtype, "name", x.dtype)
            raise (NotImplementedError if half else TypeError)(
                f"{name} does not accept dtype {dtype}. Unsupported dtype {dtype}: it needs"
                " float32, float64, complex64 or complex128"
            )
        if x.dtype != avals[0].dtype:
            raise TypeError(
                f"{name} requires arguments of one dtype, got"
                f" {', '.join(a.str_short() for a in avals)}"
            )


def check_batches(name: str, *pairs: tuple[ShapedArray, int]) -> Shape:
    """The common batch shape of operands, each given with the rank that its matrices or vectors
    have."""
    batches = [x.shape[: x.ndim - rank] for x, rank in pairs]
    if any(x.ndim < rank for x, rank in pairs) or any(b != batches[0] for b in batches):
        raise ValueError(
            f"{name}: operands must have equal batch dimensions, got"
            f" {', '.join(x.str_short() for x, _ in pairs)}"
        )
    return batches[0]


def real_dtype(dtype: Any) -> Any:
    return real_part(dtype)


# ---------------------------------------------------------------- meanings


def for_each(
    function: Callable[..., Sequence[np.ndarray]],
    arrays: Sequence[tuple[np.ndarray, int]],
    outs: Sequence[tuple[Shape, Any]],
) -> list[np.ndarray]:
    """`function` for each matrix of the batch. Operands come with the rank of one example, results
    with shape and dtype."""
    batch = arrays[0][0].shape[: arrays[0][0].ndim - arrays[0][1]]
    results = [np.zeros((*batch, *shape), dtype) for shape, dtype in outs]
    for i in np.ndindex(*batch):
        for r, value in zip(results, function(*[a[i] for a, _ in arrays]), strict=True):
            r[i] = value
    return results


# ---------------------------------------------------------------- operations for rules


_HIGHEST: Final = canonical_precision("highest")


def matmul(a: Any, b: Any) -> Any:
    """The product of batches of matrices, as exact as there is on any processor: derivatives of
    factors lose digits otherwise."""
    n = typeof(a).ndim
    batch = tuple(range(n - 2))
    numbers = (((n - 1,), (n - 2,)), (batch, batch))
    return do.dot_general(a, b, dimension_numbers=numbers, precision=_HIGHEST)


def transposed(x: Any) -> Any:
    n = typeof(x).ndim
    return permuted(x, (*range(n - 2), n - 1, n - 2))


def conjugated(x: Any) -> Any:
    dtype = typeof(x).dtype
    return do.conj(x, input_dtype=dtype) if is_complex(dtype) else x


def adjoint(x: Any) -> Any:
    return conjugated(transposed(x))


def position(shape: Shape, axis: int) -> Any:
    """The row (axis -2) or column (axis -1) number of each element."""
    return do.iota(dtype=INT, shape=shape, dimension=len(shape) + axis)


def below(shape: Shape, k: int = 0) -> Any:
    """Where in the matrices of this shape an element stands on or below diagonal `k`."""
    row = position(shape, -2)
    return do.ge(do.add(row, np.asarray(k, INT)) if k else row, position(shape, -1))


def tril(x: Any, k: int = 0) -> Any:
    """The lower triangles, with diagonal `k`."""
    return do.select_n(below(typeof(x).shape, k), zeros_like(x), x)


def triu(x: Any, k: int = 0) -> Any:
    """The upper triangles, with diagonal `k`."""
    return do.select_n(below(typeof(x).shape, k - 1), x, zeros_like(x))


def zeros_like(x: Any) -> Any:
    aval = typeof(x)
    return common.zeros(ShapedArray(aval.shape, aval.dtype))


def eye(aval: ShapedArray, n: int | None = None, start: int = 0) -> Any:
    """Identity matrices for the batch of `aval`, with zeros before row `start`."""
    size = aval.shape[-1] if n is None else n
    shape = (*aval.shape[:-2], size, size)
    where = do.eq(position(shape, -2), position(shape, -1))
    if start:
        begun = do.broadcast_in_dim(np.asarray(start, INT), shape=shape, broadcast_dimensions=())
        where = do.and_(where, do.ge(position(shape, -2), begun))
    return do.convert_element_type(where, new_dtype=aval.dtype)


def diagonal(x: Any) -> Any:
    """The diagonals of square matrices."""
    aval = typeof(x)
    return do.reduce_sum(do.mul(x, eye(aval)), axes=(aval.ndim - 1,))


def rows(v: Any, n: int) -> Any:
    """Vectors as matrices of `n` equal rows: [i, j] is v[j]."""
    shape = typeof(v).shape
    dims = (*range(len(shape) - 1), len(shape))
    return do.broadcast_in_dim(v, shape=(*shape[:-1], n, shape[-1]), broadcast_dimensions=dims)


def columns(v: Any, n: int) -> Any:
    """Vectors as matrices of `n` equal columns: [i, j] is v[i]."""
    shape = typeof(v).shape
    return do.broadcast_in_dim(v, shape=(*shape, n), broadcast_dimensions=tuple(range(len(shape))))


def real(x: Any) -> Any:
    return do.real(x) if is_complex(typeof(x).dtype) else x


def as_dtype(x: Any, dtype: Any) -> Any:
    if typeof(x).dtype == dtype:
        return x
    return do.convert_element_type(x, new_dtype=dtype)


def scaled(x: Any, factor: float) -> Any:
    return do.mul(x, scalar_of(typeof(x).dtype, factor))


def part(x: Any, m: int, n: int, top: int = 0, left: int = 0) -> Any:
    """The block of `m` rows and `n` columns that begins at (top, left)."""
    shape = typeof(x).shape
    if (m, n, top, left) == (*shape[-2:], 0, 0):
        return x
    zeros = (0,) * (len(shape) - 2)
    limits = (*shape[:-2], top + m, left + n)
    return do.slice(x, start_indices=(*zeros, top, left), limit_indices=limits)


def enlarged(x: Any, m: int, n: int) -> Any:
    """Matrices grown with zeros to `m` rows and `n` columns."""
    aval = typeof(x)
    if aval.shape[-2:] == (m, n):
        return x
    config = (
        *[(0, 0, 0)] * (aval.ndim - 2),
        (0, m - aval.shape[-2], 0),
        (0, n - aval.shape[-1], 0),
    )
    return do.pad(x, common.scalar_of(aval.dtype, 0), padding_config=config)


def take_rows(x: Any, order: Any) -> Any:
    """The rows of each matrix in the order that a batch of permutations says."""
    shape = typeof(x).shape
    b, n = len(shape) - 2, typeof(order).shape[-1]
    batch = tuple(range(b))
    indices = do.broadcast_in_dim(
        order, shape=(*shape[:-2], n, 1), broadcast_dimensions=(*batch, b)
    )
    return do.gather(
        x,
        indices,
        dimension_numbers=GatherDimensionNumbers((b + 1,), (b,), (b,), batch, batch),
        slice_sizes=(*(min(d, 1) for d in shape[:-2]), min(shape[-2], 1), shape[-1]),
        unique_indices=True,
        indices_are_sorted=False,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
        fill_value=None,
    )


def solve_triangular(
    a: Any,
    b: Any,
    *,
    left: bool = True,
    lower: bool = True,
    transpose: bool = False,
    conjugate: bool = False,
    unit: bool = False,
) -> Any:
    return do.triangular_solve(
        a,
        b,
        left_side=left,
        lower=lower,
        transpose_a=transpose,
        conjugate_a=conjugate,
        unit_diagonal=unit,
    )


def solve(a: Any, b: Any) -> Any:
    """The solution of square systems, by LU."""
    lu, _, permutation = do.lu(a)
    x = solve_triangular(lu, take_rows(b, permutation), unit=True)
    return solve_triangular(lu, x, lower=False)


# ---------------------------------------------------------------- rules


def batched(name: str) -> Callable[..., Any]:
    """The batching rule of primitives that take batches themselves: the new dimension becomes the
    first."""

    def batch(args: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        prim = REGISTRY[name]
        size = batch_size(args, dims)
        out = prim.bind(*[front(x, d, size) for x, d in zip(args, dims)], **params)
        return (out, [0] * len(out)) if prim.multiple_results else (out, 0)

    return batch


def jvp_by_program(name: str, program: Callable[..., Any]) -> Callable[..., Any]:
    """The jvp of a primitive through another program for the same thing, made of primitives that
    have derivatives."""

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[Any, Any]:
        out = REGISTRY[name].bind(*primals, **params)
        if all(type(t) is Zero for t in tangents):
            return out, zero_like(out)
        closed = trace_to_jaxpr(lambda *xs: [program(*xs, **params)], [typeof(p) for p in primals])
        _, (tangent,) = jvp_scalars(closed.jaxpr, closed.consts, primals, tangents)
        return out, instantiate(tangent)

    return jvp
