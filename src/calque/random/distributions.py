"""Distributions by transformation of uniform numbers."""

from typing import Any

import numpy as np

from calque.core.dtypes import (
    as_dtype,
    canonicalize,
    complex_of,
    finfo,
    is_complex,
    is_inexact,
    real_part,
)
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.numpy import reductions
from calque.numpy.creation import canonical_shape, placed
from calque.numpy.promotion import (
    broadcast_shapes,
    broadcast_to,
    canonical_axis,
    check_arraylike,
    convert,
    promote_inexact,
)
from calque.numpy.ufuncs import UFUNCS
from calque.random.keys import wrapped
from calque.random.uniform import (
    broadcast_one,
    float_dtype,
    pair,
    parameter,
    parameter_shape,
    rademacher,
    scalar,
    two_uniforms,
    uniform_between,
    where,
)  # fmt: skip


def tiny(dtype: Any) -> Any:
    return scalar(finfo(dtype).tiny, dtype)


@placed
def normal(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
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
    return do.div(value, scalar(np.sqrt(2), complex_of(real)))


def real_normal(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    low = np.nextafter(np.asarray(-1, dtype), np.asarray(0, dtype), dtype=dtype)
    u = uniform_between(key, shape, dtype, low, scalar(1, dtype))
    return do.mul(scalar(np.sqrt(2), dtype), do.erf_inv(u))


@placed
def truncated_normal(
    key: Any,
    lower: Any,
    upper: Any,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Standard normal values within [lower, upper]."""
    typed, _ = wrapped(key, "truncated_normal")
    d = float_dtype("truncated_normal", dtype)
    shape = parameter_shape("truncated_normal", shape, lower, upper)
    root = scalar(np.sqrt(2), d)
    lower, upper = convert(lower, d), convert(upper, d)
    a, b = do.erf(do.div(lower, root)), do.erf(do.div(upper, root))
    out = do.mul(root, do.erf_inv(uniform_between(typed, shape, d, a, b)))
    low = do.nextafter(do.stop_gradient(lower), scalar(np.inf, d))
    high = do.nextafter(do.stop_gradient(upper), scalar(-np.inf, d))
    return do.min(broadcast_one(high, shape), do.max(broadcast_one(low, shape), out))


@placed
def exponential(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Values with density exp(-x)."""
    typed, _ = wrapped(key, "exponential")
    d = float_dtype("exponential", dtype)
    u = uniform_between(typed, canonical_shape(shape), d, 0.0, 1.0)
    return do.neg(do.log1p(do.neg(u)))


@placed
def gumbel(
    key: Any,
    shape: Any = (),
    dtype: Any = None,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Standard Gumbel values: -log(-log(u))."""
    typed, _ = wrapped(key, "gumbel")
    d = float_dtype("gumbel", dtype)
    if mode not in (None, "low", "high"):
        raise ValueError(f"Must provide valid mode for gumbel got: {mode}")
    shape = canonical_shape(shape)
    if mode == "high":  # numbers near 0 get further bits
        coarse, fine = two_uniforms(typed, shape, d)
        finer = do.add(do.add(coarse, do.mul(fine, scalar(finfo(d).eps, d))), tiny(d))
        u = do.select_n(do.ge(coarse, scalar(0.5, d)), finer, coarse)
        return do.neg(do.log(do.neg(do.log1p(do.neg(u)))))
    u = uniform_between(typed, shape, d, tiny(d), 1.0)
    return do.neg(do.log(do.neg(do.log(u))))


@placed
def laplace(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Values with density exp(-|x|) / 2."""
    typed, _ = wrapped(key, "laplace")
    d = float_dtype("laplace", dtype)
    low = scalar(-1 + finfo(d).epsneg, d)
    u = uniform_between(typed, canonical_shape(shape), d, low, 1.0)
    return do.mul(do.sign(u), do.log1p(do.neg(do.abs(u))))


@placed
def logistic(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Standard logistic values: log(u / (1 - u))."""
    typed, _ = wrapped(key, "logistic")
    d = float_dtype("logistic", dtype)
    u = uniform_between(typed, canonical_shape(shape), d, tiny(d), 1.0)
    return do.sub(do.log(u), do.log1p(do.neg(u)))


@placed
def cauchy(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Standard Cauchy values."""
    typed, _ = wrapped(key, "cauchy")
    d = float_dtype("cauchy", dtype)
    u = uniform_between(typed, canonical_shape(shape), d, scalar(finfo(d).eps, d), 1.0)
    return do.tan(do.mul(scalar(np.pi, d), do.sub(u, scalar(0.5, d))))


@placed
def pareto(
    key: Any, b: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Pareto values with shape parameter b."""
    d = float_dtype("pareto", dtype)
    shape = parameter_shape("pareto", shape, b)
    e = exponential(key, shape, d)
    return do.exp(UFUNCS["true_divide"](e, broadcast_one(convert(b, d), shape)))


@placed
def rayleigh(
    key: Any, scale: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Rayleigh values."""
    typed, _ = wrapped(key, "rayleigh")
    d = float_dtype("rayleigh", dtype)
    shape = parameter_shape("rayleigh", shape, scale)
    log_u = do.log(uniform_between(typed, shape, d, 0.0, 1.0))
    return UFUNCS["multiply"](
        broadcast_one(convert(scale, d), shape), do.sqrt(do.mul(log_u, scalar(-2, d)))
    )


@placed
def weibull_min(
    key: Any,
    scale: Any,
    concentration: Any,
    shape: Any = (),
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Weibull values."""
    typed, _ = wrapped(key, "weibull_min")
    d = float_dtype("weibull_min", dtype)
    u = uniform_between(typed, canonical_shape(shape), d, 0.0, 1.0)
    e = do.neg(do.log1p(do.neg(u)))
    power = UFUNCS["power"](e, UFUNCS["true_divide"](scalar(1, d), convert(concentration, d)))
    return UFUNCS["multiply"](power, convert(scale, d))


@placed
def maxwell(key: Any, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None) -> Any:
    """Maxwell values: lengths of normal vectors in three dimensions."""
    typed, _ = wrapped(key, "maxwell")
    d = float_dtype("maxwell", dtype)
    parts = real_normal(typed, (*canonical_shape(shape), 3), d)
    return do.sqrt(reductions.sum(do.mul(parts, parts), axis=-1))


def double_sided_maxwell(key: Any, loc: Any, scale: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Maxwell values with random signs, scaled and shifted: `shape` of them (by default as many as
    parameters) for each of the parameters."""
    typed, _ = wrapped(key, "double_sided_maxwell")
    d = float_dtype("double_sided_maxwell", dtype)
    check_arraylike("double_sided_maxwell", loc, scale)
    loc, scale = convert(loc, d), convert(scale, d)
    shape = canonical_shape(shape)
    common = broadcast_shapes("double_sided_maxwell", typeof(loc).shape, typeof(scale).shape)
    whole = (*(shape or common), *common)
    first, second = pair(typed)
    sides = do.mul(rademacher(second, whole, d), maxwell(first, whole, d))
    return UFUNCS["add"](UFUNCS["multiply"](sides, scale), loc)


@placed
def wald(
    key: Any, mean: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Wald (inverse Gaussian) values with scale 1."""
    typed, _ = wrapped(key, "wald")
    d = float_dtype("wald", dtype)
    shape = parameter_shape("wald", shape, mean)
    first, second = pair(typed)
    m = parameter(mean, d, shape)
    z, u = real_normal(first, shape, d), uniform_between(second, shape, d, 0.0, 1.0)
    y = z**2
    root = do.sqrt(4 * m * y + m**2 * y**2)
    x = m + m**2 * y / 2 - m / 2 * root
    return do.select_n(u <= m / (m + x), m**2 / x, x)


@placed
def triangular(
    key: Any,
    left: Any,
    mode: Any,
    right: Any,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Values with a density that rises from left to mode and falls to right."""
    typed, _ = wrapped(key, "triangular")
    d = float_dtype("triangular", dtype)
    shape = parameter_shape("triangular", shape, left, mode, right)
    left, mode, right = (parameter(x, d, shape) for x in (left, mode, right))
    u = uniform_between(typed, shape, d, 0.0, 1.0)
    width = UFUNCS["subtract"](right, left)
    rising = UFUNCS["subtract"](mode, left)
    up = UFUNCS["add"](left, do.sqrt(u * width * rising))
    down = UFUNCS["subtract"](right, do.sqrt((1 - u) * width * UFUNCS["subtract"](right, mode)))
    return where(UFUNCS["less"](u, UFUNCS["true_divide"](rising, width)), up, down)


@placed
def lognormal(
    key: Any, sigma: Any = 1.0, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """exp of normal values with standard deviation sigma."""
    typed, _ = wrapped(key, "lognormal")
    d = float_dtype("lognormal", dtype)
    shape = parameter_shape("lognormal", shape, sigma)
    return do.exp(UFUNCS["multiply"](real_normal(typed, shape, d), convert(sigma, d)))


@placed
def categorical(
    key: Any,
    logits: Any,
    axis: int = -1,
    shape: Any = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Any:
    """Positions drawn with probabilities softmax(logits) along an axis.

    >>> import calque, calque.numpy as jnp
    >>> calque.random.categorical(calque.random.key(0), jnp.zeros((3, 4))).shape
    (3,)"""
    typed, _ = wrapped(key, "categorical")
    check_arraylike("categorical", logits)
    (logits,) = promote_inexact(logits)
    own = typeof(logits).shape
    k = canonical_axis(axis, len(own))
    batch = own[:k] + own[k + 1 :]
    shape = batch if shape is None else canonical_shape(shape)
    if shape[len(shape) - len(batch) :] != batch:
        raise ValueError(
            f"categorical: shape {shape} must end with the batch shape {batch} of logits"
        )
    lead = shape[: len(shape) - len(batch)]
    if not replace:
        return _without_replacement(typed, logits, k, lead, mode)
    noise = gumbel(typed, (*lead, *own), typeof(logits).dtype, mode)
    return reductions.argmax(do.add(noise, broadcast_to(logits, (*lead, *own))), axis=k + len(lead))


def _without_replacement(key: Any, logits: Any, axis: int, lead: tuple[int, ...], mode: Any) -> Any:
    n = int(np.prod(lead, dtype=np.int64))
    own = typeof(logits).shape
    if n > own[axis]:
        raise ValueError(
            f"Number of samples without replacement ({n}) cannot exceed number of categories"
            f" ({own[axis]})."
        )
    scores = do.add(gumbel(key, own, typeof(logits).dtype, mode), logits)
    order = [i for i in range(len(own)) if i != axis] + [axis]
    _, places = do.top_k(do.transpose(scores, permutation=tuple(order)), k=n, axis=len(own) - 1)
    batch = tuple(own[i] for i in order[:-1])
    moved = do.transpose(places, permutation=(len(batch), *range(len(batch))))
    return do.reshape(moved, new_sizes=(*lead, *batch), dimensions=None, sharding=None)
