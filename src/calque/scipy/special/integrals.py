"""Exponential, sine, cosine and Fresnel integrals, the dilogarithm, Owen's function."""

import math
from typing import Any

import numpy as np

from calque import lax
from calque import numpy as jnp
from calque.core.arrays import Array
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike
from calque.numpy.promotion import check_arraylike
from calque.scipy.special.faddeeva import faddeeva
from calque.scipy.special.quadrature import half_line, integral, real_operands, unit_interval
from calque.transforms.functions.custom_jvp import custom_jvp

__all__ = ["exp1", "expi", "expn", "fresnel", "owens_t", "sici", "spence"]

_LAGUERRE, _LEGENDRE = 60, 48

# ---------------------------------------------------------------- exponential integrals


def _entire(x: Any) -> Any:
    """The integral of (exp(t) - 1) / t from 0 to x."""
    return integral(lambda s: jnp.expm1(x[..., None] * s) / s, unit_interval(_LEGENDRE), x)


@custom_jvp
def _exp1(x: Any) -> Any:
    near = (x > 0) & (x < 2)
    small = jnp.where(near, x, 1.0)
    series = -np.euler_gamma - jnp.log(small) - _entire(-small)
    large = jnp.where(x >= 2, x, 2.0)
    tail = jnp.exp(-large) * integral(lambda u: 1 / (large[..., None] + u), half_line(_LAGUERRE), x)
    out = jnp.where(near, series, jnp.where(x == 0, np.inf, tail))
    return jnp.where((x < 0) | jnp.isnan(x), np.nan, out)


_exp1.defjvp(
    lambda primals, tangents: (_exp1(*primals), -tangents[0] * jnp.exp(-primals[0]) / primals[0])
)


def exp1(x: ArrayLike) -> Array:
    """The exponential integral: of `exp(-t) / t` from `x` to infinity.

    Args:
        x: real numbers from 0 up.
    Returns:
        Floats; infinite at 0, nan below.

    >>> round(float(special.exp1(1.0)), 4)
    0.2194"""
    (x,), dtype = real_operands("exp1", x)
    return _exp1(x).astype(dtype)


@custom_jvp
def _expi(x: Any) -> Any:
    near = (x > 0) & (x <= 40)
    small = jnp.where(near, x, 1.0)
    series = np.euler_gamma + jnp.log(small) + _entire(small)
    large = jnp.where(x > 40, x, 40.0)
    total = jnp.ones_like(large)
    for k in range(32, 0, -1):
        total = 1 + k / large * total
    asymptotic = jnp.where(
        jnp.isinf(large), np.inf, jnp.exp(large - 8) / large * total * math.exp(8)
    )
    positive = jnp.where(near, series, asymptotic)
    return jnp.where(x > 0, positive, jnp.where(x == 0, -np.inf, -_exp1(-x)))


_expi.defjvp(
    lambda primals, tangents: (_expi(*primals), tangents[0] * jnp.exp(primals[0]) / primals[0])
)


def expi(x: ArrayLike) -> Array:
    """The exponential integral: the principal value of that of `exp(t) / t` up to `x`.

    Args:
        x: real numbers.
    Returns:
        Floats; -inf at 0.

    >>> round(float(special.expi(1.0)), 4)
    1.8951"""
    (x,), dtype = real_operands("expi", x)
    return _expi(x).astype(dtype)


_FRACTION_TERMS, _SERIES_TERMS = 100, 24


@custom_jvp
def _expn(n: Any, x: Any) -> Any:
    far = x > 1
    out = jnp.where(
        far, _expn_fraction(n, jnp.where(far, x, 1.0)), _expn_series(n, jnp.where(far, 1.0, x))
    )
    out = jnp.where((n == 0) & (x > 0), jnp.exp(-x) / jnp.where(x > 0, x, 1.0), out)
    at_zero = jnp.where(n > 1, 1 / jnp.where(n > 1, n - 1, 1.0), np.inf)
    out = jnp.where(x == 0, at_zero, out)
    return jnp.where((n < 0) | (x < 0) | jnp.isnan(x), np.nan, out)


def _expn_fraction(n: Any, x: Any) -> Any:
    """The continued fraction exp(-x) / (x + n - n / (x + n + 2 - 2 (n + 1) / (x + n + 4 -
    ...)))."""

    def step(i: Any, rest: Any) -> Any:
        k = (_FRACTION_TERMS - i).astype(x.dtype)
        return k * (n + k - 1) / (x + n + 2 * k - rest)

    rest = lax.fori_loop(0, _FRACTION_TERMS, step, jnp.zeros_like(x))
    return jnp.where(jnp.isinf(x), 0.0, jnp.exp(-x) / (x + n - rest))


def _expn_series(n: Any, x: Any) -> Any:
    """For x up to 1 and whole n; the term of order n - 1 is logarithmic."""
    safe = jnp.where(x > 0, x, 1.0)
    total, power = jnp.zeros_like(x), jnp.ones_like(x)
    for m in range(_SERIES_TERMS):
        singular = n == m + 1
        total = total - jnp.where(singular, 0.0, power / jnp.where(singular, 1.0, m - n + 1))
        power = power * -x / (m + 1)
    whole = jnp.where((n >= 1) & (n == jnp.floor(n)), n, 1.0)
    log = jnp.exp((whole - 1) * jnp.log(safe) - do.lgamma(whole))
    sign = jnp.where(whole % 2 == 1, 1.0, -1.0)
    out = total + sign * log * (do.digamma(whole) - jnp.log(safe))
    return jnp.where(n == jnp.floor(n), out, np.nan)


@_expn.defjvp
def _expn_jvp(primals: Any, tangents: Any) -> Any:
    n, x = primals
    below = jnp.where(
        n == 0, jnp.exp(-x) * (x + 1) / (x * x), _expn(jnp.where(n == 0, 1.0, n - 1), x)
    )
    return _expn(n, x), -tangents[1] * below


def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """The exponential integral of a whole order: of `exp(-x * t) / t**n` from 1 to infinity.

    Args:
        n: integers from 0 up.
        x: real numbers from 0 up that broadcast. Derivatives are with respect to it.
    Returns:
        Floats.

    >>> round(float(special.expn(2, 1.0)), 4)
    0.1485"""
    (n, x), dtype = real_operands("expn", n, x)
    return _expn(n, x).astype(dtype)


# ---------------------------------------------------------------- sine and cosine integrals


@custom_jvp
def _sici(x: Any) -> tuple[Any, Any]:
    size = jnp.abs(x)
    near = size < 8
    small = jnp.where(near & (size > 0), size, 1.0)
    rule = unit_interval(32)
    si = integral(lambda s: jnp.sin(small[..., None] * s) / s, rule, x)
    ci = np.euler_gamma + jnp.log(small)
    ci = ci - integral(lambda s: 2 * jnp.square(jnp.sin(small[..., None] * (s / 2))) / s, rule, x)
    # sums of the auxiliary functions of Abramowitz and Stegun 5.2.12 and 5.2.13
    infinite = jnp.isinf(x)
    large = jnp.where(near | infinite, 8.0, size)

    def quotient(f: Any) -> Any:
        return integral(
            lambda u: f(u) / (jnp.square(large)[..., None] + u * u), half_line(_LAGUERRE), x
        )

    f, g = quotient(lambda u: large[..., None]), quotient(lambda u: u)
    sine, cosine = jnp.sin(large), jnp.cos(large)
    far_si = jnp.where(infinite, math.pi / 2, math.pi / 2 - f * cosine - g * sine)
    far_ci = jnp.where(infinite, 0.0, f * sine - g * cosine)
    si, ci = jnp.where(near, si, far_si), jnp.where(near, ci, far_ci)
    si = jnp.where(x == 0, x, jnp.sign(x) * si)
    ci = jnp.where(x == 0, -np.inf, jnp.where(x == -np.inf, np.nan, ci))
    unknown = jnp.isnan(x)
    return jnp.where(unknown, x, si), jnp.where(unknown, x, ci)


@_sici.defjvp
def _sici_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return _sici(x), (t * jnp.sinc(x / math.pi), t * jnp.cos(x) / x)


def sici(x: ArrayLike) -> tuple[Array, Array]:
    """The sine integral and the cosine integral.

    Args:
        x: real numbers; of negative ones the cosine integral is the real part.
    Returns:
        A pair of floats: the integrals of `sin(t) / t` from 0 and of `cos(t) / t` from infinity.

    >>> [round(float(v), 4) for v in special.sici(1.0)]
    [0.9461, 0.3374]"""
    check_arraylike("sici", x)
    if typeof(x).dtype.kind == "c":
        raise ValueError(f"Argument `x` to sici must be real-valued. Got dtype {typeof(x).dtype}.")
    (x,), dtype = real_operands("sici", x)
    return tuple(v.astype(dtype) for v in _sici(x))  # type: ignore[return-value]


# ---------------------------------------------------------------- Fresnel integrals


@custom_jvp
def _fresnel(x: Any) -> tuple[Any, Any]:
    size = jnp.abs(x)
    near = size < 1.5
    small = jnp.where(near, size, 1.0)

    def angle(s: Any) -> Any:
        return jnp.square(small[..., None] * s) * (math.pi / 2)

    parts = [
        small * integral(lambda s, wave=wave: wave(angle(s)), unit_interval(24), x)  # type: ignore[misc]
        for wave in (jnp.sin, jnp.cos)
    ]
    # far away by the error function: 1 - exp(i pi x^2 / 2) w(sqrt(pi) / 2 (1 + i) x)
    huge = size > 1e6
    large = jnp.where(near | huge, 2.0, size)
    half = large * (math.sqrt(math.pi) / 2)
    real, imaginary = faddeeva(half, half)
    turn = jnp.fmod(large * large, 4.0) * (math.pi / 2)
    sine, cosine = jnp.sin(turn), jnp.cos(turn)
    a, b = 1 - (cosine * real - sine * imaginary), -(cosine * imaginary + sine * real)
    far = [jnp.where(huge, 0.5, v / 2) for v in (a + b, a - b)]
    return tuple(jnp.sign(x) * jnp.where(near, p, q) for p, q in zip(parts, far))  # type: ignore[return-value]


@_fresnel.defjvp
def _fresnel_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    angle = x * x * (math.pi / 2)
    return _fresnel(x), (t * jnp.sin(angle), t * jnp.cos(angle))


def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """Fresnel's integrals, of the sine and the cosine of `pi * t**2 / 2` from 0 to `x`.

    Args:
        x: real numbers.
    Returns:
        A pair of floats: that of the sine, and that of the cosine.
    Differs from SciPy:
        Complex numbers are refused.

    >>> [round(float(v), 4) for v in special.fresnel(1.0)]
    [0.4383, 0.7799]"""
    check_arraylike("fresnel", x)
    if typeof(x).dtype.kind == "c":
        raise NotImplementedError(
            "fresnel: Support for complex-valued inputs is not implemented yet."
        )
    (x,), dtype = real_operands("fresnel", x)
    return tuple(v.astype(dtype) for v in _fresnel(x))  # type: ignore[return-value]


# ---------------------------------------------------------------- dilogarithm


@custom_jvp
def _spence(x: Any) -> Any:
    """By reflections into [1/2, 3/2], where the integral of -log(1 + (x - 1) s) / s is easy."""
    known = (x > 0) & jnp.isfinite(x)
    x_safe = jnp.where(known, x, 1.0)
    large, small = x_safe > 1.5, x_safe < 0.5
    y = jnp.where(large, 1 / x_safe, jnp.where(small, 1 - x_safe, x_safe))
    again = y < 0.5  # the reciprocal of a number above 2
    z = jnp.where(again, 1 - y, y)
    core = -integral(lambda s: jnp.log1p((z - 1)[..., None] * s) / s, unit_interval(16), x)
    log_y, log_x = jnp.log(y), jnp.log(x_safe)

    def rest(v: Any) -> Any:
        return jnp.log1p(-jnp.where(again | small, v, 0.5))

    mirrored = jnp.where(again, math.pi**2 / 6 - log_y * rest(y) - core, core)
    out = jnp.where(large, -0.5 * log_x * log_x - mirrored, mirrored)
    out = jnp.where(small, math.pi**2 / 6 - log_x * rest(x_safe) - mirrored, out)
    return jnp.where(known, out, jnp.where(x == 0, math.pi**2 / 6, np.nan))


@_spence.defjvp
def _spence_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    at_one = x == 1
    return _spence(x), t * jnp.where(at_one, -1.0, jnp.log(x) / jnp.where(at_one, 1.0, 1 - x))


def spence(x: ArrayLike) -> Array:
    """Spence's function: the integral of `log(t) / (1 - t)` from 1 to `x`.

    Args:
        x: numbers from 0 up, as float32 or float64.
    Returns:
        Floats; nan for negative numbers.
    Differs from SciPy:
        Other dtypes are refused.

    >>> round(float(special.spence(0.0)), 4)
    1.6449"""
    x = jnp.asarray(x)
    if x.dtype not in (np.dtype("float32"), np.dtype("float64")):
        raise TypeError(
            f"spence: x.dtype={x.dtype} is not supported, it takes float32 and float64: convert x"
            " with x.astype(float)"
        )
    return _spence(x.astype(x.dtype))


# ---------------------------------------------------------------- Owen's function


@custom_jvp
def _owens_t(h: Any, a: Any) -> Any:
    """For |a| above 1 by T(h, a) + T(a h, 1 / a) = P / 2 + Q / 2 - P Q of the tails P and Q of h
    and a h."""
    size, width = jnp.abs(h), jnp.abs(a)
    product = jnp.where(size == 0, 0.0, size * width)
    steep = width > 1

    def tail(v: Any) -> Any:
        return 0.5 * do.erfc(v * math.sqrt(0.5))

    upper, lower = tail(size), tail(product)
    inner = _owens_integral(
        jnp.where(steep, product, size), jnp.where(steep, 1 / jnp.where(steep, width, 1.0), width)
    )
    both = 0.5 * (upper + lower) - upper * lower
    return jnp.sign(a) * jnp.where(steep, both - inner, inner)


def _owens_integral(h: Any, a: Any) -> Any:
    """The integral of exp(-h^2 (1 + t^2) / 2) / (1 + t^2) from 0 to a, up to 1, over 2 pi; t beyond
    9 / h counts for nothing."""
    h = jnp.minimum(h, 1e3)
    end = jnp.minimum(a, 9 / jnp.maximum(h, 1e-3))

    def square(s: Any) -> Any:
        return jnp.square(end[..., None] * s)

    def f(s: Any) -> Any:
        return jnp.exp(-0.5 * jnp.square(h)[..., None] * square(s)) / (1 + square(s))

    return jnp.exp(-0.5 * h * h) * end * integral(f, unit_interval(32), h) / (2 * math.pi)


@_owens_t.defjvp
def _owens_t_jvp(primals: Any, tangents: Any) -> Any:
    (h, a), (th, ta) = primals, tangents
    by_h = -jnp.exp(-0.5 * h * h) * do.erf(a * h * math.sqrt(0.5)) / (2 * math.sqrt(2 * math.pi))
    by_a = jnp.exp(-0.5 * h * h * (1 + a * a)) / (2 * math.pi * (1 + a * a))
    return _owens_t(h, a), th * by_h + ta * by_a


def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Owen's T function: of two independent normal numbers, the probability that one is above `h`
    and the other between 0 and `a` times it.

    Args:
        h, a: real numbers that broadcast.
    Returns:
        Floats.

    >>> round(float(special.owens_t(0.0, 1.0)), 4)
    0.125"""
    (h, a), _ = real_operands("owens_t", h, a)
    return _owens_t(h, a)
