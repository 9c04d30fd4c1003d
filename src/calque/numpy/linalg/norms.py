"""Norms of vectors and matrices, condition numbers, ranks. Derivatives at zero vectors are zero,
not nan."""

from __future__ import annotations

from typing import Any

import numpy as np

from calque.core.arrays import Array
from calque.core.dtypes import canonicalize, is_inexact
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike, Axes
from calque.numpy import reductions, ufuncs
from calque.numpy.conversions import asarray
from calque.numpy.linalg.factors import matrices, svd, svdvals
from calque.numpy.linalg.solving import inv
from calque.numpy.promotion import array_of, canonical_axes, convert, promote_inexact
from calque.numpy.reductions import keep
from calque.numpy.shaping import moveaxis, where
from calque.ops.common import scalar_of
from calque.ops.complexes import squared_magnitude

__all__ = ["cond", "matrix_norm", "matrix_rank", "norm", "vector_norm"]


def safe_root(x: Any) -> Any:
    """The square root with derivative 0 at 0."""
    zero = ufuncs.equal(x, scalar_of(typeof(x).dtype, 0))
    one = scalar_of(typeof(x).dtype, 1)
    return where(zero, scalar_of(typeof(x).dtype, 0), do.sqrt(where(zero, one, x)))


def _euclidean(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    return safe_root(reductions.sum(squared_magnitude(x), axis=axes, keepdims=keepdims))


def norm(
    x: ArrayLike,
    ord: int | float | str | None = None,
    axis: Axes | None = None,
    keepdims: bool = False,
) -> Array:
    """The norm of vectors or of matrices.

    Args:
        x: an array.
        ord: which norm. Of vectors a number p, the p-th root of the sum of sizes to the power p;
            `jnp.inf`, `-jnp.inf` and 0 are the largest, the smallest, and how many are not 0. Of
            matrices "fro", "nuc", 1, -1, 2, -2, `jnp.inf` or `-jnp.inf`. None is 2, or "fro".
        axis: the axis of vectors, or the two axes of matrices; None is all of the array.
        keepdims: whether these axes stay, with size 1.
    Returns:
        Real floats.

    >>> jnp.linalg.norm(jnp.array([3.0, 4.0]))
    Array(5., dtype=float32)"""
    (x,) = promote_inexact(array_of("norm", x))
    x = asarray(x)
    if axis is None:
        axes = tuple(range(x.ndim))
        if ord is None or (ord == 2 and x.ndim == 1) or (ord in ("fro", "f") and x.ndim == 2):
            return _euclidean(x, axes, keepdims)
        if x.ndim not in (1, 2):
            raise ValueError(
                f"Improper number of axes for norm: axis={axes}. Pass one axis to compute a vector"
                " norm, or two axes to compute a matrix norm."
            )
    else:
        axes = canonical_axes(axis, x.ndim)
    if len(axes) == 1:
        return _vector_norm(x, 2 if ord is None else ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(x, "fro" if ord is None else ord, axes, keepdims)
    raise ValueError(
        f"Improper number of axes for norm: axis={axes}. Pass one axis to compute a vector norm, or"
        " two axes to compute a matrix norm."
    )


def _vector_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if isinstance(ord, str):
        raise ValueError(
            f"Invalid order '{ord}' for vector norm. The orders are None, inf, -inf and numbers."
        )
    if ord == np.inf:
        return reductions.max(ufuncs.absolute(x), axis=axes, keepdims=keepdims, initial=0)
    if ord == -np.inf:
        return reductions.min(ufuncs.absolute(x), axis=axes, keepdims=keepdims, initial=np.inf)
    if ord == 0:
        return reductions.sum(x != 0, axis=axes, keepdims=keepdims, dtype=x.real.dtype)
    size = ufuncs.absolute(x)
    if ord == 1:
        return reductions.sum(size, axis=axes, keepdims=keepdims)
    if ord == 2:
        return _euclidean(x, axes, keepdims)
    ord = convert(array_of("norm", ord), size.dtype)
    total = reductions.sum(ufuncs.power(size, ord), axis=axes, keepdims=keepdims)
    zero = total == 0
    return where(
        zero,
        scalar_of(total.dtype, 0),
        ufuncs.power(where(zero, scalar_of(total.dtype, 1), total), 1 / ord),
    )


def _matrix_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    row, column = axes
    if ord in ("fro", "f"):
        return _euclidean(x, axes, keepdims)
    if ord in (1, -1, np.inf, -np.inf):
        summed, folded = (row, column) if ord in (1, -1) else (column, row)
        sums = reductions.sum(ufuncs.absolute(x), axis=summed, keepdims=True)
        fold = reductions.max if ord > 0 else reductions.min
        out = fold(sums, axis=folded, keepdims=True, initial=0 if ord > 0 else np.inf)
        return out if keepdims else do.squeeze(out, dimensions=tuple(sorted(axes)))
    if ord in (2, -2, "nuc"):
        s = svd(moveaxis(x, axes, (-2, -1)), compute_uv=False)
        out = (
            reductions.sum(s, axis=-1)
            if ord == "nuc"
            else (
                reductions.max(s, axis=-1, initial=0)
                if ord == 2
                else reductions.min(s, axis=-1, initial=np.inf)
            )
        )
        return keep(out, x.shape, axes, keepdims)
    raise ValueError(
        f"Invalid order '{ord}' for matrix norm. The orders are None, 'fro', 'nuc', 1, -1, 2, -2,"
        " inf and -inf."
    )


def matrix_norm(
    x: ArrayLike, /, *, keepdims: bool = False, ord: int | float | str | None = "fro"
) -> Array:
    """The norm of matrices.

    Args:
        x: matrices in the last two axes.
        keepdims: whether the two axes stay, with size 1.
        ord: which norm, see `norm`.
    Returns:
        Real floats.

    >>> jnp.linalg.matrix_norm(jnp.array([[3.0, 0.0], [0.0, 4.0]]))
    Array(5., dtype=float32)"""
    return norm(x, ord=ord, keepdims=keepdims, axis=(-2, -1))


def vector_norm(
    x: ArrayLike,
    /,
    *,
    axis: Axes | None = None,
    keepdims: bool = False,
    ord: int | float | str | None = 2,
) -> Array:
    """The norm of vectors.

    Args:
        x: an array.
        axis: the axis or axes of the vectors; None is all of the array.
        keepdims: whether these axes stay, with size 1.
        ord: which norm, see `norm`.
    Returns:
        Real floats.

    >>> jnp.linalg.vector_norm(jnp.array([[3.0, 4.0], [6.0, 8.0]]), axis=1)
    Array([ 5., 10.], dtype=float32)"""
    x = array_of("vector_norm", x)
    x = asarray(x if is_inexact(x.dtype) else convert(x, canonicalize(float)))
    return _vector_norm(x, 2 if ord is None else ord, canonical_axes(axis, x.ndim), keepdims)


def cond(x: ArrayLike, p: int | float | str | None = None) -> Array:
    """The condition number of matrices: how much an error may grow in solving with them.

    Args:
        x: matrices in the last two axes.
        p: the norm, see `norm`; None is 2, the ratio of the largest to the smallest singular value.
    Returns:
        Real floats; infinite for singular matrices.

    >>> jnp.linalg.cond(jnp.array([[1.0, 0.0], [0.0, 4.0]]))
    Array(4., dtype=float32)"""
    x = matrices("cond", x)
    if 0 in x.shape[-2:]:
        raise ValueError(f"cond is not defined on empty arrays, got shape {x.shape}")
    if p in (None, 2, -2):
        s = svdvals(x)
        large, small = (s[..., 0], s[..., -1]) if p != -2 else (s[..., -1], s[..., 0])
        out = large / small
    else:
        if x.shape[-1] != x.shape[-2]:
            raise ValueError(f"cond with p={p} takes square matrices, got shape {x.shape}")
        out = matrix_norm(x, ord=p) * matrix_norm(inv(x), ord=p)
    bad = ufuncs.isnan(out) & ufuncs.logical_not(reductions.any(ufuncs.isnan(x), axis=(-2, -1)))
    return where(bad, scalar_of(out.dtype, np.inf), out)


def matrix_rank(
    M: ArrayLike,
    rtol: ArrayLike | None = None,
    *,
    hermitian: bool = False,
    tol: ArrayLike | None = None,
) -> Array:
    """The rank of matrices: how many singular values are not negligible.

    Args:
        M: matrices in the last two axes.
        rtol: what is negligible, as part of the largest; None is the larger size times the
            precision of the dtype.
        hermitian: whether the matrices are Hermitian, which is quicker.
        tol: what is negligible, as a number; it takes the place of `rtol`.
    Returns:
        Integers.

    >>> jnp.linalg.matrix_rank(jnp.array([[1.0, 2.0], [2.0, 4.0]]))
    Array(1, dtype=int32)"""
    (x,) = promote_inexact(array_of("matrix_rank", M))
    if typeof(x).ndim < 2:
        return convert(reductions.any(x != 0), np.dtype("int32"))
    if tol is not None and rtol is not None:
        raise ValueError("matrix_rank: only one of tol or rtol may be specified.")
    x = matrices("matrix_rank", x)
    s = svd(x, compute_uv=False, hermitian=hermitian)
    if tol is not None:
        limit = convert(array_of("matrix_rank", tol), s.dtype)[..., None]
    else:
        share: Any = max(x.shape[-2:]) * float(np.finfo(s.dtype).eps) if rtol is None else rtol
        limit = (
            reductions.max(s, axis=-1, keepdims=True, initial=0)
            * convert(array_of("matrix_rank", share), s.dtype)[..., None]
        )
    return reductions.sum(s > limit, axis=-1, dtype=canonicalize(int))
