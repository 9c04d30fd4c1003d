"""Distributions of whole numbers: geometric, Poisson, binomial, multinomial.

Poisson and binomial values are drawn by inversion where the mean is small and by the transformed
rejection of Hoermann ("The transformed rejection method for generating Poisson random variables",
1993) where it is large; all elements at once, until the last one is accepted."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from calque import numpy as jnp
from calque.core.arrays import Array, to_array
from calque.core.dtypes import canonicalize, finfo, inexact_of
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike, DTypeLike, ShapeLike
from calque.numpy.creation import canonical_shape, placed
from calque.numpy.promotion import (
    broadcast_shapes,
    broadcast_to,
    check_arraylike,
    common_type,
    convert,
    promote_inexact,
)
from calque.numpy.signatures import OutSharding
from calque.ops.special import drawn_log, drawn_log1p, lgamma
from calque.random.keys import wrapped
from calque.random.uniform import (
    float_dtype,
    int_dtype,
    keys_of,
    pair,
    parameter,
    parameter_shape,
    scalar,
    uniform_between,
)
from calque.transforms.functions.loops import scan, while_loop

_INT32_MAX = np.iinfo(np.int32).max


@placed
def geometric(
    key: ArrayLike,
    p: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Draws numbers of trials up to the first success.

    Args:
        key: A random key.
        p: The probability of a success; it broadcasts to `shape`.
        shape: The shape of the result; None takes that of the parameters together.
        dtype: An integer dtype; None means int32 (int64 where enabled).
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.random.geometric(jax.random.key(0), 0.5, (4,))
    Array([1, 1, 2, 2], dtype=int32)"""
    typed, _ = wrapped(key, "geometric")
    d = int_dtype("geometric", dtype)
    check_arraylike("geometric", p)
    p = to_array(promote_inexact(p)[0])
    shape = parameter_shape("geometric", shape, p)
    u = uniform_between(typed, shape, typeof(p).dtype, 0.0, 1.0)
    tries = drawn_log(jnp.where(u == 0, 1.0, u)) / drawn_log1p(-p)
    return convert(jnp.floor(tries) + 1, d)


# ---------------------------------------------------------------- Poisson


# From here on the sum of logarithms by which JAX accepts a number is wrong by more than a tenth:
# the variance of what is drawn would be a few hundredths off at a million.
_LARGE_RATE = 1 << 15


@placed
def poisson(
    key: ArrayLike,
    lam: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: OutSharding = None,
) -> Array:
    """Draws numbers of the Poisson distribution.

    Args:
        key: A random key.
        lam: The rate, not negative; it broadcasts to `shape`.
        shape: The shape of the result; None takes that of the parameters together.
        dtype: An integer dtype; None means int32 (int64 where enabled).
        out_sharding: How the result is laid out over devices; None leaves it open.

    Returns:
        An array.

    >>> jax.random.poisson(jax.random.key(0), 3.0, (4,))
    Array([0, 0, 4, 4], dtype=int32)"""
    typed, _ = wrapped(key, "poisson")
    d = int_dtype("poisson", dtype)
    shape = parameter_shape("poisson", shape, lam)
    rate = parameter(lam, np.dtype("float32"), shape)
    few = jnp.isnan(rate) | (rate < 10)
    again = do.random_clone(typed)  # of the two ways one counts for each number
    small = _poisson_inversion(again, jnp.where(few, rate, 0.0), shape)
    large = _poisson_rejection(typed, jnp.where(few, 1e5, rate), shape)
    out = jnp.where(few, convert(small, d), convert(large, d))
    return jnp.where(rate == 0, np.zeros((), d), out)


def _poisson_inversion(key: Any, rate: Any, shape: tuple[int, ...]) -> Any:
    """Knuth: how many uniform numbers have a product above exp(-rate)."""
    f32 = np.dtype("float32")

    def go_on(state: Any) -> Any:
        i, _, _, log_product = state
        return jnp.any(log_product > -rate) & (i < _INT32_MAX)

    def draw(state: Any) -> Any:
        i, k, key, log_product = state
        key, sub = pair(key)
        k = jnp.where(log_product > -rate, k + 1, k)
        return i + 1, k, key, log_product + drawn_log(uniform_between(sub, shape, f32, 0.0, 1.0))

    start = (np.int32(0), _filled(shape, 0, np.int32), key, _filled(shape, 0, f32))
    return while_loop(go_on, draw, start)[1] - 1


def _filled(shape: tuple[int, ...], value: Any, dtype: Any) -> Any:
    return broadcast_to(np.asarray(value, dtype), shape)


def _accept(
    key: Any,
    shape: tuple[int, ...],
    dtype: Any,
    limit: Any,
    propose: Callable[[Any, Any], tuple[Any, Any]],
    given: Any = None,
) -> Any:
    """The first proposals that are accepted. `propose(u, v)` makes (value, accepted) of two uniform
    numbers of a dtype; values are of that, too, or of the one `given`."""

    def go_on(state: Any) -> Any:
        i, _, accepted, _ = state
        return jnp.any(~accepted) & (convert(i, typeof(limit).dtype) < limit)

    def draw(state: Any) -> Any:
        i, out, accepted, key = state
        key, first, second = keys_of(key, 3)
        u = uniform_between(first, shape, dtype, 0.0, 1.0) - 0.5
        value, ok = propose(u, uniform_between(second, shape, dtype, 0.0, 1.0))
        return i + 1, jnp.where(ok, value, out), accepted | ok, key

    kind = dtype if given is None else given
    start = (np.int32(0), _filled(shape, -1, kind), _filled(shape, False, bool), key)
    return while_loop(go_on, draw, start)[1]


def _poisson_rejection(key: Any, rate: Any, shape: tuple[int, ...]) -> Any:
    f32 = np.dtype("float32")
    log_rate = drawn_log(rate)
    b = 0.931 + 2.53 * jnp.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)

    def propose(u: Any, v: Any) -> tuple[Any, Any]:
        room = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / room + b) * u + rate + 0.43)
        s = drawn_log(v * inverse_alpha / (a / (room * room) + b))
        bound = -rate + k * log_rate - lgamma(k + 1)
        bound = jnp.where(rate < _LARGE_RATE, bound, _log_poisson(k, rate))
        inside = (room >= 0.07) & (v <= v_r)
        refused = (k < 0) | ((room < 0.013) & (v > room))
        return k, inside | (~refused & (s <= bound))

    return convert(
        _accept(key, shape, f32, np.asarray(_INT32_MAX, np.int32), propose), np.dtype("int32")
    )


def _log_poisson(k: Any, rate: Any) -> Any:
    """log(exp(-rate) rate^k / k!) from how far k + 1 is from the rate, with Stirling's series."""
    m = k + 1
    x = (m - rate) / rate
    log_ratio = drawn_log1p(x)
    distance = rate * ((1 + x) * log_ratio - x)
    square = m * m
    tail = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / m
    return log_ratio - distance - 0.5 * drawn_log(2 * np.pi * m) - tail


# ---------------------------------------------------------------- binomial

# log(k!) less Stirling's approximation of it, for k = 0, 1, ..., 9
_STIRLING_TAILS = (
    0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509,
    0.0166446911898211,
    0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273,
    0.00833056343336287,
)  # fmt: skip


def _stirling_tail(k: Any) -> Any:
    """What Stirling's approximation of log(k!) lacks. Above 9 the value at 9 stands for all, so
    that the same numbers are accepted as in JAX."""
    dtype = typeof(k).dtype
    small = jnp.clip(k, 0, 9)
    square = (small + 1) * (small + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (small + 1)
    table = broadcast_to(np.asarray(0, dtype), typeof(k).shape)
    place = jnp.floor(small)
    for i, tail in enumerate(_STIRLING_TAILS):
        table = jnp.where(place == i, scalar(tail, dtype), table)
    return jnp.where(k <= 9, table, series)


def binomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Draws numbers of successes of several trials.

    Args:
        key: A random key.
        n: The number of trials; it broadcasts to `shape`.
        p: The probability of a success, likewise.
        shape: The shape of the result; None takes that of the parameters together.
        dtype: A floating-point dtype; None means float32 (float64 where enabled).

    Returns:
        An array of whole numbers, as floats.

    >>> jax.random.binomial(jax.random.key(0), 5, 1.0)
    Array(5., dtype=float32)"""
    typed, _ = wrapped(key, "binomial")
    d = float_dtype("binomial", dtype)
    check_arraylike("binomial", n, p)
    shape = parameter_shape("binomial", shape, n, p)
    aval = typeof(p)
    own = canonicalize(float) if aval.weak_type else inexact_of(aval.dtype)  # of what is drawn
    p = parameter(p, own, shape)
    n = parameter(n, inexact_of(common_type(n, p)[0]), shape)
    return convert(_binomial(typed, n, p, shape, own), d)


def _binomial(key: Any, n: Any, p: Any, shape: tuple[int, ...], d: Any) -> Any:
    mirrored = p >= 0.5
    q = jnp.where(mirrored, 1 - p, p)
    bad_n, bad_q = jnp.isnan(n) | (n < 0), jnp.isnan(q) | (q < 0)
    endless = jnp.isinf(n)
    q = jnp.where(bad_q, 0.01, q)
    few = bad_n | (n * q <= 10)
    whole = jnp.floor(n)
    again = do.random_clone(key)  # of the two ways one counts for each number
    small = _binomial_inversion(again, jnp.where(few, whole, 0), q, shape, d)
    large = _binomial_rejection(key, jnp.where(few, 1e4, whole), jnp.where(few, 0.5, q), shape, d)
    invalid = bad_q | jnp.isnan(p) | bad_n
    out = jnp.where(invalid, math.nan, jnp.where(few, small, large))
    out = jnp.where(endless & ~invalid, math.inf, out)
    return jnp.where(mirrored & ~(invalid | endless), whole - out, out)


def _binomial_inversion(key: Any, n: Any, p: Any, shape: tuple[int, ...], d: Any) -> Any:
    """How many geometric steps fit into n."""
    log_failure = drawn_log1p(-p)
    limit = scalar(finfo(d).max, d)

    def go_on(state: Any) -> Any:
        i, _, total, _ = state
        return jnp.any(total <= n) & (convert(i, d) < limit)

    def draw(state: Any) -> Any:
        i, count, total, key = state
        sub, key = pair(key)
        count = jnp.where(total <= n, count + 1, count)
        step = jnp.ceil(drawn_log(uniform_between(sub, shape, d, 0.0, 1.0)) / log_failure)
        return i + 1, count, total + step, key

    start = (np.int32(0), _filled(shape, 0, d), _filled(shape, 0, d), key)
    return while_loop(go_on, draw, start)[1] - 1


def _binomial_rejection(key: Any, n: Any, p: Any, shape: tuple[int, ...], d: Any) -> Any:
    spread = jnp.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    v_r = 0.92 - 4.2 / b
    r = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * spread
    m = jnp.floor((n + 1) * p)

    def propose(u: Any, v: Any) -> tuple[Any, Any]:
        room = 0.5 - jnp.abs(u)
        inside = (room >= 0.07) & (v <= v_r)
        k = jnp.floor((2 * a / room + b) * u + c)
        s = drawn_log(v * alpha / (a / (room * room) + b))
        bound = (
            (m + 0.5) * drawn_log((m + 1) / (r * (n - m + 1)))
            + (n + 1) * drawn_log((n - m + 1) / (n - k + 1))
            + (k + 0.5) * drawn_log(r * (n - k + 1) / (k + 1))
            + _stirling_tail(m)
            + _stirling_tail(n - m)
            - _stirling_tail(k)
            - _stirling_tail(n - k)
        )
        refused = (k < 0) | (k > n)
        return k, inside | (~refused & (s <= bound))

    return _accept(key, shape, d, scalar(finfo(d).max, d), propose, typeof(n).dtype)


def multinomial(
    key: ArrayLike,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    unroll: int | bool = 1,
) -> Array:
    """Draws how often each of several outcomes occurs in a number of trials.

    Args:
        key: A random key.
        n: The number of trials.
        p: The probabilities of the outcomes, along the last axis.
        shape: The shape of the result, whose last axis has the outcomes; None takes that of the
            parameters together.
        dtype: A floating-point dtype; None means float32 (float64 where enabled).
        unroll: How many outcomes are drawn in one round of the compiled loop, as of `lax.scan`.

    Returns:
        An array of whole numbers, as floats.

    >>> jax.random.multinomial(jax.random.key(0), 9, jnp.array([0.0, 1.0]))
    Array([0., 9.], dtype=float32)"""
    typed, _ = wrapped(key, "multinomial")
    d = float_dtype("multinomial", dtype)
    check_arraylike("multinomial", n, p)
    own = typeof(p).shape
    if not own:
        raise ValueError("multinomial: p must have at least one dimension, the outcomes")
    batch = broadcast_shapes("multinomial", typeof(n).shape, own[:-1])
    if shape is None:
        whole = (*batch, own[-1])
    else:
        whole = canonical_shape(shape)
        if broadcast_shapes("multinomial", whole, (*batch, own[-1])) != whole:
            raise ValueError(
                f"multinomial: parameters of shape {(*batch, own[-1])} do not broadcast to shape"
                f" {whole}"
            )
    lead = whole[:-1]
    used = inexact_of(common_type(n, p)[0])
    n, p = parameter(n, used, lead), parameter(p, used, whole)
    rest = jnp.flip(jnp.cumsum(jnp.flip(p, -1), axis=-1), -1)
    ratios = jnp.moveaxis(p / jnp.where(rest == 0, 1, rest), -1, 0)

    def outcome(left: Any, x: Any) -> tuple[Any, Any]:
        ratio, sub = x
        drawn = _binomial(sub, left, jnp.clip(ratio, 0, 1), lead, used)
        return left - drawn, drawn

    keys = do.random_split(typed, shape=(own[-1],))
    _, counts = scan(outcome, n, (ratios, keys), unroll=unroll)
    return convert(jnp.moveaxis(counts, 0, -1), d)
