"""The hypergeometric functions 1F1 and 2F1 of real arguments."""

from typing import Any, Final

import numpy as np

from calque import lax
from calque import numpy as jnp
from calque.core.arrays import Array
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike
from calque.scipy.special.gammas import gammasgn
from calque.scipy.special.quadrature import real_operands
from calque.transforms.functions.autodiff import jvp
from calque.transforms.functions.custom_jvp import custom_jvp

__all__ = ["hyp1f1", "hyp2f1"]


def _gamma_ratio(tops: list[Any], bottoms: list[Any], factor: Any = 0.0) -> Any:
    """The product of gamma of `tops` over that of `bottoms`, times exp(`factor`); 0 at a pole of a
    bottom."""
    log: Any = factor
    sign: Any = 1.0
    pole: Any = False
    for group, step in ((tops, 1), (bottoms, -1)):
        for v in group:
            at_pole = (v <= 0) & (v == jnp.floor(v))
            safe = jnp.where(at_pole, 1.0, v)
            log = log + step * do.lgamma(safe)
            sign = sign * gammasgn(safe)
            if step < 0:
                pole = pole | at_pole
    return jnp.where(pole, 0.0, sign * jnp.exp(log))


def _is_pole(v: Any) -> Any:
    return (v <= 0) & (v == jnp.floor(v))


# ---------------------------------------------------------------- 1F1


def _reach(dtype: Any) -> tuple[float, int]:
    """Up to which argument the series is summed, and of how many terms."""
    return (100.0, 240) if dtype == np.dtype("float32") else (100.0, 320)


def _hyp1f1(a: Any, b: Any, x: Any) -> Any:
    """For negative x by Kummer's exp(x) M(b - a, b, -x), so that terms do not cancel."""
    negative = x < 0
    terminates = _is_pole(a)
    mirror = negative & ~terminates
    upper, y = jnp.where(mirror, b - a, a), jnp.where(mirror, -x, x)
    limit, terms = _reach(typeof(x).dtype)
    near = (y <= limit) | terminates
    series = _series_1f1(upper, b, jnp.where(near, y, 0.0), terms)
    top, bottom, at = (jnp.where(near, 1.0, v) for v in (upper, b, y))  # finite, with derivatives
    far = _asymptotic_1f1(top, bottom, at, jnp.where(mirror, -at, 0.0))
    out = jnp.where(
        near, jnp.where(mirror, jnp.exp(jnp.where(mirror & near, x, 0.0)), 1.0) * series, far
    )
    out = jnp.where(a == b, jnp.exp(x), out)
    lost = _is_pole(b) & ~(terminates & (a >= b)) & (x != 0)
    return jnp.where(lost, np.inf, jnp.where(jnp.isnan(a + b + x), np.nan, out))


def _series_1f1(a: Any, b: Any, x: Any, terms: int) -> Any:
    def step(k: Any, state: Any) -> Any:
        term, total = state
        k = k.astype(typeof(x).dtype)
        over = b + k
        term = jnp.where(
            term == 0, 0.0, term * (a + k) / jnp.where(over == 0, 1.0, over) * x / (k + 1)
        )
        return term, total + term

    one = jnp.ones_like(x)
    return lax.fori_loop(0, terms, step, (one, one))[1]


def _asymptotic_1f1(a: Any, b: Any, x: Any, shift: Any) -> Any:
    """exp(x + shift) x^(a - b) gamma(b) / gamma(a) (1 + (1 - a) (b - a) / x + ...): the terms up to
    the parameters, which may grow, and of the others those that decrease."""
    term = total = jnp.ones_like(x)
    early = jnp.maximum(jnp.abs(1 - a), jnp.abs(b - a))
    for k in range(48):
        following = term * (1 - a + k) * (b - a + k) / ((k + 1) * x)
        kept = (jnp.abs(following) < jnp.abs(term)) | (k < early)
        term = jnp.where(kept, following, 0.0)
        total = total + term
    return _gamma_ratio([b], [a], x + shift + (a - b) * jnp.log(x)) * total


@custom_jvp
def _hyp1f1_of(a: Any, b: Any, x: Any) -> Any:
    return _hyp1f1(a, b, x)


def _by_parameters(f: Any, primals: Any, tangents: Any) -> Any:
    """The part of a tangent that comes from the parameters: through the sum itself."""
    parameters, x = primals[:-1], primals[-1]
    return jvp(lambda *ps: f(*ps, x), parameters, tangents[:-1])[1]


@_hyp1f1_of.defjvp
def _hyp1f1_jvp(primals: Any, tangents: Any) -> Any:
    a, b, x = primals
    by_x = a / b * _hyp1f1_of(a + 1, b + 1, x)
    return _hyp1f1_of(a, b, x), tangents[2] * by_x + _by_parameters(_hyp1f1, primals, tangents)


def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The confluent hypergeometric function 1F1.

    Args:
        a, b, x: real numbers that broadcast; `b` is not a negative integer.
    Returns:
        Floats.

    >>> round(float(special.hyp1f1(1.0, 2.0, 1.0)), 4)
    1.7183"""
    (a, b, x), dtype = real_operands("hyp1f1", a, b, x)
    return _hyp1f1_of(a, b, x).astype(dtype)


# ---------------------------------------------------------------- 2F1

_STEPS: Final = {
    np.dtype("float32"): (26, 28),
    np.dtype("float64"): (54, 56),
}  # towards 1, and terms in each


def _hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    """For negative x by Pfaff's (1 - x)^-a F(a, c - b; c; x / (x - 1)); then from 0 to x by Taylor
    series of the solution of the hypergeometric equation, each taking half of the way that is left
    to 1 (or all that is left to x).
    """
    terminates = _is_pole(a) | _is_pole(b)
    mirror = (x < 0) & ~terminates
    y = jnp.where(mirror, x / (x - 1), x)
    second = jnp.where(mirror, c - b, b)
    inside = (y < 1) & ~terminates
    series = _polynomial_2f1(a, b, c, jnp.where(terminates, x, 0.0))
    value = _continued_2f1(a, second, c, jnp.where(inside, y, 0.0))
    value = value * jnp.where(mirror, jnp.exp(-a * jnp.log1p(-jnp.where(mirror, x, 0.0))), 1.0)
    spare = c - a - b
    converges = spare > 0
    at_one = _gamma_ratio([c, jnp.where(converges, spare, 1.0)], [c - a, c - b])
    at_one = jnp.where(converges, at_one, np.inf)
    out = jnp.where(terminates, series, jnp.where(x == 1, at_one, jnp.where(x > 1, np.inf, value)))
    first_zero = jnp.maximum(jnp.where(_is_pole(a), a, -np.inf), jnp.where(_is_pole(b), b, -np.inf))
    lost = _is_pole(c) & ~(terminates & (first_zero >= c)) & (x != 0)
    return jnp.where(lost, np.inf, jnp.where(jnp.isnan(a + b + c + x), np.nan, out))


def _polynomial_2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    """The series at 0, which ends where a or b is a whole number that is not positive."""

    def step(k: Any, state: Any) -> Any:
        term, total = state
        k = k.astype(typeof(x).dtype)
        over = c + k
        term = jnp.where(
            term == 0, 0.0, term * (a + k) * (b + k) / jnp.where(over == 0, 1.0, over) * x / (k + 1)
        )
        return term, total + term

    one = jnp.ones_like(x)
    return lax.fori_loop(0, 200, step, (one, one))[1]


def _continued_2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    steps, terms = _STEPS[np.dtype(typeof(x).dtype)]
    first = jnp.minimum(x, 0.5)
    value, slope = _series_2f1(a, b, c, first, 2 * terms)

    def unfinished(state: Any) -> Any:
        k, at, _, _ = state
        return (k < steps) & jnp.any(at < x)

    def onward(state: Any) -> Any:
        k, at, value, slope = state
        h = jnp.minimum(x - at, (1 - at) / 2)
        return (k + 1, at + h, *_taylor_2f1(a, b, c, at, h, value, slope, terms))

    return lax.while_loop(unfinished, onward, (jnp.zeros((), np.int32), first, value, slope))[2]


def _series_2f1(a: Any, b: Any, c: Any, x: Any, terms: int) -> tuple[Any, Any]:
    """The function and its derivative."""

    def step(k: Any, state: Any) -> Any:
        term, total, slope = state
        k = k.astype(typeof(x).dtype)
        over = c + k
        factor = (a + k) * (b + k) / (jnp.where(over == 0, 1.0, over) * (k + 1)) * term
        return factor * x, total + factor * x, slope + (k + 1) * factor

    one = jnp.ones_like(x)
    _, total, slope = lax.fori_loop(0, terms, step, (one, one, jnp.zeros_like(x)))
    return total, slope


def _taylor_2f1(
    a: Any, b: Any, c: Any, at: Any, h: Any, value: Any, slope: Any, terms: int
) -> tuple[Any, Any]:
    """Value and derivative at `at + h`. With f = sum of t[k] (x - at)^k, x (1 - x) f'' + (c - (a +
    b + 1) x) f' = a b f gives at (1 - at) (k + 2) (k + 1) t[k + 2] = (k + a) (k + b) t[k] - (k + 1)
    (k (1 - 2 at) + c - (a + b + 1) at) t[k + 1].
    """
    arrived = h == 0
    tilt, shift, pace = 1 - 2 * at, c - (a + b + 1) * at, h / jnp.where(arrived, 1.0, at * (1 - at))

    def step(k: Any, state: Any) -> Any:
        """`low` and `high` are t[k] h^k and t[k + 1] h^(k + 1)."""
        low, high, total, rate = state
        k = k.astype(typeof(h).dtype)
        term = (k + a) * (k + b) * h * low - (k + 1) * (k * tilt + shift) * high
        term = pace * term / ((k + 2) * (k + 1))
        return high, term, total + term, rate + (k + 2) * term

    first = slope * h
    _, _, total, rate = lax.fori_loop(0, terms, step, (value, first, value + first, first))
    return total, jnp.where(arrived, slope, rate / jnp.where(arrived, 1.0, h))


@custom_jvp
def _hyp2f1_of(a: Any, b: Any, c: Any, x: Any) -> Any:
    return _hyp2f1(a, b, c, x)


@_hyp2f1_of.defjvp
def _hyp2f1_jvp(primals: Any, tangents: Any) -> Any:
    a, b, c, x = primals
    by_x = a * b / c * _hyp2f1_of(a + 1, b + 1, c + 1, x)
    return _hyp2f1_of(a, b, c, x), tangents[3] * by_x + _by_parameters(_hyp2f1, primals, tangents)


def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """The hypergeometric function of Gauss, 2F1.

    Args:
        a, b, c: real numbers that broadcast; `c` is not a negative integer.
        x: real numbers up to 1.
    Returns:
        Floats; infinite for `x` above 1, unless the series ends.

    >>> round(float(special.hyp2f1(1.0, 1.0, 2.0, 0.5)), 4)
    1.3863"""
    (a, b, c, x), dtype = real_operands("hyp2f1", a, b, c, x)
    return _hyp2f1_of(a, b, c, x).astype(dtype)
