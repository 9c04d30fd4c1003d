"""Distributions of vectors: multivariate normal, Dirichlet."""

import math
from typing import Any

import numpy as np

from calque import numpy as jnp
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.numpy import linalg
from calque.numpy.promotion import check_arraylike, promote_inexact
from calque.ops.linalg.factors import triangular_solve
from calque.scipy import special as sp
from calque.scipy.stats.signatures import OfDirichlet, OfNormal
from calque.scipy.stats.tables import Continuous


def _normal_logpdf(x: Any, mean: Any, cov: Any, allow_singular: None = None) -> Any:
    """The logarithm of the density of the normal distribution of vectors.

    Args:
        x: vectors along the last axis.
        mean: their mean.
        cov: the covariance matrix, or one variance for all components.
        allow_singular: must be None.
    Returns:
        Logarithms; nan where the matrix is not positive-definite.
    Differs from SciPy:
        Singular matrices are refused: add a small multiple of the identity.

    >>> round(float(stats.multivariate_normal.logpdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2))), 3)
    -1.838"""
    if allow_singular is not None:
        raise NotImplementedError(
            "allow_singular argument of multivariate_normal.logpdf: add a small multiple of the"
            " identity to the covariance"
        )
    check_arraylike("multivariate_normal.logpdf", x, mean, cov)
    x, mean, cov = (jnp.asarray(a) for a in promote_inexact(x, mean, cov))
    if not mean.shape:
        return -0.5 * jnp.square(x - mean) / cov - 0.5 * (math.log(2 * math.pi) + jnp.log(cov))
    n = mean.shape[-1]
    if not cov.shape:
        y = x - mean
        return -0.5 * jnp.sum(y * y, axis=-1) / cov - n / 2 * (math.log(2 * math.pi) + jnp.log(cov))
    if cov.ndim < 2 or cov.shape[-2:] != (n, n):
        raise ValueError("multivariate_normal.logpdf got incompatible shapes")
    lower = linalg.cholesky(cov)
    y = jnp.expand_dims(x - mean, -1)
    batch = jnp.broadcast_shapes(lower.shape[:-2], y.shape[:-2])
    whole = jnp.broadcast_to(lower, (*batch, n, n))
    z = triangular_solve(whole, jnp.broadcast_to(y, (*batch, n, 1)), left_side=True, lower=True)[
        ..., 0
    ]
    log_det = jnp.sum(jnp.log(jnp.diagonal(lower, axis1=-2, axis2=-1)), axis=-1)
    return -0.5 * jnp.sum(z * z, axis=-1) - n / 2 * math.log(2 * math.pi) - log_det


def _normal_pdf(x: Any, mean: Any, cov: Any) -> Any:
    """The density of the normal distribution of vectors.

    Args:
        x: vectors along the last axis.
        mean: their mean.
        cov: the covariance matrix, or one variance for all components.
    Returns:
        Densities; nan where the matrix is not positive-definite.

    >>> round(float(stats.multivariate_normal.pdf(jnp.zeros(2), jnp.zeros(2), jnp.eye(2))), 3)
    0.159"""
    return jnp.exp(_normal_logpdf(x, mean, cov))


multivariate_normal: Continuous[OfNormal] = Continuous(
    "multivariate_normal", logpdf=_normal_logpdf, pdf=_normal_pdf
)


def _dirichlet_logpdf(x: Any, alpha: Any) -> Any:
    """The logarithm of the density of Dirichlet's distribution of probabilities.

    Args:
        x: probabilities that add up to 1 along the first axis, the last of which may be left out.
        alpha: the concentration of each, a vector of numbers above 0.
    Returns:
        Logarithms; -inf where `x` are no probabilities.

    >>> round(float(stats.dirichlet.logpdf(jnp.array([0.3, 0.7]), jnp.array([1.0, 2.0]))), 3)
    0.336"""
    check_arraylike("dirichlet.logpdf", x, alpha)
    slack = 1e-10 if typeof(x).dtype == np.dtype("float64") else 1e-6  # as it was rounded
    x, alpha = (jnp.asarray(a) for a in promote_inexact(x, alpha))
    if alpha.ndim != 1:
        raise ValueError(f"`alpha` must be one-dimensional; got alpha.shape={alpha.shape}")
    k = alpha.shape[0]
    if not x.shape or x.shape[0] not in (k, k - 1):
        raise ValueError(
            "`x` must have either the same number of entries as `alpha` or one entry fewer; got"
            f" x.shape={x.shape}, alpha.shape={alpha.shape}"
        )
    if x.shape[0] == k - 1:
        x = jnp.concatenate([x, 1 - jnp.sum(x, axis=0, keepdims=True)], axis=0)
    weights = alpha.reshape(k, *(1,) * (x.ndim - 1))
    constant = jnp.sum(do.lgamma(alpha)) - do.lgamma(jnp.sum(alpha))
    value = jnp.sum(sp.xlogy(weights - 1, x), axis=0) - constant
    near = jnp.abs(jnp.sum(x, axis=0) - 1) < slack
    return jnp.where(jnp.all(x >= 0, axis=0) & near, value, -np.inf)


def _dirichlet_pdf(x: Any, alpha: Any) -> Any:
    """The density of Dirichlet's distribution of probabilities.

    Args:
        x: probabilities that add up to 1 along the first axis, the last of which may be left out.
        alpha: the concentration of each, a vector of numbers above 0.
    Returns:
        Densities; 0 where `x` are no probabilities.

    >>> round(float(stats.dirichlet.pdf(jnp.array([0.3, 0.7]), jnp.array([1.0, 2.0]))), 3)
    1.4"""
    return jnp.exp(_dirichlet_logpdf(x, alpha))


dirichlet: Continuous[OfDirichlet] = Continuous(
    "dirichlet", logpdf=_dirichlet_logpdf, pdf=_dirichlet_pdf
)
