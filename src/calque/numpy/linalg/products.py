"""Products of vectors and matrices, in the names of `numpy.linalg`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex

import numpy as np

from calque.core.arrays import Array
from calque.core.dims import whole
from calque.core.trace import typeof
from calque.core.types import ArrayLike, DTypeLike
from calque.numpy import contractions
from calque.numpy.contractions import dot, vecdot
from calque.numpy.creation import placed
from calque.numpy.joining import concatenate
from calque.numpy.linalg.solving import inv
from calque.numpy.matrices import eye
from calque.numpy.promotion import (
    array_of,
    broadcast_shapes,
    broadcast_to,
    canonical_axis,
    convert,
    promote_dtypes,
)
from calque.numpy.promotion import arrays as operands
from calque.numpy.shaping import matrix_transpose, moveaxis
from calque.numpy.signatures import OutSharding
from calque.ops.dimension_numbers import PrecisionLike

__all__ = [
    "cross", "diagonal", "matmul", "matrix_power", "matrix_transpose", "multi_dot", "outer",
    "tensordot", "trace", "vecdot",
]  # fmt: skip


def cross_product(
    a: ArrayLike,
    b: ArrayLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Array:
    """The vector product.

    Args:
        a: vectors of 2 or 3 components.
        b: vectors of 2 or 3 components. Other axes broadcast.
        axisa: the axis of the components in `a`.
        axisb: the axis of the components in `b`.
        axisc: where it stands in the result.
        axis: the axis in all three, which takes the place of the others; None leaves it to them.
    Returns:
        Vectors; numbers if all have 2 components.

    >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)"""
    a, b = operands("cross", a, b)
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = moveaxis(a, axisa, -1), moveaxis(b, axisb, -1)
    if a.shape[-1] not in (2, 3) or b.shape[-1] not in (2, 3):
        raise ValueError(
            f"Dimension must be either 2 or 3 for cross product, got shapes {a.shape} and {b.shape}"
        )
    a, b = promote_dtypes(a, b)
    lead = broadcast_shapes("cross", a.shape[:-1], b.shape[:-1])
    a, b = broadcast_to(a, (*lead, a.shape[-1])), broadcast_to(b, (*lead, b.shape[-1]))
    if a.shape[-1] == 2 and b.shape[-1] == 2:
        return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    if a.shape[-1] == 2:
        a = concatenate([a, np.zeros((*lead, 1), a.dtype)], axis=-1)
    if b.shape[-1] == 2:
        b = concatenate([b, np.zeros((*lead, 1), b.dtype)], axis=-1)
    x, y = [a[..., i] for i in range(3)], [b[..., i] for i in range(3)]
    parts = [x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]]
    made = convert(concatenate([p[..., None] for p in parts], axis=-1), a.dtype)
    return moveaxis(made, -1, axisc)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The vector product.

    Args:
        x1: vectors of 3 components.
        x2: vectors of 3 components. Other axes broadcast.
        axis: the axis of the components.
    Returns:
        Vectors.

    >>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)"""
    x1, x2 = operands("linalg.cross", x1, x2)
    if x1.shape[canonical_axis(axis, x1.ndim)] != 3 or x2.shape[canonical_axis(axis, x2.ndim)] != 3:
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, but they have shapes"
            f" {x1.shape} and {x2.shape} (axis {axis})"
        )
    return cross_product(x1, x2, axis=axis)


def matmul(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The matrix product, `x1 @ x2`.

    Args:
        x1: a vector, or matrices in the last two axes.
        x2: a vector, or matrices in the last two axes. Axes before them broadcast.
        precision: of the products, see `lax.Precision`; None is the default.
        preferred_element_type: the dtype to add in and to return; None is the dtype of both
            together.
    Returns:
        The products; the axis of a vector is not in it.

    >>> jnp.linalg.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)"""
    return contractions.matmul(
        x1, x2, precision=precision, preferred_element_type=preferred_element_type
    )


@placed
def tensordot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axes: SupportsIndex | Sequence[SupportsIndex] | Sequence[Sequence[SupportsIndex]] = 2,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: OutSharding = None,
) -> Array:
    """Sums of products over pairs of axes.

    Args:
        x1: an array.
        x2: an array.
        axes: how many of the last axes of `x1` are paired with the first ones of `x2`; or two
            sequences, of axes of `x1` and of `x2`.
        precision: of the products, see `lax.Precision`; None is the default.
        preferred_element_type: the dtype to add in and to return; None is the dtype of both
            together.
        out_sharding: how the result lies on a mesh with explicit axes; None leaves it open.
    Returns:
        An array with the other axes of `x1` and then those of `x2`.

    >>> jnp.linalg.tensordot(jnp.ones((2, 3)), jnp.ones((3, 4)), axes=1).shape
    (2, 4)"""
    return contractions.tensordot(
        x1, x2, axes, precision=precision, preferred_element_type=preferred_element_type
    )


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """All products of an element of one vector with an element of another.

    Args:
        x1, x2: vectors; other arrays are refused.
    Returns:
        A matrix.

    >>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([10, 20]))
    Array([[10, 20],
           [20, 40]], dtype=int32)"""
    x1, x2 = operands("linalg.outer", x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(
            f"Input arrays must be one-dimensional, but they are {x1.ndim=} {x2.ndim=}."
        )
    return x1[:, None] * x2[None, :]


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """A diagonal of matrices.

    Args:
        x: matrices in the last two axes.
        offset: the diagonal: 0 is the main one, positive ones lie above it.
    Returns:
        An array whose last axis is the diagonal.

    >>> jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)"""
    return contractions.diagonal(x, offset=offset, axis1=-2, axis2=-1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The sum of a diagonal of matrices.

    Args:
        x: matrices in the last two axes.
        offset: the diagonal: 0 is the main one, positive ones lie above it.
        dtype: of the sum; None is that of `x`, the default integer dtype for bools and small
            integers.
    Returns:
        An array without the two axes.

    >>> jnp.linalg.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)"""
    return contractions.trace(x, offset=offset, axis1=-2, axis2=-1, dtype=dtype)


def matrix_power(a: ArrayLike, n: int) -> Array:
    """Square matrices to a whole power, by repeated squaring.

    Args:
        a: matrices in the last two axes.
        n: the power; a negative one inverts first.
    Returns:
        Matrices.

    >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [0, 1]]), 5)
    Array([[1, 5],
           [0, 1]], dtype=int32)"""
    a = array_of("matrix_power", a)
    if a.ndim < 2:
        raise TypeError(f"{a.ndim}-dimensional array given. Array must be at least two-dimensional")
    if a.shape[-2] != a.shape[-1]:
        raise TypeError(f"Last 2 dimensions of the array must be square, got shape {a.shape}")
    try:
        n = whole(n, "matrix_power: n")
    except TypeError as e:
        raise TypeError(f"exponent must be an integer, got {n}") from e
    if n == 0:
        return broadcast_to(eye(a.shape[-1], dtype=a.dtype), a.shape)
    if n < 0:
        a, n = inv(a), -n
    out: Any = None
    while n:
        n, odd = divmod(n, 2)
        if odd:
            out = a if out is None else matmul(out, a)
        if n:
            a = matmul(a, a)
    return out


def multi_dot(arrays: Sequence[ArrayLike], *, precision: PrecisionLike = None) -> Array:
    """The product of several matrices, in the order that takes the fewest multiplications.

    Args:
        arrays: the matrices, two at least; the first and the last may be vectors.
        precision: of the products, see `lax.Precision`; None is the default.
    Returns:
        Their product.

    >>> jnp.linalg.multi_dot([jnp.ones((2, 3)), jnp.ones((3, 4)), jnp.ones(4)])
    Array([12., 12.], dtype=float32)"""
    xs = operands("multi_dot", *arrays)
    if len(xs) < 2:
        raise ValueError(f"multi_dot requires at least two arrays; got len(arrays)={len(xs)}")
    for i, x in enumerate(xs):
        if x.ndim != 2 and not (x.ndim == 1 and i in (0, len(xs) - 1)):
            raise ValueError(
                "multi_dot: arrays must all be two-dimensional (except first and last which may be"
                f" one); got shapes {[x.shape for x in xs]}"
            )
    xs = promote_dtypes(*xs)
    shapes = [typeof(x).shape for x in xs]
    sizes = [
        1 if len(shapes[0]) == 1 else shapes[0][0],
        *[s[0] for s in shapes[1:]],
        1 if len(shapes[-1]) == 1 else shapes[-1][1],
    ]
    for i in range(len(xs) - 1):
        if shapes[i][-1] != shapes[i + 1][0]:
            raise ValueError(
                "multi_dot: last dimension of each array must match first dimension of following"
                f" array; got array shapes {shapes}"
            )
    return _product(xs, cheapest(sizes), 0, len(xs) - 1, precision)


def cheapest(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """For each run of matrices, after which one to split it: the least number of multiplications
    (sizes[i] by sizes[i + 1])."""
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    split: dict[tuple[int, int], int] = {}
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            best = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )
            cost[i, j], split[i, j] = best
    return split


def _product(
    xs: Sequence[Any], split: dict[tuple[int, int], int], i: int, j: int, precision: Any
) -> Any:
    if i == j:
        return xs[i]
    k = split[i, j]
    return dot(
        _product(xs, split, i, k, precision),
        _product(xs, split, k + 1, j, precision),
        precision=precision,
    )
