"""The gamma distribution, and those that are made of it.

Marsaglia and Tsang, "A simple method for generating gamma variables" (2000): each element draws
from a key of its own until a candidate is accepted. Derivatives by the shape parameter are those of
the implicit reparametrisation.
"""

import functools
from typing import Any

import numpy as np

from calque.core.dtypes import finfo
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.numpy import reductions
from calque.numpy.creation import canonical_shape, placed
from calque.numpy.promotion import broadcast_to, check_arraylike, convert
from calque.numpy.shaping import expand_dims
from calque.numpy.ufuncs import UFUNCS
from calque.random.distributions import exponential, real_normal
from calque.random.keys import wrapped
from calque.random.uniform import (
    broadcast_one,
    float_dtype,
    keys_of,
    pair,
    parameter,
    parameter_shape,
    rademacher,
    scalar,
    uniform_between,
)
from calque.transforms.functions.loops import while_loop
from calque.transforms.functions.vmap import vmap
from calque.transforms.primitives.custom_jvp import custom_jvp

# ---------------------------------------------------------------- one value


def _candidate(key: Any, slope: Any, dtype: Any) -> tuple[Any, Any]:
    """A normal number x and 1 + slope x, which is positive."""

    def draw(state: Any) -> Any:
        key, sub = pair(state[0])
        x = real_normal(sub, (), dtype)
        return key, x, do.add(scalar(1, dtype), do.mul(x, slope))

    first = (key, scalar(0, dtype), scalar(-1, dtype))
    return while_loop(lambda state: do.le(state[2], scalar(0, dtype)), draw, first)[1:]


def _one(key: Any, alpha: Any, log_space: bool) -> Any:
    """A gamma value. For alpha below 1 that of alpha + 1 is scaled by a power of a uniform
    number."""
    dtype = typeof(alpha).dtype

    def number(v):
        return scalar(v, dtype)

    large = do.ge(alpha, number(1))
    d = do.sub(do.select_n(large, do.add(alpha, number(1)), alpha), number(1 / 3))
    slope = do.div(number(1 / 3), do.sqrt(d))

    def rejected(state: Any) -> Any:
        _, x2, v, u = state
        outside = do.ge(u, do.sub(number(1), do.mul(number(0.0331), do.mul(x2, x2))))
        bound = do.add(do.mul(x2, number(0.5)), do.mul(d, do.add(do.sub(number(1), v), do.log(v))))
        return getattr(do, "and")(outside, do.ge(do.log(u), bound))

    def draw(state: Any) -> Any:
        key, for_x, for_u = keys_of(state[0], 3)
        x, v = _candidate(for_x, slope, dtype)
        u = uniform_between(for_u, (), dtype, 0.0, 1.0)
        return key, do.mul(x, x), do.mul(do.mul(v, v), v), u

    key, for_boost = pair(key)
    v = while_loop(rejected, draw, (key, number(0), number(1), number(2)))[2]
    exponent = do.div(number(1), alpha)
    if log_space:
        log_u = do.neg(exponential(for_boost, (), dtype))
        none = getattr(do, "or")(large, do.eq(log_u, number(0)))
        boost = do.select_n(none, do.mul(log_u, exponent), number(0))
        return do.add(do.add(do.log(d), do.log(v)), boost)
    u = do.sub(number(1), uniform_between(for_boost, (), dtype, 0.0, 1.0))
    return do.mul(do.mul(d, v), do.select_n(large, do.pow(u, exponent), number(1)))


# ---------------------------------------------------------------- arrays of values


@functools.partial(custom_jvp, nondiff_argnums=(0, 2))
def _values(key: Any, alpha: Any, log_space: bool) -> Any:
    shape, size = typeof(alpha).shape, typeof(alpha).size
    flat = do.reshape(alpha, new_sizes=(size,), dimensions=None, sharding=None)
    keys = do.random_split(key, shape=(size,))
    out = vmap(functools.partial(_one, log_space=log_space))(keys, flat)
    return do.reshape(out, new_sizes=shape, dimensions=None, sharding=None)


@_values.defjvp
def _values_jvp(key: Any, log_space: bool, primals: Any, tangents: Any) -> Any:
    (alpha,), (t,) = primals, tangents
    out = _values(key, alpha, log_space)
    if not log_space:
        return out, do.mul(t, do.random_gamma_grad(alpha, out))
    smallest = broadcast_to(
        scalar(finfo(typeof(out).dtype).tiny, typeof(out).dtype), typeof(out).shape
    )
    value = do.exp(out)
    value = do.select_n(do.eq(value, scalar(0, typeof(out).dtype)), value, smallest)
    return out, do.mul(t, do.div(do.random_gamma_grad(alpha, value), value))


def _gamma(name: str, key: Any, a: Any, shape: Any, dtype: Any, log_space: bool) -> Any:
    typed, _ = wrapped(key, name)
    d = float_dtype(name, dtype)
    shape = parameter_shape(name, shape, a)
    return _values(typed, parameter(a, d, shape), log_space)


@placed
def gamma(
    key: Any, a: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Gamma values with shape parameter a and scale 1.

    >>> import calque
    >>> calque.random.gamma(calque.random.key(0), 2.0, (3,)).shape
    (3,)"""
    return _gamma("gamma", key, a, shape, dtype, False)


@placed
def loggamma(
    key: Any, a: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Logarithms of gamma values, precise for small a.

    >>> import calque
    >>> bool(calque.random.loggamma(calque.random.key(0), 1e-3) < 0)
    True"""
    return _gamma("loggamma", key, a, shape, dtype, True)


@placed
def beta(
    key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Beta values in (0, 1)."""
    typed, _ = wrapped(key, "beta")
    d = float_dtype("beta", dtype)
    shape = parameter_shape("beta", shape, a, b)
    keys = pair(typed)
    x, y = (loggamma(k, convert(v, d), shape, d) for k, v in zip(keys, (a, b)))
    top = do.max(x, y)
    x, y = do.exp(do.sub(x, top)), do.exp(do.sub(y, top))
    return do.div(x, do.add(x, y))


@placed
def dirichlet(
    key: Any, alpha: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Probabilities that sum to 1 over the last axis, with concentrations alpha.

    >>> import calque, calque.numpy as jnp
    >>> calque.random.dirichlet(calque.random.key(0), jnp.ones(3), (2,)).shape
    (2, 3)"""
    typed, _ = wrapped(key, "dirichlet")
    d = float_dtype("dirichlet", dtype)
    check_arraylike("dirichlet", alpha)
    own = typeof(alpha).shape
    if not own:
        raise ValueError("dirichlet requires alpha.ndim >= 1, got alpha.ndim == 0")
    lead = own[:-1] if shape is None else canonical_shape(shape)
    logs = loggamma(typed, convert(alpha, d), (*lead, own[-1]), d)
    top = do.stop_gradient(reductions.max(logs, axis=-1, keepdims=True, initial=-np.inf))
    e = UFUNCS["exp"](UFUNCS["subtract"](logs, top))
    return UFUNCS["true_divide"](e, reductions.sum(e, axis=-1, keepdims=True))


@placed
def chisquare(
    key: Any, df: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Chi-square values with df degrees of freedom."""
    typed, _ = wrapped(key, "chisquare")
    d = float_dtype("chisquare", dtype)
    shape = parameter_shape("chisquare", shape, df)
    half = UFUNCS["true_divide"](convert(df, d), scalar(2, d))
    return do.mul(do.exp(loggamma(typed, half, shape, d)), scalar(2, d))


@placed
def f(
    key: Any,
    dfnum: Any,
    dfden: Any,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """F values with dfnum and dfden degrees of freedom."""
    typed, _ = wrapped(key, "f")
    d = float_dtype("f", dtype)
    shape = parameter_shape("f", shape, dfnum, dfden)
    dfnum, dfden = convert(dfnum, d), convert(dfden, d)
    below, above = pair(typed)
    numerator = UFUNCS["true_divide"](chisquare(above, dfnum, shape, d), dfnum)
    return do.div(numerator, UFUNCS["true_divide"](chisquare(below, dfden, shape, d), dfden))


@placed
def t(key: Any, df: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Student's t values with df degrees of freedom."""
    typed, _ = wrapped(key, "t")
    d = float_dtype("t", dtype)
    shape = parameter_shape("t", shape, df)
    first, second = pair(typed)
    n = real_normal(first, shape, d)
    half = UFUNCS["true_divide"](convert(df, d), scalar(2, d))
    g = gamma(second, half, shape, d)
    return do.mul(n, do.sqrt(UFUNCS["true_divide"](half, g)))


@placed
def generalized_normal(
    key: Any, p: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Values with density proportional to exp(-|x|^p)."""
    typed, _ = wrapped(key, "generalized_normal")
    d = float_dtype("generalized_normal", dtype)
    shape = canonical_shape(shape)
    first, second = pair(typed)
    inverse = convert(UFUNCS["true_divide"](1, p), d)
    g = gamma(first, inverse, shape, d)
    return do.mul(rademacher(second, shape, d), UFUNCS["power"](g, inverse))


@placed
def ball(
    key: Any, d: int, p: Any = 2, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Points evenly distributed in the unit ball of the p-norm in d dimensions.

    >>> import calque
    >>> calque.random.ball(calque.random.key(0), 3, shape=(2,)).shape
    (2, 3)"""
    typed, _ = wrapped(key, "ball")
    dt = float_dtype("ball", dtype)
    shape = canonical_shape(shape)
    (dim,) = canonical_shape(d)
    first, second = pair(typed)
    g = generalized_normal(first, p, (*shape, dim), dt)
    powers = do.pow(do.abs(g), broadcast_one(convert(p, dt), ()))
    total = do.add(reductions.sum(powers, axis=-1), exponential(second, shape, dt))
    radius = UFUNCS["power"](total, convert(UFUNCS["true_divide"](1, p), dt))
    return UFUNCS["true_divide"](g, expand_dims(radius, -1))
