"""Trends removed from data."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from calque import numpy as jnp
from calque.core.arrays import Array
from calque.core.types import ArrayLike
from calque.numpy.promotion import array_of, canonical_axis, promote_inexact


def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",
    bp: int | Sequence[int] = 0,
    overwrite_data: None = None,
) -> Array:
    """Data without their trend.

    Args:
        data: an array.
        axis: the axis along which they were taken.
        type: "linear" takes off the line that fits best, "constant" the mean.
        bp: positions at which a new line begins.
        overwrite_data: must be None: arrays are immutable.
    Returns:
        Floats in the shape of `data`.

    >>> scipy.signal.detrend(jnp.array([1.0, 3.0]), type="constant")
    Array([-1.,  1.], dtype=float32)"""
    if overwrite_data is not None:
        raise NotImplementedError("detrend: overwrite_data is not supported, arrays are immutable")
    if type not in ("constant", "linear"):
        raise ValueError(f"detrend: trend type must be 'linear' or 'constant', got {type!r}")
    (x,) = promote_inexact(array_of("detrend", jnp.asarray(data)))
    x = jnp.asarray(x)
    k = canonical_axis(axis, x.ndim)
    if type == "constant":
        return x - jnp.mean(x, axis=k, keepdims=True)
    n = x.shape[k]
    ends = sorted({0, n, *(int(b) for b in np.ravel(bp))})
    if ends[0] < 0 or ends[-1] > n:
        raise ValueError(
            "detrend: breakpoints must be non-negative and at most the length of the data along"
            f" the axis, {n}; got {bp}"
        )
    x = jnp.moveaxis(x, k, -1)
    pieces = [_without_line(x[..., a:b]) for a, b in itertools.pairwise(ends)]
    return jnp.moveaxis(jnp.concatenate(pieces, axis=-1) if pieces else x, -1, k)


def _without_line(x: Any) -> Any:
    """The residual of the line of least squares along the last axis."""
    n = x.shape[-1]
    at = np.arange(n) - (n - 1) / 2
    weights = (at / ((at * at).sum() or 1)).astype(x.dtype)
    rest = x - jnp.mean(x, axis=-1, keepdims=True)
    return rest - jnp.sum(rest * weights, axis=-1, keepdims=True) * at.astype(x.dtype)
