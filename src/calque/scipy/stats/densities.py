"""Density estimation with Gaussian kernels."""

import math
from collections.abc import Sequence
from typing import Any

from calque import numpy as jnp
from calque import random
from calque.core.arrays import Array
from calque.core.dtypes import is_complex
from calque.core.types import ArrayLike
from calque.numpy import linalg
from calque.numpy.promotion import array_of, arrays, promote_inexact
from calque.ops.linalg.factors import triangular_solve
from calque.scipy import special
from calque.tree_util import register_pytree_node_class


@register_pytree_node_class
class gaussian_kde:
    """The density that data were drawn from, estimated as a sum of normal densities around them.

    Args:
        dataset: the data, of shape (n,) or (dimensions, n).
        bw_method: how wide the normal densities are: "scott", "silverman", a factor, or a function
            of the estimate. None is "scott".
        weights: how much each datum counts; None is all the same.

    >>> estimate = stats.gaussian_kde(jnp.array([-1.0, 0.0, 1.0]))
    >>> round(float(estimate(0.0)[0]), 3)
    0.318"""

    __slots__ = ("covariance", "dataset", "inv_cov", "neff", "weights")

    neff: Any
    dataset: Any
    weights: Any
    covariance: Any
    inv_cov: Any

    def __init__(self, dataset: ArrayLike, bw_method: Any = None, weights: ArrayLike | None = None):
        data = jnp.atleast_2d(array_of("gaussian_kde", dataset))
        if is_complex(data.dtype):
            raise NotImplementedError(
                f"gaussian_kde does not support complex data, got dtype {data.dtype.name}"
            )
        if data.size < 2 or data.ndim > 2:
            raise ValueError(
                "gaussian_kde: `dataset` input should have multiple elements and 1 or 2"
                f" dimensions, got shape {data.shape}"
            )
        for name, value in zip(("dataset", "weights"), _weighted(data, weights)):
            self._set(name, value)
        self._set("neff", 1 / jnp.sum(self.weights**2))
        factor = self._factor("scott" if bw_method is None else bw_method)
        spread = jnp.atleast_2d(
            jnp.cov(self.dataset, rowvar=True, bias=False, aweights=self.weights)
        )
        inverse = linalg.inv(spread)
        self._set("covariance", spread * factor**2)
        self._set("inv_cov", inverse / factor**2)

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"gaussian_kde: cannot assign to {name!r}, the estimate is immutable")

    def _factor(self, method: Any) -> Any:
        if isinstance(method, str):
            if method in ("scott", "silverman"):
                count = self.neff if method == "scott" else self.neff * (self.d + 2) / 4
                return count ** (-1 / (self.d + 4))
        elif callable(method):
            return method(self)
        elif jnp.ndim(method) == 0:
            return method
        raise ValueError(
            "gaussian_kde: `bw_method` should be 'scott', 'silverman', a scalar, or a callable,"
            f" got {method!r}"
        )

    def tree_flatten(self) -> tuple[Any, None]:
        """The arrays of the estimate, as `tree.flatten` asks for them.

        Returns:
            A pair: the arrays, and what is no array."""
        return (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: Sequence[Any]) -> "gaussian_kde":
        """An estimate of arrays, as `tree.unflatten` asks for it.

        Args:
            aux: what is no array.
            children: the arrays.
        Returns:
            An estimate."""
        out = object.__new__(cls)
        for name, value in zip(("neff", "dataset", "weights", "covariance", "inv_cov"), children):
            object.__setattr__(out, name, value)
        return out

    @property
    def d(self) -> int:
        """The number of dimensions."""
        return int(self.dataset.shape[0])

    @property
    def n(self) -> int:
        """The number of data."""
        return int(self.dataset.shape[1])

    def evaluate(self, points: ArrayLike) -> Array:
        """The density at points.

        Args:
            points: of shape (m,) or (dimensions, m).
        Returns:
            `m` densities."""
        return jnp.sum(jnp.exp(self._log_terms("evaluate", points)) * self.weights[:, None], axis=0)

    def pdf(self, x: ArrayLike) -> Array:
        """The density at points, as `evaluate`.

        Args:
            x: points of shape (m,) or (dimensions, m).
        Returns:
            `m` densities."""
        return self.evaluate(x)

    __call__ = evaluate

    def logpdf(self, x: ArrayLike) -> Array:
        """The logarithm of the density at points, also where the density underflows.

        Args:
            x: points of shape (m,) or (dimensions, m).
        Returns:
            `m` logarithms."""
        return special.logsumexp(
            self._log_terms("logpdf", x) + jnp.log(self.weights)[:, None], axis=0
        )

    def _log_terms(self, name: str, points: Any) -> Any:
        """The logarithm of each kernel (rows) at each point (columns)."""
        x = self._points(name, points)
        data, x, precision = (
            jnp.asarray(a) for a in promote_inexact(self.dataset, x, self.inv_cov)
        )
        whitening = linalg.cholesky(precision)
        away = jnp.square(
            jnp.expand_dims(whitening.T @ data, 2) - jnp.expand_dims(whitening.T @ x, 1)
        ).sum(0)
        return (
            jnp.sum(jnp.log(jnp.diag(whitening)))
            - 0.5 * self.d * math.log(2 * math.pi)
            - 0.5 * away
        )

    def _points(self, name: str, points: Any) -> Any:
        x = jnp.atleast_2d(array_of(name, points))
        if is_complex(x.dtype):
            raise NotImplementedError(
                f"gaussian_kde.{name} does not support complex coordinates, got {x.dtype.name}"
            )
        if x.shape[0] == self.d:
            return x
        if x.shape == (1, self.d):
            return jnp.reshape(x, (self.d, 1))
        raise ValueError(
            f"gaussian_kde.{name}: points have dimension {x.shape[0]}, dataset has dimension"
            f" {self.d}"
        )

    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Array:
        """The integral of the density times a normal density.

        Args:
            mean: the mean of the normal density.
            cov: its covariance matrix.
        Returns:
            A number."""
        mean, cov = arrays("integrate_gaussian", mean, cov)
        mean, cov = jnp.atleast_1d(jnp.squeeze(mean)), jnp.atleast_2d(cov)
        if mean.shape != (self.d,):
            raise ValueError(
                f"integrate_gaussian: mean does not have dimension {self.d}, its shape is"
                f" {mean.shape}"
            )
        if cov.shape != (self.d, self.d):
            raise ValueError(
                f"integrate_gaussian: covariance does not have dimension {self.d}, its shape is"
                f" {cov.shape}"
            )
        return self._convolved(self.covariance + cov, mean[:, None])[0]

    def _convolved(self, covariance: Any, means: Any) -> Any:
        """For each mean (columns) the weighted sum of normal densities of this covariance around
        the data."""
        lower = linalg.cholesky(covariance)
        flat = jnp.reshape(
            jnp.expand_dims(self.dataset, 2) - jnp.expand_dims(means, 1), (self.d, -1)
        )
        lower, flat = (jnp.asarray(a) for a in promote_inexact(lower, flat))
        z = triangular_solve(lower, flat, left_side=True, lower=True)
        away = jnp.reshape(jnp.sum(z * z, axis=0), (self.n, means.shape[1]))
        norm = (2 * math.pi) ** (-self.d / 2) / jnp.prod(jnp.diag(lower))
        return norm * jnp.sum(jnp.exp(-0.5 * away) * self.weights[:, None], axis=0)

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Array:
        """The probability between two numbers, for data of one dimension.

        Args:
            low: the lower one.
            high: the higher one.
        Returns:
            A number."""
        if self.d != 1:
            raise ValueError(
                f"integrate_box_1d() only handles 1D pdfs, the data have dimension {self.d}"
            )
        if jnp.ndim(low) or jnp.ndim(high):
            raise ValueError("the limits of integration in integrate_box_1d must be scalars")
        sigma = jnp.sqrt(self.covariance[0, 0])

        def at(limit: Any) -> Any:
            return special.ndtr((limit - self.dataset[0]) / sigma)

        return jnp.sum(self.weights * (at(high) - at(low)))

    def integrate_kde(self, other: "gaussian_kde") -> Array:
        """The integral of the product of two estimated densities.

        Args:
            other: another estimate of the same dimensions.
        Returns:
            A number."""
        if other.d != self.d:
            raise ValueError(
                f"integrate_kde: KDEs are not the same dimensionality, {self.d} and {other.d}"
            )
        small, large = (self, other) if self.n < other.n else (other, self)
        return jnp.sum(
            large._convolved(self.covariance + other.covariance, small.dataset) * small.weights
        )

    def resample(self, key: ArrayLike, shape: Sequence[int] = ()) -> Array:
        """Points drawn from the estimated density.

        Args:
            key: a key of `random.key`.
            shape: how many to draw, a tuple.
        Returns:
            Points of shape (dimensions, *shape)."""
        which, noise = random.split(key)
        at = random.choice(which, self.n, shape=tuple(shape), p=self.weights)
        zero = jnp.zeros(self.d, self.covariance.dtype)
        moved = random.multivariate_normal(
            noise, zero, self.covariance, shape=tuple(shape), dtype=self.dataset.dtype
        )
        return self.dataset[:, at] + jnp.moveaxis(moved, -1, 0)

    def integrate_box(
        self, low_bounds: ArrayLike, high_bounds: ArrayLike, maxpts: Any = None
    ) -> Any:
        """Refused: only in one dimension, see `integrate_box_1d`.

        Args:
            low_bounds, high_bounds, maxpts: anything.
        Returns:
            Nothing: it raises NotImplementedError."""
        raise NotImplementedError(
            "gaussian_kde.integrate_box: only 1D box integrations are supported; use"
            " integrate_box_1d"
        )

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Refused: the bandwidth is chosen when the estimate is made.

        Args:
            bw_method: anything.
        Returns:
            Nothing: it raises NotImplementedError."""
        raise NotImplementedError(
            "gaussian_kde.set_bandwidth: make a new estimate with another bw_method"
        )


def _weighted(data: Any, weights: Any) -> tuple[Any, Any]:
    """Data and weights of one float dtype; the weights sum to 1."""
    n = data.shape[1]
    if weights is None:
        (data,) = promote_inexact(data)
        data = jnp.asarray(data)
        return data, jnp.full(n, 1.0 / n, dtype=data.dtype)
    data, weights = (
        jnp.asarray(a) for a in promote_inexact(data, array_of("gaussian_kde", weights))
    )
    weights = jnp.atleast_1d(weights)
    if weights.ndim != 1:
        raise ValueError(
            f"gaussian_kde: `weights` input should be one-dimensional, got shape {weights.shape}"
        )
    if len(weights) != n:
        raise ValueError(
            f"gaussian_kde: `weights` input should be of length {n}, got {len(weights)}"
        )
    return data, weights / jnp.sum(weights)
