"""Distributions of whole numbers: geometric, Poisson, binomial, multinomial.

Poisson and binomial values are drawn by inversion where the mean is small and by the transformed
rejection of Hoermann ("The transformed rejection method for generating Poisson random variables",
1993) where it is large; all elements at once, until the last one is accepted."""

from collections.abc import Callable
from typing import Any

import numpy as np

from calque.core.arrays import to_array
from calque.core.dtypes import finfo
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.numpy import reductions
from calque.numpy.creation import canonical_shape, placed
from calque.numpy.promotion import (
    broadcast_shapes,
    broadcast_to,
    check_arraylike,
    convert,
    promote_inexact,
)
from calque.numpy.shaping import clip, flip, moveaxis, where
from calque.numpy.ufuncs import UFUNCS
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
    key: Any, p: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """The number of trials up to the first success, each with probability p.

    >>> import calque
    >>> calque.random.geometric(calque.random.key(0), 1.0, (2,))
    Array([1, 1], dtype=int32)"""
    typed, _ = wrapped(key, "geometric")
    d = int_dtype("geometric", dtype)
    check_arraylike("geometric", p)
    p = to_array(promote_inexact(p)[0])
    shape = parameter_shape("geometric", shape, p)
    u = uniform_between(typed, shape, typeof(p).dtype, 0.0, 1.0)
    tries = UFUNCS["log"](where(u == 0, 1.0, u)) / UFUNCS["log1p"](UFUNCS["negative"](p))
    return convert(UFUNCS["floor"](tries) + 1, d)


# ---------------------------------------------------------------- Poisson


@placed
def poisson(
    key: Any, lam: Any, shape: Any = None, dtype: Any = None, *, out_sharding: Any = None
) -> Any:
    """Poisson values with rate lam.

    >>> import calque
    >>> calque.random.poisson(calque.random.key(0), 0.0, (2,))
    Array([0, 0], dtype=int32)"""
    typed, _ = wrapped(key, "poisson")
    d = int_dtype("poisson", dtype)
    shape = parameter_shape("poisson", shape, lam)
    rate = parameter(lam, np.dtype("float32"), shape)
    few = UFUNCS["isnan"](rate) | (rate < 10)
    small = _poisson_inversion(typed, where(few, rate, 0.0), shape)
    large = _poisson_rejection(typed, where(few, 1e5, rate), shape)
    out = where(few, convert(small, d), convert(large, d))
    return where(rate == 0, np.zeros((), d), out)


def _poisson_inversion(key: Any, rate: Any, shape: tuple[int, ...]) -> Any:
    """Knuth: how many uniform numbers have a product above exp(-rate)."""
    f32 = np.dtype("float32")

    def go_on(state: Any) -> Any:
        i, _, _, log_product = state
        return reductions.any(log_product > -rate) & (i < _INT32_MAX)

    def draw(state: Any) -> Any:
        i, k, key, log_product = state
        key, sub = pair(key)
        k = where(log_product > -rate, k + 1, k)
        return i + 1, k, key, log_product + do.log(uniform_between(sub, shape, f32, 0.0, 1.0))

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
) -> Any:
    """The first proposals that are accepted. `propose(u, v)` makes (value, accepted) of two uniform
    numbers."""

    def go_on(state: Any) -> Any:
        i, _, accepted, _ = state
        return reductions.any(~accepted) & (convert(i, typeof(limit).dtype) < limit)

    def draw(state: Any) -> Any:
        i, out, accepted, key = state
        key, first, second = keys_of(key, 3)
        u = uniform_between(first, shape, dtype, 0.0, 1.0) - 0.5
        value, ok = propose(u, uniform_between(second, shape, dtype, 0.0, 1.0))
        return i + 1, where(ok, value, out), accepted | ok, key

    start = (np.int32(0), _filled(shape, -1, dtype), _filled(shape, False, bool), key)
    return while_loop(go_on, draw, start)[1]


def _poisson_rejection(key: Any, rate: Any, shape: tuple[int, ...]) -> Any:
    f32 = np.dtype("float32")
    log_rate = do.log(rate)
    b = 0.931 + 2.53 * do.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_r = 0.9277 - 3.6224 / (b - 2)

    def propose(u: Any, v: Any) -> tuple[Any, Any]:
        room = 0.5 - do.abs(u)
        k = do.floor((2 * a / room + b) * u + rate + 0.43)
        s = do.log(v * inverse_alpha / (a / (room * room) + b))
        bound = -rate + k * log_rate - do.lgamma(k + 1)
        inside = (room >= 0.07) & (v <= v_r)
        refused = (k < 0) | ((room < 0.013) & (v > room))
        return k, inside | (~refused & (s <= bound))

    return convert(
        _accept(key, shape, f32, np.asarray(_INT32_MAX, np.int32), propose), np.dtype("int32")
    )


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
    small = do.clamp(scalar(0, dtype), k, scalar(9, dtype))
    square = (small + 1) * (small + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (small + 1)
    table = broadcast_to(np.asarray(0, dtype), typeof(k).shape)
    place = do.floor(small)
    for i, tail in enumerate(_STIRLING_TAILS):
        table = where(place == i, scalar(tail, dtype), table)
    return where(k <= 9, table, series)


def binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = None) -> Any:
    """The number of successes of n trials with probability p, as floats.

    >>> import calque
    >>> calque.random.binomial(calque.random.key(0), 5, 1.0)
    Array(5., dtype=float32)"""
    typed, _ = wrapped(key, "binomial")
    d = float_dtype("binomial", dtype)
    check_arraylike("binomial", n, p)
    shape = parameter_shape("binomial", shape, n, p)
    n, p = (parameter(x, d, shape) for x in (n, p))
    return _binomial(typed, n, p, shape, d)


def _binomial(key: Any, n: Any, p: Any, shape: tuple[int, ...], d: Any) -> Any:
    UF = UFUNCS
    mirrored = UF["greater_equal"](p, scalar(0.5, d))
    q = where(mirrored, UF["subtract"](scalar(1, d), p), p)
    bad_n = UF["logical_or"](UF["isnan"](n), UF["less"](n, scalar(0, d)))
    bad_q = UF["logical_or"](UF["isnan"](q), UF["less"](q, scalar(0, d)))
    endless = UF["isinf"](n)
    q = where(bad_q, scalar(0.01, d), q)
    few = UF["logical_or"](bad_n, UF["less_equal"](UF["multiply"](n, q), scalar(10, d)))
    whole = UF["floor"](n)
    small = _binomial_inversion(key, where(few, whole, scalar(0, d)), q, shape, d)
    large = _binomial_rejection(
        key, where(few, scalar(1e4, d), whole), where(few, scalar(0.5, d), q), shape, d
    )
    out = where(few, small, large)
    invalid = UF["logical_or"](UF["logical_or"](bad_q, UF["isnan"](p)), bad_n)
    out = where(invalid, scalar(np.nan, d), out)
    out = where(UF["logical_and"](endless, UF["logical_not"](invalid)), scalar(np.inf, d), out)
    mirror = UF["logical_and"](mirrored, UF["logical_not"](UF["logical_or"](invalid, endless)))
    return where(mirror, UF["subtract"](whole, out), out)


def _binomial_inversion(key: Any, n: Any, p: Any, shape: tuple[int, ...], d: Any) -> Any:
    """How many geometric steps fit into n."""
    log_failure = UFUNCS["log1p"](UFUNCS["negative"](p))
    limit = scalar(finfo(d).max, d)

    def go_on(state: Any) -> Any:
        i, _, total, _ = state
        return reductions.any(total <= n) & (convert(i, d) < limit)

    def draw(state: Any) -> Any:
        i, count, total, key = state
        sub, key = pair(key)
        count = where(total <= n, count + 1, count)
        step = do.ceil(do.div(do.log(uniform_between(sub, shape, d, 0.0, 1.0)), log_failure))
        return i + 1, count, total + step, key

    start = (np.int32(0), _filled(shape, 0, d), _filled(shape, 0, d), key)
    return while_loop(go_on, draw, start)[1] - 1


def _binomial_rejection(key: Any, n: Any, p: Any, shape: tuple[int, ...], d: Any) -> Any:
    spread = do.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    v_r = 0.92 - 4.2 / b
    r = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * spread
    m = do.floor((n + 1) * p)

    def propose(u: Any, v: Any) -> tuple[Any, Any]:
        room = 0.5 - do.abs(u)
        inside = (room >= 0.07) & (v <= v_r)
        k = do.floor((2 * a / room + b) * u + c)
        s = do.log(v * alpha / (a / (room * room) + b))
        bound = (
            (m + 0.5) * do.log((m + 1) / (r * (n - m + 1)))
            + (n + 1) * do.log((n - m + 1) / (n - k + 1))
            + (k + 0.5) * do.log(r * (n - k + 1) / (k + 1))
            + _stirling_tail(m)
            + _stirling_tail(n - m)
            - _stirling_tail(k)
            - _stirling_tail(n - k)
        )
        refused = (k < 0) | (k > n)
        return k, inside | (~refused & (s <= bound))

    return _accept(key, shape, d, scalar(finfo(d).max, d), propose)


def multinomial(
    key: Any, n: Any, p: Any, *, shape: Any = None, dtype: Any = None, unroll: int | bool = 1
) -> Any:
    """How often each of several outcomes with probabilities p (the last axis) occurs in n trials.

    >>> import calque, calque.numpy as jnp
    >>> calque.random.multinomial(calque.random.key(0), 9, jnp.array([0.0, 1.0]))
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
    n, p = parameter(n, d, lead), parameter(p, d, whole)
    rest = flip(reductions.cumsum(flip(p, -1), axis=-1), -1)
    ratios = moveaxis(UFUNCS["true_divide"](p, where(rest == 0, scalar(1, d), rest)), -1, 0)

    def outcome(left: Any, x: Any) -> tuple[Any, Any]:
        ratio, sub = x
        drawn = _binomial(sub, left, clip(ratio, 0, 1), lead, d)
        return left - drawn, drawn

    keys = do.random_split(typed, shape=(own[-1],))
    _, counts = scan(outcome, n, (ratios, keys), unroll=unroll)
    return moveaxis(counts, 0, -1)
