"""Softmax and its relatives, standardisation: functions that look along axes."""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import numpy as np

from calque import numpy as jnp
from calque.core.arrays import Array, to_array
from calque.core.dtypes import is_complex
from calque.core.trace import typeof
from calque.core.types import ArrayLike, Axes
from calque.nn.functions import inexact, operand
from calque.numpy.promotion import broadcast_to, canonical_axes, check_arraylike, promote_inexact
from calque.ops.convert import stop_gradient
from calque.ops.math import rsqrt

__all__ = ["log_softmax", "logmeanexp", "logsumexp", "softmax", "standardize"]


def _largest(x: Any, axis: Any, where: Any) -> Any:
    return stop_gradient(jnp.max(x, axis, keepdims=True, where=where, initial=-np.inf))


def softmax(x: ArrayLike, axis: Axes = -1, where: ArrayLike | None = None) -> Array:
    """Gives exp(x) divided by its sum over axes: probabilities of logits.

    Args:
        x: Numbers.
        axis: The axis, or axes.
        where: Which elements count: booleans that broadcast to the array. None means all.

    Returns:
        An array of the shape of `x`; 0 where `where` is False.

    >>> jax.nn.softmax(jnp.zeros(4))
    Array([0.25, 0.25, 0.25, 0.25], dtype=float32)"""
    x = inexact("softmax", x)
    shifted = x - _largest(x, axis, where)
    if where is not None:  # what is left out must not spoil the derivative by an overflow
        shifted = jnp.where(where, shifted, -np.inf)
    e = jnp.exp(shifted)
    out = e / jnp.sum(e, axis, keepdims=True, where=where)
    return out if where is None else jnp.where(where, out, 0)


def log_softmax(x: ArrayLike, axis: Axes = -1, where: ArrayLike | None = None) -> Array:
    """Gives the logarithm of `softmax`, exact also where that is tiny.

    Args:
        x: Numbers.
        axis: The axis, or axes.
        where: Which elements count: booleans that broadcast to the array. None means all.

    Returns:
        An array of the shape of `x`; -inf where `where` is False.

    >>> jax.nn.log_softmax(jnp.array([0.0, 1000.0]))
    Array([-1000.,     0.], dtype=float32)"""
    x = inexact("log_softmax", x)
    shifted = x - _largest(x, axis, where)
    if where is not None:
        shifted = jnp.where(where, shifted, -np.inf)
    total = jnp.sum(jnp.exp(shifted), axis, keepdims=True, where=where)
    out = shifted - jnp.log(total)
    return out if where is None else jnp.where(where, out, -np.inf)


@overload
def logsumexp(
    a: ArrayLike,
    axis: Axes | None = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: Literal[False] = False,
    where: ArrayLike | None = None,
) -> Array: ...


@overload
def logsumexp(
    a: ArrayLike,
    axis: Axes | None = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Any: ...


def logsumexp(
    a: ArrayLike,
    axis: Axes | None = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Any:
    """Gives log(sum(b * exp(a))) over axes, without overflow.

    Args:
        a: The exponents.
        axis: The axis, or axes; None means all.
        b: Factors, which broadcast to `a`; None means 1.
        keepdims: Whether the axes stay, with size 1.
        return_sign: Whether to give the logarithm of the absolute value, and the sign. Otherwise
            the logarithm of a negative sum is NaN.
        where: Which elements count: booleans that broadcast to the array. None means all.

    Returns:
        An array without the axes; with `return_sign` a pair (array, sign).

    >>> jax.nn.logsumexp(jnp.array([1000.0, -1000.0]))
    Array(1000., dtype=float32)"""
    check_arraylike("logsumexp", a)
    if b is not None:
        check_arraylike("logsumexp", b)
        a, b = map(to_array, promote_inexact(a, b))
        a = jnp.where(b != 0, a, -np.inf)
    else:
        a = to_array(promote_inexact(a)[0])
    if where is not None:  # what is left out must not spoil the derivative by an overflow
        a = jnp.where(where, a, -np.inf)
    axes = canonical_axes(axis, typeof(a).ndim)
    scale = jnp.real(a) if is_complex(typeof(a).dtype) else a
    top = jnp.max(scale, axes, keepdims=True, where=where, initial=-np.inf)
    top = stop_gradient(jnp.where(jnp.isfinite(top), top, 0))
    terms = jnp.exp(a - top.astype(typeof(a).dtype))
    if b is not None:
        terms = terms * b
    total = jnp.sum(terms, axes, keepdims=keepdims, where=where)
    shift = top if keepdims else jnp.squeeze(top, axes) if axes else top
    sign = jnp.sign(total)
    if return_sign or not is_complex(typeof(total).dtype):
        size = jnp.abs(total)
        out = jnp.log(size) + shift
        if return_sign:
            return out, sign
        return out if b is None else jnp.where(sign < 0, np.nan, out)
    return jnp.log(total) + shift.astype(typeof(total).dtype)


def logmeanexp(
    x: ArrayLike, axis: Axes | None = None, where: ArrayLike | None = None, keepdims: bool = False
) -> Array:
    """Gives log(mean(exp(x))) over axes, without overflow.

    Args:
        x: Numbers.
        axis: The axis, or axes; None means all.
        where: Which elements count: booleans that broadcast to the array. None means all.
        keepdims: Whether the axes stay, with size 1.

    Returns:
        An array without the axes.

    >>> jax.nn.logmeanexp(jnp.full(3, 50.0))
    Array(50., dtype=float32)"""
    x = operand("logmeanexp", x)
    out = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    shape = typeof(x).shape
    axes = canonical_axes(axis, len(shape))
    if where is None:
        n: Any = np.asarray(
            math.log(size) if (size := math.prod(shape[i] for i in axes)) else -np.inf
        )
        return out - n.astype(typeof(out).dtype)
    counted = jnp.sum(broadcast_to(to_array(where), shape), axes, keepdims=keepdims)
    return out - jnp.log(counted.astype(typeof(out).dtype))


def standardize(
    x: ArrayLike,
    axis: Axes = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """Shifts and scales an array to mean 0 and variance 1 over axes.

    Args:
        x: Numbers.
        axis: The axis, or axes.
        mean: The mean; None computes it.
        variance: The variance; None computes it.
        epsilon: What is added to the variance, so that no division by zero happens.
        where: Which elements count: booleans that broadcast to the array. None means all.
        algorithm: How the variance is computed: "fast" is mean(x**2) - mean(x)**2, "stable" is
            mean((x - mean(x))**2).

    Returns:
        An array of the shape of `x`.

    Differs from JAX:
        `algorithm` is calque's own.

    >>> jax.nn.standardize(jnp.array([1.0, 3.0]), epsilon=0)
    Array([-1.,  1.], dtype=float32)"""
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"standardize: algorithm must be 'fast' or 'stable', got {algorithm!r}")
    x = inexact("standardize", x)
    if mean is None:
        mean = jnp.mean(x, axis, keepdims=True, where=where)
    if variance is None and algorithm == "stable":
        variance = jnp.mean(jnp.square(x - mean), axis, keepdims=True, where=where)
    elif variance is None:
        squares = jnp.mean(jnp.square(x), axis, keepdims=True, where=where)
        variance = jnp.maximum(squares - jnp.square(mean), 0)
    spread = jnp.add(variance, np.asarray(epsilon).astype(typeof(x).dtype))
    return (x - mean) * rsqrt(spread)
