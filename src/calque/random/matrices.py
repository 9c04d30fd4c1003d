"""Random vectors with a covariance, random orthogonal matrices."""

from typing import Any

from calque import numpy as jnp
from calque.core.arrays import Array
from calque.core.dtypes import asked, canonicalize, is_complex, is_inexact
from calque.core.trace import typeof
from calque.core.types import ArrayLike, DTypeLike, ShapeLike
from calque.numpy.creation import canonical_shape, placed
from calque.numpy.promotion import broadcast_shapes, check_arraylike, convert, promote_inexact
from calque.numpy.signatures import OutSharding
from calque.random.distributions import normal
from calque.random.keys import wrapped


@placed
def multivariate_normal(
    key: ArrayLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Draws normal vectors.

    Args:
        key: A random key.
        mean: Their mean, along the last axis.
        cov: Their covariance, a matrix or a batch of them.
        shape: The shape of the batch of vectors; None takes that of the parameters together.
        dtype: A floating-point dtype; None takes that of the parameters.
        method: How the root of the covariance is found: "cholesky", "svd" or "eigh".
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array of shape (*shape, mean.shape[-1]).

    >>> jax.random.multivariate_normal(jax.random.key(0), jnp.zeros(2), jnp.eye(2), (3,)).shape
    (3, 2)"""
    typed, _ = wrapped(key, "multivariate_normal")
    check_arraylike("multivariate_normal", mean, cov)
    mean, cov = promote_inexact(mean, cov)
    d = typeof(mean).dtype if dtype is None else asked(dtype)
    mean, cov = convert(mean, d), convert(cov, d)
    if method not in ("svd", "eigh", "cholesky"):
        raise ValueError("method must be one of {'svd', 'eigh', 'cholesky'}")
    if not is_inexact(d) or is_complex(d):
        raise ValueError(
            f"dtype argument to `multivariate_normal` must be a float dtype, got {d.name}"
        )
    rows, square = typeof(mean).shape, typeof(cov).shape
    if not rows:
        raise ValueError("multivariate_normal requires mean.ndim >= 1, got mean.ndim == 0")
    if len(square) < 2:
        raise ValueError(
            f"multivariate_normal requires cov.ndim >= 2, got cov.ndim == {len(square)}"
        )
    n = rows[-1]
    if square[-2:] != (n, n):
        raise ValueError(
            f"multivariate_normal requires cov.shape == (..., n, n) for n={n}, but got cov.shape =="
            f" {square}."
        )
    common = broadcast_shapes("multivariate_normal", rows[:-1], square[:-2])
    lead = common if shape is None else canonical_shape(shape)
    if broadcast_shapes("multivariate_normal", common, lead) != lead:
        raise ValueError(
            f"multivariate_normal: parameters of batch shape {common} do not broadcast to shape"
            f" {lead}"
        )
    z = normal(typed, (*lead, n), d)
    moved = jnp.squeeze(jnp.matmul(_root(cov, method), jnp.expand_dims(z, -1)), -1)
    return moved + mean


def _root(cov: Any, method: str) -> Any:
    """A matrix whose product with its transpose is the covariance."""
    if method == "cholesky":
        return jnp.linalg.cholesky(cov)
    if method == "svd":
        vectors, values, _ = jnp.linalg.svd(cov)
    else:
        values, vectors = jnp.linalg.eigh(cov)
    return vectors * jnp.expand_dims(jnp.sqrt(values), -2)


@placed
def orthogonal(
    key: ArrayLike,
    n: int,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    m: int | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Draws evenly distributed orthogonal matrices; unitary ones for a complex dtype.

    Args:
        key: A random key.
        n: The number of rows.
        shape: The shape of the batch of matrices.
        dtype: A floating-point or complex dtype; None means float32 (float64 where enabled).
        m: The number of columns; None means `n`. Of the longer side, rows or columns are
            orthonormal.
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array of shape (*shape, n, m).

    >>> jax.random.orthogonal(jax.random.key(0), 3, (2,)).shape
    (2, 3, 3)"""
    typed, _ = wrapped(key, "orthogonal")
    d = canonicalize(float) if dtype is None else asked(dtype)
    if not is_inexact(d):
        raise ValueError(
            f"dtype argument to `orthogonal` must be a float or complex dtype, got {d.name}"
        )
    lead = canonical_shape(shape)
    (rows,), (columns,) = canonical_shape(n), canonical_shape(n if m is None else m)
    z = normal(typed, (*lead, max(rows, columns), min(rows, columns)), d)
    q, r = jnp.linalg.qr(z)
    diag = jnp.diagonal(r, axis1=-2, axis2=-1)
    out = q * jnp.expand_dims(jnp.sign(diag), -2)
    return out if rows >= columns else jnp.matrix_transpose(out)
