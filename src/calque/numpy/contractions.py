"""Products that sum over axes: dot, matmul, tensordot, inner, outer, vdot."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from calque.core.arrays import Array
from calque.core.dims import whole
from calque.core.dtypes import as_dtype
from calque.core.extents import larger, smaller
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike, DTypeLike
from calque.numpy import ufuncs
from calque.numpy.creation import placed
from calque.numpy.promotion import (
    as_operand,
    broadcast_shapes,
    broadcast_to,
    canonical_axes,
    canonical_axis,
    check_arraylike,
    common_type,
    convert,
    product_operands,
    promote_dtypes,
    refuse_out,
    result_dtype,
)
from calque.numpy.shaping import expand_dims, moveaxis, ravel, reshape
from calque.numpy.signatures import OutSharding
from calque.ops.dimension_numbers import PrecisionLike, canonical_precision
from calque.ops.sizes import places

Dims = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]


def contract(a: Any, b: Any, dims: Dims, precision: Any, preferred: Any) -> Any:
    """dot_general of two operands; the result has the dtype preferred, or theirs together."""
    dtype, weak = typeof(a).dtype, typeof(a).weak_type and typeof(b).weak_type
    if dtype != typeof(b).dtype:
        dtype, weak = common_type(a, b)
    weak = weak and preferred is None
    (ca, cb), (ba, bb) = dims
    numbers = ((tuple(ca), tuple(cb)), (tuple(ba), tuple(bb)))
    precision = canonical_precision(precision)
    if dtype == np.dtype(bool):
        whole = (convert(a, np.dtype("int32")), convert(b, np.dtype("int32")))
        if preferred is None:
            return do.ne(contract(*whole, dims, precision, None), np.zeros((), np.int32))
        a, b = whole
    target = result_dtype(preferred, dtype)
    out = do.dot_general(
        a,
        b,
        dimension_numbers=numbers,
        precision=precision,
        preferred_element_type=target,
    )
    return do.convert_element_type(out, new_dtype=target, weak_type=True) if weak else out


def operands(name: str, a: Any, b: Any) -> list[Array]:
    check_arraylike(name, a, b)
    return promote_dtypes(as_operand(a), as_operand(b))


def factors(name: str, a: Any, b: Any, preferred: Any) -> list[Array]:
    """Operands of a sum of products."""
    check_arraylike(name, a, b)
    a, b = as_operand(a), as_operand(b)
    return product_operands(a, b) if preferred is None else promote_dtypes(a, b)


def _scaled(a: Any, b: Any, preferred: Any) -> Array:
    """A sum of a single product: of a number, with whatever the other operand is."""
    if preferred is not None:
        a, b = (convert(x, as_dtype(preferred)) for x in (a, b))
    return ufuncs.multiply(a, b)


@placed
def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The dot product: for vectors the sum of products, for matrices the matrix product.

    Args:
        a: an array; its last axis is summed over.
        b: an array; its second to last axis is summed over, or its only one.
        precision: of the products, see `lax.Precision`; None is the default.
        preferred_element_type: the dtype to add in and to return; None is the dtype of both
            together.
        out_sharding: how the result lies on a mesh with explicit axes; None leaves it open.
    Returns:
        An array with the other axes of `a` and then those of `b`; a plain product if one is a
        number.
    Differs from NumPy:
        There is no `out`.

    >>> jnp.dot(jnp.arange(3), jnp.arange(3))
    Array(5, dtype=int32)"""
    a, b = factors("dot", a, b, preferred_element_type)
    na, nb = typeof(a).ndim, typeof(b).ndim
    if na == 0 or nb == 0:
        return _scaled(a, b, preferred_element_type)
    ka, kb = na - 1, max(0, nb - 2)
    check_sizes("dot", a, b, ka, kb)
    return contract(a, b, (((ka,), (kb,)), ((), ())), precision, preferred_element_type)


def check_sizes(name: str, a: Any, b: Any, ka: int, kb: int) -> None:
    sa, sb = typeof(a).shape, typeof(b).shape
    if sa[ka] != sb[kb]:
        raise TypeError(
            f"{name} got incompatible shapes for contraction: {sa} and {sb}: dot_general requires"
            f" contracting dimensions to have the same shape, got ({sa[ka]},) and ({sb[kb]},)."
            f" They are axis {ka} of the first operand and axis {kb} of the second."
        )


@placed
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """The matrix product, `a @ b`.

    Args:
        a: a vector, or matrices in the last two axes.
        b: a vector, or matrices in the last two axes. Axes before them broadcast.
        precision: of the products, see `lax.Precision`; None is the default.
        preferred_element_type: the dtype to add in and to return; None is the dtype of both
            together.
        out_sharding: how the result lies on a mesh with explicit axes; None leaves it open.
    Returns:
        The products; the axis of a vector is not in it. Numbers are refused.
    Differs from NumPy:
        There is no `out`, `dtype`, `axes` or `where`.

    >>> jnp.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)"""
    a, b = factors("matmul", a, b, preferred_element_type)
    sa, sb = typeof(a).shape, typeof(b).shape
    if not sa or not sb:
        raise ValueError(
            f"matmul input operands must have ndim at least 1, but got shapes {sa} and {sb}; use"
            " multiply for scalars"
        )
    ka, kb = len(sa) - 1, max(0, len(sb) - 2)
    check_sizes("matmul", a, b, ka, kb)
    batch_a, batch_b = sa[:-2], sb[:-2]
    if not batch_a and not batch_b:
        return contract(a, b, (((ka,), (kb,)), ((), ())), precision, preferred_element_type)
    if not batch_b:
        return contract(a, b, (((ka,), (kb,)), ((), ())), precision, preferred_element_type)
    batch = broadcast_shapes("matmul", batch_a, batch_b)
    ones = tuple(
        i
        for i, (m, n) in enumerate(zip(batch_a, batch_b))
        if type(m) is type(n) is int and m == n == 1
    )
    if ones and len(batch_a) == len(batch_b):  # a product without them
        a, b = (do.squeeze(x, dimensions=ones) for x in (a, b))
        out = matmul(a, b, precision=precision, preferred_element_type=preferred_element_type)
        return expand_dims(out, ones)
    if not batch_a:
        out = contract(a, b, (((ka,), (kb,)), ((), ())), precision, preferred_element_type)
        return moveaxis(out, 0, -2) if len(sa) == 2 else out
    a, b = broadcast_to(a, batch + sa[len(batch_a) :]), broadcast_to(b, batch + sb[len(batch_b) :])
    n = len(batch)
    dims = ((typeof(a).ndim - 1,), (typeof(b).ndim - 2,))
    lead = tuple(range(n))
    return contract(a, b, (dims, (lead, lead)), precision, preferred_element_type)


def vdot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The dot product of two flattened arrays, the first one conjugated.

    Args:
        a: an array.
        b: an array of as many elements.
        precision: of the products, see `lax.Precision`; None is the default.
        preferred_element_type: the dtype to add in and to return; None is the dtype of both
            together.
    Returns:
        A number.

    >>> jnp.vdot(jnp.array([1j, 2.0]), jnp.array([1.0, 1.0]))
    Array(2.-1.j, dtype=complex64)"""
    check_arraylike("vdot", a, b)
    return dot(
        ravel(ufuncs.conjugate(a)),
        ravel(b),
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Dot products of vectors along an axis, the first ones conjugated.

    Args:
        x1: an array.
        x2: an array with the same size along the axis; other axes broadcast.
        axis: the axis of the vectors in both.
        precision: of the products, see `lax.Precision`; None is the default.
        preferred_element_type: the dtype to add in and to return; None is the dtype of both
            together.
    Returns:
        An array without the axis.

    >>> jnp.vecdot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)"""
    check_arraylike("vecdot", x1, x2)
    a, b = moveaxis(ufuncs.conjugate(x1), axis, -1), moveaxis(x2, axis, -1)
    rows = reshape(a, (*a.shape[:-1], 1, a.shape[-1]))
    columns = reshape(b, (*b.shape, 1))
    return matmul(
        rows, columns, precision=precision, preferred_element_type=preferred_element_type
    )[..., 0, 0]


def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Products of matrices with vectors.

    Args:
        x1: matrices in the last two axes.
        x2: vectors in the last axis. Axes before them broadcast.
    Returns:
        Vectors in the last axis.

    >>> jnp.matvec(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)"""
    a, b = operands("matvec", x1, x2)
    if typeof(a).ndim < 2 or typeof(b).ndim < 1:
        raise ValueError(
            f"matvec takes matrices and vectors, got shapes {typeof(a).shape} and {typeof(b).shape}"
        )
    return matmul(a, reshape(b, (*typeof(b).shape, 1)))[..., 0]


def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Products of vectors, which are conjugated, with matrices.

    Args:
        x1: vectors in the last axis.
        x2: matrices in the last two axes. Axes before them broadcast.
    Returns:
        Vectors in the last axis.

    >>> jnp.vecmat(jnp.array([1, 1]), jnp.array([[1, 2], [3, 4]]))
    Array([4, 6], dtype=int32)"""
    a, b = operands("vecmat", x1, x2)
    if typeof(a).ndim < 1 or typeof(b).ndim < 2:
        raise ValueError(
            f"vecmat takes vectors and matrices, got shapes {typeof(a).shape} and {typeof(b).shape}"
        )
    a = ufuncs.conjugate(a)
    return matmul(reshape(a, (*typeof(a).shape[:-1], 1, typeof(a).shape[-1])), b)[..., 0, :]


def inner(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Sums of products over the last axes of two arrays.

    Args:
        a: an array.
        b: an array with the same last size, or a number.
        precision: of the products, see `lax.Precision`; None is the default.
        preferred_element_type: the dtype to add in and to return; None is the dtype of both
            together.
    Returns:
        An array with the other axes of `a` and then those of `b`.

    >>> jnp.inner(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)"""
    a, b = factors("inner", a, b, preferred_element_type)
    na, nb = typeof(a).ndim, typeof(b).ndim
    if na == 0 or nb == 0:
        return _scaled(a, b, preferred_element_type)
    check_sizes("inner", a, b, na - 1, nb - 1)
    return contract(a, b, (((na - 1,), (nb - 1,)), ((), ())), precision, preferred_element_type)


def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """All products of an element of one array with an element of another.

    Args:
        a: an array, which is flattened.
        b: an array, which is flattened.
        out: must be None: arrays are immutable.
    Returns:
        An array of shape (elements of `a`, elements of `b`).

    >>> jnp.outer(jnp.array([1, 2]), jnp.array([10, 20, 30]))
    Array([[10, 20, 30],
           [20, 40, 60]], dtype=int32)"""
    refuse_out("outer", out)
    check_arraylike("outer", a, b)
    return ufuncs.multiply(reshape(a, (-1, 1)), reshape(b, (1, -1)))


@placed
def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: SupportsIndex | Sequence[SupportsIndex] | Sequence[Sequence[SupportsIndex]] = 2,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Sums of products over pairs of axes.

    Args:
        a: an array.
        b: an array.
        axes: how many of the last axes of `a` are paired with the first ones of `b`; or two
            sequences, of axes of `a` and of `b`.
        precision: of the products, see `lax.Precision`; None is the default.
        preferred_element_type: the dtype to add in and to return; None is the dtype of both
            together.
        out_sharding: how the result lies on a mesh with explicit axes; None leaves it open.
    Returns:
        An array with the other axes of `a` and then those of `b`.

    >>> jnp.tensordot(jnp.ones((2, 3)), jnp.ones((3, 4)), axes=1).shape
    (2, 4)"""
    a, b = factors("tensordot", a, b, preferred_element_type)
    na, nb = typeof(a).ndim, typeof(b).ndim
    given: Any = axes
    try:
        n = operator.index(given)
    except TypeError:
        if isinstance(given, str) or not hasattr(given, "__len__") or len(given) != 2:
            raise TypeError(
                "tensordot axes argument must be an int, a pair of ints, or a pair of lists of"
                f" ints, got {axes!r}"
            ) from None
        pair = [
            tuple(v) if hasattr(v, "__len__") and not isinstance(v, str) else (v,) for v in given
        ]
        if any(isinstance(i, str) for v in pair for i in v):
            raise TypeError(
                "tensordot requires both axes lists to be either ints, tuples or lists, got"
                f" {axes!r}"
            ) from None
        if len(pair[0]) != len(pair[1]):
            raise TypeError(
                f"tensordot requires axes lists to have equal length, got {axes}"
            ) from None
        ca, cb = canonical_axes(pair[0], na), canonical_axes(pair[1], nb)
    else:
        if n > min(na, nb):
            raise TypeError(
                f"Number of tensordot axes (axes {n}) exceeds input ranks ({typeof(a).shape} and"
                f" {typeof(b).shape})"
            )
        ca, cb = tuple(range(na - n, na)), tuple(range(n))
    for i, j in zip(ca, cb):
        check_sizes("tensordot", a, b, i, j)
    return contract(a, b, ((ca, cb), ((), ())), precision, preferred_element_type)


def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """The Kronecker product: each element of one array times the whole other.

    Args:
        a: an array.
        b: an array; the one with fewer axes gets new first ones.
    Returns:
        An array whose sizes are multiplied.

    >>> jnp.kron(jnp.array([1, 10]), jnp.array([1, 2]))
    Array([ 1,  2, 10, 20], dtype=int32)"""
    a, b = operands("kron", a, b)
    rank = max(typeof(a).ndim, typeof(b).ndim)
    a, b = (reshape(x, (1,) * (rank - typeof(x).ndim) + typeof(x).shape) for x in (a, b))
    wide_a = reshape(a, tuple(n for d in a.shape for n in (d, 1)))
    wide_b = reshape(b, tuple(n for d in b.shape for n in (1, d)))
    return reshape(ufuncs.multiply(wide_a, wide_b), tuple(p * q for p, q in zip(a.shape, b.shape)))


def trace(
    a: ArrayLike,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """The sum of a diagonal.

    Args:
        a: an array with at least two axes.
        offset: the diagonal: 0 is the main one, positive ones lie above it.
        axis1, axis2: the axes of the matrices.
        dtype: of the sum; None is that of `a`, the default integer dtype for bools and small
            integers.
        out: must be None: arrays are immutable.
    Returns:
        An array without the two axes.

    >>> jnp.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)"""
    refuse_out("trace", out)
    return diagonal(a, offset, axis1, axis2).sum(-1, dtype=dtype)


def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """A diagonal of matrices.

    Args:
        a: an array with at least two axes.
        offset: the diagonal: 0 is the main one, positive ones lie above it.
        axis1, axis2: the axes of the matrices.
    Returns:
        An array without the two axes, and with the diagonal as the last.
    Differs from NumPy:
        It is a value, not a view.

    >>> jnp.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)"""
    check_arraylike("diagonal", a)
    n = typeof(a).ndim
    i, j = canonical_axis(axis1, n), canonical_axis(axis2, n)
    if i == j:
        raise ValueError(f"axis1 and axis2 can not be same, got {axis1} and {axis2}")
    a = moveaxis(as_operand(a), (i, j), (-2, -1))
    rows, columns = a.shape[-2:]
    offset = whole(offset, "offset")
    if type(rows) is int and type(columns) is int:
        offset = min(max(offset, -rows), columns)
    size = larger(
        smaller(rows, columns - offset) if offset >= 0 else smaller(rows + offset, columns), 0
    )
    k = places(size)
    return a[..., k + max(0, -offset), k + max(0, offset)]
