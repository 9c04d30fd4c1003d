"""Distributions by transformation of uniform numbers."""

import math
from typing import Any

import numpy as np

from calque import numpy as jnp
from calque.core.arrays import Array, to_array
from calque.core.dtypes import (
    asked,
    bfloat16,
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
    check_arraylike,
    convert,
    promote_inexact,
)
from calque.numpy.signatures import OutSharding
from calque.ops.convert import stop_gradient
from calque.ops.special import (
    drawn_erf,
    drawn_exp,
    drawn_log,
    drawn_log1p,
    drawn_pow,
    drawn_tan,
    normal_erf_inv,
)
from calque.random.keys import wrapped
from calque.random.tails import in_tails, with_tails
from calque.random.uniform import (
    broadcast_one,
    fine_uniforms,
    float_dtype,
    pair,
    parameter,
    parameter_shape,
    product_and_sum,
    rademacher,
    scalar,
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
    """Draws numbers of the normal distribution of mean 0 and variance 1.

    Args:
        key: A random key.
        shape: The shape of the result.
        dtype: A floating-point or complex dtype; None means float32 (float64 where enabled).
            Complex numbers have variance 1 in all.
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.random.normal(jax.random.key(0), (2,))
    Array([1.62264..., 2.02526...], dtype=float32)"""
    typed, _ = wrapped(key, "normal")
    d = canonicalize(float) if dtype is None else asked(dtype)
    if not is_inexact(d):
        raise ValueError(
            f"dtype argument to `normal` must be a float or complex dtype, got"
            f" {d.name}: randint draws integers, and astype converts what was drawn"
        )
    shape = canonical_shape(shape)
    if not is_complex(d):
        return real_normal(typed, shape, d)
    first, second = pair(typed)
    parts = (real_normal(k, shape, real_part(d)) for k in (first, second))
    # not before: XLA would take both factors of a part together
    return do.complex(*parts) * scalar(math.sqrt(0.5), d)


def real_normal(
    key: Array, shape: tuple[int, ...], dtype: DType, deviation: Array | None = None
) -> Array:
    """Normal numbers; a deviation that is one number is multiplied with first, as XLA does, but for
    bfloat16, where a rounding lies between."""
    drawn = normal_erf_inv(_inside(key, shape, dtype))
    if deviation is None:
        return math.sqrt(2) * drawn
    if deviation.ndim or dtype == bfloat16:
        return math.sqrt(2) * drawn * deviation
    return math.sqrt(2) * deviation * drawn


def _inside(key: Array, shape: tuple[int, ...], dtype: DType) -> Array:
    """Uniform numbers between -1 and 1."""
    low = np.nextafter(np.asarray(-1, dtype), np.asarray(0, dtype), dtype=dtype)
    return uniform_between(key, shape, dtype, low, 1.0)


def over(x: Array, parameter: Array) -> Array:
    """x / parameter; by one number it is a product with its reciprocal, as XLA has it. That is not
    rounded to bfloat16."""
    if parameter.ndim:
        return x / parameter
    if parameter.dtype != bfloat16:
        return x * (1 / parameter)
    single = np.dtype("float32")
    return convert(convert(x, single) * (1 / convert(parameter, single)), bfloat16)


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
    """Draws numbers of the normal distribution, cut to an interval.

    Args:
        key: A random key.
        lower: The lower end; it broadcasts to `shape`.
        upper: The upper end, likewise.
        shape: The shape of the result; None takes that of the ends together.
        dtype: A floating-point dtype; None means float32 (float64 where 64-bit types are enabled).
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.random.truncated_normal(jax.random.key(0), -1.0, 1.0, (2,))
    Array([0.86185..., 0.94128...], dtype=float32)"""
    typed, _ = wrapped(key, "truncated_normal")
    d = float_dtype("truncated_normal", dtype)
    shape = parameter_shape("truncated_normal", shape, lower, upper)
    root = to_array(scalar(math.sqrt(2), d))
    tail = in_tails(lower, upper, d)
    lower, upper = parameter(lower, d), parameter(upper, d)
    usual = [lower, upper]
    if tail is not None:
        usual = [jnp.where(tail, scalar(v, d), end) for v, end in zip((0, 1), usual)]
    low, high = (drawn_erf(over(end, root)) for end in usual)
    out = math.sqrt(2) * normal_erf_inv(uniform_between(typed, shape, d, low, high))
    if tail is not None:
        out = with_tails(out, uniform_between(typed, shape, d, 0.0, 1.0), tail, lower, upper)
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
    """Draws numbers of the exponential distribution of rate 1.

    Args:
        key: A random key.
        shape: The shape of the result.
        dtype: A floating-point dtype; None means float32 (float64 where 64-bit types are enabled).
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.random.exponential(jax.random.key(0), (2,))
    Array([2.9501... , 3.84342...], dtype=float32)"""
    typed, _ = wrapped(key, "exponential")
    d = float_dtype("exponential", dtype)
    return -drawn_log1p(-uniform_between(typed, canonical_shape(shape), d, 0.0, 1.0))


@placed
def gumbel(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    mode: str | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Draws numbers of the Gumbel distribution, -log(-log(u)) of evenly distributed u.

    Args:
        key: A random key.
        shape: The shape of the result.
        dtype: A floating-point dtype; None means float32 (float64 where 64-bit types are enabled).
        mode: None or "low"; or "high", which takes twice the bits for large numbers; or "highest",
            which takes them for all numbers of float32, and else is "high".
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.random.gumbel(jax.random.key(0), (2,))
    Array([2.92337..., 3.83261...], dtype=float32)"""
    typed, _ = wrapped(key, "gumbel")
    d = float_dtype("gumbel", dtype)
    if mode not in (None, "low", "high", "highest"):
        raise ValueError(f"Must provide valid mode for gumbel got: {mode}")
    shape = canonical_shape(shape)
    if mode == "highest" and d == np.dtype("float32"):
        v, beyond = fine_uniforms(typed, shape)
        return -drawn_log(-jnp.where(beyond, drawn_log(v), drawn_log1p(-v)))
    if mode in ("high", "highest"):  # numbers near 0 get further bits
        coarse, fine = two_uniforms(typed, shape, d)
        finer = coarse + fine * finfo(d).eps + finfo(d).tiny
        u = jnp.where(coarse >= 0.5, coarse, finer)
        return -drawn_log(-drawn_log1p(-u))
    return -drawn_log(-drawn_log(_positive(typed, shape, d)))


def _positive(key: Array, shape: tuple[int, ...], dtype: DType) -> Array:
    """Uniform numbers below 1, with the least normal number in place of 0. It is not added to the
    others: XLA, which knows it, adds it to what it subtracts from them, where it is lost."""
    drawn = uniform_between(key, shape, dtype, 0.0, 1.0)
    return jnp.maximum(scalar(finfo(dtype).tiny, dtype), drawn)


@placed
def laplace(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Draws numbers of the Laplace distribution, of density exp(-|x|) / 2.

    Args:
        key: A random key.
        shape: The shape of the result.
        dtype: A floating-point dtype; None means float32 (float64 where 64-bit types are enabled).
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.random.laplace(jax.random.key(0), (2,))
    Array([-2.25698..., -3.15027...], dtype=float32)"""
    typed, _ = wrapped(key, "laplace")
    d = float_dtype("laplace", dtype)
    u = uniform_between(typed, canonical_shape(shape), d, -1 + finfo(d).epsneg, 1.0)
    return jnp.sign(u) * drawn_log1p(-jnp.abs(u))


@placed
def logistic(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Draws numbers of the logistic distribution, log(u / (1 - u)) of evenly distributed u.

    Args:
        key: A random key.
        shape: The shape of the result.
        dtype: A floating-point dtype; None means float32 (float64 where 64-bit types are enabled).
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.random.logistic(jax.random.key(0), (2,))
    Array([2.8963... , 3.82177...], dtype=float32)"""
    typed, _ = wrapped(key, "logistic")
    d = float_dtype("logistic", dtype)
    u = _positive(typed, canonical_shape(shape), d)
    return drawn_log(u) - drawn_log1p(-u)


@placed
def cauchy(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Draws numbers of the Cauchy distribution.

    Args:
        key: A random key.
        shape: The shape of the result.
        dtype: A floating-point dtype; None means float32 (float64 where 64-bit types are enabled).
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.random.cauchy(jax.random.key(0), (2,))
    Array([ 6.02749..., 14.8378... ], dtype=float32)"""
    typed, _ = wrapped(key, "cauchy")
    d = float_dtype("cauchy", dtype)
    u = uniform_between(typed, canonical_shape(shape), d, finfo(d).eps, 1.0)
    return drawn_tan(math.pi * (u - 0.5))


@placed
def pareto(
    key: ArrayLike,
    b: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Draws numbers of the Pareto distribution, of density b / x**(b + 1) from 1 on.

    Args:
        key: A random key.
        b: The exponent, positive; it broadcasts to `shape`.
        shape: The shape of the result; None takes that of `b`.
        dtype: A floating-point dtype; None means float32 (float64 where 64-bit types are enabled).
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.random.pareto(jax.random.key(0), 3.0, (2,))
    Array([2.67346..., 3.60074...], dtype=float32)"""
    d = float_dtype("pareto", dtype)
    shape = parameter_shape("pareto", shape, b)
    return drawn_exp(over(exponential(key, shape, d), parameter(b, d)))


@placed
def rayleigh(
    key: ArrayLike,
    scale: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Draws numbers of the Rayleigh distribution: lengths of normal vectors in the plane.

    Args:
        key: A random key.
        scale: The standard deviation of each coordinate; it broadcasts to `shape`.
        shape: The shape of the result; None takes that of `scale`.
        dtype: A floating-point dtype; None means float32 (float64 where 64-bit types are enabled).
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.random.rayleigh(jax.random.key(0), 2.0, (2,))
    Array([0.655756..., 0.416200...], dtype=float32)"""
    typed, _ = wrapped(key, "rayleigh")
    d = float_dtype("rayleigh", dtype)
    shape = parameter_shape("rayleigh", shape, scale)
    log_u = drawn_log(uniform_between(typed, shape, d, 0.0, 1.0))
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
    """Draws numbers of the Weibull distribution.

    Args:
        key: A random key.
        scale: The scale, positive; it broadcasts to `shape`.
        concentration: The exponent, positive, likewise.
        shape: The shape of the result.
        dtype: A floating-point dtype; None means float32 (float64 where 64-bit types are enabled).
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.random.weibull_min(jax.random.key(0), 1.0, 2.0, (2,))
    Array([1.71759..., 1.96046...], dtype=float32)"""
    typed, _ = wrapped(key, "weibull_min")
    d = float_dtype("weibull_min", dtype)
    e = -drawn_log1p(-uniform_between(typed, canonical_shape(shape), d, 0.0, 1.0))
    inverse = 1 / to_array(promote_inexact(concentration)[0])
    return drawn_pow(*promote_inexact(e, inverse)) * to_array(scale)


@placed
def maxwell(
    key: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Draws numbers of the Maxwell distribution: lengths of normal vectors in three dimensions.

    Args:
        key: A random key.
        shape: The shape of the result.
        dtype: A floating-point dtype; None means float32 (float64 where 64-bit types are enabled).
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.random.maxwell(jax.random.key(0), (2,))
    Array([2.63109..., 0.99103...], dtype=float32)"""
    typed, _ = wrapped(key, "maxwell")
    d = float_dtype("maxwell", dtype)
    return convert(_lengths(typed, canonical_shape(shape), d), d)


def _lengths(key: Array, shape: tuple[int, ...], dtype: DType) -> Array:
    """Of normal vectors; those for bfloat16 as float32, since XLA rounds the result alone."""
    if dtype == bfloat16:
        single = np.dtype("float32")
        drawn = normal_erf_inv(convert(_inside(key, (*shape, 3), dtype), single))
        parts = drawn * scalar(math.sqrt(2), dtype).astype(single)
    else:
        parts = real_normal(key, (*shape, 3), dtype)
    return jnp.sqrt(jnp.sum(parts * parts, axis=-1))


def double_sided_maxwell(
    key: ArrayLike,
    loc: ArrayLike,
    scale: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Draws numbers of the Maxwell distribution with random signs, scaled and shifted.

    Args:
        key: A random key.
        loc: What they are shifted by.
        scale: What they are scaled by; it broadcasts with `loc`.
        shape: How many for each of the parameters; () takes the shape of these again.
        dtype: A floating-point dtype; None means float32 (float64 where 64-bit types are enabled).

    Returns:
        An array: `shape`, then the shape of the parameters.

    >>> jax.random.double_sided_maxwell(jax.random.key(0), 0.0, 1.0, (2,))
    Array([1.54572..., 1.57412...], dtype=float32)"""
    typed, _ = wrapped(key, "double_sided_maxwell")
    d = float_dtype("double_sided_maxwell", dtype)
    check_arraylike("double_sided_maxwell", loc, scale)
    loc, scale = parameter(loc, d), parameter(scale, d)
    common = broadcast_shapes("double_sided_maxwell", loc.shape, scale.shape)
    whole = (*(canonical_shape(shape) or common), *common)
    first, second = pair(typed)
    lengths = _lengths(first, whole, d)
    sign = convert(rademacher(second, whole, d), lengths.dtype)
    loc, scale = convert(loc, lengths.dtype), convert(scale, lengths.dtype)
    return convert(sign * lengths * scale + loc, d)


@placed
def wald(
    key: ArrayLike,
    mean: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Draws numbers of the Wald (inverse Gaussian) distribution of scale 1.

    Args:
        key: A random key.
        mean: The mean, positive; it broadcasts to `shape`.
        shape: The shape of the result; None takes that of `mean`.
        dtype: A floating-point dtype; None means float32 (float64 where 64-bit types are enabled).
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.random.wald(jax.random.key(0), 1.0, (2,)).shape
    (2,)"""
    typed, _ = wrapped(key, "wald")
    d = float_dtype("wald", dtype)
    shape = parameter_shape("wald", shape, mean)
    first, second = pair(typed)
    m = parameter(mean, d, shape)
    z, u = real_normal(first, shape, d), uniform_between(second, shape, d, 0.0, 1.0)
    y = z**2
    root = jnp.sqrt(product_and_sum(4 * m, y, m**2 * y**2))
    x = product_and_sum(-m / 2, root, m + m**2 * y / 2)
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
    """Draws numbers whose density rises from `left` to `mode` and falls to `right`.

    Args:
        key: A random key.
        left: The lower end; it broadcasts to `shape`.
        mode: Where the density is largest, likewise.
        right: The upper end, likewise.
        shape: The shape of the result; None takes that of the parameters together.
        dtype: A floating-point dtype; None means float32 (float64 where 64-bit types are enabled).
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.random.triangular(jax.random.key(0), 0.0, 0.5, 1.0, (2,))
    Array([0.83823..., 0.89651...], dtype=float32)"""
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
    """Draws numbers whose logarithms are normal, of mean 0.

    Args:
        key: A random key.
        sigma: The standard deviation of the logarithms; it broadcasts to `shape`.
        shape: The shape of the result; None takes that of `sigma`.
        dtype: A floating-point dtype; None means float32 (float64 where 64-bit types are enabled).
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.random.lognormal(jax.random.key(0), 1.0, (2,))
    Array([5.0664..., 7.5781...], dtype=float32)"""
    typed, _ = wrapped(key, "lognormal")
    d = float_dtype("lognormal", dtype)
    shape = parameter_shape("lognormal", shape, sigma)
    return drawn_exp(real_normal(typed, shape, d, parameter(sigma, d)))
