"""The Faddeeva function and its kin: the scaled complementary error function, Dawson's integral."""

import math
from typing import Any

import numpy as np

from calque import numpy as jnp
from calque.core.arrays import Array
from calque.core.dtypes import complex_of, is_complex
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike
from calque.numpy.promotion import array_of, promote_inexact
from calque.scipy.special.quadrature import integral, real_operands, unit_interval
from calque.transforms.functions.custom_jvp import custom_jvp

__all__ = ["dawsn", "erfcx", "wofz"]

# Trapezoidal rules with a correction for the pole (Al Azah and Chandler-Wilde 2021): with 12 nodes
# exact to double precision.
_N = 11
_STEP = math.sqrt(math.pi / (_N + 1))
_WHOLE, _HALF = (np.arange(_N + 1) + shift for shift in (0.0, 0.5))


def _sums(x: Any, y: Any, nodes: np.ndarray) -> tuple[Any, Any]:
    """2 h / pi times the sum of exp(-t^2) / (z^2 - t^2), for z = x + i y: real and imaginary
    part."""
    points = (nodes * _STEP).astype(typeof(x).dtype)
    weights = np.exp(-(points.astype(float) ** 2)) * (2 * _STEP / math.pi)
    x, y = x[..., None], y[..., None]
    # (x - t) (x + t) - y^2 keeps digits where x is near a node
    real, imaginary = (x - points) * (x + points) - y * y, 2 * x * y
    scale = weights.astype(points.dtype) / (real * real + imaginary * imaginary)
    return jnp.sum(real * scale, axis=-1), jnp.sum(-imaginary * scale, axis=-1)


def _pole(x: Any, y: Any, sign: float) -> tuple[Any, Any]:
    """2 exp(-z^2) / (1 + sign exp(-2 pi i z / h)), written with exp(-|...|) alone."""
    angle, decay = x * (2 * math.pi / _STEP), y * (2 * math.pi / _STEP)
    # times exp(2 pi i z / h) above and below: 2 exp(-z^2) q / (q + sign) with q = exp(i angle -
    # decay), |q| <= 1
    size = jnp.exp(-decay)
    q = size * jnp.cos(angle), size * jnp.sin(angle)
    below = q[0] + sign, q[1]
    scale = 2 * jnp.exp((y - x) * (y + x) - decay) / (below[0] ** 2 + below[1] ** 2)
    turn = angle - 2 * x * y
    c, s = jnp.cos(turn), jnp.sin(turn)
    return scale * (c * below[0] + s * below[1]), scale * (s * below[0] - c * below[1])


def faddeeva(x: Array, y: Array) -> tuple[Array, Array]:
    """w(x + i y) for x and y that are not negative: real and imaginary part."""
    big = 1e4
    huge = jnp.maximum(x, y) > big
    safe_x, safe_y = jnp.where(huge, 1.0, x), jnp.where(huge, 1.0, y)
    place = jnp.mod(safe_x / _STEP, 1.0)
    whole = (safe_y < safe_x) & (place >= 0.25) & (place <= 0.75)
    alone = safe_y >= jnp.maximum(safe_x, math.pi / _STEP)
    results = []
    for used, nodes, sign in ((~whole, _HALF, 1.0), (whole, _WHOLE[1:], -1.0)):
        u, v = (
            jnp.where(used, safe_x, 0.1 if sign > 0 else 0.5 * _STEP),
            jnp.where(used, safe_y, 0.1),
        )
        real, imaginary = _sums(u, v, nodes)
        # times i z
        real, imaginary = -v * real - u * imaginary, u * real - v * imaginary
        if sign < 0:  # the node at 0: i h / (pi z)
            square = u * u + v * v
            real, imaginary = (
                real + v / square * (_STEP / math.pi),
                imaginary + u / square * (_STEP / math.pi),
            )
        more = _pole(u, jnp.where(alone, 0.1, v), sign)
        results.append([jnp.where(alone, p, p + q) for p, q in zip((real, imaginary), more)])
    out = [jnp.where(whole, b, a) for a, b in zip(*results)]
    return tuple(jnp.where(huge, f, o) for f, o in zip(_far(x, y, huge), out))  # type: ignore[return-value]


def _far(x: Any, y: Any, huge: Any) -> tuple[Any, Any]:
    """i / (sqrt(pi) z), without overflow."""
    infinite = jnp.isinf(x) | jnp.isinf(y)
    used = huge & ~infinite
    scale = jnp.where(used, jnp.maximum(x, y), 1.0)
    u, v = jnp.where(used, x, 1.0) / scale, jnp.where(used, y, 1.0) / scale
    size = math.sqrt(math.pi) * (u * u + v * v) * scale
    return jnp.where(infinite, 0.0, v / size), jnp.where(infinite, 0.0, u / size)


@custom_jvp
def _wofz(z: Any) -> Any:
    x, y = jnp.abs(z.real), jnp.abs(z.imag)
    real, imaginary = faddeeva(x, y)
    # below the real axis: w(z) = 2 exp(-z^2) - w(-z)
    lower = z.imag < 0
    growth = 2 * jnp.exp(jnp.where(lower, (y - x) * (y + x), 0.0))
    angle = 2 * x * y
    real = jnp.where(lower, growth * jnp.cos(angle) - real, real)
    imaginary = jnp.where(lower, growth * jnp.sin(angle) + imaginary, imaginary)
    # left of the imaginary axis: w(-conj(z)) = conj(w(z))
    turned = jnp.where(z.real < 0, -imaginary, imaginary)
    out = do.complex(real, turned)
    return jnp.where(jnp.isnan(z), np.nan * (1 + 1j), out).astype(z.dtype)


@_wofz.defjvp
def _wofz_jvp(primals: Any, tangents: Any) -> Any:
    (z,), (t,) = primals, tangents
    w = _wofz(z)
    return w, t * (2j / math.sqrt(math.pi) - 2 * z * w)


def wofz(z: ArrayLike) -> Array:
    """The Faddeeva function, `exp(-z**2) * erfc(-1j * z)`.

    Args:
        z: complex numbers.
    Returns:
        Complex numbers.

    >>> special.wofz(jnp.array([0j]))
    Array([1.+0.j], dtype=complex64)"""
    (z,) = promote_inexact(array_of("wofz", z))
    z = jnp.asarray(z)
    return _wofz(z.astype(complex_of(z.dtype)))


@custom_jvp
def _erfcx(x: Any) -> Any:
    size = jnp.abs(x)
    value, _ = faddeeva(jnp.zeros_like(size), size)
    return jnp.where(jnp.isnan(x), x, jnp.where(x < 0, 2 * jnp.exp(x * x) - value, value))


@_erfcx.defjvp
def _erfcx_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    out = _erfcx(x)
    return out, t * (2 * x * out - 2 / math.sqrt(math.pi))


def erfcx(x: ArrayLike) -> Array:
    """`exp(x**2) * erfc(x)`, which does not vanish for large `x`.

    Args:
        x: real numbers.
    Returns:
        Floats.

    >>> round(float(special.erfcx(100.0)), 5)
    0.00564"""
    if is_complex(typeof(array_of("erfcx", x)).dtype):
        return wofz(1j * jnp.asarray(x))
    (x,), dtype = real_operands("erfcx", x)
    return _erfcx(x).astype(dtype)


@custom_jvp
def _dawsn(x: Any) -> Any:
    size = jnp.abs(x)
    near = size < 1.5
    small = jnp.where(near, x, 1.0)
    inner = small * integral(
        lambda s: jnp.exp(jnp.square(small)[..., None] * (s * s - 1)), unit_interval(16), x
    )
    _, outer = faddeeva(jnp.where(near, 2.0, size), jnp.zeros_like(size))
    outer = jnp.sign(x) * outer * (math.sqrt(math.pi) / 2)
    return jnp.where(jnp.isnan(x) | (x == 0), x, jnp.where(near, inner, outer))


@_dawsn.defjvp
def _dawsn_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    out = _dawsn(x)
    return out, t * (1 - 2 * x * out)


def dawsn(x: ArrayLike) -> Array:
    """Dawson's integral: `exp(-x**2)` times the integral of `exp(t**2)` from 0 to `x`.

    Args:
        x: real numbers.
    Returns:
        Floats.

    >>> round(float(special.dawsn(1.0)), 4)
    0.5381"""
    (x,), dtype = real_operands("dawsn", x)
    return _dawsn(x).astype(dtype)
