"""The gamma distribution, and those that are made of it.

Marsaglia and Tsang, "A simple method for generating gamma variables" (2000): each element draws
from a key of its own until a candidate is accepted. Derivatives by the shape parameter are those of
the implicit reparametrisation.
"""

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from calque import numpy as jnp
from calque.core import reference
from calque.core.arrays import Array
from calque.core.avals import ShapedArray
from calque.core.dtypes import bfloat16, finfo, is_float
from calque.core.primitives import Primitive, Zero, do
from calque.core.trace import trace_to_jaxpr, typeof
from calque.core.types import ArrayLike, DTypeLike, ShapeLike
from calque.numpy.creation import canonical_shape, placed
from calque.numpy.promotion import check_arraylike, convert
from calque.numpy.signatures import OutSharding
from calque.ops.broadcasting import broadcast
from calque.ops.common import move
from calque.ops.convert import stop_gradient
from calque.ops.kinds import not_linear
from calque.ops.random.keys import impl_of, need_key
from calque.ops.special import drawn_exp, drawn_log, drawn_pow, random_gamma_grad
from calque.random.distributions import exponential, over, real_normal
from calque.random.keys import wrapped
from calque.random.uniform import (
    float_dtype,
    keys_of,
    pair,
    parameter,
    parameter_shape,
    rademacher,
    scalar,
    uniform_between,
)
from calque.transforms.functions.loops import map_, while_loop
from calque.transforms.functions.vmap import vmap

# ---------------------------------------------------------------- one value


def _candidate(key: Any, slope: Any, dtype: Any) -> tuple[Any, Any]:
    """A normal number x and 1 + slope x, which is positive."""

    def draw(state: Any) -> Any:
        key, sub = pair(state[0])
        x = real_normal(sub, (), dtype)
        return key, x, 1 + x * slope

    first = (key, scalar(0, dtype), scalar(-1, dtype))
    return while_loop(lambda state: state[2] <= 0, draw, first)[1:]


def _one(key: Any, alpha: Any, log_space: bool) -> Any:
    """A gamma value. For alpha below 1 that of alpha + 1 is scaled by a power of a uniform
    number."""
    dtype = typeof(alpha).dtype
    large = alpha >= 1
    d = jnp.where(large, alpha, alpha + 1) - 1 / 3
    slope = 1 / 3 / jnp.sqrt(d)

    def rejected(state: Any) -> Any:
        _, x2, v, u = state
        outside = u >= 1 - 0.0331 * (x2 * x2)
        bound = x2 * 0.5 + d * ((1 - v) + drawn_log(v))
        return outside & (drawn_log(u) >= bound)

    def draw(state: Any) -> Any:
        key, for_x, for_u = keys_of(state[0], 3)
        x, v = _candidate(for_x, slope, dtype)
        u = uniform_between(for_u, (), dtype, 0.0, 1.0)
        return key, x * x, v * v * v, u

    key, for_boost = pair(key)
    first = (key, *(scalar(n, dtype) for n in (0, 1, 2)))
    v = while_loop(rejected, draw, first)[2]
    exponent = 1 / alpha
    if log_space:
        log_u = -exponential(for_boost, (), dtype)
        boost = jnp.where(large | (log_u == 0), 0, log_u * exponent)
        return drawn_log(d) + drawn_log(v) + boost
    u = 1 - uniform_between(for_boost, (), dtype, 0.0, 1.0)
    return d * v * jnp.where(large, 1, drawn_pow(u, exponent))


# ---------------------------------------------------------------- arrays of values


def _program(key: Any, alpha: Any, *, log_space: bool) -> Any:
    """A key for each of the values that a key is given for. Where lanes would draw from the first
    of these keys, they come one after the other."""
    keys = jnp.ravel(do.random_split(key, shape=alpha.shape[typeof(key).ndim :]))
    one = functools.partial(_one, log_space=log_space)
    if typeof(key).dtype.impl.one_draw_for_lanes:
        out = map_(lambda pair: one(*pair), (keys, jnp.ravel(alpha)))
    else:
        out = vmap(one)(keys, jnp.ravel(alpha))
    return jnp.reshape(out, alpha.shape)


def _meaning(key: np.ndarray, alpha: np.ndarray, *, log_space: bool) -> np.ndarray:
    avals = [ShapedArray(key.shape, impl_of(key).dtype), ShapedArray(alpha.shape, alpha.dtype)]
    closed = trace_to_jaxpr(lambda k, a: [_program(k, a, log_space=log_space)], avals)
    return np.asarray(reference.run(closed, key, alpha)[0])


def _shape(key: ShapedArray, alpha: ShapedArray, *, log_space: bool) -> ShapedArray:
    need_key("random_gamma", key)
    if not is_float(alpha.dtype) or alpha.shape[: key.ndim] != key.shape:
        raise TypeError(
            "random_gamma needs floating shape parameters with the dimensions of the keys first,"
            f" got {key.str_short()} and {alpha.str_short()}"
        )
    return ShapedArray(alpha.shape, alpha.dtype)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, log_space: bool) -> tuple[Any, Any]:
    (key, alpha), (_, t) = primals, tangents
    out = random_gamma_p.bind(key, alpha, log_space=log_space)
    if type(t) is Zero:
        return out, Zero(typeof(out))
    if not log_space:
        return out, t * random_gamma_grad(alpha, out)
    value = jnp.exp(out)
    value = jnp.where(value == 0, finfo(out.dtype).tiny, value)
    return out, t * (random_gamma_grad(alpha, value) / value)


def _batch(args: Sequence[Any], dims: Sequence[Any], *, log_space: bool) -> tuple[Any, int]:
    n = next(typeof(x).shape[d] for x, d in zip(args, dims) if d is not None)
    both = [broadcast(x, (n,)) if d is None else move(x, d, 0) for x, d in zip(args, dims)]
    return random_gamma_p.bind(*both, log_space=log_space), 0


random_gamma_p: Primitive = Primitive(
    "random_gamma",
    meaning=_meaning,
    shape=_shape,
    jvp=_jvp,
    transpose=not_linear("random_gamma"),
    batch=_batch,
)
random_gamma_p.program = _program


def _gamma(name: str, key: Any, a: Any, shape: Any, dtype: Any, log_space: bool) -> Any:
    typed, _ = wrapped(key, name)
    d = float_dtype(name, dtype)
    shape = parameter_shape(name, shape, a)
    alpha = parameter(a, d, shape)
    return random_gamma_p.bind(typed, alpha, log_space=log_space)


@placed
def gamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Draws numbers of the gamma distribution of scale 1. They can be differentiated in `a`.

    Args:
        key: A random key.
        a: The shape of the distribution, positive; it broadcasts to `shape`.
        shape: The shape of the result; None takes that of the parameters together.
        dtype: A floating-point dtype; None means float32 (float64 where 64-bit types are enabled).
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.random.gamma(jax.random.key(0), 2.0, (3,)).shape
    (3,)"""
    return _gamma("gamma", key, a, shape, dtype, False)


@placed
def loggamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Draws logarithms of numbers of the gamma distribution, exact also where these are tiny.

    Args:
        key: A random key.
        a: The shape of the distribution, positive; it broadcasts to `shape`.
        shape: The shape of the result; None takes that of the parameters together.
        dtype: A floating-point dtype; None means float32 (float64 where 64-bit types are enabled).
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.random.loggamma(jax.random.key(0), 1e-3) < 0
    Array(True, dtype=bool)"""
    return _gamma("loggamma", key, a, shape, dtype, True)


@placed
def beta(
    key: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Draws numbers of the beta distribution, from 0 to 1.

    Args:
        key: A random key.
        a: Its first shape, positive; it broadcasts to `shape`.
        b: Its second shape, likewise.
        shape: The shape of the result; None takes that of the parameters together.
        dtype: A floating-point dtype; None means float32 (float64 where 64-bit types are enabled).
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.random.beta(jax.random.key(0), 2.0, 2.0, (3,)).shape
    (3,)"""
    typed, _ = wrapped(key, "beta")
    d = float_dtype("beta", dtype)
    shape = parameter_shape("beta", shape, a, b)
    keys = pair(typed)
    x, y = (loggamma(k, parameter(v, d), shape, d) for k, v in zip(keys, (a, b)))
    top = jnp.maximum(x, y)
    x, y = drawn_exp(x - top), drawn_exp(y - top)
    return x / (x + y)


@placed
def dirichlet(
    key: ArrayLike,
    alpha: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Draws vectors of probabilities, which add up to 1.

    Args:
        key: A random key.
        alpha: The concentrations, positive, along the last axis.
        shape: The shape of the batch of vectors; None takes that of `alpha` without its last axis.
        dtype: A floating-point dtype; None means float32 (float64 where 64-bit types are enabled).
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array of shape (*shape, alpha.shape[-1]).

    >>> jax.random.dirichlet(jax.random.key(0), jnp.ones(3), (2,)).shape
    (2, 3)"""
    typed, _ = wrapped(key, "dirichlet")
    d = float_dtype("dirichlet", dtype)
    check_arraylike("dirichlet", alpha)
    own = typeof(alpha).shape
    if not own:
        raise ValueError("dirichlet requires alpha.ndim >= 1, got alpha.ndim == 0")
    lead = own[:-1] if shape is None else canonical_shape(shape)
    logs = loggamma(typed, parameter(alpha, d), (*lead, own[-1]), d)
    top = stop_gradient(jnp.max(logs, axis=-1, keepdims=True, initial=-math.inf))
    e = drawn_exp(logs - top)
    return e / jnp.sum(e, axis=-1, keepdims=True)


@placed
def chisquare(
    key: ArrayLike,
    df: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Draws numbers of the chi-square distribution.

    Args:
        key: A random key.
        df: The degrees of freedom, positive; it broadcasts to `shape`.
        shape: The shape of the result; None takes that of the parameters together.
        dtype: A floating-point dtype; None means float32 (float64 where 64-bit types are enabled).
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.random.chisquare(jax.random.key(0), 3.0, (2,)).shape
    (2,)"""
    typed, _ = wrapped(key, "chisquare")
    d = float_dtype("chisquare", dtype)
    shape = parameter_shape("chisquare", shape, df)
    return drawn_exp(loggamma(typed, parameter(df, d) / 2, shape, d)) * 2


@placed
def f(
    key: ArrayLike,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Draws numbers of the F distribution.

    Args:
        key: A random key.
        dfnum: The degrees of freedom of the numerator, positive; it broadcasts to `shape`.
        dfden: Those of the denominator, likewise.
        shape: The shape of the result; None takes that of the parameters together.
        dtype: A floating-point dtype; None means float32 (float64 where 64-bit types are enabled).
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.random.f(jax.random.key(0), 3.0, 5.0, (2,)).shape
    (2,)"""
    typed, _ = wrapped(key, "f")
    d = float_dtype("f", dtype)
    shape = parameter_shape("f", shape, dfnum, dfden)
    dfnum, dfden = parameter(dfnum, d), parameter(dfden, d)
    below, above = pair(typed)
    numerator, denominator = chisquare(above, dfnum, shape, d), chisquare(below, dfden, shape, d)
    if d == bfloat16:
        return over(numerator, dfnum) / over(denominator, dfden)
    return (numerator * dfden) / (dfnum * denominator)


@placed
def t(
    key: ArrayLike,
    df: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Draws numbers of Student's t distribution.

    Args:
        key: A random key.
        df: The degrees of freedom, positive; it broadcasts to `shape`.
        shape: The shape of the result; None takes that of the parameters together.
        dtype: A floating-point dtype; None means float32 (float64 where 64-bit types are enabled).
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.random.t(jax.random.key(0), 3.0, (2,)).shape
    (2,)"""
    typed, _ = wrapped(key, "t")
    d = float_dtype("t", dtype)
    shape = parameter_shape("t", shape, df)
    first, second = pair(typed)
    n = real_normal(first, shape, d)
    half = parameter(df, d) / 2
    return n * jnp.sqrt(half / gamma(second, half, shape, d))


@placed
def generalized_normal(
    key: ArrayLike,
    p: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Draws numbers whose density is proportional to exp(-|x|**p).

    Args:
        key: A random key.
        p: The exponent, positive.
        shape: The shape of the result.
        dtype: A floating-point dtype; None means float32 (float64 where 64-bit types are enabled).
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.random.generalized_normal(jax.random.key(0), 3.0, (2,)).shape
    (2,)"""
    typed, _ = wrapped(key, "generalized_normal")
    d = float_dtype("generalized_normal", dtype)
    shape = canonical_shape(shape)
    first, second = pair(typed)
    inverse = parameter(jnp.divide(1, p), d)
    size = drawn_pow(gamma(first, inverse, shape, d), inverse)
    return rademacher(second, shape, d) * size


@placed
def ball(
    key: ArrayLike,
    d: int,
    p: ArrayLike = 2,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Draws points that are evenly distributed in the unit ball of a p-norm.

    Args:
        key: A random key.
        d: The number of dimensions.
        p: The exponent of the norm, positive.
        shape: The shape of the batch of points.
        dtype: A floating-point dtype; None means float32 (float64 where 64-bit types are enabled).
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array of shape (*shape, d).

    >>> jax.random.ball(jax.random.key(0), 3, shape=(2,)).shape
    (2, 3)"""
    typed, _ = wrapped(key, "ball")
    dt = float_dtype("ball", dtype)
    shape = canonical_shape(shape)
    (dim,) = canonical_shape(d)
    first, second = pair(typed)
    g = generalized_normal(first, p, (*shape, dim), dt)
    powers = drawn_pow(jnp.abs(g), convert(p, dt))
    total = jnp.sum(powers, axis=-1) + exponential(second, shape, dt)
    radius = drawn_pow(total, parameter(jnp.divide(1, p), dt))
    return g / jnp.expand_dims(radius, -1)
