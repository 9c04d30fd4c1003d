"""Bessel functions of whole order and spherical harmonics, by recurrences."""

import math
from typing import Any

import numpy as np

from calque import lax
from calque import numpy as jnp
from calque.core.arrays import Array
from calque.core.dims import whole
from calque.core.dtypes import is_complex, is_integer
from calque.core.primitives import do
from calque.core.trace import typeof
from calque.core.types import ArrayLike
from calque.numpy.promotion import array_of, promote_inexact

__all__ = ["bessel_jn", "sph_harm_y"]


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """The Bessel functions of the first kind and of the orders 0 to `v`.

    Args:
        z: real numbers.
        v: the last order.
        n_iter: the order at which the recurrence begins, backwards; it must be well above `v` and
            `abs(z)`.
    Returns:
        Floats, with the orders along a new first axis.
    Differs from SciPy:
        SciPy has no such function; its `jv` is one order.

    >>> special.bessel_jn(jnp.array(0.0), v=2)
    Array([1., 0., 0.], dtype=float32)"""
    v, n_iter = whole(v, "v"), whole(n_iter, "n_iter")
    if v < 0 or n_iter < v:
        raise ValueError(
            f"bessel_jn: the order must be between 0 and n_iter, got v={v} and n_iter={n_iter}"
        )
    (z,) = promote_inexact(array_of("bessel_jn", z))
    z = jnp.asarray(z)
    if is_complex(z.dtype):
        raise TypeError(f"bessel_jn takes real arguments, got dtype {z.dtype}")
    dtype = z.dtype
    z = z.astype("float32" if dtype.itemsize < 4 else dtype)

    def ratio(above: Any, k: Any) -> Any:
        """J[k] / J[k - 1]"""
        r = z / (2 * k - z * above)
        return r, r

    orders = np.arange(n_iter, 0, -1).astype(z.dtype)
    _, ratios = lax.scan(ratio, jnp.zeros_like(z), orders)
    shares = jnp.concatenate([jnp.ones((1, *z.shape), z.dtype), jnp.cumprod(ratios[::-1], axis=0)])
    # J[0] + 2 J[2] + 2 J[4] + ... = 1
    total = 2 * jnp.sum(shares[2::2], axis=0) + 1
    return (shares[: v + 1] / total).astype(dtype)


def sph_harm_y(
    n: ArrayLike,
    m: ArrayLike,
    theta: ArrayLike,
    phi: ArrayLike,
    diff_n: int | None = None,
    n_max: int | None = None,
) -> Array:
    """The spherical harmonics.

    Args:
        n: the degree, integers from 0 up.
        m: the order, integers from `-n` to `n`.
        theta: the angle from the pole.
        phi: the angle around it. All four broadcast.
        diff_n: must be None: `calque.grad` differentiates.
        n_max: the largest degree. It has to be given where `n` is traced; larger degrees are taken
            for it.
    Returns:
        Complex numbers.

    >>> round(float(special.sph_harm_y(jnp.array([0]), jnp.array([0]), 0.1, 0.2).real[0]), 4)
    0.2821"""
    if diff_n is not None:
        raise NotImplementedError(
            "The 'diff_n' argument to sph_harm_y is not supported: use calque.grad"
        )
    n, m = array_of("sph_harm_y", n), array_of("sph_harm_y", m)
    for name, value in (("n", n), ("m", m)):
        if not is_integer(value.dtype):
            raise TypeError(f"sph_harm_y: {name} must be of integers, got dtype {value.dtype}")
    theta, phi = (
        jnp.asarray(x)
        for x in promote_inexact(array_of("sph_harm_y", theta), array_of("sph_harm_y", phi))
    )
    if is_complex(theta.dtype):
        raise TypeError(f"sph_harm_y takes real angles, got dtype {theta.dtype}")
    highest = _highest(n) if n_max is None else whole(n_max, "n_max")
    work = jnp.promote_types(theta.dtype, "float32")
    n, m, theta, phi = jnp.broadcast_arrays(
        jnp.clip(n, 0, highest), m, theta.astype(work), phi.astype(work)
    )
    order = jnp.abs(m)
    value = _legendre(n, order, theta, highest)
    value = jnp.where((m < 0) & (order % 2 == 1), -value, value)
    angle = m.astype(work) * phi
    return do.complex(value * jnp.cos(angle), value * jnp.sin(angle))


def _highest(n: Any) -> int:
    if n.size == 0:
        return 0
    return int(jnp.max(n))


def _legendre(n: Any, m: Any, theta: Any, highest: int) -> Any:
    """The normalised associated Legendre function: up the diagonal n = m, then up in n; 0 where m
    is above n."""
    sine, cosine = jnp.abs(jnp.sin(theta)), jnp.cos(theta)  # a colatitude has no sign
    dtype = typeof(theta).dtype
    order = m.astype(dtype)

    def diagonal(k: Any, p: Any) -> Any:
        j = (k + 1).astype(dtype)
        return jnp.where(k < m, -p * sine * jnp.sqrt((2 * j + 1) / (2 * j)), p)

    def upward(k: Any, state: Any) -> Any:
        low, high = state
        degree = order + (k + 1).astype(dtype)
        scale = jnp.sqrt((4 * degree**2 - 1) / (degree**2 - order**2))
        before = jnp.sqrt(((degree - 1) ** 2 - order**2) / (4 * (degree - 1) ** 2 - 1))
        following = scale * (cosine * high - before * low)
        wanted = m + k < n
        return jnp.where(wanted, high, low), jnp.where(wanted, following, high)

    p = jnp.full(theta.shape, 0.5 / math.sqrt(math.pi), dtype)
    p = lax.fori_loop(0, highest, diagonal, p)
    _, p = lax.fori_loop(0, highest, upward, (jnp.zeros_like(p), p))
    return jnp.where(m > n, 0.0, p)
