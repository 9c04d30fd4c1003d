"""Distributions by transformation of uniform numbers."""

import math
from typing import Any

import numpy as np

from calque import numpy as jnp
from calque.core.arrays import Array, to_array
from calque.core.dtypes import (
    as_dtype,
    canonicalize,
    finfo,
    is_complex,
    is_inexact,
    real_part,
)
from calque.core.primitives import do
from calque.core.types import ArrayLike, DType, DTypeLike, ShapeLike
from calque.numpy.creation import canonical_shape, placed
from calque.numpy.promotion import (
    broadcast_shapes,
    canonical_axis,
    check_arraylike,
    promote_inexact,
)
from calque.numpy.signatures import OutSharding
from calque.ops.convert import stop_gradient
from calque.ops.sorting import top_k
from calque.ops.special import erf, normal_erf_inv
from calque.random.keys import wrapped
from calque.random.uniform import (
    broadcast_one,
    float_dtype,
    pair,
    parameter,
    parameter_shape,
    rademacher,
    two_uniforms,
    uniform_between,
)


@placed
def normal(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Standard normal values; complex ones have variance 1 in all.

    >>> import calque
    >>> calque.random.normal(calque.random.key(0), (2,)).shape
    (2,)"""
    typed, _ = wrapped(key, "normal")
    d = canonicalize(float) if dtype is None else canonicalize(as_dtype(dtype))
    if not is_inexact(d):
        raise ValueError(
            f"dtype argument to `normal` must be a float or complex dtype, got {d.name}"
        )
    shape = canonical_shape(shape)
    if not is_complex(d):
        return real_normal(typed, shape, d)
    first, second = pair(typed)
    real = real_part(d)
    value = do.complex(real_normal(first, shape, real), real_normal(second, shape, real))
    return value / math.sqrt(2)


def real_normal(key: Array, shape: tuple[int, ...], dtype: DType) -> Array:
    low = np.nextafter(np.asarray(-1, dtype), np.asarray(0, dtype), dtype=dtype)
    return math.sqrt(2) * normal_erf_inv(uniform_between(key, shape, dtype, low, 1.0))


@placed
def truncated_normal(
    key: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Standard normal values within [lower, upper]."""
    typed, _ = wrapped(key, "truncated_normal")
    d = float_dtype("truncated_normal", dtype)
    shape = parameter_shape("truncated_normal", shape, lower, upper)
    root = math.sqrt(2)
    lower, upper = parameter(lower, d), parameter(upper, d)
    out = root * normal_erf_inv(
        uniform_between(typed, shape, d, erf(lower / root), erf(upper / root))
    )
    low = jnp.nextafter(stop_gradient(lower), math.inf)
    high = jnp.nextafter(stop_gradient(upper), -math.inf)
    return jnp.minimum(broadcast_one(high, shape), jnp.maximum(broadcast_one(low, shape), out))


@placed
def exponential(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Values with density exp(-x)."""
    typed, _ = wrapped(key, "exponential")
    d = float_dtype("exponential", dtype)
    return -jnp.log1p(-uniform_between(typed, canonical_shape(shape), d, 0.0, 1.0))


@placed
def gumbel(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    mode: str | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Standard Gumbel values: -log(-log(u))."""
    typed, _ = wrapped(key, "gumbel")
    d = float_dtype("gumbel", dtype)
    if mode not in (None, "low", "high"):
        raise ValueError(f"Must provide valid mode for gumbel got: {mode}")
    shape = canonical_shape(shape)
    if mode == "high":  # numbers near 0 get further bits
        coarse, fine = two_uniforms(typed, shape, d)
        finer = coarse + fine * finfo(d).eps + finfo(d).tiny
        u = jnp.where(coarse >= 0.5, coarse, finer)
        return -jnp.log(-jnp.log1p(-u))
    u = uniform_between(typed, shape, d, finfo(d).tiny, 1.0)
    return -jnp.log(-jnp.log(u))


@placed
def laplace(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Values with density exp(-|x|) / 2."""
    typed, _ = wrapped(key, "laplace")
    d = float_dtype("laplace", dtype)
    u = uniform_between(typed, canonical_shape(shape), d, -1 + finfo(d).epsneg, 1.0)
    return jnp.sign(u) * jnp.log1p(-jnp.abs(u))


@placed
def logistic(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Standard logistic values: log(u / (1 - u))."""
    typed, _ = wrapped(key, "logistic")
    d = float_dtype("logistic", dtype)
    u = uniform_between(typed, canonical_shape(shape), d, finfo(d).tiny, 1.0)
    return jnp.log(u) - jnp.log1p(-u)


@placed
def cauchy(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Standard Cauchy values."""
    typed, _ = wrapped(key, "cauchy")
    d = float_dtype("cauchy", dtype)
    u = uniform_between(typed, canonical_shape(shape), d, finfo(d).eps, 1.0)
    return jnp.tan(math.pi * (u - 0.5))


@placed
def pareto(
    key: ArrayLike,
    b: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Pareto values with shape parameter b."""
    d = float_dtype("pareto", dtype)
    shape = parameter_shape("pareto", shape, b)
    return jnp.exp(exponential(key, shape, d) / parameter(b, d, shape))


@placed
def rayleigh(
    key: ArrayLike,
    scale: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Rayleigh values."""
    typed, _ = wrapped(key, "rayleigh")
    d = float_dtype("rayleigh", dtype)
    shape = parameter_shape("rayleigh", shape, scale)
    log_u = jnp.log(uniform_between(typed, shape, d, 0.0, 1.0))
    return parameter(scale, d, shape) * jnp.sqrt(log_u * -2)


@placed
def weibull_min(
    key: ArrayLike,
    scale: ArrayLike,
    concentration: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Weibull values."""
    typed, _ = wrapped(key, "weibull_min")
    d = float_dtype("weibull_min", dtype)
    e = -jnp.log1p(-uniform_between(typed, canonical_shape(shape), d, 0.0, 1.0))
    return e ** (1 / parameter(concentration, d)) * parameter(scale, d)


@placed
def maxwell(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Maxwell values: lengths of normal vectors in three dimensions."""
    typed, _ = wrapped(key, "maxwell")
    d = float_dtype("maxwell", dtype)
    parts = real_normal(typed, (*canonical_shape(shape), 3), d)
    return jnp.sqrt(jnp.sum(parts * parts, axis=-1))


def double_sided_maxwell(
    key: ArrayLike,
    loc: ArrayLike,
    scale: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Maxwell values with random signs, scaled and shifted: `shape` of them (by default as many as
    parameters) for each of the parameters."""
    typed, _ = wrapped(key, "double_sided_maxwell")
    d = float_dtype("double_sided_maxwell", dtype)
    check_arraylike("double_sided_maxwell", loc, scale)
    loc, scale = parameter(loc, d), parameter(scale, d)
    common = broadcast_shapes("double_sided_maxwell", loc.shape, scale.shape)
    whole = (*(canonical_shape(shape) or common), *common)
    first, second = pair(typed)
    return rademacher(second, whole, d) * maxwell(first, whole, d) * scale + loc


@placed
def wald(
    key: ArrayLike,
    mean: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Wald (inverse Gaussian) values with scale 1."""
    typed, _ = wrapped(key, "wald")
    d = float_dtype("wald", dtype)
    shape = parameter_shape("wald", shape, mean)
    first, second = pair(typed)
    m = parameter(mean, d, shape)
    z, u = real_normal(first, shape, d), uniform_between(second, shape, d, 0.0, 1.0)
    y = z**2
    root = jnp.sqrt(4 * m * y + m**2 * y**2)
    x = m + m**2 * y / 2 - m / 2 * root
    return jnp.where(u <= m / (m + x), x, m**2 / x)


@placed
def triangular(
    key: ArrayLike,
    left: ArrayLike,
    mode: Any,
    right: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Values with a density that rises from left to mode and falls to right."""
    typed, _ = wrapped(key, "triangular")
    d = float_dtype("triangular", dtype)
    shape = parameter_shape("triangular", shape, left, mode, right)
    left, mode, right = (parameter(x, d, shape) for x in (left, mode, right))
    u = uniform_between(typed, shape, d, 0.0, 1.0)
    width, rising = right - left, mode - left
    up = left + jnp.sqrt(u * width * rising)
    down = right - jnp.sqrt((1 - u) * width * (right - mode))
    return jnp.where(u < rising / width, up, down)


@placed
def lognormal(
    key: ArrayLike,
    sigma: ArrayLike = 1.0,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """exp of normal values with standard deviation sigma."""
    typed, _ = wrapped(key, "lognormal")
    d = float_dtype("lognormal", dtype)
    shape = parameter_shape("lognormal", shape, sigma)
    return jnp.exp(real_normal(typed, shape, d) * parameter(sigma, d))


@placed
def categorical(
    key: ArrayLike,
    logits: ArrayLike,
    axis: int = -1,
    shape: ShapeLike | None = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Positions drawn with probabilities softmax(logits) along an axis.

    >>> import calque, calque.numpy as jnp
    >>> calque.random.categorical(calque.random.key(0), jnp.zeros((3, 4))).shape
    (3,)"""
    typed, _ = wrapped(key, "categorical")
    check_arraylike("categorical", logits)
    logits = to_array(promote_inexact(logits)[0])
    own = logits.shape
    k = canonical_axis(axis, len(own))
    batch = own[:k] + own[k + 1 :]
    shape = batch if shape is None else canonical_shape(shape)
    lead, tail = shape[: len(shape) - len(batch)], shape[len(shape) - len(batch) :]
    if len(tail) < len(batch) or any(n not in (1, m) for n, m in zip(batch, tail)):
        raise ValueError(
            f"categorical: shape {shape} must end with what the batch shape {batch} of logits"
            " broadcasts to"
        )
    if tail != batch:
        own = (*tail[:k], own[k], *tail[k:])
        logits = jnp.broadcast_to(logits, own)
    if not replace:
        return _without_replacement(typed, logits, k, lead, mode)
    noise = gumbel(typed, (*lead, *own), logits.dtype, mode)
    return jnp.argmax(noise + jnp.broadcast_to(logits, noise.shape), axis=k + len(lead))


def _without_replacement(key: Any, logits: Any, axis: int, lead: tuple[int, ...], mode: Any) -> Any:
    n = int(np.prod(lead, dtype=np.int64))
    own = logits.shape
    if n > own[axis]:
        raise ValueError(
            f"Number of samples without replacement ({n}) cannot exceed number of categories"
            f" ({own[axis]})."
        )
    scores = jnp.moveaxis(gumbel(key, own, logits.dtype, mode) + logits, axis, -1)
    places = jnp.moveaxis(top_k(scores, n)[1], -1, 0)
    return jnp.reshape(places, (*lead, *places.shape[1:]))
